"""`vit pack`: from a folder of photos to shards, and from shards to a trained model."""

import json
import os
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
    counted = "packed: 16 train, 0 validation, 4 test photos of 2 classes"
    assert capsys.readouterr().out.splitlines() == [counted, "next: vit train --data shards:packed"]

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
    said = "photos/cat/3.png is not a picture that can be read"
    assert said in failed(capsys, "pack", "photos", "packed")
    assert main(["pack", "photos", "packed", "--skip-damaged"]) == 0
    assert capsys.readouterr().out.startswith(f"left out: {said}")


def test_shards_of_others_are_indexed(photos, capsys):
    assert main(["pack", "photos", "packed"]) == 0
    os.remove("packed/index.npz")
    assert "vit pack --index" in failed(capsys.readouterr() and capsys, "train", "--data", "shards:packed")
    assert main(["pack", "--index", "packed"]) == 0
    assert "packed: 16 train, 0 validation, 4 test photos of 2 classes" in capsys.readouterr().out
    assert "has an index" in failed(capsys, "pack", "--index", "packed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("pack", "expected two folders: vit pack FOLDER SHARDS"),
        ("pack photos", "expected two folders"),
        ("pack photos x --index y", "expected no other option"),
        ("pack nowhere x", "no image folder at nowhere"),
        ("pack photos x --shard-size 0", "--shard-size 0: expected 0.001"),
        ("pack photos photos/x", "expected another place"),
        ("pack --index nowhere", "no shards at nowhere"),
        ("train --data shards:nowhere", "no shards at"),
    ],
)
def test_wrong_input_is_one_line(photos, capsys, arguments, message):
    assert message in failed(capsys, *arguments.split())
    assert os.listdir() == ["photos"]
