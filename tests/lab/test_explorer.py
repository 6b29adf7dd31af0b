"""The page that shows where each patch looks: what it holds are the attention weights."""

import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.inspection import layer_attention
from vit_lab.explorer import explorer_page

SHAPE = {"image_size": (8, 12), "patch_size": 4, "dim": 12, "depth": 3, "heads": 2, "mlp_dim": 8}


@pytest.fixture(params=[True, False], ids=["class token", "mean"])
def looked(request):
    """A photo, and what a random model's tokens look at in it: L times (1, h, T, T)."""
    config = ViTConfig(
        **SHAPE, num_classes=3, class_token=request.param, pool="cls" if request.param else "gap"
    )
    photo = torch.rand(3, 8, 12)
    return photo, layer_attention(VisionTransformer(config), 4 * photo[None] - 2)


def attribute(text, name):
    return re.search(rf'data-{name}="([^"]*)"', text)[1]


def test_it_holds_every_row_as_shares_of_its_largest_weight(looked):
    photo, attentions = looked
    text, weights = explorer_page(photo, attentions, (2, 3)), torch.cat(attentions)  # (L, h, T, T)
    special = weights.shape[-1] - 6
    assert json.loads(attribute(text, "shape")) == [3, 2, 2, 3, special, 7, 0.66]
    packed = np.frombuffer(base64.b64decode(attribute(text, "maps")), dtype=np.uint8)
    levels = np.stack([packed % 16, packed // 16], axis=1).ravel()
    among_patches = weights[..., special:]
    expected = among_patches / among_patches.amax(dim=-1, keepdim=True)
    assert np.abs(levels / 7 - expected.numpy().ravel()).max() <= 1 / 7 + 1e-6
    top = torch.tensor(levels.reshape(among_patches.shape)) == 7
    assert torch.equal(top.byte().argmax(dim=-1), among_patches.argmax(dim=-1))
    assert (top.sum(dim=-1) == 1).all()


def test_without_scripts_it_shows_a_map_of_the_last_layer_on_the_photo(looked):
    photo, attentions = looked
    text, weights = explorer_page(photo, attentions, (2, 3)), attentions[-1][0, 0]
    row = weights[0, 1:] if len(weights) == 7 else weights[4]
    dark = [float(value) for value in re.findall(r'<i style="opacity:([\d.]+)">', text)]
    assert dark == pytest.approx((0.66 * (1 - row / row.max())).tolist(), abs=0.66 / 7 + 0.006)
    assert "Layer 3, head 1: where" in text
    png = re.search(r'data:image/png;base64,([^"]*)', text)[1]
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(png))))
    assert np.abs(pixels - 255 * photo.permute(1, 2, 0).numpy()).max() <= 0.51


def test_a_grey_photo_one_head_and_an_odd_number_of_weights_will_do():
    attentions = [torch.rand(1, 1, 7, 7)] * 3
    text = explorer_page(torch.rand(1, 8, 12), attentions, (1, 7))
    packed = np.frombuffer(base64.b64decode(attribute(text, "maps")), dtype=np.uint8)
    assert len(packed) == (3 * 49 + 1) // 2
    assert "data:image/png" in text


@pytest.mark.parametrize(("photos", "grid"), [(2, (2, 3)), (1, (3, 3)), (1, (1, 3))])
def test_attentions_of_two_photos_or_of_another_grid_are_refused(photos, grid):
    with pytest.raises(InputError, match=r"expected \(1, h, T, T\) of one photo"):
        explorer_page(torch.rand(3, 8, 12), [torch.rand(photos, 2, 7, 7)] * 3, grid)
