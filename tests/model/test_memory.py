"""The bytes that are worked out are those that torch keeps."""

import math
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model import attention
from vit_from_scratch.model.config import variant_config
from vit_from_scratch.model.cost import parameters_of
from vit_from_scratch.model.memory import OPTIMISERS, activation_memory, training_memory
from vit_from_scratch.training.config import TrainConfig
from vit_from_scratch.training.optimisers import build_optimiser

SIZES = {
    "image_size": (32, 48),
    "patch_size": 4,
    "dim": 24,
    "depth": 3,
    "heads": 3,
    "mlp_dim": 40,
    "num_classes": 7,
}

PLAIN = [
    {},
    {"depth": 1, "heads": 1},
    {"channels": 1, "patch_size": 1, "image_size": 8},
    {"dropout": 0.1},
    {"mlp": "local"},
    {"mlp": "local", "dropout": 0.1},
    {"class_token": False, "pool": "gap", "norm": "pooled"},
    {"pool": "gap"},
    {"norm": "pooled"},
    {"norm": "none"},
    {"norm": "none", "pool": "gap"},
    {"position": "learned_2d"},
    {"position": "sincos_2d"},
    {"position": "none", "gelu": "tanh"},
    {"representation_size": 20, "qkv_bias": False},
    {"initialisation": "mimetic"},
    {"qk_norm": True},
]


class Kept:
    """Follow the bytes that autograd keeps, each piece of memory once and weights apart."""

    def __init__(self, model):
        self.weights = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}
        self.times, self.now, self.most = Counter(), 0, 0

    def hooks(self):
        return torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: Piece(self, tensor), lambda p: p.tensor
        )

    def change(self, tensor, by):
        storage = tensor.untyped_storage()
        place = storage.data_ptr()
        before = self.times[place]
        self.times[place] += by
        if place not in self.weights and 0 in (before, before + by):
            self.now += by * storage.nbytes()
            self.most = max(self.most, self.now)


class Piece:
    """A kept tensor; autograd drops it when its operation has been differentiated."""

    def __init__(self, kept, tensor):
        self.kept, self.tensor = kept, tensor
        kept.change(tensor, 1)

    def __del__(self):
        self.kept.change(self.tensor, -1)


class Checkpointed(torch.nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, tokens, return_weights=False):
        return checkpoint(lambda t: self.block(t)[0], tokens, use_reentrant=True), None


def most_kept(config, batch, precision, kind, monkeypatch, checkpointing=False) -> int:
    """Return the most bytes that autograd keeps at once during a training step."""
    monkeypatch.setattr(attention, "fused_is_faster", lambda q: kind == "fused")
    model = VisionTransformer(config).train()
    kept = Kept(model)
    if checkpointing:
        model.encoder.blocks = torch.nn.ModuleList(map(Checkpointed, model.encoder.blocks))
    images = torch.randn(batch, config.channels, *config.image_shape)
    with kept.hooks():
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = F.cross_entropy(model(images), torch.zeros(batch, dtype=torch.long))
        loss.backward()
    assert kept.most > 0
    return kept.most


@pytest.mark.parametrize("kind", ["fused", "explicit"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("options", PLAIN, ids=str)
def test_activations_are_what_autograd_keeps(options, precision, kind, monkeypatch):
    config = ViTConfig.from_dict(SIZES | options)
    memory = training_memory(config, 3, precision, kind)
    measured = most_kept(config, 3, precision, kind, monkeypatch)
    assert measured - 16 <= memory.activations + memory.copies <= measured  # but for a scalar of the loss


@pytest.mark.parametrize("kind", ["fused", "explicit"])
@pytest.mark.parametrize("options", [{"depth": 1}, {}, {"depth": 6}, {"num_classes": 50_000}], ids=str)
def test_checkpointed_blocks_are_there_in_full_one_at_a_time(options, kind, monkeypatch):
    config = ViTConfig.from_dict(SIZES | options)
    measured = most_kept(config, 3, "float32", kind, monkeypatch, checkpointing=True)
    assert activation_memory(config, 3, "float32", kind, True) == pytest.approx(measured, abs=16)


class Group(torch.nn.Module):
    """Several blocks that share one checkpoint."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = torch.nn.ModuleList(blocks)

    def forward(self, tokens, return_weights=False):
        def run(z):
            for block in self.blocks:
                z, _ = block(z)
            return z

        return checkpoint(run, tokens, use_reentrant=True), None


@pytest.mark.parametrize("every", [1, 2, 3, 6])
def test_a_checkpoint_every_few_blocks_keeps_as_much_as_chapter_11_says(every, monkeypatch):
    monkeypatch.setattr(attention, "fused_is_faster", lambda q: True)
    config = ViTConfig.from_dict(SIZES | {"depth": 6})
    model = VisionTransformer(config)
    kept = Kept(model)
    blocks = list(model.encoder.blocks)
    groups = [Group(blocks[start : start + every]) for start in range(0, 6, every)]
    model.encoder.blocks = torch.nn.ModuleList(groups)
    with kept.hooks():
        F.cross_entropy(model(torch.randn(1, 3, 32, 48)), torch.zeros(1, dtype=torch.long)).backward()
    memory = [activation_memory(ViTConfig.from_dict(SIZES | {"depth": depth})) for depth in (1, 2)]
    block, before = memory[1] - memory[0], 4 * 8 * 12 * 48  # what the projection E reads
    predicted = before + checkpointed_bytes(6, every, 4 * config.num_tokens * config.dim, block)
    assert kept.most == pytest.approx(predicted, abs=16)


def checkpointed_bytes(depth, every, kept, block):
    return (depth // every - 1) * kept + every * block


@pytest.mark.parametrize("name", OPTIMISERS)
def test_weights_gradients_and_the_optimisers_state_are_torchs(name):
    config = ViTConfig.from_dict(SIZES)
    model = VisionTransformer(config)
    optimiser = build_optimiser(model, TrainConfig(optimiser=name, momentum=0.9))
    model(torch.randn(2, 3, 32, 48)).square().sum().backward()
    optimiser.step()
    memory = training_memory(config, optimiser=name)
    weights, gradients = (
        sum(t.nbytes for t in tensors)
        for tensors in (model.parameters(), (p.grad for p in model.parameters()))
    )
    states = [state for one in getattr(optimiser, "optimisers", [optimiser]) for state in one.state.values()]
    held = [t for state in states for t in state.values() if t is not None and t.ndim]
    assert (memory.weights, memory.gradients) == (weights, gradients)
    assert memory.optimiser == sum(t.nbytes for t in held)
    assert memory.total == weights + gradients + memory.optimiser + memory.activations


def test_sizes_that_no_memory_holds_are_counted_exactly():
    config = variant_config("H/14", image_size=14 * 4096)
    tokens = 4096**2 + 1
    memory = training_memory(config, 2**31, attention="explicit")
    assert memory.activations > 2**31 * 32 * 4 * 16 * tokens**2
    assert memory.optimiser == 8 * parameters_of(config)
    assert math.isfinite(float(memory.total))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Ti/16", {"batch": 0}, "batch = 0: expected at least 1 image"),
        ("Ti/16", {"batch": 2**31 + 1}, "expected at least 1 image, at most 2,147,483,648"),
        ("Ti/16", {"precision": "float16"}, "unknown precision 'float16': expected one of 'float32', 'bf"),
        ("Ti/16", {"attention": "flash"}, "unknown attention 'flash'"),
        ("Ti/16", {"optimiser": "lion"}, "unknown optimiser 'lion'"),
        ("R50+Ti/16", {}, "stem='resnet': expected 'patch'"),
    ],
)
def test_wrong_input_is_refused(name, arguments, message):
    with pytest.raises(InputError, match=message):
        training_memory(variant_config(name), **arguments)
