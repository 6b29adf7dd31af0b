"""A run's tensors are on the model's device, and its steps let no GPU wait: seen on fake tensors."""

import contextlib

import pytest
import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    unset_fake_temporarily,
)
from torch.optim import optimizer
from torch.utils._python_dispatch import TorchDispatchMode

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.data import Augmentation
from vit_from_scratch.training import TrainConfig, build_optimiser, loop, predict
from vit_from_scratch.training.state import TrainingState

EVERYTHING = Augmentation(
    flip=True, shift=1, jitter=0.5, rotation=10, scale=0.1, shear=0.1, crop=(0.5, 1.0), erase=0.2
)
VARIANTS = {
    "plain": {},
    "mean": {"class_token": False, "pool": "gap", "norm": "pooled", "position": "sincos_2d"},
    "conv, local": {"stem": {"kind": "conv", "width": 4}, "mlp": "local", "stochastic_depth": 0.2},
    "resnet": {
        "stem": {"kind": "resnet", "layers": (1, 1, 1), "width": 8, "root_stride": 1},
        "position": "learned_2d",
    },
}


COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
WRITTEN_OUT = torch.ops.aten.lift_fresh.default  # numbers of Python, as in torch.tensor([1, 2])
LOOKED_UP = torch.ops.aten.index.Tensor


class NoWaiting(TorchDispatchMode):
    """Refuse what a GPU and the host would wait for each other at.

    That is a copy from one to the other; to ask a fake tensor for a number, or for a shape that depends on
    numbers, is an error already.
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        read = (args[0], *args[1]) if func is LOOKED_UP else args  # it has its indices in a list
        devices = {one.device.type for one in (*read, out) if isinstance(one, torch.Tensor)}
        copied = func in (*COPIES, LOOKED_UP) and len(devices) > 1
        assert not copied, f"{func} waits for a copy between {' and '.join(sorted(devices))}"
        made = func is WRITTEN_OUT and out.device.type != "cpu"
        assert not made, "numbers of the host are copied to the device"
        return out


@pytest.fixture
def gpu(elsewhere, monkeypatch):
    """A device that stands for a GPU: with its own random numbers, fused optimisers and types of numbers."""
    usable = optimizer._get_fused_kernels_supported_devices()
    own_generator = torch.Generator
    with elsewhere() as device:
        monkeypatch.setattr(optimizer, "_get_fused_kernels_supported_devices", lambda: [*usable, device.type])
        monkeypatch.setattr(loop, "precision", lambda state: contextlib.nullcontext())
        monkeypatch.setattr(torch, "Generator", lambda device=None: own_generator())
        yield device


def state_on(gpu, data, config, **fields) -> TrainingState:
    """A run whose model and data lie there."""
    sizes = {"patch_size": 4, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 16, "dropout": 0.1}
    with unset_fake_temporarily():
        model = VisionTransformer(ViTConfig(image_size=8, channels=1, num_classes=10, **(sizes | fields)))
    return TrainingState(model.to(gpu), data.to(gpu), config, build_optimiser(model, config))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_training_step_stays_on_the_models_device(few_digits, gpu, variant, optimiser):
    config = TrainConfig(batch_size=16, optimiser=optimiser, accumulation=2, label_smoothing=0.1)
    state = state_on(gpu, few_digits, config, **VARIANTS[variant])
    with NoWaiting():
        images, labels = next(iter(state.data.training_batches(16, EVERYTHING, seed=0)))
        logits = loop.train_step(state, state.data.normalise.scaled(images), labels)
    assert {logits.device, state.loss.device, state.gradient_norm.device} == {gpu}
    assert {parameter.grad.device for parameter in state.model.parameters()} == {gpu}


def test_growing_images_stay_there(few_digits, gpu):
    state = state_on(gpu, few_digits, TrainConfig(batch_size=16, curriculum=((0.0, 4), (0.5, 8))))
    batches = state.data.training_batches(16, Augmentation(), seed=0)
    for step in (0, 1, state.total_steps - 1):
        state.step = step
        with NoWaiting():
            images, labels = next(batches)
            images = loop.shrink(state, images)
            loop.train_step(state, state.data.normalise.scaled(images), labels)
        assert {images.device, state.loss.device} == {gpu}


@pytest.mark.parametrize("objective", ["masked-patches", "masked-pixels"])
def test_a_step_without_labels_and_its_validation_stay_there(make_task, colours, gpu, objective):
    with unset_fake_temporarily():
        model = make_task(objective)
    config = TrainConfig(batch_size=16, accumulation=2)
    data, model = colours.to(gpu), model.to(gpu)
    state = TrainingState(model, data, config, build_optimiser(model, config))
    with NoWaiting():
        images, labels = next(iter(data.training_batches(16, Augmentation(flip=True), seed=0)))
        outcome = loop.train_step(state, data.normalise.scaled(images), labels)
    assert {outcome.loss.device, state.loss.device, state.gradient_norm.device} == {gpu}
    reached = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert {gradient.device for gradient in reached} == {gpu}
    with unset_fake_temporarily():
        generator = torch.Generator().manual_seed(0)
    for images, _ in data.batches("validation"):
        assert model(images, generator).loss.device == gpu


@pytest.mark.parametrize("variant", VARIANTS)
def test_validation_stays_on_the_models_device(few_digits, gpu, variant):
    state = state_on(gpu, few_digits, TrainConfig(), **VARIANTS[variant])
    for images, labels in state.data.batches("validation"):
        assert {predict(state.measured, images).device, labels.device} == {gpu}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU")
@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_real_gpu_does_not_wait_in_a_step(few_digits, optimiser):
    config = TrainConfig(batch_size=16, optimiser=optimiser, average_decay=0.9, precision="bfloat16")
    state = state_on(torch.device("cuda"), few_digits, config)
    batches = state.data.training_batches(16, EVERYTHING, seed=0)
    try:
        for mode in ("default", "error", "error"):  # a first step sets itself up
            torch.cuda.set_sync_debug_mode(mode)
            images, labels = next(batches)
            loop.train_step(state, state.data.normalise.scaled(images), labels)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize(
    "waits",
    [
        lambda there, here: torch.tensor(0.5, device=there.device),
        lambda there, here: torch.tensor([0.5, 1], device=there.device),
        lambda there, here: here.to(there.device),
        lambda there, here: there.cpu(),
        lambda there, here: there.copy_(here),
        lambda there, here: there[here.long()],
        lambda there, here: there[there > 0],
        lambda there, here: there.sum().item(),
        lambda there, here: bool(there.sum() > 0),
    ],
)
def test_a_step_that_makes_a_gpu_wait_is_found(gpu, waits):
    with (
        NoWaiting(),
        pytest.raises((AssertionError, DataDependentOutputException, DynamicOutputShapeException)),
    ):
        waits(torch.ones(3, device=gpu), torch.ones(3))


def test_a_tensor_on_the_wrong_device_is_found(few_digits, gpu):
    state = state_on(gpu, few_digits, TrainConfig(batch_size=16))
    with pytest.raises(RuntimeError, match="devices, meta and cpu"):
        loop.train_step(state, torch.zeros(16, 1, 8, 8, device=gpu), torch.zeros(16, dtype=torch.long))
