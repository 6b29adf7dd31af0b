"""Worker processes that read photos, and photos that stay in memory."""

import contextlib
import gc
import multiprocessing
import os
import signal

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data import Augmentation, DataConfig, ImageData, PhotoData, loading, open_dataset
from vit_from_scratch.data.loading import PhotoJobs, PhotoWorkers
from vit_from_scratch.data.streaming import shrunk
from vit_from_scratch.training import Callback, TrainConfig, train

CROPS = Augmentation(flip=True, crop=(0.5, 1.0), colour_jitter=(0.2, 0.2, 0.2, 0.05))


@pytest.fixture
def mixed(tmp_path, save_photo):
    """Photos of several sizes, of random pixels."""
    return folder(tmp_path, save_photo, lambda number: (20 + number, 30 - number))


@pytest.fixture
def uniform(tmp_path, save_photo):
    """Photos of 16 x 16 random pixels."""
    return folder(tmp_path, save_photo, lambda number: (16, 16))


def folder(path, save_photo, size):
    for part, count in (("train", 8), ("test", 2)):
        for label, name in enumerate(("a", "b")):
            for number in range(count):
                save_photo(path / part / name / f"{number}.png", size(number), seed=10 * label + number)
    return path


def opened(path, **options) -> PhotoData:
    data = open_dataset(DataConfig(f"folder:{path}", image_size=16, **options))
    assert isinstance(data, PhotoData)
    return data


def same(one, two):
    pairs = list(zip(one, two, strict=True))
    return pairs and all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in pairs)


@pytest.mark.parametrize("augmentation", [CROPS, Augmentation()], ids=["crops", "no changes"])
def test_photos_in_memory_and_from_files_are_the_same(mixed, monkeypatch, augmentation):
    def batches(data):
        epochs = [batch for seed in (1, 2) for batch in data.training_batches(4, augmentation, seed)]
        return epochs + list(data.batches("validation", workers=0))

    inside, outside = (opened(mixed, validation_size=4) for _ in range(2))
    from_memory = batches(inside)
    monkeypatch.setattr("vit_from_scratch.data.streaming.LIMIT", 0)
    assert same(from_memory, batches(outside))


def test_a_photo_is_decoded_once(mixed, monkeypatch):
    data, read = opened(mixed, validation_size=4), []
    original = type(data.source.train).__getitem__
    monkeypatch.setattr(
        type(data.source.train),
        "__getitem__",
        lambda photos, number: read.append(number) or original(photos, number),
    )
    for epoch in range(3):
        list(data.training_batches(4, CROPS, epoch))
        list(data.batches("validation", workers=0))
    assert sorted(read) == list(range(16))


@pytest.mark.skipif(not loading.FORKS, reason="elsewhere workers are sent what is decoded")
def test_workers_share_the_decoded_photos_whatever_python_starts_by_default(mixed, monkeypatch):
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("forkserver", force=True)  # as Python 3.14 does
    monkeypatch.setattr(PhotoJobs, "__reduce__", lambda jobs: pytest.fail("the photos were sent"))
    try:
        list(opened(mixed).training_batches(4, CROPS, 1, workers=1))
    finally:
        multiprocessing.set_start_method(before, force=True)


def _array(photo):
    return np.asarray(photo).transpose(2, 0, 1).copy()


def test_an_epoch_of_photos_of_the_wanted_size_is_that_of_images_in_memory(uniform):
    data = opened(uniform, validation_size=4)
    pixels = torch.stack([torch.from_numpy(_array(data.source.train[number][0])) for number in range(16)])
    labels = torch.tensor(data.source.train.labels)
    parts = (pixels[data.train], labels[data.train], pixels[data.validation], labels[data.validation])
    in_memory = ImageData(data.config, *parts, pixels[:0], labels[:0], class_names=data.class_names)
    changes = Augmentation(flip=True, shift=2, crop=(0.5, 1.0), erase=0.2)
    assert same(data.training_batches(4, changes, 3), in_memory.training_batches(4, changes, 3))
    assert same(data.batches("validation"), in_memory.batches("validation"))


def test_each_photo_is_changed_as_torchvision_would_from_a_seed_of_its_own(mixed):
    data = opened(mixed, validation_size=0)
    jitter, crop, policy = (0.4, 0.3, 0.2, 0.1), (0.3, 0.6), (2, 9)
    changes = Augmentation(flip=True, crop=crop, rand_augment=policy, colour_jitter=jitter)
    images, _ = next(data.training_batches(16, changes, seed=3))
    steps = [v2.RandomResizedCrop(16, crop), v2.RandomHorizontalFlip(), v2.RandAugment(*policy)]
    theirs = v2.Compose([*steps, v2.ColorJitter(*jitter)])
    order = torch.randperm(16, generator=torch.Generator().manual_seed(3)).tolist()
    for image, number in zip(images, order, strict=True):
        own = np.random.SeedSequence((3, number)).generate_state(1, np.uint64)[0]
        torch.manual_seed(int(own))
        assert torch.equal(image, theirs(torch.from_numpy(_array(data.source.train[number][0]))))


def test_photos_of_the_wanted_size_may_change_in_colour(uniform):
    data = opened(uniform, validation_size=0)
    epochs = [list(data.training_batches(4, CROPS, 0, workers=workers)) for workers in (0, 2)]
    assert same(*epochs)


def test_a_photo_much_larger_than_needed_is_shrunk(tmp_path, save_photo):
    path = save_photo(tmp_path / "large.png", (400, 300))
    with Image.open(path) as photo:
        assert shrunk(photo, 100).shape == (3, 200, 267)
        assert shrunk(photo, 160).shape == (3, 300, 400)


def test_without_a_crop_photos_of_the_wanted_size_stay_sharp_when_colours_change(uniform):
    data = opened(uniform, validation_size=0)
    nearly_none = Augmentation(colour_jitter=(0.0, 0.0, 0.0, 1e-9))
    images, labels = next(data.training_batches(16, nearly_none, 0))
    ours = {tuple(image.flatten().round().int().tolist()) for image in images}
    files = {tuple(_array(data.source.train[number][0]).flatten().tolist()) for number in range(16)}
    assert len(ours) == len(labels) == 16
    distances = [min(abs(torch.tensor(a) - torch.tensor(b)).max().item() for b in files) for a in ours]
    assert max(distances) <= 3, "a change of colour space and back rounds"


def test_imagenette_gets_its_central_crop_even_if_all_photos_are_square(tmp_path, save_photo):
    from torchvision.datasets import Imagenette

    for wnid in Imagenette._WNID_TO_CLASS:
        for part in ("train", "val"):
            save_photo(tmp_path / "imagenette2-160" / part / wnid / "0.JPEG", (160, 160), seed=0)
    data = open_dataset(DataConfig("imagenette", 0, image_size=160), tmp_path)
    images, _ = next(data.batches("test", workers=0))
    crop = v2.Compose([v2.Resize(183), v2.CenterCrop(160)])  # 183 = 160 * 256 / 224, rounded
    expected = crop(torch.from_numpy(_array(data.source.test[0][0])))
    assert torch.allclose(images[0], expected / 127.5 - 1, atol=1e-6)


class Pids(Callback):
    """Note the worker processes of each epoch."""

    def __init__(self):
        self.seen = []

    def on_epoch(self, state):
        self.seen.append({child.pid for child in multiprocessing.active_children()})


def trained(data, callbacks=(), **options):
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(16, 8, dim=8, depth=1, heads=1, mlp_dim=16, num_classes=2))
    config = TrainConfig(epochs=3, batch_size=4, warmup_steps=2, augmentation=CROPS, **options)
    return train(model, data, config, callbacks=callbacks)


def test_workers_stay_over_the_epochs_and_end_with_the_training(mixed):
    pids = Pids()
    two = trained(opened(mixed, validation_size=4), [pids], workers=2)
    assert len(pids.seen[0]) >= 2
    assert pids.seen[0] == pids.seen[1] == pids.seen[2]
    assert not multiprocessing.active_children()
    none = trained(opened(mixed, validation_size=4), workers=0)
    assert [epoch.train_loss for epoch in two] == [epoch.train_loss for epoch in none]
    assert [epoch.validation_loss for epoch in two] == [epoch.validation_loss for epoch in none]


class Interrupt(Callback):
    def on_step(self, state):
        raise KeyboardInterrupt


def test_workers_end_when_training_is_interrupted(mixed):
    with contextlib.suppress(KeyboardInterrupt):
        trained(opened(mixed), [Interrupt()], workers=2)
    gc.collect()
    assert not multiprocessing.active_children()


class Kill(Callback):
    """Kill a worker in the middle of an epoch."""

    def on_step(self, state):
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)


def test_a_worker_that_is_killed_is_one_sentence(mixed):
    with pytest.raises(
        InputError, match=r"process that reads photos has failed .*train with train\.workers=0"
    ):
        trained(opened(mixed), [Kill()], workers=1)
    assert not multiprocessing.active_children()


class ToldLate(dict):
    """Loaders that are idle; a first time torch tells in their end that a worker died."""

    def clear(self):
        if self.pop("untold", False):
            raise RuntimeError("DataLoader worker (pid 1) is killed by signal: Killed.")
        super().clear()


def test_a_death_that_torch_tells_of_in_the_end_takes_no_other_errors_place():
    workers = PhotoWorkers()
    workers.idle = ToldLate(untold=True, loader=None)
    with pytest.raises(InputError, match="the error of the block"), workers.kept():
        raise InputError("the error of the block")
    assert not workers.idle


class Killer:
    """Reads photos; in a worker, the fifth raises an error or ends the process."""

    def __init__(self, error=None):
        self.error, self.parent = error, os.getpid()

    def __call__(self, number):
        if number == 5 and os.getpid() != self.parent:
            if self.error:
                raise self.error
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((3, 1, 1), number)


def loaded(workers, jobs, first=0, last=8):
    batches = list(torch.arange(first, last).split(2))
    return (labels.tolist() for _, labels in workers.load("key", lambda: jobs, batches, 0, 1, False))


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (None, InputError, r"a process that reads photos has failed .*train with train\.workers=0"),
        (RuntimeError("shape '[3]' is invalid"), RuntimeError, "invalid"),
        (OSError("broken"), OSError, "broken"),
    ],
)
def test_a_lost_worker_is_one_sentence_and_an_error_of_the_code_is_not_taken_for_one(error, kind, message):
    with pytest.raises(kind, match=message):
        list(loaded(PhotoWorkers(), PhotoJobs(Killer(error), range(8))))


def test_no_room_for_a_batch_is_one_sentence(monkeypatch):
    def full(photos):
        raise RuntimeError(
            "unable to allocate shared memory(shm) for file </torch_1>: No space left on device"
        )

    monkeypatch.setattr("vit_from_scratch.data.loading.default_collate", full)
    with pytest.raises(InputError, match=r"has failed \(unable .*train with train\.workers=0") as refused:
        list(loaded(PhotoWorkers(), PhotoJobs(Killer(), range(8)), last=2))
    assert "\n" not in str(refused.value)


def test_passes_within_a_pass_have_workers_of_their_own():
    jobs = PhotoJobs(torch.arange(24.0).view(8, 3, 1, 1).__getitem__, range(8))
    workers = PhotoWorkers()
    with workers.kept():
        outer = loaded(workers, jobs, 0, 6)
        assert [next(outer), list(loaded(workers, jobs, 4, 8)), *outer] == [
            [0, 1],
            [[4, 5], [6, 7]],
            [2, 3],
            [4, 5],
        ]
        assert list(loaded(workers, jobs, 2, 6)) == [[2, 3], [4, 5]]
