"""Photos of your own: which files are photos, of which class, and in which part."""

import os

import pytest

from vit_from_scratch import InputError
from vit_from_scratch.data import Augmentation, DataConfig, open_dataset
from vit_from_scratch.data.folders import open_folder


@pytest.fixture
def flat(tmp_path, save_photo):
    """Ten photos of each of two classes, `CLASS/*`."""
    for name in ("cat", "dog"):
        for number in range(10):
            save_photo(tmp_path / name / f"{number}.png")
    return tmp_path


def names(photos, root):
    return sorted(path.relative_to(root).as_posix() for path in photos.files)


def test_a_folder_without_a_test_part_holds_out_a_fifth_of_each_class(flat):
    found = open_folder(flat)
    assert "has no test part: 4 of its 20 photos" in found.note
    assert found.test.labels == [0, 0, 1, 1]
    assert not set(found.train.files) & set(found.test.files)
    assert len(found.train) == 16


def test_the_drawn_test_photos_stay_the_same_elsewhere_and_when_photos_are_added(flat, save_photo):
    before = names(open_folder(flat).test, flat)
    save_photo(flat / "cat" / "new.png")
    save_photo(flat / "cat" / "newer.png")
    after = names(open_folder(flat).test, flat)
    assert len(set(before) - set(after)) <= 1
    moved = flat.rename(flat.parent / "elsewhere")
    assert names(open_folder(moved).test, moved) == after


def test_training_photos_alone_are_split_too(tmp_path, flat):
    (tmp_path / "train").mkdir()
    for name in ("cat", "dog"):
        (flat / name).rename(tmp_path / "train" / name)
    assert len(open_folder(tmp_path).test) == 4


def test_photos_may_lie_deeper_and_other_files_are_left_out(flat, save_photo):
    save_photo(flat / "cat" / "sub" / "deep" / "x.JPG")
    save_photo(flat / "cat" / ".hidden" / "x.png")
    save_photo(flat / "cat" / "._0.png")
    save_photo(flat / ".trash" / "x.png")
    (flat / "cat" / "Thumbs.db").write_bytes(b"no picture")
    (flat / "notes.txt").write_text("no class")
    found = open_folder(flat)
    assert found.class_names == ("cat", "dog")
    everything = names(found.train, flat) + names(found.test, flat)
    assert len(everything) == 21
    assert "cat/sub/deep/x.JPG" in everything


def test_a_class_may_be_called_train(flat, save_photo):
    save_photo(flat / "train" / "1.png")
    save_photo(flat / "train" / "2.png")
    assert open_folder(flat).class_names == ("cat", "dog", "train")


def test_links_to_folders_above_or_around_add_no_photo(flat):
    before = names(open_folder(flat).train, flat)
    (flat / "cat" / "up").symlink_to("..")
    (flat / "cat" / "loop").symlink_to(".")
    (flat / "dog" / "loop").symlink_to("../cat")
    assert names(open_folder(flat).train, flat) == before


def test_a_class_may_be_a_link(flat, save_photo, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    save_photo(outside / "1.png")
    save_photo(outside / "2.png")
    (flat / "bird").symlink_to(outside)
    found = open_folder(flat)
    assert found.class_names == ("bird", "cat", "dog")
    assert [*found.train.labels, *found.test.labels].count(0) == 2


def test_a_class_without_photos_is_refused(flat):
    (flat / "ape").mkdir()
    (flat / "ape" / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"ape has no photos: expected files that end in \.jpg"):
        open_folder(flat)


def test_a_class_with_one_photo_cannot_be_tested(flat, save_photo):
    save_photo(flat / "ape" / "1.png")
    with pytest.raises(InputError, match=r"one photo of ape, and no test part: expected two or more"):
        open_folder(flat)


def test_test_without_train_is_refused(flat):
    (flat / "cat").rename(flat / "test")
    with pytest.raises(InputError, match=r"no image folder at .*no folder train .*expected .*/train/CLASS"):
        open_folder(flat)


def test_a_tenth_is_for_validation_unless_told_otherwise(flat):
    data = open_dataset(DataConfig(f"folder:{flat}", image_size=8))
    assert data.config.validation_size == data.size_of("validation") == 2
    none = open_dataset(DataConfig(f"folder:{flat}", image_size=8, validation_size=0))
    assert (none.training_size, none.size_of("validation")) == (16, 0)


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_val_alone_is_the_test_part(name, tmp_path, save_photo):
    for part, count in (("train", 4), (name, 3)):
        for kind in ("cat", "dog"):
            for number in range(count):
                save_photo(tmp_path / part / kind / f"{number}.png")
    source = open_folder(tmp_path)
    assert (len(source.train), {path.parts[-3] for path in source.test.files}) == (8, {name})
    assert (len(source.test), source.note) == (6, "")
    (tmp_path / "val").mkdir(exist_ok=True)
    (tmp_path / "valid").mkdir(exist_ok=True)
    with pytest.raises(InputError, match=r"it has both val and valid"):
        open_folder(tmp_path)


@pytest.mark.parametrize("called", ["val", "valid", "validation"])
def test_val_beside_test_is_the_validation_part(called, tmp_path, save_photo):
    for part, count in (("train", 4), (called, 3), ("test", 2)):
        for name in ("cat", "dog"):
            for number in range(count):
                save_photo(tmp_path / part / name / f"{number}.png")
    data = open_dataset(DataConfig(f"folder:{tmp_path}", image_size=8))
    parts = {data.source.train.files[number].parts[-3] for number in data.validation.tolist()}
    assert parts == {called}
    assert (data.training_size, data.size_of("validation"), data.size_of("test")) == (8, 6, 4)
    assert data.config.validation_size == 6
    drawn = open_dataset(DataConfig(f"folder:{tmp_path}", image_size=8, validation_size=2))
    used = files_of(drawn, drawn.train) | files_of(drawn, drawn.validation)
    assert {path.parts[-3] for path in used} == {"train"}


def files_of(data, numbers):
    return {data.source.train.files[number] for number in numbers.tolist()}


def test_a_pipe_among_the_photos_is_named_and_not_waited_for(flat):
    os.mkfifo(flat / "cat" / "pipe.png")
    data = open_dataset(DataConfig(f"folder:{flat}", image_size=8, validation_size=0))
    with pytest.raises(InputError, match=r"pipe\.png cannot be read \(it is not a file\)"):
        list(data.training_batches(4, Augmentation(), 0))
