"""Downloads from a server on this machine that misbehaves on demand."""

import hashlib
import http.server
import threading
from typing import ClassVar

import pytest

from vit_from_scratch import InputError
from vit_from_scratch.pretrained import download

CONTENT = bytes(range(256)) * 40_000  # about 10 MB
SHA = hashlib.sha256(CONTENT).hexdigest()


class Misbehaving(http.server.BaseHTTPRequestHandler):
    """What happens depends on the path: /whole, /cut, /404, /503, /no-length."""

    requests: ClassVar[list] = []

    def do_GET(self):
        self.requests.append((self.path, self.headers.get("Range")))
        if self.path in ("/404", "/503"):
            self.send_error(int(self.path[1:]))
            return
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if self.path != "/no-length":
            self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        rest = CONTENT[start:]
        self.wfile.write(rest[: len(rest) // 2] if self.path == "/cut" else rest)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VIT_WEIGHTS_DIR", str(tmp_path / "cache"))
    Misbehaving.requests.clear()
    return tmp_path / "cache"


@pytest.mark.parametrize("path", ["/whole", "/no-length"])
def test_a_file_is_fetched_once(address, cache, path):
    for _ in range(2):
        assert download.fetch(address + path, "w.npz", SHA[:8]).read_bytes() == CONTENT
    assert len(Misbehaving.requests) == 1
    assert [entry.name for entry in cache.iterdir()] == ["w.npz"]


def test_a_download_that_was_cut_goes_on_where_it_stopped(address, cache):
    with pytest.raises(
        InputError, match=r"cannot be downloaded \(.*\): expected a connection to 127\.0\.0\.1.*goes on"
    ):
        download.fetch(address + "/cut", "w.npz", SHA)
    assert not (cache / "w.npz").exists()
    arrived = (cache / "w.npz.part").stat().st_size
    assert 0 < arrived < len(CONTENT)
    assert download.fetch(address + "/whole", "w.npz", SHA).read_bytes() == CONTENT
    assert Misbehaving.requests[-1] == ("/whole", f"bytes={arrived}-")


def test_a_partial_file_that_is_too_long_is_begun_again(address, cache):
    cache.mkdir()
    (cache / "w.npz.part").write_bytes(CONTENT + b"more")
    assert download.fetch(address + "/whole", "w.npz", SHA).read_bytes() == CONTENT


@pytest.mark.parametrize(("code", "message"), [(404, "is not there any more"), (503, "cannot be had now")])
def test_a_servers_error_is_said_in_one_sentence(address, cache, code, message):
    with pytest.raises(InputError, match=rf"{message} \(HTTP {code}"):
        download.fetch(f"{address}/{code}", "w.npz")
    assert not list(cache.iterdir())


def test_a_wrong_checksum_is_refused_and_deleted(address, cache):
    with pytest.raises(
        InputError, match=r"arrived with the checksum \w{8}: expected 00000000\. It was deleted"
    ):
        download.fetch(address + "/whole", "w.npz", "00000000")
    assert not list(cache.iterdir())


def test_no_network_is_said_in_one_sentence(cache):
    with pytest.raises(InputError, match=r"w\.npz cannot be downloaded \(.*refused.*Connect to a network"):
        download.fetch("http://127.0.0.1:9/w.npz", "w.npz")


def test_a_cache_that_cannot_be_written_to_is_said_so(address, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("VIT_WEIGHTS_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"cannot write .*another folder in VIT_WEIGHTS_DIR"):
        download.fetch(address + "/whole", "w.npz")


def test_a_full_disk_is_said_so(address, cache, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(download.os, "replace", full)
    with pytest.raises(InputError, match=r"cannot write .*No space left on device"):
        download.fetch(address + "/whole", "w.npz")
    assert not (cache / "w.npz").exists()
