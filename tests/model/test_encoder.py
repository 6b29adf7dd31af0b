"""The encoder is torch's pre-norm encoder, and knows order only through positions."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vit_classroom.checks.report import randomise
from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.encoder import Block, Encoder, Mlp


@pytest.fixture
def config():
    return ViTConfig(image_size=12, patch_size=4, dim=24, depth=3, heads=3, mlp_dim=40, dropout=0.3)


def torchs_encoder(encoder, config):
    """torch.nn.TransformerEncoder with the weights of ours."""
    layer = nn.TransformerEncoderLayer(
        config.dim, config.heads, config.mlp_dim, config.dropout, "gelu", config.layer_norm_eps, True, True
    )
    theirs = nn.TransformerEncoder(
        layer, config.depth, nn.LayerNorm(config.dim, eps=config.layer_norm_eps), enable_nested_tensor=False
    )
    names = {
        "attention_norm.": "norm1.",
        "attention.qkv.": "self_attn.in_proj_",
        "attention.projection.": "self_attn.out_proj.",
        "mlp_norm.": "norm2.",
        "mlp.hidden.": "linear1.",
        "mlp.output.": "linear2.",
        "blocks.": "layers.",
    }
    state = {}
    for name, value in encoder.state_dict().items():
        for ours, torchs in names.items():
            name = name.replace(ours, torchs)
        state[name] = value
    theirs.load_state_dict(state)
    return theirs.to(next(encoder.parameters()).dtype).eval()


def test_the_encoder_is_torchs_pre_norm_encoder(config):
    encoder = Encoder(config).double()
    randomise(encoder)
    tokens = torch.randn(2, 10, 24, dtype=torch.float64)
    torch.testing.assert_close(encoder(tokens), torchs_encoder(encoder, config)(tokens))


def test_the_intermediates_are_what_the_layers_gave(config):
    encoder = Encoder(config).double()
    randomise(encoder)
    tokens = torch.randn(2, 10, 24, dtype=torch.float64)
    seen = {}
    result = encoder(tokens, seen)
    assert len(seen["attention"]) == len(seen["layers"]) == 3
    state = tokens
    for block, layer in zip(encoder.blocks, seen["layers"], strict=True):
        state = block(state)[0]
        torch.testing.assert_close(layer, state)
    torch.testing.assert_close(encoder.norm(state), result)
    torch.testing.assert_close(encoder(tokens), result)  # asking for them changes nothing


def test_evaluation_is_deterministic_with_dropout_on_and_training_is_not(config):
    block, tokens = Block(config), torch.randn(2, 10, 24)
    assert not torch.equal(block(tokens)[0], block(tokens)[0])
    block.eval()
    assert torch.equal(block(tokens)[0], block(tokens)[0])


def test_dropout_stands_in_the_three_places_of_a_block(config):
    block, tokens = Block(config), torch.randn(2, 10, 24)
    randomise(block).train()
    torch.manual_seed(1)
    found, _ = block(tokens)
    torch.manual_seed(1)
    gathered, _ = block.attention(block.attention_norm(tokens))
    state = tokens + F.dropout(gathered, 0.3)
    hidden = F.dropout(F.gelu(block.mlp.hidden(block.mlp_norm(state))), 0.3)
    torch.testing.assert_close(found, state + F.dropout(block.mlp.output(hidden), 0.3))


@pytest.mark.parametrize("form", ["erf", "tanh"])
def test_the_mlp_uses_the_gelu_that_it_is_told(form):
    mlp = Mlp(6, 10, gelu=form).double()
    randomise(mlp)
    tokens = torch.randn(4, 6, dtype=torch.float64)
    hidden = mlp.hidden(tokens)
    if form == "erf":
        activated = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    else:
        cubic = hidden + 0.044715 * hidden**3
        activated = 0.5 * hidden * (1 + torch.tanh((2 / torch.pi) ** 0.5 * cubic))
    torch.testing.assert_close(mlp(tokens), mlp.output(activated))


def test_mlp_biases_start_at_a_millionth():
    mlp = Mlp(256, 1024)
    assert mlp.hidden.bias.std().item() == pytest.approx(1e-6, rel=0.1)
    assert mlp.hidden.weight.abs().max().item() == pytest.approx((6 / 1280) ** 0.5, rel=1e-3)


@pytest.mark.parametrize("mlp", ["dense", "local"])
def test_attention_that_returns_no_pair_is_refused_even_for_two_images(config, mlp):
    class Values(nn.Module):
        def forward(self, tokens, return_weights):
            return tokens

    (block, *_) = VisionTransformer(replace(config, mlp=mlp)).encoder.blocks
    block.attention = Values()
    with pytest.raises(InputError, match=r"attention returned Tensor: expected \(tokens, weights"):
        block(torch.randn(2, 9, config.dim))  # which could be taken for a pair
