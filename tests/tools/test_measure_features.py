"""Features are the model's own tokens, and positions laid out as a row are numpy's interpolation."""

import measure_features
import numpy as np
import torch
from measure_features import described, measured
from measure_larger import with_positions

from vit_classroom.checks.report import randomise
from vit_from_scratch.training.few_shot import FewShot


def test_a_layer_is_described_by_its_class_token_and_the_mean_of_its_patches(make_model, few_digits):
    model = randomise(make_model())
    images, _ = next(few_digits.batches("test"))
    with torch.no_grad():
        named = model(images, return_intermediates=True)[1]
    layers = torch.stack([named["tokens"], *named["layers"], named["encoded"]])  # (L + 2, N, T, D)
    found = described(model.train(), few_digits, "test")
    assert torch.allclose(found[:, 0], layers[:, :, 0], atol=1e-5)
    assert torch.allclose(found[:, 1], layers[:, :, 1:].sum(dim=2) / 4, atol=1e-5)


def test_positions_in_a_row_are_stretched_channel_by_channel_as_by_numpy(make_model):
    model = randomise(make_model())
    larger = with_positions(model, 12, "row")
    old, new = (one.tokens.position[0].detach().numpy() for one in (model, larger))
    places = np.linspace(0, 3, 9)  # from 4 patches to 9
    expected = np.stack([np.interp(places, range(4), channel) for channel in old[1:].T], axis=1)
    assert np.allclose(new[1:], expected, atol=1e-5)
    assert np.array_equal(new[0], old[0])
    assert torch.equal(larger.head.weight, model.head.weight)


def test_held_out_and_test_photos_are_not_exchanged(monkeypatch):
    monkeypatch.setattr(
        measure_features, "few_shot_accuracy", lambda train, part, shots, draws: FewShot(shots, (part, part))
    )
    row = measured({"train": 0.1, "validation": 0.5, "test": 0.7})["1"]
    assert (row["validation"], row["test"], row["low"], row["high"]) == (0.5, 0.7, 0.7, 0.7)
