"""The code on the page "After this book": it runs, shows what it claims, and agrees with other people's."""

import ast
import re
from functools import partial

import pytest
import torch
from project_facts import ROOT
from timm.layers import build_rotary_pos_embed
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import Block as TimmBlock
from timm.models.vision_transformer import VisionTransformer as TimmViT
from torch import nn

from vit_classroom.checks.report import randomise
from vit_from_scratch.model import MultiHeadSelfAttention
from vit_from_scratch.pretrained import from_timm

PAGE = (ROOT / "book" / "after_this_book.md").read_text(encoding="utf-8")
HEAD, *REST = re.split(r"^## (.+)\n", PAGE, flags=re.MULTILINE)
SECTIONS = dict(zip(REST[::2], REST[1::2], strict=True))
TIMM_SIZES = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3, "mlp_ratio": 2}


def code_of(text):
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL))


STEPS = [name for name, text in SECTIONS.items() if code_of(text)]


def after_running(step):
    """The names that a reader has after the lines at the top of the page and the block of one section."""
    names = {}
    exec(compile(code_of(HEAD) + code_of(SECTIONS[step]), f"after_this_book.md, {step}", "exec"), names)
    return names


def defined_lines(code):
    """How many lines its classes and functions have, without empty ones."""
    lines, count = code.splitlines(), 0
    for node in ast.parse(code).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            count += sum(bool(line.strip()) for line in lines[first - 1 : node.end_lineno])
    return count


def timm_state_with(plain, name, extra, at):
    """The weights of a plain ViT of timm with more tokens put in front of the patches, without a position."""
    position = plain.pos_embed
    nothing = torch.zeros_like(extra)
    position = torch.cat([position[:, :at], nothing, position[:, at:]], dim=1)
    return {**plain.state_dict(), name: extra, "pos_embed": position}


@pytest.fixture
def plain():
    """A small ViT of timm without a zero in it."""
    model = TimmViT(num_classes=10, **TIMM_SIZES)
    randomise(model)
    return model.eval()


@pytest.mark.parametrize("step", STEPS)
def test_each_block_runs_and_what_it_asserts_is_so(step):
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(code_of(SECTIONS[step]))))
    after_running(step)


def test_the_table_says_how_many_lines_each_step_takes():
    rows = re.findall(r"^\| ([^|]+) \|[^|]+\| (\d+) \|$", HEAD, flags=re.MULTILINE)
    assert [(name, int(count)) for name, count in rows] == [
        (name, defined_lines(code_of(SECTIONS[name]))) for name in STEPS
    ]


def test_the_distilled_model_is_timms(plain):
    names = after_running("DeiT")
    ours = names["DistilledViT"](names["config"]).eval()
    randomise(ours)
    ours.load_state_dict(from_timm(plain).state_dict(), strict=False)
    peer = VisionTransformerDistilled(num_classes=10, **TIMM_SIZES).eval()
    state = timm_state_with(plain, "dist_token", ours.teacher_token, at=1)
    state |= {f"head_dist.{name}": value for name, value in ours.teacher_head.state_dict().items()}
    peer.load_state_dict(state)
    torch.testing.assert_close(ours(names["images"]), peer(names["images"]))


def test_registers_do_what_timms_do(plain):
    names = after_running("Registers")
    ours = from_timm(plain)
    tokens = names["TokensWithRegisters"](names["config"])
    tokens.load_state_dict(ours.tokens.state_dict(), strict=False)
    nn.init.normal_(tokens.registers)
    ours.tokens = tokens
    peer = TimmViT(num_classes=10, reg_tokens=4, **TIMM_SIZES).eval()
    peer.load_state_dict(timm_state_with(plain, "reg_token", tokens.registers, at=1))
    torch.testing.assert_close(ours(names["images"]), peer(names["images"]))
    assert not torch.allclose(ours(names["images"]), plain(names["images"]))


def test_a_scaled_block_is_timms():
    names = after_running("LayerScale")
    ours = names["ScaledBlock"](names["config"], start=0.3)
    norm = partial(nn.LayerNorm, eps=names["config"].layer_norm_eps)
    peer = TimmBlock(48, 3, mlp_ratio=2, qkv_bias=True, init_values=0.3, norm_layer=norm)
    assert len(list(peer.parameters())) == len(list(ours.parameters()))
    same = {"attn.proj": "attention.projection", "attn": "attention", "norm1": "attention_norm"}
    same |= {"norm2": "mlp_norm", "mlp.fc1": "mlp.hidden", "mlp.fc2": "mlp.output"}
    same |= {"ls1.gamma": "attention_scale", "ls2.gamma": "mlp_scale"}
    randomise(ours)
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            theirs = max((prefix for prefix in same if name.startswith(prefix)), key=len)
            parameter.copy_(ours.get_parameter(name.replace(theirs, same[theirs], 1)))
    torch.testing.assert_close(ours(names["tokens"])[0], peer(names["tokens"]))


def test_angles_are_timms_and_turning_is_multiplication_by_a_complex_number():
    names = after_running("RoPE")
    angles = names["grid_angles"](3, 5, head_width=16)
    sines, cosines = build_rotary_pos_embed([3, 5], dim=16, temperature=100.0, in_pixels=False)
    torch.testing.assert_close(angles.sin(), sines[:, ::2])
    torch.testing.assert_close(angles.cos(), cosines[:, ::2])
    x = torch.randn(2, 3, 15, 16)
    turned = torch.complex(*x.chunk(2, dim=-1)) * torch.polar(torch.ones_like(angles), angles)
    torch.testing.assert_close(names["turned"](x, angles), torch.cat([turned.real, turned.imag], dim=-1))


def test_scores_are_those_of_complex_numbers_turned_by_the_difference_of_their_angles():
    rotary, tokens = after_running("RoPE")["model"].encoder.blocks[0].attention, torch.randn(2, 17, 48)
    q, k, v = rotary.qkv(tokens).view(2, 17, 3, 3, 16).permute(2, 0, 3, 1, 4)  # (B, h, T, Dh) each
    q, k = (torch.complex(*x.chunk(2, dim=-1)) for x in (q, k))  # (B, h, T, Dh / 2)
    between = rotary.angles[:, None] - rotary.angles  # (T, T, Dh / 2), query less key
    turn = torch.polar(torch.ones_like(between), between)
    scores = torch.einsum("bhmd,bhnd,mnd->bhmn", q, k.conj(), turn).real / 4  # the root of Dh
    gathered = (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2)  # (B, T, D)
    torch.testing.assert_close(rotary(tokens)[0], rotary.projection(gathered))


def test_with_angles_the_order_of_patches_matters_and_without_it_is_our_attention():
    names = after_running("RoPE")
    model, images = names["model"], names["images"]
    randomise(model)
    shifted = images.roll(8, dims=-1)  # the same patches, each in another place
    assert not torch.allclose(model(images), model(shifted), atol=1e-3)
    for block in model.encoder.blocks:
        block.attention.angles.zero_()
    torch.testing.assert_close(model(images), model(shifted))
    rotary, tokens = model.encoder.blocks[0].attention, torch.randn(2, 17, 48)
    plain = MultiHeadSelfAttention(48, 3)
    plain.load_state_dict(rotary.state_dict(), strict=False)
    torch.testing.assert_close(rotary(tokens)[0], plain(tokens)[0])


def test_attention_in_windows_is_attention_on_each_window():
    names = after_running("Swin")
    attention, tokens = names["attention"], torch.randn(2, 16, 48)
    gathered = attention(tokens)[0].view(2, 4, 4, 48)
    grid = tokens.view(2, 4, 4, 48)
    for top in (0, 2):
        for left in (0, 2):
            here = (slice(None), slice(top, top + 2), slice(left, left + 2))
            window = grid[here].reshape(2, 4, 48)
            expected = MultiHeadSelfAttention.forward(attention, window)[0]
            torch.testing.assert_close(gathered[here].reshape(2, 4, 48), expected)


def test_with_nothing_hidden_the_encoder_sees_what_it_always_does():
    names = after_running("MAE")
    model = names["VisionTransformer"](names["config"]).eval()
    encoded, kept = names["encode_visible"](model, names["images"], share=1.0)
    whole = model(names["images"], return_intermediates=True)[1]["encoded"]
    assert (kept.sort(dim=1).values == torch.arange(16)).all()
    torch.testing.assert_close(encoded[:, 0], whole[:, 0])
    for image in range(2):
        torch.testing.assert_close(encoded[image, 1:], whole[image, 1:][kept[image]])


def test_self_distillation_is_a_cross_entropy_against_what_the_teacher_says():
    names = after_running("DINO")
    student, teacher, centre = torch.randn(4, 7), torch.randn(4, 7), torch.randn(7)
    wanted = ((teacher - centre) / 0.04).double().exp()
    wanted /= wanted.sum(dim=1, keepdim=True)
    said = (student / 0.1).double().exp()
    said /= said.sum(dim=1, keepdim=True)
    expected = -(wanted * said.log()).sum(dim=1).mean()
    torch.testing.assert_close(names["self_distillation"](student, teacher, centre).double(), expected)
