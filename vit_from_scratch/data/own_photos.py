"""Photos of your own, by the name of their data set: a folder of files, or shards. Nothing needs PyTorch."""

from pathlib import Path

from vit_from_scratch.data.config import FOLDER
from vit_from_scratch.data.folders import Survey, list_folder, survey


def survey_own(name: str, path: Path) -> Survey:
    """Look at some of the photos of a data set of your own.

    Args:
        name: such as "folder:photos" or "shards:packed".
        path: where that is.

    Raises:
        InputError: there are no photos in classes, or none of those looked at is a picture.
    """
    if name.startswith(FOLDER):
        found = list_folder(path)
        return survey([photo for photo, _ in found.train], len(found.classes))
    from vit_lab.large_data.tars import open_shards  # imported here: a folder needs no NumPy

    index = open_shards(path)
    return survey(index.photos("train"), len(index.classes))
