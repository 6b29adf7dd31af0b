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
from vit_lab.explorer import AttentionExplorer

SHAPE = {"image_size": (8, 12), "patch_size": 4, "dim": 12, "depth": 3, "heads": 2, "mlp_dim": 8}


@pytest.fixture(params=[True, False], ids=["class token", "mean"])
def looked(request):
    """A photo, and what a random model's tokens look at in it: (L, h, T, T)."""
    config = ViTConfig(
        **SHAPE, num_classes=3, class_token=request.param, pool="cls" if request.param else "gap"
    )
    photo = torch.rand(3, 8, 12)
    return photo, torch.cat(layer_attention(VisionTransformer(config), 4 * photo[None] - 2))


def attribute(text, name):
    return re.search(rf'data-{name}="([^"]*)"', text)[1]


def test_it_holds_every_row_as_shares_of_its_largest_weight(looked):
    photo, weights = looked
    text = AttentionExplorer(photo, weights, (2, 3))._repr_html_()
    special = weights.shape[-1] - 6
    assert json.loads(attribute(text, "shape")) == [3, 2, 2, 3, special, 7, 0.85]
    packed = np.frombuffer(base64.b64decode(attribute(text, "maps")), dtype=np.uint8)
    levels = np.stack([packed % 16, packed // 16], axis=1).ravel()
    among_patches = weights[..., special:]
    expected = among_patches / among_patches.amax(dim=-1, keepdim=True)
    assert np.abs(levels / 7 - expected.numpy().ravel()).max() <= 1 / 7 + 1e-6
    top = torch.tensor(levels.reshape(among_patches.shape)) == 7
    assert torch.equal(top.byte().argmax(dim=-1), among_patches.argmax(dim=-1))
    assert (top.sum(dim=-1) == 1).all()


def test_without_scripts_it_shows_the_chosen_map_on_the_photo(looked):
    photo, weights = looked
    text = AttentionExplorer(photo, weights, (2, 3), layer=1, head=1)._repr_html_()
    row = weights[1, 1, 0, 1:] if weights.shape[-1] == 7 else weights[1, 1, 4]
    dark = [float(value) for value in re.findall(r'<i style="opacity:([\d.]+)">', text)]
    assert dark == pytest.approx((0.85 * (1 - row / row.max())).tolist(), abs=0.85 / 7 + 0.006)
    assert "Layer 2, head 2: where" in text
    png = re.search(r'data:image/png;base64,([^"]*)', text)[1]
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(png))))
    assert np.abs(pixels - 255 * photo.permute(1, 2, 0).numpy()).max() <= 0.51


def test_a_list_of_one_photos_attentions_and_a_grey_photo_will_do(looked):
    photo, weights = looked
    listed = AttentionExplorer(photo[:1], [found[None] for found in weights], (2, 3))
    assert torch.equal(listed.levels, AttentionExplorer(photo, weights, (2, 3)).levels)
    assert "data:image/png" in listed._repr_html_()


def test_one_head_will_do():
    weights = torch.rand(3, 1, 7, 7)
    assert AttentionExplorer(torch.rand(3, 8, 12), weights, (2, 3)).levels.shape == (3, 1, 7, 6)
    assert "1 heads, 2 x 3 patches" in repr(AttentionExplorer(torch.rand(3, 8, 12), weights, (2, 3)))


def test_a_page_has_its_title_as_text(looked):
    page = AttentionExplorer(*looked, (2, 3)).page("<cup & saucer>")
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("&lt;cup &amp; saucer&gt;") == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": (3, 3)}, r"for a grid of 3 x 3 patches: expected .* T 9 or, with a class token, 10"),
        ({"weights": torch.rand(3, 2, 2, 7, 7)}, r"expected .* of one photo"),
        ({"weights": torch.rand(3, 7, 7)}, r"shape \(3, 7, 7\)"),
        ({"photo": torch.rand(1, 3, 8, 12)}, r"photo of shape \(1, 3, 8, 12\): expected \(C, H, W\)"),
        ({"layer": 3}, "no layer 3 with head 0: there are 3 layers of 2 heads"),
        ({"head": -1}, "no layer 2 with head -1"),
    ],
)
def test_what_it_cannot_show_is_refused(change, message):
    settings = {
        "photo": torch.rand(3, 8, 12),
        "weights": torch.rand(3, 2, 7, 7),
        "grid": (2, 3),
        "layer": None,
        "head": 0,
    }
    with pytest.raises(InputError, match=message):
        AttentionExplorer(*(settings | change).values())


@pytest.mark.parametrize(
    "wrong",
    [[], [torch.rand(2, 7, 7), torch.rand(2, 6, 6)], [torch.rand(2, 7, 6)]],
    ids=["none", "of two sizes", "without a row for the class token"],
)
def test_attentions_that_fit_no_grid_are_refused(wrong):
    with pytest.raises(InputError, match="expected"):
        AttentionExplorer(torch.rand(3, 8, 12), wrong, (2, 3))
