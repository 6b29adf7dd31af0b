"""Downloads from a server on this machine that misbehaves on demand."""

import hashlib
import http.server
import io
import threading
from http.client import IncompleteRead
from ssl import SSLError
from typing import ClassVar

import numpy as np
import pytest

from vit_from_scratch import InputError
from vit_from_scratch.pretrained import registry


def archive() -> bytes:
    """An .npz of about 10 MB."""
    np.savez(file := io.BytesIO(), weight=np.arange(2_500_000, dtype=np.float32))
    return file.getvalue()


CONTENT = archive()
SHA = hashlib.sha256(CONTENT).hexdigest()


class Misbehaving(http.server.BaseHTTPRequestHandler):
    """What happens depends on the path: /whole, /cut, /404, /503, /no-length."""

    requests: ClassVar[list] = []

    def do_GET(self):
        self.requests.append(self.path)
        if self.path in ("/404", "/503"):
            self.send_error(int(self.path[1:]))
            return
        self.send_response(200)
        if self.path != "/no-length":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: len(CONTENT) // 2] if self.path == "/cut" else CONTENT)

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
        assert registry.fetch(address + path, "w.npz", SHA[:8]).read_bytes() == CONTENT
    assert len(Misbehaving.requests) == 1
    assert [entry.name for entry in cache.iterdir()] == ["w.npz"]


@pytest.mark.parametrize(("sha256", "message"), [("", "cut off"), (SHA, "another checksum than")])
def test_a_download_that_was_cut_leaves_nothing(address, cache, sha256, message):
    with pytest.raises(InputError, match=message):
        registry.fetch(address + "/cut", "w.npz", sha256)
    assert not list(cache.iterdir())
    assert registry.fetch(address + "/whole", "w.npz", SHA).read_bytes() == CONTENT


@pytest.mark.parametrize("code", [404, 503])
def test_a_servers_error_is_said_in_one_sentence(address, cache, code):
    with pytest.raises(InputError, match=rf"w\.npz cannot be downloaded \(HTTP Error {code}: .*/{code}\."):
        registry.fetch(f"{address}/{code}", "w.npz")
    assert not list(cache.iterdir())


def test_a_wrong_checksum_is_refused_and_deleted(address, cache):
    with pytest.raises(InputError, match=r"arrived with another checksum than 00000000.*It was deleted"):
        registry.fetch(address + "/whole", "w.npz", "00000000")
    assert not list(cache.iterdir())


def test_no_network_is_said_in_one_sentence(cache):
    with pytest.raises(InputError, match=r"w\.npz cannot be downloaded \(.*refused.*Connect to a network"):
        registry.fetch("http://127.0.0.1:9/w.npz", "w.npz")


def test_a_cache_that_cannot_be_written_to_is_said_so(address, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("VIT_WEIGHTS_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"cannot write .*another folder in VIT_WEIGHTS_DIR"):
        registry.fetch(address + "/whole", "w.npz")


def test_a_full_disk_is_said_so(address, cache, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(registry.os, "replace", full)
    with pytest.raises(InputError, match=r"cannot write .*No space left on device"):
        registry.fetch(address + "/whole", "w.npz")
    assert not (cache / "w.npz").exists()


@pytest.mark.parametrize("error", [SSLError("record layer failure"), IncompleteRead(b"half")], ids=repr)
def test_a_broken_connection_is_not_the_disks_fault(monkeypatch, error):
    def broken(*arguments, **options):
        raise error

    monkeypatch.setattr(registry.torch.hub, "download_url_to_file", broken)
    with pytest.raises(InputError, match=r"w\.npz cannot be downloaded .*Connect to a network or try later"):
        registry.fetch("https://example.org/w.npz", "w.npz")
