"""The book as `make serve` serves it."""

import socket
import urllib.request
from urllib.error import HTTPError

import pytest
import serve


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "index.html").write_text("<h1>Patches</h1>")
    return tmp_path


def fetch(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
        return answer.headers, answer.read()


def test_a_page_is_asked_for_anew_and_sent_if_it_has_changed(folder):
    with serve.served(folder) as root:
        headers, body = fetch(root)
        assert body == (folder / "index.html").read_bytes()
        assert headers["Cache-Control"] == "no-cache"
        with pytest.raises(HTTPError, match="304"):
            fetch(root, **{"If-Modified-Since": headers["Last-Modified"]})


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
