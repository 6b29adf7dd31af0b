"""A tar file of photos with their classes, which bears its name only when it is whole."""

import contextlib
import os
import tarfile
from io import BytesIO
from pathlib import Path

from vit_from_scratch.files import writing


class ShardWriter:
    """A tar file under another name until it is whole."""

    def __init__(self, path: Path) -> None:
        """Begin a shard that is to stand at a path.

        Raises:
            InputError: nothing can be written there, as in all that follows.
        """
        self.path, self.unfinished = path, path.with_name(f".{path.name}.part")
        self.photos = 0
        with writing(path):
            self.file = self.unfinished.open("wb")
            self.tar = tarfile.open(fileobj=self.file, mode="w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115

    def has_room(self, size: int, most: int) -> bool:
        """Say whether a photo of so many bytes fits: two heads, its class, and the end of the file."""
        return self.tar.offset + size + 5 * tarfile.BLOCKSIZE <= most

    def add(self, key: str, ending: str, content: bytes, label: int) -> int:
        """Add a photo and its class; return the place of its first byte."""
        with writing(self.path):
            self._add(f"{key}.cls", str(label).encode())
            self._add(f"{key}{ending}", content)
        self.photos += 1
        return self.tar.offset - -(-len(content) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE

    def finish(self) -> Path:
        """Bring the file to the disk and give it its name."""
        with writing(self.path):
            self.tar.close()
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            os.replace(self.unfinished, self.path)
        return self.path

    def drop(self) -> None:
        """Remove what was written."""
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            self.unfinished.unlink()

    def _add(self, name: str, content: bytes) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), 0o644
        self.tar.addfile(info, BytesIO(content))
