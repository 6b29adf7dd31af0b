import pytest
import torch

from vit_from_scratch import InputError
from vit_from_scratch.inspection import layer_tokens, token_colours


def test_the_path_is_that_of_the_models_own_layers(model, images):
    named = model(images, return_intermediates=True)[1]
    first = int(model.config.class_token)
    path = layer_tokens(model, images)
    assert len(path) == 4
    for tokens, expected in zip(path, [named["tokens"], *named["layers"]], strict=True):
        assert torch.allclose(tokens, expected[:, first:].unflatten(1, (4, 6)), atol=1e-5)


def test_colours_follow_the_three_strongest_directions():
    torch.manual_seed(0)
    strengths = torch.tensor([9.0, 4.0, 2.0, 0.1, 0.1])
    tokens = torch.randn(2, 5, 6, 5) * strengths
    colours = token_colours(tokens)
    assert colours.shape == (2, 5, 6, 3)
    assert 0 <= colours.min() <= colours.max() <= 1
    for channel in range(3):
        pair = torch.stack([colours[..., channel].flatten().float(), tokens[..., channel].flatten()])
        assert torch.corrcoef(pair)[0, 1].abs() > 0.95


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
