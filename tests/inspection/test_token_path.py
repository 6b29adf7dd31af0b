import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from vit_from_scratch import InputError
from vit_from_scratch.inspection import layer_tokens, token_colours


def test_the_path_is_that_of_the_models_own_layers(model, images):
    named = model(images, return_intermediates=True)[1]
    first = int(model.config.class_token)
    path = layer_tokens(model, images)
    assert len(path) == 4
    for tokens, expected in zip(path, [named["tokens"], *named["layers"]], strict=True):
        assert torch.allclose(tokens, expected[:, first:].unflatten(1, (4, 6)), atol=1e-5)


def test_colours_are_scikit_learns_three_components_between_their_first_and_last_percent():
    tokens = torch.randn(2, 5, 6, 5) * torch.tensor([9.0, 4.0, 2.0, 0.1, 0.1])
    rows = tokens.flatten(0, 2).double().numpy()
    found = PCA(3).fit(rows)
    largest = np.abs(found.components_).argmax(axis=1)
    scores = found.transform(rows) * np.sign(found.components_[range(3), largest])
    low, high = np.quantile(scores, [0.01, 0.99], axis=0)
    expected = np.clip((scores - low) / (high - low), 0, 1).reshape(2, 5, 6, 3)
    assert np.allclose(token_colours(tokens), expected, atol=1e-6)


def test_alike_tokens_get_alike_colours():
    tokens = torch.randn(1, 2, 4, 6)
    tokens[0, 0] = tokens[0, 1]
    colours = token_colours(tokens)
    assert torch.allclose(colours[0, 0], colours[0, 1])


def test_too_few_values_are_refused():
    for tokens in (torch.randn(1, 4, 4, 2), torch.randn(5), torch.tensor(1.0)):
        with pytest.raises(InputError, match="expected at least 3 tokens of 3 values"):
            token_colours(tokens)


def test_tokens_that_are_no_numbers_are_refused():
    tokens = torch.randn(1, 4, 4, 5)
    tokens[0, 0, 0, 0] = torch.inf
    with pytest.raises(InputError, match="tokens with values that are not finite"):
        token_colours(tokens)
    with pytest.raises(InputError, match="tokens of type NoneType: expected a tensor"):
        token_colours(None)
