import hashlib
import pickle
import struct
import urllib.error

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.utils._python_dispatch import TorchDispatchMode
from torchvision.models import ViT_B_16_Weights
from torchvision.transforms.functional import normalize

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data import (
    DataConfig,
    ImageData,
    Normalisation,
    datasets,
    load_dataset,
    open_dataset,
)
from vit_from_scratch.data.normalisation import NORMALISATIONS
from vit_from_scratch.data.published import digits_test_indices
from vit_from_scratch.training import TrainConfig, train


def test_digits_are_the_1797_scans_of_scikit_learn_in_three_parts(digits):
    assert (len(digits.train_labels), len(digits.validation_labels), len(digits.test_labels)) == (
        1200,
        237,
        360,
    )
    parts = (digits.train_images, digits.validation_images, digits.test_images)
    ours = torch.cat(parts).flatten(1).float() * 16 / 255
    theirs = torch.from_numpy(load_digits().data).float()
    assert torch.equal(ours.round().sort(dim=0).values, theirs.sort(dim=0).values)
    assert all(images.dtype == torch.uint8 and images.shape[1:] == (1, 8, 8) for images in parts)


def test_the_test_part_is_stored_and_has_a_fifth_of_each_digit(digits):
    stored = digits_test_indices()
    assert torch.equal(digits.test_labels, torch.from_numpy(load_digits().target[stored]))
    share = np.bincount(digits.test_labels) / np.bincount(load_digits().target)
    assert len(set(stored)) == 360
    assert share.min() > 0.18
    assert share.max() < 0.22


def test_the_stored_split_has_not_changed():
    digest = hashlib.sha256(",".join(map(str, digits_test_indices())).encode()).hexdigest()
    assert digest == "2b34a89618d0d4df0f89a3fc8c6dfe92c5c4afc5d09419ddf7bf197d7b652dd6"


def test_the_test_part_is_the_same_whatever_is_held_out(digits):
    other = open_dataset(DataConfig("digits", 0, split_seed=5))
    assert torch.equal(other.test_images, digits.test_images)
    assert len(other.train_labels) == 1437
    assert len(other.validation_labels) == 0


def test_the_split_seed_draws_other_validation_images(digits):
    again, other = load_dataset("digits"), open_dataset(DataConfig("digits", split_seed=1))
    assert torch.equal(again.validation_images, digits.validation_images)
    assert not torch.equal(other.validation_images, digits.validation_images)


IMAGENET = ViT_B_16_Weights.IMAGENET1K_V1.transforms()


@pytest.mark.parametrize(
    ("name", "mean", "std"), [("half", [0.5], [0.5]), ("imagenet", IMAGENET.mean, IMAGENET.std)]
)
def test_images_are_normalised_as_torchvision_normalises_them_and_back(name, mean, std):
    images = torch.randint(256, (2, 3, 4, 4), dtype=torch.uint8)
    expected, normalise = normalize(images / 255, mean, std), NORMALISATIONS[name]
    torch.testing.assert_close(normalise(images), expected)
    torch.testing.assert_close(normalise.undo(expected), images / 255)


def test_floats_up_to_one_are_not_taken_for_bytes():
    photo = torch.rand(2, 3, 4, 4)
    with pytest.raises(InputError, match=r"floats up to 0\.9\d*: expected bytes, .*Multiply .* by 255"):
        Normalisation()(photo)
    assert Normalisation().scaled(torch.ones(1, 3, 4, 4)).max() < -0.9, "bytes, if dark ones"
    black, empty = torch.zeros(2, 3, 4, 4), torch.empty(0, 3, 4, 4)
    assert Normalisation()(black).eq(-1).all()
    assert Normalisation()(empty).shape == empty.shape
    assert torch.allclose(Normalisation()(255 * photo), 2 * photo - 1, atol=1e-6)


def test_an_unknown_data_set_is_refused_with_the_known_ones():
    with pytest.raises(
        InputError, match=r"unknown data set 'cifar'.*'digits', 'mnist', 'cifar10'.*did you mean 'cifar10'"
    ):
        load_dataset("cifar")


@pytest.mark.parametrize(
    ("size", "message"), [(5, "10 to 1,427"), (1430, "10 to 1,427"), (1437, "10 to 1,427"), (-1, "0 or more")]
)
def test_a_validation_part_that_cannot_be_drawn_is_refused(size, message):
    with pytest.raises(InputError, match=f"validation_size = {size}.*{message}"):
        open_dataset(DataConfig("digits", size))


def test_a_data_set_of_photos_is_refused_before_it_is_looked_for(monkeypatch):
    monkeypatch.setitem(datasets.SOURCES, "imagenette", lambda folder, side: pytest.fail("it was opened"))
    with pytest.raises(InputError, match=r"imagenette is streamed from its files: .*open_dataset"):
        load_dataset("imagenette")


def test_none_stands_for_the_usual_validation_size():
    assert DataConfig("digits") == DataConfig("digits", 237)


def write_cifar(folder, batch: bytes | None = None):
    """Write CIFAR-10's layout with ten made images in each file."""
    inside = folder / "cifar-10-batches-py"
    inside.mkdir()
    images = np.random.default_rng(0).integers(256, size=(10, 3072), dtype=np.uint8)
    content = batch or pickle.dumps({"data": images, "labels": list(range(10))})
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    for name in names:
        (inside / name).write_bytes(content)
    (inside / "batches.meta").write_bytes(pickle.dumps({"label_names": [f"class {i}" for i in range(10)]}))
    return torch.from_numpy(images)


@pytest.fixture
def trusted(monkeypatch):
    """Let torchvision take made files for CIFAR-10's."""
    monkeypatch.setattr("torchvision.datasets.CIFAR10._check_integrity", lambda self: True)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *arguments: True)


def test_cifar10_is_read_from_a_folder_in_torchvisions_layout(tmp_path, trusted, monkeypatch):
    written = write_cifar(tmp_path)
    data = open_dataset(DataConfig("cifar10", 10), tmp_path)
    assert torch.equal(data.test_images, written.view(10, 3, 32, 32)), "its rows are planes of colours"
    assert data.train_images.shape == (40, 3, 32, 32)
    assert (len(data.validation_labels), len(data.test_labels), data.num_classes) == (10, 10, 10)
    assert data.validation_labels.unique().tolist() == list(range(10))
    monkeypatch.setenv("VIT_DATA_DIR", str(tmp_path))
    assert len(open_dataset(DataConfig("cifar10", 0)).train_labels) == 50


def write_mnist(folder, images: bytes | None = None):
    """Write MNIST's layout with twenty made scans in each part."""
    inside = folder / "MNIST" / "raw"
    inside.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(256, size=(20, 28, 28), dtype=np.uint8)
    for name in ("train", "t10k"):
        scans = struct.pack(">4I", 0x803, *pixels.shape) + pixels.tobytes() if images is None else images
        (inside / f"{name}-images-idx3-ubyte").write_bytes(scans)
        (inside / f"{name}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2I", 0x801, 20) + bytes(range(10)) * 2
        )
    return torch.from_numpy(pixels)


def test_mnist_is_read_from_a_folder_in_torchvisions_layout(tmp_path):
    pixels = write_mnist(tmp_path)
    data = open_dataset(DataConfig("mnist", 10), tmp_path)
    assert torch.equal(data.test_images, pixels[:, None])
    assert data.test_labels.tolist() == [*range(10)] * 2
    assert (len(data.train_labels), len(data.validation_labels)) == (10, 10)
    assert data.class_names == tuple("0123456789")


@pytest.mark.parametrize("images", [b"", b"no scans", struct.pack(">4I", 0x803, 20, 28, 28) + bytes(784)])
def test_a_corrupted_mnist_is_refused(tmp_path, images):
    write_mnist(tmp_path, images)
    with pytest.raises(InputError, match=r"MNIST in .* cannot be read: .*Fetch them again"):
        load_dataset("mnist", tmp_path)


def test_a_folder_without_the_data_set_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"no CIFAR10 in .*: expected cifar-10-batches-py/.*leave --data-dir"
    ):
        load_dataset("cifar10", tmp_path)


def test_a_corrupted_data_set_is_refused(tmp_path):
    write_cifar(tmp_path, b"not a batch")
    with pytest.raises(InputError, match=r"CIFAR10 in .* cannot be read: .*Fetch them again"):
        load_dataset("cifar10", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "tiny-imagenet"])
def test_no_network_is_said_in_one_sentence(tmp_path, monkeypatch, name):
    def refused(*arguments, **options):
        raise urllib.error.URLError("no route to host")

    monkeypatch.delenv("VIT_DATA_DIR", raising=False)
    monkeypatch.setattr("vit_from_scratch.data.published.download_folder", lambda kind: tmp_path)
    for module in ("mnist", "cifar", "utils"):
        monkeypatch.setattr(f"torchvision.datasets.{module}.download_and_extract_archive", refused)
    with pytest.raises(
        InputError, match=r"cannot be downloaded \(.*no route to host>?\)\. Connect to a network once"
    ):
        open_dataset(DataConfig(name))


def test_a_smaller_training_part_keeps_the_other_parts_and_the_shares(digits):
    few = open_dataset(DataConfig("digits", train_size=300))
    assert isinstance(few, ImageData)
    assert len(few.train_labels) == 300
    assert torch.equal(few.validation_images, digits.validation_images)
    assert torch.equal(few.test_images, digits.test_images)
    assert few.train_labels.bincount().min() >= 28
    rows = {bytes(image.numpy().tobytes()) for image in digits.train_images}
    assert all(bytes(image.numpy().tobytes()) in rows for image in few.train_images)


def test_a_training_part_that_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match=r"data\.train_size = 5000: digits has 1,200 images of 10 classes"):
        open_dataset(DataConfig("digits", train_size=5000))


class NoCopies(TorchDispatchMode):
    """Refuse copies from one device to another, for which a GPU would have to wait."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert "copy" not in func.name(), func.name()
        assert "lift_fresh" not in func.name(), "a tensor of the CPU"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("normalise", NORMALISATIONS.values(), ids=NORMALISATIONS)
def test_normalisation_copies_nothing_to_a_device(normalise):
    images = torch.zeros(2, 3, 4, 4)
    with NoCopies():
        normalise(images)
        normalise.undo(images)
    with pytest.raises(AssertionError), NoCopies():
        torch.tensor([0.5], device="meta")


def own_tensors():
    labels = torch.arange(40) % 2
    images = (100 + 100 * labels).byte().view(-1, 1, 1, 1).expand(40, 3, 4, 6).contiguous()
    return (images[:20], labels[:20], images[20:30], labels[20:30], images[30:], labels[30:])


def test_tensors_of_ones_own_are_a_data_set_that_trains():
    data = ImageData(DataConfig("tensors"), *own_tensors(), class_names=("dark", "bright"))
    assert (
        repr(data) == "ImageData('tensors': 20 train, 10 validation, 10 test images of 3 x 4 x 6, 2 classes)"
    )
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig((4, 6), 2, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=2))
    config = TrainConfig(epochs=30, batch_size=10, learning_rate=0.01, warmup_steps=0)
    assert train(model, data, config)[-1].validation_accuracy == 1


def test_tensors_from_0_to_1_are_refused_and_their_name_opens_nothing():
    for place in (0, 2, 4):
        tensors = [*own_tensors()]
        tensors[place] = tensors[place] / 255
        with pytest.raises(InputError, match="Multiply those from 0 to 1 by 255"):
            ImageData(DataConfig("tensors"), *tensors, class_names=("dark", "bright"))
    for opened in (lambda: open_dataset(DataConfig("tensors")), lambda: load_dataset("tensors")):
        with pytest.raises(InputError, match="expected images in memory; hand them to an ImageData"):
            opened()


def test_tensors_are_scaled_as_their_configuration_says():
    config = DataConfig("tensors", normalisation="imagenet")
    data = ImageData(config, *own_tensors(), class_names=("dark", "bright"))
    images, _ = next(data.batches("test"))
    mean, std = ViT_B_16_Weights.DEFAULT.transforms().mean, ViT_B_16_Weights.DEFAULT.transforms().std
    assert torch.allclose(images, normalize(own_tensors()[4] / 255, mean, std), atol=1e-5)


def test_a_folder_is_told_how_to_name_it(tmp_path):
    with pytest.raises(InputError, match=f"^data set '{tmp_path}': expected 'folder:{tmp_path}'"):
        DataConfig(str(tmp_path))


def test_a_name_opens_a_data_set_as_its_usual_settings_do():
    assert open_dataset("digits").config == DataConfig("digits")
