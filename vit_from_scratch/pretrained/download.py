"""Fetch a file once: with a progress bar, resumed after a cut, checked, and never half there."""

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tqdm import tqdm

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import download_folder, typed_path
from vit_from_scratch.progress import progress_refused

CHUNK = 1 << 20
TIMEOUT = 30  # seconds without a byte


def cache_folder() -> Path:
    """Return the folder that holds downloaded weights: the one that VIT_WEIGHTS_DIR names, or a cache.

    Raises:
        InputError: it names no path, or there is neither that nor a home folder for the cache.
    """
    named = os.environ.get("VIT_WEIGHTS_DIR")
    return typed_path(named, "VIT_WEIGHTS_DIR") if named else download_folder("weights")


def fetch(url: str, name: str, sha256: str = "") -> Path:
    """Return the path of a file from the web; it is downloaded on first use.

    What arrives goes to `NAME.part`, and to its place only when it is whole and checked. A download that was
    cut off goes on from there the next time, if the server can.

    Args:
        url: where it is published.
        name: what to call it in the cache.
        sha256: the beginning of its checksum; "" where none is published, and the length alone is checked.

    Raises:
        InputError: no network, no such file, a server's error, a cut connection, another checksum, or a cache
            that cannot be written to; one sentence each, and no broken file is left.
    """
    target = cache_folder() / name
    if os.path.isfile(target):  # unlike the path's own is_file, no error where it may not look
        return target
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _download(url, part, name)
        _check(part, sha256, url)
        os.replace(part, target)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise InputError(_reason(url, name, error)) from error
    except OSError as error:
        raise InputError(
            f"cannot write {target} ({error.strerror or error}): expected a folder that you may write to, "
            "with room in it. Free some space, or name another folder in VIT_WEIGHTS_DIR."
        ) from error
    return target


def _download(url: str, part: Path, name: str) -> None:
    """Write the rest of the file after what is there already."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to send, or the file has changed: begin again
            part.unlink(missing_ok=True)
            response = urllib.request.urlopen(url, timeout=TIMEOUT)
        else:
            raise
    with response:
        goes_on = response.status == 206
        length = response.headers.get("Content-Length")
        total = int(length) + (start if goes_on else 0) if length else None
        shown = sys.stderr.isatty() and not progress_refused()
        with (
            part.open("ab" if goes_on else "wb") as file,
            tqdm(
                total=total,
                initial=start if goes_on else 0,
                unit="B",
                unit_scale=True,
                desc=name,
                disable=not shown,
            ) as bar,
        ):
            while chunk := response.read(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    found = part.stat().st_size
    if total is not None and found < total:
        raise ConnectionError(f"cut off after {found:,} of {total:,} bytes")


def _check(part: Path, sha256: str, url: str) -> None:
    """Compare the beginning of the checksum; delete what is wrong."""
    if not sha256:
        return
    digest = hashlib.sha256()
    with part.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    if not digest.hexdigest().startswith(sha256):
        part.unlink()
        raise InputError(
            f"{url} arrived with the checksum {digest.hexdigest()[: len(sha256)]}: expected {sha256}. It was "
            "deleted; try again, and if it happens again, the published file has changed."
        )


def _reason(url: str, name: str, error: Exception) -> str:
    """Say in one sentence what went wrong on the way."""
    if isinstance(error, urllib.error.HTTPError):
        what = {404: "is not there any more", 403: "may not be read"}.get(error.code, "cannot be had now")
        return f"{url} {what} (HTTP {error.code} {error.reason}): expected published weights. Try later."
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        reason = f"no answer for {TIMEOUT} seconds"
    return (
        f"{name} cannot be downloaded ({reason}): expected a connection to {url.split('/')[2]}. Connect to a "
        "network and run the same again; it goes on from what has arrived."
    )
