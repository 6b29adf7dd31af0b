"""Locks and leftovers: what keeps two processes apart, and what a killed one leaves."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vit_from_scratch import InputError
from vit_from_scratch.files import remove_leftovers, write_json
from vit_lab.cli.training import check_writable
from vit_lab.runs.locks import locked

HOLD = """
import os, sys, time
from pathlib import Path
from vit_lab.runs.locks import locked

with locked(Path(sys.argv[1])):
    if os.fork() == 0:  # a worker, which outlives its parent for a while
        sys.stdin.read()
        os._exit(0)
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process, with a worker, that holds the folder `shared`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "shared")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()  # which ends the worker, too


def test_a_folder_is_held_by_one_process_until_it_dies(tmp_path, holder):
    folder = tmp_path / "shared"
    with pytest.raises(InputError, match=r"shared is in use by another process.*choose another folder"):
        locked(folder).__enter__()
    holder.kill()  # as kill -9 does: it cannot tidy up
    holder.wait()
    with locked(folder):
        pass
    assert not folder.exists() or os.listdir(folder) == []


def test_a_lock_leaves_nothing_behind(tmp_path):
    with locked(tmp_path / "new"):
        assert os.listdir(tmp_path / "new") == [".lock"]
    assert os.listdir(tmp_path) == []
    (tmp_path / "there").mkdir()
    with locked(tmp_path / "there"):
        pass
    assert os.listdir(tmp_path) == ["there"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_gone_on_with(tmp_path, monkeypatch, number):
    def unable(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("vit_lab.runs.locks.fcntl.lockf", unable)
    with locked(tmp_path / "x"):
        (tmp_path / "x" / "mine").touch()
    assert (tmp_path / "x" / "mine").exists()


def test_only_leftovers_of_ours_are_removed(tmp_path):
    for name in (
        ".result.json.k3_xw0a1",
        ".result.json.bak",
        ".result.json",
        "result.json",
        ".a.json.k3_xw0a1",
    ):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path, ["result.json"])
    assert set(os.listdir(tmp_path)) == {
        ".result.json.bak",
        ".result.json",
        "result.json",
        ".a.json.k3_xw0a1",
    }


def test_a_place_that_cannot_be_written_to_is_named_beforehand(tmp_path):
    check_writable(tmp_path / "new" / "folder" / "x.json")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file" / "x.json", tmp_path / ("x" * 300) / "x.json"):
        with pytest.raises(InputError, match="cannot write"):
            check_writable(wrong)


def test_what_a_file_holds_already_is_not_written(tmp_path, monkeypatch):
    path: Path = tmp_path / "x.json"
    write_json(path, {"a": 1})

    def never(*arguments):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("vit_from_scratch.files.write_atomically", never)
    write_json(path, {"a": 1})
    with pytest.raises(InputError, match="Read-only"):
        write_json(path, {"a": 2})


def test_json_has_each_innermost_table_on_a_line_of_its_own_unless_it_is_long(tmp_path):
    curves = [{"epoch": epoch, "loss": 0.5, "of": 'a [ and a "}'} for epoch in (1, 2)]
    content = {"name": "x\ny", "none": [], "long": list(range(200)), "curves": curves}
    path = tmp_path / "result.json"
    write_json(path, content)
    text = path.read_text("utf-8")
    assert json.loads(text) == content
    assert '\n  { "epoch": 1, "loss": 0.5, "of": "a [ and a \\"}" },\n' in text
    assert len(text.splitlines()) > 200
