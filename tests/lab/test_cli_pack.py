"""`vit pack`: from a folder of photos to shards, and from shards to a trained model."""

import json
import os
import tarfile
import tomllib

import pytest

from vit_lab.cli import main

QUICK = [
    "--epochs",
    "1",
    "--set",
    "model.dim=8",
    "model.heads=1",
    "model.depth=1",
    "model.mlp_dim=8",
    "train.workers=0",
    "train.threads=1",
]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def photos(tmp_path, save_photo):
    """Ten photos of random pixels of each of two classes."""
    for seed in range(20):
        name = "cat" if seed < 10 else "dög"
        save_photo(tmp_path / "photos" / name / f"{seed % 10}.png", (40, 36), seed)


def failed(capsys, *arguments):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert err.count("\n") == 1
    assert out == ""
    return err


def test_from_a_folder_to_shards_to_a_model(photos, tmp_path, capsys):
    assert main(["pack", "photos", "packed", "--shard-size", "0.03"]) == 0
    size = sum(entry.stat().st_size for entry in os.scandir("packed") if entry.name.endswith(".tar"))
    shards = sum(name.endswith(".tar") for name in os.listdir("packed"))
    counted = (
        f"packed: 16 train, 0 validation, 4 test photos of 2 classes in {shards} shards, {size / 1e6:.1f} MB"
    )
    next_ = "next: vit train --data shards:packed"
    assert capsys.readouterr().out.splitlines() == [counted, next_]
    assert main(["pack", "photos", "packed", "--shard-size", "0.03"]) == 0
    assert capsys.readouterr().out.splitlines() == ["packed was packed already", counted, next_]
    assert main(["pack", "--check", "packed"]) == 0
    assert f"all {shards} shards are as they were written" in capsys.readouterr().out

    results = []
    for name in ("shards:packed", "folder:photos"):
        run = name.partition(":")[0]
        assert main(["train", "--data", name, "--out", run, *QUICK]) == 0
        chosen, drawn, _ = capsys.readouterr().out.splitlines()
        assert "16 training photos of 2 classes, short side 36 pixels" in chosen
        assert "has no test part: 4 of its 20 photos" in drawn
        results.append(json.loads((tmp_path / run / "result.json").read_text()))
    assert results[0]["test_loss"] == results[1]["test_loss"]
    assert main(["evaluate", "shards"]) == 0
    assert "the same accuracy" in capsys.readouterr().out
    settings = tomllib.loads((tmp_path / "shards" / "config.toml").read_text())
    assert settings["data"]["name"] == f"shards:{os.path.realpath('packed')}"


def test_damaged_photos_are_named(photos, capsys):
    with open("photos/cat/3.png", "wb") as file:
        file.write(b"no picture")
    assert "photos/cat/3.png is no picture that can be read" in failed(capsys, "pack", "photos", "packed")
    assert main(["pack", "photos", "packed", "--skip-damaged"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "photos/cat/3.png is damaged: left out"


def test_ctrl_c_says_how_to_go_on(photos, capsys, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("vit_lab.large_data.packing.check_photo", stop)
    assert main(["pack", "photos", "packed"]) == 130
    assert "the same command goes on from there" in capsys.readouterr().err
    assert os.listdir("packed") == ["packing.json"]


def test_shards_of_others_are_indexed(tmp_path, photos, capsys):
    (tmp_path / "others").mkdir()
    for part, numbers in (("train", range(6)), ("test", range(6, 10))):
        with tarfile.open(tmp_path / "others" / f"{part}-0.tar", "w") as tar:
            for number in numbers:
                for label, name in enumerate(("cat", "dög")):
                    (tmp_path / "label").write_text(str(label))
                    tar.add(tmp_path / "photos" / name / f"{number}.png", f"{name}{number}.png")
                    tar.add(tmp_path / "label", f"{name}{number}.cls")
    assert "has no checksums" in failed(capsys, "pack", "--check", "others")
    assert main(["pack", "--index", "others"]) == 0
    assert "12 train, 0 validation, 8 test photos of 2 classes in 2 shards" in capsys.readouterr().out
    assert main(["pack", "--check", "others"]) == 0
    capsys.readouterr()
    assert "has an index" in failed(capsys, "pack", "--index", "others")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("pack", "expected two folders: vit pack FOLDER SHARDS"),
        ("pack photos", "expected two folders"),
        ("pack photos x --index y", "expected no other option"),
        ("pack --index y --check z", "not allowed with argument"),
        ("pack nowhere x", "no image folder at nowhere"),
        ("pack photos x --shard-size 0", "--shard-size 0: expected 0.001"),
        ("pack photos x --seed -1", "--seed -1: expected 0"),
        ("pack photos photos/x", "expected shards outside the photos"),
        ("pack --index nowhere", "no shards at nowhere"),
        ("pack --check photos", "no shards at photos"),
        ("train --data shards:nowhere", "no shards at"),
    ],
)
def test_wrong_input_is_one_line(photos, capsys, arguments, message):
    assert message in failed(capsys, *arguments.split())
    assert os.listdir() == ["photos"]
