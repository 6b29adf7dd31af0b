"""No tensor of a run is made on another device than the model's: seen on fake tensors of a GPU."""

import contextlib

import pytest
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.optim import optimizer

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
    images, labels = next(iter(state.data.training_batches(16, EVERYTHING, seed=0)))
    logits = loop.train_step(state, state.data.normalise(images), labels)
    assert {logits.device, state.loss.device, state.gradient_norm.device} == {gpu}
    assert {parameter.grad.device for parameter in state.model.parameters()} == {gpu}


@pytest.mark.parametrize("objective", ["masked-patches", "masked-pixels"])
def test_a_step_without_labels_and_its_validation_stay_there(make_task, colours, gpu, objective):
    with unset_fake_temporarily():
        model = make_task(objective)
    config = TrainConfig(batch_size=16, accumulation=2)
    data, model = colours.to(gpu), model.to(gpu)
    state = TrainingState(model, data, config, build_optimiser(model, config))
    images, labels = next(iter(data.training_batches(16, Augmentation(flip=True), seed=0)))
    outcome = loop.train_step(state, data.normalise(images), labels)
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


def test_a_tensor_on_the_wrong_device_is_found(few_digits, gpu):
    state = state_on(gpu, few_digits, TrainConfig(batch_size=16))
    with pytest.raises(RuntimeError, match="devices, meta and cpu"):
        loop.train_step(state, torch.zeros(16, 1, 8, 8, device=gpu), torch.zeros(16, dtype=torch.long))
