"""Explicit attention, the fused kernel and torch's own layer are one function."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vit_classroom.checks.report import randomise
from vit_from_scratch import InputError
from vit_from_scratch.model.attention import (
    MultiHeadSelfAttention,
    attention_weights,
    explicit_attention,
    fused_attention,
    fused_is_faster,
)


def test_attention_is_what_two_loops_compute():
    q, k, v = torch.randn(3, 5, 4, dtype=torch.float64)
    expected = torch.zeros(5, 4, dtype=torch.float64)
    for i in range(5):
        scores = [math.exp(sum(q[i] * k[j]) / math.sqrt(4)) for j in range(5)]
        for j in range(5):
            expected[i] += scores[j] / sum(scores) * v[j]
    torch.testing.assert_close(explicit_attention(q, k, v), expected)


@pytest.mark.parametrize("shape", [(1, 1, 1, 4), (2, 3, 17, 8), (2, 12, 197, 64)])
def test_explicit_and_fused_attention_agree(shape):
    q, k, v = torch.randn(3, *shape, dtype=torch.float64)
    torch.testing.assert_close(explicit_attention(q, k, v), fused_attention(q, k, v))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("return_weights", [True, False])
def test_our_layer_agrees_with_torchs_multi_head_attention(bias, return_weights):
    ours = MultiHeadSelfAttention(24, 4, qkv_bias=bias).double()
    randomise(ours)
    theirs = nn.MultiheadAttention(24, 4, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.qkv.weight)
        theirs.in_proj_bias.copy_(ours.qkv.bias if bias else torch.zeros(72))
        theirs.out_proj.weight.copy_(ours.projection.weight)
        theirs.out_proj.bias.copy_(ours.projection.bias)
    tokens = torch.randn(2, 9, 24, dtype=torch.float64)
    result, weights = ours(tokens, return_weights)
    expected, expected_weights = theirs(tokens, tokens, tokens, average_attn_weights=False)
    torch.testing.assert_close(result, expected)
    if return_weights:
        torch.testing.assert_close(weights, expected_weights)
    else:
        assert weights is None


def test_a_row_of_weights_sums_to_one_and_prefers_the_matching_key():
    keys = 9 * torch.eye(6)
    weights = attention_weights(keys, keys)
    torch.testing.assert_close(weights.sum(-1), torch.ones(6))
    assert torch.equal(weights.argmax(-1), torch.arange(6))


def test_each_of_q_k_and_v_is_drawn_with_its_own_fan():
    attention = MultiHeadSelfAttention(256, 4)
    bound = math.sqrt(6 / (256 + 256))
    for weight in (*attention.qkv.weight.chunk(3), attention.projection.weight):
        assert weight.abs().max().item() == pytest.approx(bound, rel=1e-3)
    assert attention.qkv.bias.abs().max() == 0
    packed = nn.init.xavier_uniform_(torch.empty(768, 256))
    assert packed.abs().max() < 0.75 * bound  # what the usual mistake would give


def test_both_paths_of_the_layer_give_the_same_gradient(monkeypatch):
    tokens = torch.randn(2, 9, 24, dtype=torch.float64)
    attention = MultiHeadSelfAttention(24, 4).double()
    gradients = []
    for fused in (True, False):
        monkeypatch.setattr("vit_from_scratch.model.attention.fused_is_faster", lambda q, fused=fused: fused)
        attention.zero_grad()
        attention(tokens)[0].pow(2).sum().backward()
        gradients.append(attention.qkv.weight.grad.clone())
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("imitated", [False, True])
def test_the_explicit_path_is_taken_only_where_it_was_measured_to_win(monkeypatch, imitated):
    monkeypatch.setattr("vit_from_scratch.model.attention.BFLOAT16_IS_IMITATED", imitated)
    short, long = torch.empty(1, 1, 65, 8), torch.empty(1, 1, 4097, 8)
    assert fused_is_faster(short)
    assert fused_is_faster(long.bfloat16())
    assert not fused_is_faster(short.bfloat16().requires_grad_())
    assert fused_is_faster(short.bfloat16()) is imitated
    assert fused_is_faster(short.bfloat16().to("meta"))


@pytest.mark.parametrize("heads", [5, 48, 0, -2])
def test_heads_that_do_not_divide_the_width_are_refused(heads):
    with pytest.raises(InputError, match=f"heads={heads} does not divide dim=24"):
        MultiHeadSelfAttention(24, heads)


def test_permuting_the_tokens_permutes_the_result():
    attention = MultiHeadSelfAttention(24, 4).double()
    tokens, order = torch.randn(2, 9, 24, dtype=torch.float64), torch.randperm(9)
    torch.testing.assert_close(attention(tokens)[0][:, order], attention(tokens[:, order])[0])
    assert not torch.allclose(attention(tokens)[0], F.linear(tokens, torch.eye(24, dtype=torch.float64)))
