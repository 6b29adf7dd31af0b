"""Whatever goes wrong in a command is one sentence and an exit code, and no traceback."""

import codecs
import io
import json
import os
import pwd
import subprocess
import sys

import pytest
import torch
from complaints import done, failed
from stopping import content

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.checkpoints import save_checkpoint
from vit_lab.cli import main

TRAIN = ["train", "--data", "digits"]


def raising(monkeypatch, error: Exception, command: str = "recipes") -> None:
    """Let a command raise an error."""

    def fail(chosen):
        raise error

    monkeypatch.setattr(f"vit_lab.cli.{command}.run", fail)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "a.txt"), "vit: 'a.txt': Permission denied. Check that"),
        (OSError(28, "No space left on device"), "vit: No space left on device. Check that"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply: expected lists and tables"),
        (MemoryError(), "out of memory: what was asked for is too large for this machine"),
        (TypeError("no\nwonder"), r"a bug in vit_from_scratch, not a mistake of yours (TypeError: no)"),
        (RuntimeError(f"Why. {'More of it. ' * 99}"), "(RuntimeError: Why.). With the environment variable"),
        (KeyError(), "(KeyError: KeyError)"),
    ],
)
def test_an_error_that_nobody_foresaw_is_one_line(capsys, monkeypatch, error, message):
    raising(monkeypatch, error)
    assert message in failed(capsys, "recipes", code=1)


def test_vit_debug_shows_the_traceback_before_the_line(capsys, monkeypatch):
    monkeypatch.setenv("VIT_DEBUG", "1")
    raising(monkeypatch, TypeError("why"))
    assert main(["recipes"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last)")
    assert "in fail" in err
    assert err.splitlines()[-1].startswith("vit: a bug in vit_from_scratch")
    monkeypatch.setenv("VIT_DEBUG", "0")
    failed(capsys, "train", "--data", "digit")


@pytest.mark.parametrize(
    "error",
    [MemoryError(), torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("can't allocate memory: 9")],
)
def test_only_training_is_told_to_cut_its_batches(capsys, monkeypatch, error):
    for command in ("train", "study", "predict", "inspect", "cost", "evaluate"):
        raising(monkeypatch, error, command)
        more = {"inspect": ["--out", "y"], "train": []}.get(command, [])
        assert main([command, *(["x"] if command != "train" else []), *more]) == 1
        advised = "train.accumulation" in capsys.readouterr().err
        assert advised == (command in ("train", "study")), command


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_closed_stream_is_nowhere(monkeypatch, stream, tmp_path):
    monkeypatch.setattr(sys, stream, None)
    settings = ["model.depth=1", "model.dim=16", "train.steps=1", "train.warmup_steps=0"]
    assert main([*TRAIN, "--out", "x", "--set", *settings]) == 0
    assert (tmp_path / "x" / "result.json").exists()


def test_a_command_whose_outputs_the_shell_closed_ends_as_usual(tmp_path):
    for command, code in (("recipes", 0), ("cost Z/16", 2)):
        line = f"{sys.executable} -m vit_lab {command} <&- >&- 2>&-"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
@pytest.mark.parametrize("at_once", [False, True], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "arguments", [["recipes"], ["train", "--help"], ["train", "--recipe", "digits", "--show"]]
)
def test_a_full_output_is_one_line(monkeypatch, capsys, arguments, at_once):
    with open("/dev/full", "wb", buffering=0 if at_once else -1) as raw:
        full = io.TextIOWrapper(raw, write_through=at_once)
        monkeypatch.setattr(sys, "stdout", full)
        assert main(arguments) == 1
    assert capsys.readouterr().err == "vit: cannot print: No space left on device. Print to another place.\n"


def test_what_an_alphabet_lacks_is_escaped(monkeypatch):
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="surrogateescape")
    monkeypatch.setattr(
        "vit_lab.cli.recipes.recipe_rows", lambda: [("\N{LATIN SMALL LETTER E WITH ACUTE}t",)]
    )
    monkeypatch.setattr(sys, "stdout", ascii_only)
    assert main(["recipes"]) == 0
    assert rb"\xe9t" in ascii_only.buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("caf\udce9.jpg", rb"caf\udce9.jpg"),
        ("\x1b[31mred\x1b[0m.jpg", rb"\x1b[31mred\x1b[0m.jpg"),
        ("a\rb\x9b2J\u202e.jpg", rb"a\rb\x9b2J\u202e.jpg"),
        ("d\N{LATIN SMALL LETTER O WITH DIAERESIS}g.jpg", "d\xf6g.jpg".encode()),
    ],
)
def test_no_name_of_a_file_commands_a_terminal(monkeypatch, capsys, name, printed):
    strict = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    monkeypatch.setattr("vit_lab.cli.recipes.recipe_rows", lambda: [(name,)])
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", strict)
        assert main(["recipes"]) == 0
    assert printed in strict.buffer.getvalue()
    raising(monkeypatch, InputError(name))
    assert "\x1b" not in failed(capsys, "recipes")


def test_a_backend_for_windows_is_not_asked_for(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "junk")
    code = "from vit_lab.cli import main; main(['recipes']); import matplotlib.pyplot as p; p.figure()"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "is empty: expected a path"),
        ("n" * 300, "cannot be opened (File name too long)"),
        ("~nosuchuser/x", "the home folder of ~nosuchuser is unknown here"),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        [*TRAIN, "--weights", "{}"],
        [*TRAIN, "--out", "{}"],
        [*TRAIN, "--data-dir", "{}"],
        ["train", "--recipe", "digits", "--set", "data.name=folder:{}"],
        ["predict", "x.jpg", "--weights", "{}"],
        ["study", "small_data", "--out", "{}"],
        ["inspect", "x.jpg", "--out", "{}"],
        ["evaluate", "{}"],
    ],
)
def test_a_path_that_is_none_is_one_line(capsys, arguments, path, message):
    assert message in failed(capsys, *(part.format(path) for part in arguments))
    assert not os.listdir()


def test_environment_variables_may_not_name_the_home_of_nobody(capsys, monkeypatch):
    monkeypatch.setenv("VIT_DATA_DIR", "~nosuchuser")
    monkeypatch.setenv("VIT_WEIGHTS_DIR", "~nosuchuser")
    assert "VIT_DATA_DIR = '~nosuchuser': the home folder" in failed(capsys, *TRAIN, "--out", "x")
    said = failed(capsys, "predict", "x.jpg", "--weights", "B/16")
    assert "VIT_WEIGHTS_DIR = '~nosuchuser': the home folder" in said


def test_without_a_home_folder_only_downloads_are_refused(capsys, monkeypatch):
    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("VIT_WEIGHTS_DIR", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for arguments, kind in (
        (["predict", "x.jpg", "--weights", "B/16"], "weights"),
        ([*TRAIN[:2], "cifar10"], "data"),
    ):
        message = failed(capsys, *arguments)
        assert f"the home folder, where downloaded {kind} would go, is unknown here" in message
        assert f"VIT_{kind.upper()}_DIR" in message


DEEP = "[" * 5000 + "]" * 5000
LONG = "9" * 5000


WRONG = {
    "": [("trian", "invalid choice: 'trian'")],
    "train": [
        ("", "expected one of --data and --recipe"),
        ("--data digits --recipe digits", "expected one of --data and --recipe"),
        ("--data folder:/nowhere", "no image folder at /nowhere"),
        ("--data digit", "unknown data set 'digit': expected one of 'digits'"),
        ("--data cifar10 --data-dir nowhere", "no CIFAR10 in nowhere: expected cifar-10-batches-py/"),
        ("--recipe digit", "unknown recipe 'digit'"),
        ("--recipe tiny-imagenet-masked-pixels --epochs 2", "counts steps, 2100 of them"),
        ("--recipe digits --set data.name=folder:caf\udce9", "expected a path in UTF-8"),
    ],
    "train --data digits --out x": [
        ("--epochs three", "argument --epochs: invalid int value: 'three'"),
        ("--epochs 0", "train.epochs = 0: expected at least 1"),
        (f"--epochs {2**63}", "expected a whole number below 2^63"),
        ("--lr nan", "train.learning_rate = nan: expected a finite number"),
        ("--seed 0 --seeds 1 2", "not both"),
        ("--epochs 1 --set train.epochs=2", "expected --epochs or --set train.epochs, not both"),
        ("--lr 0.1 --set train.learning_rate=0.2", "expected --lr or --set train.learning_rate, not both"),
        ("--device abacus", "--device abacus: "),
        ("--device meta", "--device meta: expected cpu, cuda"),
        ("--add-to-results", "--add-to-results without a file: expected --results FILE, too."),
        ("--objective words", "invalid choice: 'words'"),
        ("--objective masked-patches", "images with 1 channels: expected 3, red, green and blue"),
    ],
    "train --data digits --out x --set": [
        ("dim=3", "--set dim=3: expected TABLE.OPTION=VALUE"),
        ("objective=x", "--set objective=x: expected TABLE"),
        ("model.heds=3", "unknown option of [model] 'heds'"),
        ("model.patch_size=3", "patch_size 3 does not divide"),
        ("model.heads=5", "heads=5 does not divide dim="),
        ("model.dim=-4 --show", "model.dim = -4: expected at least 1"),
        ("model.dropout=1.5 --show", "model.dropout = 1.5: expected a probability"),
        ("model.heads=5 --show", "heads=5 does not divide dim="),
        ("model.pool=max", "unknown model.pool 'max'"),
        ("model.dim=1000000001", "model.dim = 1000000001: expected at least 1, at most"),
        (f"model.dim={2**62}", "model.dim = 4611686018427387904: expected"),
        (f"model.dim={LONG}", "--set model.dim holds a number of thousands of digits"),
        (f"model.dim={DEEP}", "--set model.dim is nested too deeply"),
        ("model.depth=3000000", "model.depth = 3000000: expected at least 0, at most 1,000"),
        ("train.learning_rate=1e39", "learning_rate = 1e+39: expected a finite number"),
        (f"train.learning_rate=1{'0' * 400}", "expected a finite number below 3.4e38"),
        ("train.augmentation.mixup=1e-300", "mixup = 1e-300: expected 0, or 0.01 to 1000"),
        ("data.image_size=99999999", "data.image_size = 99999999: expected 1 to 65,536"),
        (r'data.name="folder:\u0000"', "expected a path without a null character"),
    ],
    "train --data digits --out x --objective masked-pixels --set": [
        ("train.label_smoothing=0.1", "0.1 with objective = 'masked-pixels': expected 0"),
        (
            "data.validation_size=0",
            "digits-masked-pixels has no validation images to measure on: expected some",
        ),
    ],
    "finetune --data digits --weights": [
        ("nowhere", "--weights nowhere: expected one of cifar10, mnist, tiny-imagenet"),
        ("tiny-imagenet --image-size 50", "patch_size 8"),
        ("tiny-imagenet --lr 0.1 --sweep", "--sweep with --lr or --keep-epochs"),
        ("tiny-imagenet --sweep --keep-epochs 1", "--sweep with --lr or --keep-epochs"),
        ("tiny-imagenet --sweep --set train.learning_rate=0.1", "--sweep with --lr or --keep-epochs"),
        ("tiny-imagenet --sweep 0.1 0.1", "each of them once"),
        ("tiny-imagenet --sweep -1", "numbers above 0"),
        ("tiny-imagenet --epochs 2 --sweep 0.1 inf", "train.learning_rate = inf"),
        ("tiny-imagenet --sweep --out other.json", "other.json is a file: expected a"),
        ("tiny-imagenet --sweep --results other.json", "is not a summary of runs"),
        ("tiny-imagenet --sweep --set data.validation_size=0", "there are none"),
        ("tiny-imagenet --seeds 0 --out other.json", "is a file: expected a folder"),
        ("tiny-imagenet --keep-epochs 99", "--keep-epochs 99: expected 0 to 60, the"),
    ],
    "study small_data": [("--add-to-results --out x", "--add-to-results without a file: expected")],
    "evaluate nowhere": [
        ("", "config.toml cannot be read"),
        ("--data cifar10", "unrecognized arguments: --data cifar10"),
    ],
    "predict none.jpg": [
        ("", "no picture at none.jpg"),
        (
            "--weights B/17",
            "--weights B/17: expected one of cifar10, mnist, tiny-imagenet, tiny-imagenet-masked-pat",
        ),
        ("--weights x.safetensors", "no checkpoint at x.safetensors"),
        ("--weights .", "--weights .: it is not the folder of a finished run"),
        ("--top 201", "--top 201: expected 1 to 200"),
    ],
    "inspect none.jpg --out x": [("", "no picture at none.jpg")],
    "probe --weights start.safetensors --data digits": [
        ("--layer 7", "layer 7: expected 0 to 2"),
        ("--image-size 10", "patch_size 4"),
        ("--image-size 0", "image_size = 0: expected"),
        ("--neighbours 1201", "neighbours = 1201: expected 1 to 1,200, the images that can vote"),
        ("--neighbours 0", "neighbours = 0: expected 1 to"),
        ("--methods linear few", "invalid choice: 'few'"),
    ],
    "export": [
        ("nope", "vit export nope: expected one of cifar10, mnist, tiny-imagenet"),
        ("none.safetensors", "no checkpoint at none.safetensors"),
        ("start.safetensors --out x.txt", "--out x.txt: expected a name that ends in .onnx"),
        ("start.safetensors --out x.onnx --format pt2", "expected a name that ends in .pt2"),
        ("start.safetensors --image-size 0", "image_size = 0: expected"),
        ("start.safetensors --image-size 9", "patch_size 4 does not divide the image size 9 x 9"),
        ("start.safetensors --format tflite", "invalid choice: 'tflite'"),
    ],
    "cost": [
        ("", "expected either a variant, for instance `vit cost B/16`, or --table6"),
        ("B/16 --table6", "expected either a variant"),
        ("--table6 --image-size 384", "--table6 with --image-size: expected --table6 alone"),
        ("Z/16", "unknown variant 'Z/16'"),
        ("R50+B/8", "unknown variant 'R50+B/8'"),
        (f"B/{LONG}", "unknown variant"),
        ("B/15", "patch_size 15 does not divide"),
        ("B/16 --batch 0", "batch = 0: expected at least 1 image"),
        ("B/16 --precision half", "argument --precision: invalid choice: 'half'"),
        ("B/16 --optimiser lion", "argument --optimiser: invalid choice: 'lion'"),
        ("B/16 --image-size 16000000000", "model.image_size = 16000000000: expected"),
        ("B/16 --image-size 999999999", "model.image_size = 999999999: expected"),
        (f"B/16 --image-size {LONG}", "invalid int value"),
        (f"B/16 --classes {2**62}", "expected at least 1, at most 1,048,576"),
    ],
}
CASES = [(command, rest, message) for command, rows in WRONG.items() for rest, message in rows]


@pytest.mark.parametrize(("command", "rest", "message"), CASES, ids=range(len(CASES)))
def test_wrong_input_is_one_line_and_nothing_is_written(command, rest, message, tmp_path, make_model, capsys):
    save_checkpoint(tmp_path / "start.safetensors", make_model())
    (tmp_path / "other.json").write_text("[]")
    before = content(tmp_path)
    assert message in failed(capsys, *command.split(), *rest.split())
    assert content(tmp_path) == before


def test_a_place_for_results_that_cannot_be_written_to_is_refused_before_training(
    capsys, tmp_path, monkeypatch
):
    def full(dir):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    said = failed(capsys, *TRAIN, "--out", "x", "--results", "there/x.json")
    assert "cannot write there/x.json: Read-only file system" in said
    assert content(tmp_path) == {}


def test_a_run_on_its_way_is_not_yet_a_model(capsys, tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "checkpoint.safetensors").write_bytes(b"half")
    said = failed(capsys, "export", "x")
    assert "x: it is not the folder of a finished run" in said
    assert "Train it to the end, with the same command" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(capsys, tmp_path):
    for name in ("x.toml", "x.jpg", "x.safetensors"):
        os.mkfifo(tmp_path / name)
    assert "expected a TOML file" in failed(capsys, "train", "--recipe", "x.toml")
    assert "expected a TOML file" in failed(capsys, "study", "x.toml")
    assert "it is not a file" in failed(capsys, "predict", "x.jpg")
    said = failed(capsys, "predict", "x.jpg", "--weights", "x.safetensors")
    assert "no checkpoint at x.safetensors" in said


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
)
def test_a_recipe_with_a_byte_order_mark_is_read(capsys, tmp_path, mark, encoding):
    """As editors write it, and PowerShell's `>`."""
    (tmp_path / "mine.toml").write_bytes(mark + "[data]\r\nname = 'digits'\r\n".encode(encoding))
    assert 'name = "digits"' in done(capsys, "train", "--recipe", "mine.toml", "--show")


def test_a_single_image_of_a_single_patch_is_too_little_for_batch_norm(capsys):
    stem = ["model.stem.kind=conv", "model.stem.width=8", "model.patch_size=8"]
    one = [*TRAIN, "--out", "x", "--batch-size"]
    message = failed(capsys, *one, "1", "--set", *stem)
    assert "leaves batch norm one value: expected pieces of 2 images or more" in message
    assert "batch norm" in failed(capsys, *one, "3", "--set", "train.accumulation=2", *stem), "2 and 1"
    assert not os.listdir()


def test_a_mac_s_device_elsewhere_is_one_short_sentence(monkeypatch, capsys):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    said = "vit: --device mps: There is none here. Expected a device of this machine, such as cpu.\n"
    assert failed(capsys, *TRAIN, "--device", "mps") == said


def test_a_message_of_several_lines_is_printed_as_one(capsys, monkeypatch):
    raising(monkeypatch, InputError("a\nb"))
    assert failed(capsys, "recipes") == "vit: a b\n"


def test_settings_of_a_run_that_are_no_utf8_are_refused(capsys, tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.toml").write_bytes(b"[data]\nname = 'folder:caf\xe9'\n[model]\n[train]\n")
    (tmp_path / "x" / "result.json").write_text(json.dumps({}))
    assert "config.toml cannot be read" in failed(capsys, "evaluate", "x")
