"""A process may die before any of its file operations: the same command then ends in the same bits."""

import itertools
import os
from dataclasses import replace

import pytest
import torch
from stopping import Death, Killed, weights, without_time

from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_lab.runs import train
from vit_lab.runs.metrics import read_metrics


@pytest.mark.parametrize("again", [False, True])
def test_a_run_that_dies_before_any_file_operation_ends_in_the_same_bits(
    make_model, few_digits, short, tmp_path, monkeypatch, again
):
    """It dies once in a folder of its own, or again and again in one, each time a little later."""
    death, config = Death(monkeypatch), replace(short, epochs=3 if again else 2, batch_size=50)
    history = train(whole := make_model(), few_digits, config)

    def lives(folder, deaths: int) -> bool:
        death.comes_after(deaths)
        try:
            train(make_model(), few_digits, config, folder)
        except Killed:
            return False
        return True

    for deaths in itertools.count():
        folder = tmp_path / ("x" if again else str(deaths))
        lived = lives(folder, deaths)
        if not again:
            assert lives(folder, -1)
        if lived or not again:
            names = ["config.toml", "curves.png", "metrics.jsonl", "model.safetensors"]
            assert sorted(os.listdir(folder)) == names
            assert torch.equal(weights(load_checkpoint(folder / "model.safetensors")), weights(whole))
            assert without_time(read_metrics(folder)) == without_time(history)
        if lived:
            break
    assert deaths > (5 if again else 15)
