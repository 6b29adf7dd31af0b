"""No inspection makes a tensor on the CPU while model and images are elsewhere."""

import pytest
import torch

from vit_from_scratch.inspection import (
    attention_distances,
    attention_rollout,
    class_token_maps,
    embedding_filter_components,
    layer_attention,
    layer_tokens,
    mean_attention_distance,
    object_share,
    position_similarity,
    rollout_maps,
    token_colours,
)
from vit_from_scratch.inspection.masking import (
    gradient_scores,
    mask_patches,
    rollout_scores,
)

GRID, PATCH = (4, 6), 4

OF_A_MODEL = {
    "attention": layer_attention,
    "rollout": lambda model, images: attention_rollout(layer_attention(model, images)),
    "attention distance": attention_distances,
    "path of the tokens": layer_tokens,
    "colours of the tokens": lambda model, images: token_colours(layer_tokens(model, images)[-1]),
    "scores by attention": rollout_scores,
    "scores by gradient": gradient_scores,
}


@pytest.mark.parametrize("inspect", OF_A_MODEL.values(), ids=OF_A_MODEL)
def test_what_is_found_in_a_model_is_on_its_device(elsewhere, model, inspect):
    with elsewhere() as device:
        found = inspect(model.to(device), torch.randn(2, 3, 16, 24, device=device))
        found = found if isinstance(found, list) else [found]
        assert {tensor.device for tensor in found} == {device}


OF_TENSORS = {
    "maps of the class token": lambda device: class_token_maps(
        torch.rand(3, 2, 2, 25, 25, device=device), GRID
    ),
    "maps of a rollout": lambda device: rollout_maps(torch.rand(2, 25, 25, device=device), GRID),
    "share of an object": lambda device: object_share(
        torch.rand(2, *GRID, device=device), torch.rand(2, 16, 24)
    ),
    "distance": lambda device: mean_attention_distance(
        torch.rand(3, 2, 2, 25, 25, device=device), GRID, PATCH
    ),
    "similarity of positions": lambda device: position_similarity(torch.rand(1, 25, 8, device=device), GRID),
    "filters": lambda device: embedding_filter_components(torch.rand(8, 3, 4, 4, device=device), 5).rebuilt(),
    "masked images": lambda device: mask_patches(
        torch.rand(2, 3, 16, 24, device=device), torch.rand(2, *GRID, device=device), 3, PATCH
    ),
}


@pytest.mark.parametrize("inspect", OF_TENSORS.values(), ids=OF_TENSORS)
def test_what_is_found_in_tensors_is_on_their_device(elsewhere, inspect):
    with elsewhere() as device:
        assert inspect(device).device == device
