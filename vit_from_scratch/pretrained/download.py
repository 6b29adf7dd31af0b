"""Fetch a file once: with a progress bar, checked, and never half there."""

import os
import sys
import urllib.error
import zipfile
from pathlib import Path

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import download_folder, typed_path
from vit_from_scratch.progress import progress_refused


def cache_folder() -> Path:
    """Return the folder that holds downloaded weights: the one that VIT_WEIGHTS_DIR names, or a cache.

    Raises:
        InputError: it does not name a path, or there is neither that nor a home folder for the cache.
    """
    named = os.environ.get("VIT_WEIGHTS_DIR")
    return typed_path(named, "VIT_WEIGHTS_DIR") if named else download_folder("weights")


def fetch(url: str, name: str, sha256: str = "") -> Path:
    """Return the path of a file from the web; it is downloaded on first use, by torch.

    Args:
        url: where it is published.
        name: what to call it in the cache.
        sha256: the beginning of its checksum; "" where none is published. Then the file has to be a whole zip
            archive, as .npz is.

    Raises:
        InputError: no network, no such file, a server's error, a cut connection, another checksum, or a cache
            that cannot be written to; one sentence each, and no broken file is left.
    """
    target = cache_folder() / name
    if os.path.isfile(target):  # unlike the path's own is_file, no error where it may not look
        return target
    from torch.hub import download_url_to_file  # imported here: what is in the cache needs none of it

    shown = sys.stderr.isatty() and not progress_refused()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{name}.{os.getpid()}.part")
        try:
            download_url_to_file(url, str(part), sha256 or None, progress=shown)
            if not (sha256 or zipfile.is_zipfile(part)):  # its list is at the end
                raise ConnectionError("it was cut off")
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except urllib.error.HTTPError as error:
        what = {404: "is not there any more", 403: "may not be read"}.get(error.code, "cannot be had now")
        raise InputError(
            f"{url} {what} (HTTP {error.code} {error.reason}): expected published weights. Try later."
        ) from error
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise InputError(
            f"{name} cannot be downloaded ({getattr(error, 'reason', error)}): expected a connection to "
            f"{url.split('/')[2]}. Connect to a network and run the same again."
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot write {target} ({error.strerror or error}): expected a folder that you may write to, "
            "with room in it. Free some space, or name another folder in VIT_WEIGHTS_DIR."
        ) from error
    except RuntimeError as error:  # torch's, of a checksum
        raise InputError(
            f"{url} arrived with another checksum than {sha256}: expected the published file. It was "
            "deleted; try again, and if it happens again, the published file has changed."
        ) from error
    return target
