"""Tiny-ImageNet in its published layout, on made photos."""

import multiprocessing
import os

import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.data import Augmentation, DataConfig, open_dataset

IDS = ("n02", "n01", "n03")


@pytest.fixture
def root(tmp_path, save_photo):
    """Three classes with four training photos and two others each, some of them grey."""
    folder = tmp_path / "tiny-imagenet-200"
    for number, wnid in enumerate(IDS):
        for photo in range(4):
            path = folder / "train" / wnid / "images" / f"{wnid}_{photo}.JPEG"
            save_photo(path, (64, 64), mode="L" if photo == 1 else "RGB", colour=(80 * number, 9, 9))
    lines = []
    for number in range(6):
        save_photo(
            folder / "val" / "images" / f"val_{number}.JPEG", (64, 64), colour=(80 * (number % 3), 9, 9)
        )
        lines.append(f"val_{number}.JPEG\t{IDS[number % 3]}\t0\t0\t9\t9")
    (folder / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    (folder / "wnids.txt").write_text("\n".join(IDS))
    (folder / "words.txt").write_text("n00\tentity\nn01\tgoldfish, Carassius\nn02\tcrane\nn03\tcrane, bird\n")
    return tmp_path


def test_its_validation_photos_are_the_test_part(root):
    data = open_dataset(DataConfig("tiny-imagenet", validation_size=3), root)
    assert data.class_names == ("goldfish", "crane (n02)", "crane (n03)")
    assert (data.training_size, data.size_of("validation"), data.size_of("test")) == (9, 3, 6)
    assert data.image_shape == (3, 64, 64)
    images, labels = next(data.batches("test", workers=0))
    assert labels.tolist() == [1, 0, 2, 1, 0, 2]
    red = ((images[:, 0].mean(dim=(1, 2)) + 1) * 127.5).round()
    assert torch.allclose(red, torch.tensor([0.0, 80, 160]).repeat(2), atol=6)


def test_its_photos_are_changed_in_whole_batches_and_need_no_workers(root):
    data = open_dataset(DataConfig("tiny-imagenet", validation_size=0), root)
    images, labels = next(data.training_batches(12, Augmentation(flip=True, crop=(0.5, 1.0)), 0, workers=2))
    assert images.shape == (12, 3, 64, 64)
    assert labels.bincount().tolist() == [4, 4, 4]
    assert not multiprocessing.active_children()


def test_5000_photos_are_for_validation_unless_told_otherwise():
    assert DataConfig("tiny-imagenet") == DataConfig("tiny-imagenet", 5000, image_size=64)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("val_0.JPEG", "Tiny-ImageNet in .* cannot be read: not enough values"),
        ("val_0.JPEG\tn99\t0\t0\t9\t9", r"cannot be read: 'n99' Expected the published files"),
        ("val_9.JPEG\tn01\t0\t0\t9\t9", r"does not fit the photos in val \(val_9\.JPEG\)"),
        (None, r"does not fit the photos in val \(val_5\.JPEG\)"),
    ],
)
def test_damaged_annotations_are_one_sentence(root, line, message):
    path = root / "tiny-imagenet-200" / "val" / "val_annotations.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, line] if line else lines[:-1]))
    with pytest.raises(InputError, match=message):
        open_dataset(DataConfig("tiny-imagenet", 0), root)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("words.txt", r"Tiny-ImageNet in .* cannot be read: .*words\.txt"),
        ("val/val_annotations.txt", r"Tiny-ImageNet in .* cannot be read: .*val_annotations\.txt"),
        ("train/n03/images", r"Tiny-ImageNet in .* cannot be read: .*classes n03"),
    ],
)
def test_what_is_missing_is_one_sentence(root, name, message):
    (root / "tiny-imagenet-200" / name).rename(root / "elsewhere")
    with pytest.raises(InputError, match=message):
        open_dataset(DataConfig("tiny-imagenet", 0), root)


def test_a_class_without_a_name_is_one_sentence(root):
    (root / "tiny-imagenet-200" / "words.txt").write_text("")
    with pytest.raises(InputError, match=r"cannot be read: 'n01' Expected the published files"):
        open_dataset(DataConfig("tiny-imagenet", 0), root)


def test_a_download_appears_when_it_is_whole(root, tmp_path, monkeypatch):
    cache = tmp_path / "cache"

    def fetched(url, download_root, extract_root, md5, **options):
        assert not (cache / "tiny-imagenet-200").exists()
        assert not os.path.exists(extract_root), "what an earlier try left is gone"
        os.mkdir(extract_root)
        (root / "tiny-imagenet-200").rename(f"{extract_root}/tiny-imagenet-200")

    cache.mkdir()
    (cache / ".tiny-imagenet-200.part").mkdir()
    (cache / ".tiny-imagenet-200.part" / "half").write_text("of an earlier try")
    monkeypatch.delenv("VIT_DATA_DIR", raising=False)
    monkeypatch.setattr("vit_from_scratch.data.published.download_folder", lambda kind: cache)
    monkeypatch.setattr("torchvision.datasets.utils.download_and_extract_archive", fetched)
    assert open_dataset(DataConfig("tiny-imagenet", 0)).training_size == 12
    assert [path.name for path in cache.iterdir()] == ["tiny-imagenet-200"]
