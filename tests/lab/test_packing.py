"""Photos of a folder in shards: the same bytes, labels, classes and parts, and nothing half-written."""

import json
import os
import tarfile
from pathlib import Path

import pytest
import torch
from vit_lab.large_data.shard_writer import ShardWriter
from vit_lab.large_data.tars import open_shards

from vit_from_scratch import InputError
from vit_from_scratch.data import DataConfig, open_dataset
from vit_lab.large_data.packing import pack

SMALL = 0.008
"""MB in a shard, so that a few photos fill several."""


@pytest.fixture
def photos(tmp_path, save_photo):
    """Photos in all three parts: names in Unicode, with dots and spaces, and two of the same stem."""
    root = tmp_path / "photos"
    for part, count in (("train", 6), ("val", 2), ("test", 3)):
        for label, name in enumerate(("Käfer", "猫")):
            for number in range(count):
                save_photo(
                    root / part / name / f"{number}.x y.png",
                    (20, 24),
                    seed=1000 * count + 100 * label + number,
                )
    save_photo(root / "train" / "猫" / "same.JPG", (21, 20), seed=7)
    save_photo(root / "train" / "猫" / "same.png", (22, 20), seed=8)
    save_photo(root / "train" / "猫" / "deeper" / "é.jpeg", (23, 20), seed=9)
    return root


@pytest.fixture
def packed(photos, tmp_path):
    pack(photos, tmp_path / "packed", SMALL)
    return tmp_path / "packed"


def opened(kind, path, **options):
    return open_dataset(DataConfig(f"{kind}:{path}", image_size=16, **options))


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def drawn_only(photos, tmp_path):
    """The training photos alone, without parts."""
    return (photos / "train").rename(tmp_path / "alone")


@pytest.mark.parametrize("parts", [True, False], ids=["three parts", "no parts"])
@pytest.mark.parametrize("validation", [None, 4])
def test_packed_and_unpacked_photos_are_the_same(photos, tmp_path, parts, validation):
    root = photos if parts else drawn_only(photos, tmp_path)
    pack(root, tmp_path / "packed", SMALL)
    loose = opened("folder", root, validation_size=validation)
    dense = opened("shards", tmp_path / "packed", validation_size=validation)
    assert dense.class_names == loose.class_names == ("Käfer", "猫")
    assert torch.equal(dense.train, loose.train)
    assert torch.equal(dense.validation, loose.validation)
    assert torch.equal(dense.source.validation, loose.source.validation)
    assert bool(dense.source.note) is bool(loose.source.note) is not parts
    for ours, theirs in ((dense.source.train, loose.source.train), (dense.source.test, loose.source.test)):
        assert torch.equal(ours.labels, theirs.labels)
        assert [photo.read() for photo in ours.files] == [Path(file).read_bytes() for file in theirs.files]
        for number, file in enumerate(theirs.files):
            assert str(ours.files[number]).endswith(f"({Path(file).relative_to(root).as_posix()})")
            assert ours[number][0].tobytes() == theirs[number][0].tobytes()


def test_shards_are_what_webdataset_reads(photos, packed):
    import webdataset

    loose = opened("folder", photos)
    expected = {
        (Path(file).read_bytes(), label)
        for file, label in zip(loose.source.train.files, loose.source.train.labels.tolist(), strict=True)
    }
    tars = [str(path) for path in sorted(packed.glob("[tv][ra]*.tar"))]  # train and validation
    seen = []
    for sample in webdataset.WebDataset(tars, shardshuffle=False):
        pictures = [ending for ending in sample if ending in ("jpg", "jpeg", "png")]
        assert len(pictures) == 1
        seen.append((sample[pictures[0]], int(sample["cls"])))
    assert len(seen) == len(expected) == 19
    assert set(seen) == expected


def test_training_photos_are_shuffled_by_the_seed_and_the_others_keep_their_order(photos, packed, tmp_path):
    def order(folder, part):
        return [name for tar in sorted(folder.glob(f"{part}-*.tar")) for name in tarfile.open(tar).getnames()]

    pack(photos, tmp_path / "again", SMALL)
    pack(photos, tmp_path / "other", SMALL, seed=1)
    assert files_of(tmp_path / "again") == files_of(packed)
    assert order(tmp_path / "other", "train") != order(packed, "train") != sorted(order(packed, "train"))
    assert sorted(order(tmp_path / "other", "train")) == sorted(order(packed, "train"))
    assert order(packed, "test") == sorted(order(packed, "test"))


def test_shards_keep_to_their_size_and_the_index_to_the_shards(photos, packed):
    index = json.loads((packed / "index.json").read_text())
    assert index["counts"] == {"train": 15, "validation": 4, "test": 6}
    assert len(index["shards"]) > 3
    for shard in index["shards"]:
        path = packed / shard["name"]
        assert path.stat().st_size == shard["bytes"]
        with tarfile.open(path) as tar:
            assert len(tar.getnames()) == 2 * shard["photos"]
            used = sum(member.size + 512 for member in tar)
        assert used <= SMALL * 10**6 or shard["photos"] == 1
    assert sorted(os.listdir(packed)) == sorted(
        ["index.json", "names.json", "photos.npy", *(shard["name"] for shard in index["shards"])]
    )


class Killed(Exception):
    pass


def stopped_after(shards, monkeypatch, photos, target):
    """Stop a packing in the middle of a shard, as kill -9 does: nothing is tidied up."""
    finish, count = ShardWriter.finish, []

    def dying(self):
        if len(count) == shards:
            self.file.flush()
            raise Killed
        count.append(self)
        return finish(self)

    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "finish", dying)
        patch.setattr(ShardWriter, "drop", lambda self: None)
        with pytest.raises(Killed):
            pack(photos, target, SMALL)


@pytest.mark.parametrize("shards", [0, 2, 4])
def test_a_packing_that_was_killed_goes_on_to_the_same_bytes(photos, packed, tmp_path, monkeypatch, shards):
    target = tmp_path / "stopped"
    stopped_after(shards, monkeypatch, photos, target)
    assert not (target / "index.json").exists()
    assert list(target.glob(".*.part"))
    with pytest.raises(InputError, match=r"is not packed to the end: .*the same `vit pack`"):
        open_shards(target)
    with pytest.raises(InputError, match=r"another packing \(seed = 0, not 1\)"):
        pack(photos, target, SMALL, seed=1)
    assert pack(photos, target, SMALL).found == shards
    assert files_of(target) == files_of(packed)


def test_what_is_packed_already_is_left_alone(photos, packed, save_photo):
    before = files_of(packed)
    again = pack(photos, packed, SMALL)
    assert again.found == len(again.index.shards)
    with pytest.raises(InputError, match=r"another packing \(shard_size = 0.008, not 0.01\)"):
        pack(photos, packed, 0.01)
    save_photo(photos / "test" / "猫" / "new.png")
    with pytest.raises(InputError, match=r"another packing \(other photos\)"):
        pack(photos, packed, SMALL)
    assert files_of(packed) == before


def test_a_target_that_holds_something_else_is_refused(photos, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"mine holds something else \(notes\.txt\)"):
        pack(photos, tmp_path / "mine")
    with pytest.raises(InputError, match=r"is a file: expected a folder"):
        pack(photos, tmp_path / "mine" / "notes.txt")
    with pytest.raises(InputError, match=r"lies in .*expected shards outside"):
        pack(photos, photos / "packed")
    assert os.listdir(tmp_path / "mine") == ["notes.txt"]


@pytest.mark.parametrize("content", [b"no picture", None], ids=["foreign", "cut short"])
def test_a_damaged_photo_is_named_or_left_out(photos, tmp_path, content):
    target, broken = tmp_path / "packed", photos / "train" / "猫" / "same.JPG"
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) * 3 // 4] if content is None else content)
    with pytest.raises(InputError, match=r"same\.JPG .*With --skip-damaged it is left out"):
        pack(photos, target, SMALL)
    done = pack(photos, target, SMALL, skip_damaged=True)
    assert done.left_out == [broken]
    assert done.index.counts == (14, 4, 6)
    assert not any("same.JPG" in name for name in done.index.names)
    names = {Path(str(photo).split(" (")[1][:-1]).name for photo in done.index.photos("train")}
    assert "same.png" in names


def test_a_photo_that_was_left_out_before_is_left_out_again_or_refused(photos, tmp_path, monkeypatch):
    for path in (photos / "train").rglob("1*"):
        path.write_bytes(b"no picture")
    pack(photos, tmp_path / "whole", SMALL, skip_damaged=True)
    finish = ShardWriter.finish

    def dying(self):
        path = finish(self)
        if path.name == "validation-000000.tar":
            raise Killed
        return path

    with monkeypatch.context() as patch:
        patch.setattr(ShardWriter, "finish", dying)
        with pytest.raises(Killed):
            pack(photos, tmp_path / "stopped", SMALL, skip_damaged=True)
    with pytest.raises(
        InputError, match=r"was left out when .*expected --skip-damaged again|With --skip-dam"
    ):
        pack(photos, tmp_path / "stopped", SMALL)
    done = pack(photos, tmp_path / "stopped", SMALL, skip_damaged=True)
    assert sorted(path.name for path in done.left_out) == ["1.x y.png", "1.x y.png"]
    assert files_of(tmp_path / "stopped") == files_of(tmp_path / "whole")
