"""What the laboratory looks at in photos of your own: their number and sizes, and what tells them apart."""

import os

import pytest
from complaints import done, failed

from vit_from_scratch import InputError
from vit_from_scratch.data.folders import open_folder
from vit_lab.experiments.suited import Survey, survey_own
from vit_lab.runs.fingerprints import described


def test_a_survey_counts_and_measures_and_waits_for_no_pipe(tmp_path, save_photo):
    for number in range(10):
        save_photo(tmp_path / "cat" / f"{number}.png")
        save_photo(tmp_path / "dog" / f"{number}.png", size=(40, 30))
        save_photo(tmp_path / "dog" / f"large{number}.png", size=(40, 30))
    assert survey_own(f"folder:{tmp_path}") == Survey(photos=24, side=30, classes=2)
    os.mkfifo(tmp_path / "cat" / "pipe.png")
    assert survey_own(f"folder:{tmp_path}").side == 30
    source = open_folder(tmp_path)
    assert any(
        line.endswith("cat/pipe.png ?")
        for photos in (source.train, source.test)
        for line in described(photos)
    )


def test_a_survey_of_what_is_no_picture_is_one_sentence(tmp_path):
    for name in "abcd":
        (tmp_path / name[0]).mkdir()
        for number in range(2):
            (tmp_path / name / f"{number}.jpg").write_text("no picture")
    with pytest.raises(InputError, match=r"a/0\.jpg|a/1\.jpg"):
        survey_own(f"folder:{tmp_path}")


def test_other_photos_of_the_same_names_and_sizes_are_told_apart(tmp_path, save_photo):
    lines = []
    for seed in (1, 2, 1):
        for number, name in enumerate("abab"):
            save_photo(tmp_path / name / f"{number}.bmp", seed=10 * seed + number)
        source = open_folder(tmp_path)
        lines.append([*described(source.train), *described(source.test)])
    assert lines[0] == lines[2]
    assert all(one.split()[:-1] == other.split()[:-1] for one, other in zip(*lines[:2], strict=True))
    assert not set(lines[0]) & set(lines[1])


def test_plain_pixels_that_end_alike_are_told_apart(tmp_path, save_photo):
    lines = []
    for seed in (1, 2):
        for number, name in enumerate("abab"):
            path = save_photo(tmp_path / name / f"{number}.bmp", (64, 64), seed=seed)
            content = bytearray(path.read_bytes())
            content[-5000:] = b"\xff" * 5000  # a white border
            path.write_bytes(content)
        source = open_folder(tmp_path)
        lines.append({*described(source.train), *described(source.test)})
    assert not set.intersection(*lines)


def test_a_test_photo_that_cannot_be_read_stops_a_run_before_it_begins(tmp_path, save_photo, capsys):
    for number in range(20):
        part = "test" if number % 5 == 0 else "train"
        save_photo(tmp_path / "photos" / part / "ab"[number % 2] / f"{number}.png", (16, 16), number)
    bad = tmp_path / "photos" / "test" / "b" / "5.png"
    whole = bad.read_bytes()
    bad.write_bytes(whole[: len(whole) // 2])
    small = ["data.validation_size=4", "data.image_size=16", "train.workers=0", "model.patch_size=4"]
    tiny = ["model.dim=16", "model.depth=1", "model.heads=2", "model.mlp_dim=16"]
    command = ["train", "--data", f"folder:{tmp_path / 'photos'}", "--epochs", "1", "--batch-size", "4"]
    command += ["--out", "x", "--set", *small, *tiny]
    assert "test/b/5.png cannot be read" in failed(capsys, *command)
    assert not (tmp_path / "x").exists()
    bad.write_bytes(whole)
    assert "test accuracy" in done(capsys, *command)
