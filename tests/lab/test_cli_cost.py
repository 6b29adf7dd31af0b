"""`vit cost` prints what the package counts."""

import argparse
import re

import pytest

from vit_from_scratch.model.config import variant_config
from vit_from_scratch.model.cost import forward_flops, training_flops
from vit_from_scratch.model.memory import ATTENTIONS, OPTIMISERS, PRECISIONS, training_memory
from vit_lab.cli import build_parser, main


def printed(capsys, *arguments: str) -> list[str]:
    assert main(["cost", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def value(lines: list[str], name: str) -> float:
    """The number behind a row's name, in bytes, operations or as it stands."""
    (row,) = [line for line in lines if re.match(rf"  {name} +\d", line)]
    number, unit, *_ = [*row.removeprefix(f"  {name} ").split(), ""]
    factor = {"GiB": 2**30, "MiB": 2**20, "GFLOPs": 1e9}.get(unit, 1)
    return float(number.replace(",", "")) * factor


def test_a_training_step_of_the_large_model(capsys):
    options = ["--image-size", "384", "--batch", "32", "--precision", "bfloat16"]
    lines = printed(capsys, "L/16", *options)
    config = variant_config("L/16", image_size=384)
    memory = training_memory(config, 32, "bfloat16")
    assert value(lines, "parameters") == 304_715_752
    assert value(lines, "forward pass, FLOPs") == forward_flops(config)
    assert value(lines, "forward pass") == pytest.approx(32 * forward_flops(config), rel=1e-4)
    assert value(lines, "training") == pytest.approx(96 * forward_flops(config), rel=1e-4)
    for name in ("weights", "gradients", "optimiser", "activations"):
        assert value(lines, name) == pytest.approx(getattr(memory, name), rel=5e-3)
    assert value(lines, "weights in bfloat16") == pytest.approx(memory.copies, rel=5e-3)
    assert value(lines, "total") == pytest.approx(memory.total, rel=5e-3)


def test_every_option_of_the_step_reaches_the_count(capsys):
    options = ["--batch", "3", "--attention", "explicit", "--optimiser", "sgd", "--checkpointing"]
    lines = printed(capsys, "S/32", *options, "--classes", "9")
    config = variant_config("S/32", num_classes=9)
    memory = training_memory(config, 3, "float32", "explicit", True, "sgd")
    assert value(lines, "activations") == pytest.approx(memory.activations, rel=5e-3)
    assert value(lines, "optimiser") == pytest.approx(memory.weights, rel=5e-3)
    assert value(lines, "training") == pytest.approx(3 * training_flops(config, True), rel=0.01)
    assert not any("bfloat16" in line for line in lines)


def test_a_hybrid_is_counted_but_for_its_memory(capsys):
    lines = printed(capsys, "R50+B/16", "--batch", "2")
    assert value(lines, "forward pass, FLOPs") == forward_flops(variant_config("R50+B/16"))
    assert lines[-1] == "  memory               not modelled for a ResNet stem"


def test_the_choices_are_those_that_can_be_counted():
    (commands,) = [a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    choices = {action.dest: action.choices for action in commands.choices["cost"]._actions}
    assert list(choices["precision"]) == list(PRECISIONS)
    assert list(choices["attention"]) == list(ATTENTIONS)
    assert list(choices["optimiser"]) == list(OPTIMISERS)
