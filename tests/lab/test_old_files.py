"""Files that the first version wrote still load: a finished run, a stopped one, a hybrid's checkpoint."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest
import torch

from vit_from_scratch import ViTConfig
from vit_from_scratch.model import StemConfig
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_lab import evaluate_run, load_recipe, run
from vit_lab.runs.metrics import read_metrics

OLD = Path(__file__).resolve().parent.parent / "old_files"
CHANGES = {
    "data": {"validation_size": 1000, "train_size": 64},
    "model": {"dim": 16, "depth": 1, "heads": 2, "mlp_dim": 16},
    "train": {"epochs": 3, "warmup_steps": 2, "batch_size": 32},
}
"""With what the two runs were started, over the recipe "digits"."""


def test_the_old_files_are_old():
    for folder in ("finished", "stopped"):
        settings = tomllib.loads((OLD / folder / "config.toml").read_text("utf-8"))
        assert settings["model"]["stem_layers"] == [3, 4, 9]


def test_a_finished_run_of_an_older_version_measures_the_same():
    measured, result = evaluate_run(OLD / "finished")
    assert measured.accuracy == result["test_accuracy"]
    assert measured.loss == pytest.approx(result["test_loss"], abs=1e-6)


def test_a_stopped_run_of_an_older_version_goes_on_to_the_same_end(tmp_path):
    shutil.copytree(OLD / "stopped", tmp_path / "stopped")
    result = run(load_recipe("digits", CHANGES).with_seed(0), tmp_path / "stopped")
    expected = json.loads((OLD / "finished" / "result.json").read_text("utf-8"))
    assert result["epochs"] == expected["epochs"] == 3
    assert result["test_loss"] == pytest.approx(expected["test_loss"], abs=1e-6)
    losses = [epoch.train_loss for epoch in read_metrics(tmp_path / "stopped")]
    assert losses == pytest.approx([epoch.train_loss for epoch in read_metrics(OLD / "finished")], abs=1e-6)


def test_a_hybrids_checkpoint_of_an_older_version_gives_the_same_logits():
    model = load_checkpoint(OLD / "hybrid.safetensors")
    stem = StemConfig("resnet", 8, (1, 1, 1), 1, norm_eps=1e-5, conv_eps=1e-8, eps_on_variance=True)
    assert model.config.stem == stem
    images = torch.arange(3 * 16 * 16.0).view(1, 3, 16, 16) / 768
    logits = [0.017162058502435684, 0.07943183928728104, -0.13877327740192413]
    assert model(images)[0].tolist() == pytest.approx(logits, abs=1e-5)


def test_flat_options_of_a_stem_become_a_table():
    flat = {"image_size": 32, "patch_size": 4, "stem": "conv", "stem_width": 8}
    nested = {"image_size": 32, "patch_size": 4, "stem": {"kind": "conv", "width": 8}}
    assert ViTConfig.from_dict(flat) == ViTConfig.from_dict(nested)
    assert ViTConfig.from_dict(flat).stem == StemConfig("conv", width=8)
    assert ViTConfig.from_dict({"stem": "patch", "stem_layers": [1]}).stem.layers == (1,)


def test_one_option_of_a_recipes_stem_can_be_changed():
    recipe = load_recipe("cifar10-half-hour-conv", {"model": {"stem": {"width": 16}}})
    assert recipe.model["stem"] == {"kind": "conv", "width": 16}
