"""`vit finetune` begins from a released checkpoint: a small one that lies in the cache."""

import json
import tomllib

import numpy as np
import pytest
import torch
from test_google import vision_transformer_arrays

from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.model.vit import build_model
from vit_from_scratch.pretrained import registry
from vit_lab.cli import main
from vit_lab.runs.trained_models import open_model

NAME = "B/16-384"
SMALL = {"dim": 24, "depth": 2, "heads": 3, "mlp_dim": 48}
HIDDEN = "encoder.blocks.1.mlp.hidden.weight"


@pytest.fixture
def arrays(tmp_path, monkeypatch):
    """The arrays of a narrow B/16 of 384 pixels and 1,000 classes; its file lies in the cache."""
    random = np.random.default_rng(3)
    shapes = {"embedding/kernel": (16, 16, 3, 24), "head/kernel": (24, 1000), "head/bias": (1000,)}
    own = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    arrays = vision_transformer_arrays(tokens=24 * 24 + 1) | own
    (tmp_path / "cache").mkdir()
    np.savez(tmp_path / "cache" / "B_16-384.npz", **arrays)
    monkeypatch.setenv("VIT_WEIGHTS_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(
        registry, "build_model", lambda variant, **options: build_model(variant, **options, **SMALL)
    )
    return arrays


def test_a_released_model_is_opened_by_its_name(arrays):
    trained = open_model(NAME)
    assert (trained.model.config.image_shape, trained.model.config.grid) == ((384, 384), (24, 24))
    assert (len(trained.class_names), trained.class_names[281]) == (1000, "tabby")
    assert (trained.normalisation, trained.objective) == ("half", "classes")


def test_fine_tuning_begins_from_a_released_model(arrays, tmp_path, capsys):
    asked = ["finetune", "--weights", NAME, "--data", "digits"]
    assert main([*asked, "--show"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# digits-from-B-16-384: images of 384 x 384, ")
    assert tomllib.loads(shown)["data"]["normalisation"] == "half"
    settings = ["data.train_size=40", "train.threads=1", "train.precision=float32"]
    run = ["--image-size", "32", "--epochs", "1", "--keep-epochs", "0", "--out", str(tmp_path / "run")]
    assert main([*asked, *run, "--set", *settings]) == 0
    begun = load_checkpoint(tmp_path / "run" / "epochs" / "epoch-0000.safetensors")
    assert (begun.config.grid, begun.config.channels, begun.config.gelu) == ((2, 2), 1, "tanh")
    assert not begun.head.weight.any()
    released = arrays["Transformer/encoderblock_1/MlpBlock_3/Dense_0/kernel"]
    assert np.array_equal(begun.state_dict()[HIDDEN].numpy(), released.T)
    grey = arrays["embedding/kernel"].sum(axis=2).reshape(256, 24)
    assert np.allclose(begun.patch_embedding.projection.weight.detach().numpy(), grey.T, atol=1e-6)
    ended = load_checkpoint(tmp_path / "run" / "model.safetensors")
    assert not torch.equal(ended.state_dict()[HIDDEN], begun.state_dict()[HIDDEN])
    start = json.loads((tmp_path / "run" / "result.json").read_text())["start"]
    assert start == {"name": NAME, "sha256": open_model(NAME).sha256}
