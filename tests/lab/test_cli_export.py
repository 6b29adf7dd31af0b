"""`vit export`: what it prints, where files go, and what it refuses before it computes."""

from pathlib import Path

import pytest
from complaints import done, failed

from vit_classroom.checks.report import randomise
from vit_lab.cli import main
from vit_lab.export import exports


@pytest.fixture
def run(saved):
    """A run's folder, with a small model."""
    saved("run/model.safetensors", change=randomise)
    return "run"


@pytest.fixture
def instant(monkeypatch):
    """Graphs are made in no time: a run of the model itself stands for what ONNX Runtime would give."""

    def make(model, notes):
        return b"a graph", model

    monkeypatch.setattr(exports, "MAKERS", dict.fromkeys(exports.MAKERS, make))


def refused(capsys, *arguments: str) -> str:
    """Return why nothing is exported, and no file changes."""
    before = {path: path.read_bytes() for path in sorted_files()}
    said = failed(capsys, "export", *arguments)
    assert {path: path.read_bytes() for path in sorted_files()} == before
    return said


def sorted_files() -> list[Path]:
    return sorted(path for path in Path().rglob("*") if path.is_file())


def test_it_prints_what_one_has_to_know(run, capsys):
    said = done(capsys, "export", run, "--format", "safetensors-timm")
    size, takes, scaled, gives, load, checked = said.splitlines()
    assert size == "run/model.timm.safetensors: 0.0 MB"
    assert takes == "  takes images, float32 (B, 3, 8, 8), (x - mean) / std of 0 to 1"
    assert scaled == "  scaled by mean 0.5, std 0.5, assumed: the file does not say"
    assert gives.endswith("; classes class 0, class 1, class 2")
    assert load.startswith("  load it with timm.create_model('vit_base_patch16_224', checkpoint_path='model")
    assert checked.startswith("  checked: logits as here in batches of 1 and 8, within ")


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["run"], "run/model.onnx"),
        (["run/model.safetensors", "--format", "pt2"], "run/model.pt2"),
        (["run", "--out", "new/er/x.onnx"], "new/er/x.onnx"),
        (["cifar10"], "cifar10.onnx"),
        (["cifar10", "--format", "pt2", "--image-size", "40"], "cifar10.pt2"),
    ],
)
def test_where_files_go(arguments, file, run, instant, capsys):
    before = sorted_files()
    assert main(["export", *arguments]) == 0
    assert [str(path) for path in sorted_files() if path not in before] == [file]
    out = capsys.readouterr().out
    assert out.startswith(f"{file}: 0.0 MB\n  takes images, float32 (B, 3, ")
    assert "from 0 to 1; (x - mean) / std is inside" in out
    assert ("assumed" in out) == ("cifar10" not in arguments)
    assert ("(B, 3, 40, 40)" in out) == ("40" in arguments)
    if "cifar10" in arguments:
        assert "classes airplane, automobile, ..., truck" in out


def test_a_file_that_is_there_is_left_alone(run, capsys):
    with open("run/model.onnx", "w") as file:
        file.write("mine")
    assert "run/model.onnx exists: expected no such file" in refused(capsys, run)
    assert "or name another file with --out FILE" in refused(capsys, run, "--out", "run/model.onnx")


def test_a_place_that_cannot_be_written_to_is_one_line_before_anything_is_made(run, capsys, monkeypatch):
    monkeypatch.setattr(exports, "MAKERS", {})
    with open("file", "w") as file:
        file.write("no folder")
    assert "cannot write file/x.onnx" in refused(capsys, run, "--out", "file/x.onnx")


def test_without_onnx_runtime_it_says_that_nothing_was_compared(run, capsys, monkeypatch):
    monkeypatch.setattr(exports, "MAKERS", {"onnx": lambda model, notes: (b"a graph", None)})
    assert "not checked, as onnxruntime is not installed here" in done(capsys, "export", run)


@pytest.mark.parametrize(
    ("format", "sentence"),
    [
        ("onnx", "--format onnx needs onnx, onnxscript; not installed here: onnx onnxscript. "),
        ("safetensors-timm", "--format safetensors-timm needs timm; not installed here: timm. "),
    ],
)
def test_a_missing_package_is_one_sentence_with_what_to_type(format, sentence, run, capsys, monkeypatch):
    monkeypatch.setattr("vit_lab.export.formats.find_spec", lambda name: None)
    err = refused(capsys, run, "--format", format)
    assert sentence in err
    assert "Run: pip install " in err
