"""Photos streamed from files, on made photos in the data sets' layouts."""

import shutil

import numpy as np
import pytest
import scipy.io
import torch
from PIL import Image

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data import (
    Augmentation,
    DataConfig,
    PhotoData,
    open_dataset,
)
from vit_from_scratch.data.published import read_flowers, read_imagenette
from vit_from_scratch.data.sharing import Share
from vit_from_scratch.training import TrainConfig, train

COLOURS = {"red": (250, 5, 5), "blue": (5, 5, 250)}


def save_photo(path, colour, size=(40, 30), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).convert(mode).save(path)


@pytest.fixture
def folder(tmp_path):
    """Red and blue photos of several sizes and kinds, in an image folder."""
    for part, count in (("train", 10), ("test", 3)):
        for name, colour in COLOURS.items():
            for number in range(count):
                size, mode = (30 + number, 50 - number), "P" if number == 1 else "RGB"
                save_photo(tmp_path / part / name / f"{number}.png", colour, size, mode)
    return tmp_path


def opened(folder, **options) -> PhotoData:
    return open_dataset(DataConfig(f"folder:{folder}", image_size=16, **options))


def test_an_image_folder_is_a_data_set(folder):
    data = opened(folder, validation_size=4)
    assert data.class_names == ("blue", "red")
    assert (data.training_size, data.size_of("validation"), data.size_of("test")) == (16, 4, 6)
    images, labels = next(data.batches("test", workers=0))
    assert images.shape == (6, 3, 16, 16)
    assert labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert torch.allclose(images[0, :, 8, 8], torch.tensor([5, 5, 250]) / 127.5 - 1)
    assert repr(data).endswith("16 train, 4 validation, 6 test images of 3 x 16 x 16, 2 classes)")


def test_of_a_photo_the_middle_is_shown_as_pillow_would_shrink_and_cut_it(tmp_path):
    photo = Image.fromarray(np.random.default_rng(0).integers(256, size=(30, 40, 3), dtype=np.uint8))
    for place in ("train/a", "train/b", "test/a", "test/b"):
        (tmp_path / place).mkdir(parents=True)
        for number in range(2):
            photo.save(tmp_path / place / f"{number}.png")
    middle = np.asarray(photo.resize((24, 18), Image.Resampling.BILINEAR))[1:17, 4:20]  # 18 = 16 * 256 / 224
    for part in ("validation", "test"):
        shown = next(opened(tmp_path, validation_size=2).batches(part, workers=0))[0][0]
        assert np.abs((127.5 * shown + 127.5).permute(1, 2, 0).numpy() - middle).max() < 1.01


def test_training_and_validation_share_no_photo(folder):
    data = opened(folder, validation_size=6)
    assert sorted(data.train.tolist() + data.validation.tolist()) == list(range(20))


def test_an_epoch_is_the_same_whatever_the_number_of_workers(folder):
    augmentation = Augmentation(
        flip=True, crop=(0.5, 1.0), colour_jitter=(0.4, 0.4, 0.4, 0.1), rand_augment=(2, 9), erase=0.2
    )
    data = opened(folder)
    epochs = [list(data.training_batches(6, augmentation, seed=3, workers=n)) for n in (0, 2)]
    assert len(epochs[0]) == 3
    for (one, first), (two, second) in zip(*epochs, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(first, second)
    other = list(data.training_batches(6, augmentation, seed=4))
    assert not torch.equal(other[0][0], epochs[0][0][0])


def test_streaming_leaves_the_global_random_numbers_alone(folder):
    data = opened(folder)
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    list(data.training_batches(4, Augmentation(crop=(0.5, 1.0)), seed=1))
    list(data.batches("test", workers=0))
    assert torch.equal(torch.rand(3), expected)


def test_a_vit_learns_red_from_blue(folder):
    data = opened(folder, validation_size=4)
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(16, 8, dim=8, depth=1, heads=1, mlp_dim=16, num_classes=2))
    config = TrainConfig(
        epochs=8,
        batch_size=8,
        warmup_steps=2,
        learning_rate=1e-2,
        workers=0,
        augmentation=Augmentation.named("poster"),
    )
    assert train(model, data, config)[-1].validation_accuracy == 1.0


def test_classes_that_differ_between_training_and_test_are_refused(folder):
    save_photo(folder / "test" / "green" / "1.png", (0, 250, 0))
    with pytest.raises(InputError, match=r"different classes \(green\): expected the same folders"):
        opened(folder)


def test_changes_of_hue_are_refused_for_images_in_memory(digits):
    batches = digits.training_batches(8, Augmentation(colour_jitter=(0.4, 0, 0, 0.1)), seed=0)
    with pytest.raises(InputError, match=r"colour_jitter\[3\] is for photos .* digits is in memory"):
        next(batches)


def test_settings_that_cannot_work_are_refused_at_the_start(make_model, few_digits):
    config = TrainConfig(augmentation=Augmentation(rand_augment=(2, 9)))
    with pytest.raises(InputError, match=r"rand_augment is for photos"):
        train(make_model(), few_digits, config)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_photo_that_cannot_be_read_is_named_in_one_line(folder, workers):
    broken = folder / "test" / "red" / "0.png"
    broken.write_bytes(broken.read_bytes()[:60])
    with pytest.raises(InputError) as refused:
        list(opened(folder).batches("test", workers=workers))
    assert str(refused.value).startswith(f"{broken} cannot be read")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("count", "ending"), [(2, "fetch it again."), (12, " 2 more cannot be read either.")]
)
def test_all_photos_that_cannot_be_read_are_told_at_once(folder, count, ending):
    broken = sorted(folder.glob("train/*/*.png"))[:count]
    for path in broken:
        path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError) as refused:
        opened(folder, validation_size=0).check("train")
    told = str(refused.value)
    assert sum(f"{path} cannot be read" in told for path in broken) == min(count, 10)
    assert told.endswith(ending)


def test_of_several_processes_one_alone_opens_the_broken_photo(folder):
    (folder / "test" / "red" / "0.png").write_bytes(b"no picture")
    refused = []
    for index in range(3):
        try:
            opened(folder).shared(Share(index, 3)).check("test")
        except InputError:
            refused.append(index)
    assert len(refused) == 1


def make_imagenette(root, form="imagenette2-160", size=(40, 30)):
    from torchvision.datasets import Imagenette

    for number, wnid in enumerate(Imagenette._WNID_TO_CLASS):
        for part in ("train", "val"):
            for photo in range(2):
                save_photo(root / form / part / wnid / f"{photo}.JPEG", (number * 20, 0, 0), size)


def test_imagenette_is_read_in_torchvisions_layout(tmp_path):
    make_imagenette(tmp_path)
    data = open_dataset(DataConfig("imagenette", 0, image_size=32), tmp_path)
    assert data.class_names[:2] == ("tench", "English springer")
    assert (data.training_size, data.size_of("test"), data.num_classes) == (20, 20, 10)
    assert next(data.batches("test", workers=0))[0].shape == (20, 3, 32, 32)


@pytest.mark.parametrize(
    ("there", "side", "taken"),
    [((160, 320), 160, 160), ((160, 320), 161, 320), ((160,), 224, 160), ((160, 320), 512, 320)],
)
def test_imagenette_comes_in_the_smallest_form_that_is_large_enough(tmp_path, there, side, taken):
    for short_side in there:
        make_imagenette(tmp_path, f"imagenette2-{short_side}", (short_side, short_side))
    source = read_imagenette(tmp_path, side)
    assert source.train[0][0].size == (taken, taken)


def test_reading_photos_leaves_the_random_numbers_of_a_gpu_alone(folder, monkeypatch):
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    list(opened(folder).training_batches(4, Augmentation(flip=True), seed=0))
    assert seeded == []


def test_a_folder_of_one_class_is_refused(folder):
    for part in ("train", "test"):
        shutil.rmtree(folder / part / "red")
    with pytest.raises(InputError, match=r"has one class, blue: expected two or more"):
        opened(folder)


def test_pets_are_read_in_torchvisions_layout(tmp_path):
    base = tmp_path / "oxford-iiit-pet"
    lines = [f"breed_{breed}_{n} {breed} 1 1" for breed in range(1, 38) for n in range(2)]
    for line in lines:
        save_photo(base / "images" / f"{line.split()[0]}.jpg", (9, 9, 9))
    (base / "annotations").mkdir()
    for part in ("trainval", "test"):
        (base / "annotations" / f"{part}.txt").write_text("\n".join(lines) + "\n")
    data = open_dataset(DataConfig("pets", 37, image_size=144), tmp_path)
    assert (data.num_classes, data.training_size, data.size_of("validation")) == (37, 37, 37)
    assert next(data.batches("validation", workers=0))[0].shape == (37, 3, 144, 144)


def test_flowers_join_train_and_val(tmp_path, monkeypatch):
    base = tmp_path / "flowers-102"
    for number in range(1, 307):
        save_photo(base / "jpg" / f"image_{number:05d}.jpg", (9, 9, 9), (8, 8))
    scipy.io.savemat(base / "imagelabels.mat", {"labels": np.arange(306) % 102 + 1})
    thirds = np.arange(1, 307).reshape(3, 102)
    scipy.io.savemat(base / "setid.mat", dict(zip(("trnid", "valid", "tstid"), thirds, strict=True)))
    monkeypatch.setattr("torchvision.datasets.flowers102.check_integrity", lambda *arguments: True)
    source = read_flowers(tmp_path, 224)
    assert (len(source.train), len(source.train.labels), len(source.test.labels)) == (204, 204, 102)
    assert len(source.class_names) == 102
