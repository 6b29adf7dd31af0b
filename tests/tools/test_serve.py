"""The book as `make serve` serves it."""

import gzip
import socket
import urllib.request
from urllib.error import HTTPError

import pytest
import serve


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "index.html").write_text("<h1>Patches</h1>" * 500)
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "custom.css").write_text("a { color: red }" * 500)
    (tmp_path / "_static" / "cat.png").write_bytes(bytes(range(256)) * 50)
    return tmp_path


def fetch(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
        return answer.headers, answer.read()


def test_text_comes_compressed_and_pictures_as_they_are(folder):
    with serve.served(folder) as root:
        headers, body = fetch(root, **{"Accept-Encoding": "gzip"})
        assert headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(body) == (folder / "index.html").read_bytes()
        assert len(body) < 500
        headers, body = fetch(f"{root}_static/cat.png", **{"Accept-Encoding": "gzip"})
        assert headers["Content-Encoding"] is None
        assert body == (folder / "_static" / "cat.png").read_bytes()
        headers, body = fetch(root)
        assert body == (folder / "index.html").read_bytes()


def test_only_what_says_its_version_is_kept(folder):
    with serve.served(folder) as root:
        assert "immutable" in fetch(f"{root}_static/custom.css?v=1f2e")[0]["Cache-Control"]
        assert fetch(f"{root}_static/custom.css")[0]["Cache-Control"] == "no-cache"
        headers, _ = fetch(root)
        assert headers["Cache-Control"] == "no-cache"
        with pytest.raises(HTTPError, match="304"):
            fetch(root, **{"If-None-Match": headers["ETag"]})


def test_nothing_outside_the_folder_is_served(folder):
    (folder.parent / "secret.txt").write_text("secret")
    with serve.served(folder) as root, pytest.raises(HTTPError, match=r"40[34]"):
        fetch(f"{root}%2e%2e/secret.txt")


def test_a_book_that_is_not_built_is_said_in_a_sentence(tmp_path, capsys):
    assert serve.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"error: there is no book in {tmp_path}; run `make book` first.\n"


def test_a_port_that_is_taken_or_cannot_be_is_said_in_a_sentence(folder, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for port in (taken.getsockname()[1], 70000):
            assert serve.main([str(folder), "--port", str(port)]) == 1
            [line] = capsys.readouterr().err.splitlines()
            assert line.startswith(f"error: port {port} cannot be used")
            assert line.endswith("try PORT=8001")
