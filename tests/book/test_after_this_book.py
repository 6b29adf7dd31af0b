"""The code on the page "After this book": it runs, shows what it claims, and agrees with other people's."""

import ast
import functools
import re
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import yaml
from project_facts import ROOT
from timm.layers import build_rotary_pos_embed
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import Attention as TimmAttention
from timm.models.vision_transformer import Block as TimmBlock
from timm.models.vision_transformer import VisionTransformer as TimmViT
from torch import nn

from vit_classroom.checks.report import randomise
from vit_from_scratch.model import MultiHeadSelfAttention
from vit_from_scratch.pretrained import from_timm

PAGE = (ROOT / "book" / "after_this_book.md").read_text(encoding="utf-8")
HEAD, *REST = re.split(r"^##+ (.+)\n", PAGE, flags=re.MULTILINE)
SECTIONS = dict(zip(REST[::2], REST[1::2], strict=True))
CELL = re.compile(r"^```\{code-cell\} ipython3\n(?:---\n(.*?)^---\n)?(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMM_SIZES = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3, "mlp_ratio": 2}
LONGEST_CELL, MOST_WORDS = 15, 3600


def cells(text):
    """Each cell of code, and what its head says: whether it is folded, whether it draws."""
    return [(yaml.safe_load(head or "{}"), code) for head, code in CELL.findall(text)]


def is_folded(head):
    return "hide-input" in head.get("tags", [])


def is_figure(head):
    return "figure" in head.get("mystnb", {})


def open_cells(text):
    return [code for head, code in cells(text) if not is_folded(head)]


STEPS = [name for name, text in SECTIONS.items() if cells(text)]


@functools.cache
def names_at_the_top():
    names = {}
    exec(compile("\n".join(code for _, code in cells(HEAD)), "after_this_book.md", "exec"), names)
    return names


def after_running(step, figures=False):
    """The names that a reader has after the lines at the top of the page and the cells of one section."""
    names = dict(names_at_the_top())
    torch.manual_seed(0)
    for head, code in cells(SECTIONS[step]):
        if figures or not is_figure(head):
            exec(compile(code, f"after_this_book.md, {step}", "exec"), names)
    return names


@functools.cache
def drawn(step):
    """The names after the figure of a section, too; `found` is what it shows."""
    with plt.rc_context():
        names = after_running(step, figures=True)
    plt.close("all")
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
    texts = [code for head, code in cells(SECTIONS[step]) if not is_figure(head)]
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse("\n".join(texts))))
    after_running(step)


def test_the_table_says_how_many_lines_each_step_takes():
    rows = re.findall(r"^\| ([^|]+) \|[^|]+\| (\d+) \|$", HEAD, flags=re.MULTILINE)
    assert [(name, int(count)) for name, count in rows] == [
        (name, sum(map(defined_lines, open_cells(SECTIONS[name])))) for name in STEPS
    ]
    assert f"Here are {int_to_words(len(rows))} such steps" in HEAD


def int_to_words(number):
    return {14: "fourteen", 15: "fifteen", 16: "sixteen"}[number]


def test_what_stands_open_can_be_read():
    for step in STEPS:
        for code in open_cells(SECTIONS[step]):
            assert len([line for line in code.splitlines() if line.strip()]) <= LONGEST_CELL, step
    prose = CELL.sub("", PAGE)
    assert sum(len(text.split()) for text in (prose, *open_cells(PAGE))) <= MOST_WORDS


def test_the_power_law_is_numpys_line_and_predicts_within_two_points():
    names = drawn("Scaling laws")
    amounts = torch.tensor([1e3, 4e3, 1.6e4], dtype=torch.float64)
    errors = torch.tensor([0.6, 0.5, 0.37], dtype=torch.float64)
    slope, start = np.polyfit(amounts.log().numpy(), errors.log().numpy(), 1)
    a, b = names["power_law"](amounts, errors)
    assert [a.log().item(), b.item()] == pytest.approx([start, -slope], rel=1e-9)
    (_, *vit), (_, *resnet) = (names["found"][name] for name in ("ViT", "ResNet"))
    assert names["found"]["ResNet"][0] > names["found"]["ViT"][0]  # the steeper line
    assert all(abs(predicted - measured) < 2 for predicted, measured in (vit, resnet))


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


def test_packed_images_gather_as_if_each_were_alone_whatever_their_order():
    packed = after_running("Packing")["PackedAttention"](48, 3)
    randomise(packed)
    tokens = torch.randn(1, 20, 48)
    packed.image_of = torch.randint(3, (20,))  # three images, their tokens mixed
    gathered = packed(tokens)[0]
    for image in range(3):
        own = packed.image_of == image
        expected = MultiHeadSelfAttention.forward(packed, tokens[:, own])[0]
        torch.testing.assert_close(gathered[:, own], expected)


def test_the_sigmoid_loss_is_a_sum_over_all_pairs():
    pictures, captions = torch.randn(5, 8), torch.randn(5, 8)
    expected = 0.0
    for row, picture in enumerate(pictures.double()):
        for column, caption in enumerate(captions.double()):
            score = 7.0 * picture @ caption / picture.norm() / caption.norm() - 3.0
            expected -= F.logsigmoid(score if row == column else -score).item() / 5
    measured = after_running("Captions")["sigmoid_loss"](pictures, captions, scale=7.0, bias=-3.0)
    assert measured.item() == pytest.approx(expected, rel=1e-4)


def test_self_distillation_is_a_cross_entropy_against_what_the_teacher_says():
    names = after_running("DINO")
    student, teacher, centre = torch.randn(4, 7), torch.randn(4, 7), torch.randn(7)
    wanted = ((teacher - centre) / 0.04).double().exp()
    wanted /= wanted.sum(dim=1, keepdim=True)
    said = (student / 0.1).double().exp()
    said /= said.sum(dim=1, keepdim=True)
    expected = -(wanted * said.log()).sum(dim=1).mean()
    torch.testing.assert_close(names["self_distillation"](student, teacher, centre).double(), expected)


def test_normed_attention_is_timms_and_without_norms_it_is_ours():
    ours = after_running("QK-norm")["NormedAttention"](48, 3)
    randomise(ours)
    norm = partial(nn.LayerNorm, eps=1e-5)
    peer = TimmAttention(48, 3, qkv_bias=True, qk_norm=True, norm_layer=norm)
    same = {"proj": "projection", "q_norm": "query_norm", "k_norm": "key_norm"}
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            first, last = name.split(".")
            parameter.copy_(ours.get_parameter(f"{same.get(first, first)}.{last}"))
    tokens = torch.randn(2, 17, 48)
    torch.testing.assert_close(ours(tokens)[0], peer(tokens))
    ours.query_norm = ours.key_norm = nn.Identity()
    torch.testing.assert_close(ours(tokens)[0], MultiHeadSelfAttention.forward(ours, tokens)[0])


def merged_by_hand(tokens, sizes, keys, r):
    """Token merging of one image as one would write it down: (T, D), (T,), (T, Dh)."""
    keys = keys / keys.norm(dim=1, keepdim=True)
    leaving, taking = range(1, len(tokens), 2), range(2, len(tokens), 2)
    best = [(*max((float(keys[a] @ keys[b]), b) for b in taking), a) for a in leaving]
    best = sorted(best, key=lambda triple: -triple[0])
    sums = {place: (tokens[place] * sizes[place], sizes[place]) for place in range(len(tokens))}
    for _, into, place in best[:r]:
        gone = sums.pop(place)
        sums[into] = (sums[into][0] + gone[0], sums[into][1] + gone[1])
    order = [0, *(place for *_, place in best[r:]), *taking]
    total = torch.stack([sums[place][1] for place in order])
    return torch.stack([sums[place][0] for place in order]) / total[:, None], total


@pytest.mark.parametrize("r", [0, 1, 5])
def test_merging_is_what_one_would_do_by_hand(r):
    merged = after_running("Token merging")["merged"]
    tokens, sizes, keys = torch.randn(3, 14, 6), 1.0 + torch.randint(4, (3, 14, 1)), torch.randn(3, 14, 5)
    together, total = merged(tokens, sizes, keys, r)
    for image in range(3):
        expected = merged_by_hand(tokens[image], sizes[image, :, 0], keys[image], r)
        torch.testing.assert_close(together[image], expected[0])
        torch.testing.assert_close(total[image, :, 0], expected[1])


def test_a_token_of_several_patches_is_attended_to_like_as_many_tokens():
    names = after_running("Token merging")
    reader, strange = names["reader"], names["strange"][:2]
    black = torch.full_like(strange, -1.0)
    model = names["VisionTransformer"](names["replace"](reader.config, position="none")).eval()
    state = {key: value for key, value in reader.state_dict().items() if "position" not in key}
    model.load_state_dict(state)
    encoded, _ = names["encode_merging"](model, black, r=8)  # all patches alike: only equals are merged
    torch.testing.assert_close(encoded[:, 0], model(black, return_intermediates=True)[1]["encoded"][:, 0])


def test_enlarging_is_interpolation_and_a_new_side_fits_the_images():
    names = after_running("Flexible patches")
    patch = torch.rand(1, 1, 4, 4)
    expected = F.interpolate(patch, size=(10, 10), mode="bilinear")
    torch.testing.assert_close((names["enlarging"](4, 10) @ patch.flatten()).view(1, 1, 10, 10), expected)
    reader, seen = names["reader"], names["strange"][:2]
    same = names["with_patches_of"](reader, 4, 28)
    torch.testing.assert_close(same(seen), reader(seen), atol=1e-4, rtol=1e-4)
    wrong = names["with_patches_of"](reader, 6, 42, pseudo=False)
    assert not torch.allclose(wrong(names["enlarged"][:2]), reader(seen), atol=1e-2)


def test_the_calibration_error_is_the_mean_distance_over_bins():
    measured = after_running("Calibration")["calibration_error"]
    logits = 2 * torch.randn(500, 4)
    sure, answer = logits.double().softmax(dim=1).max(dim=1)
    labels = torch.where(torch.rand(500) < 0.6, answer, 0)  # too sure in some bins, not enough in others
    expected = 0.0
    for place in range(10):
        inside = (sure >= place / 10) & (sure < (place + 1) / 10)
        if inside.any():
            apart = (answer == labels)[inside].double().mean() - sure[inside].mean()
            expected += abs(apart.item()) * inside.double().mean().item()
    assert measured(logits, labels) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_scores_run_away_without_norms_and_learning_suffers():
    scores, losses = drawn("QK-norm")["found"].movedim(3, 0)  # (2, rates, seeds): without and with
    assert (scores[0, -1] > 5 * scores[0, 0]).all()
    assert scores[0, -1].mean() > 100 > 5 * scores[0, 0].mean()
    assert (scores[1] < 10).all()
    means = losses.mean(dim=2)
    assert abs(means[0, 0] - means[1, 0]) < 0.1
    assert (losses[0, -1] > losses[1, -1] + 0.2).all()
    assert means[0, -1] > means[0, 0]


def test_merging_keeps_the_accuracy_and_dropping_does_not():
    names = drawn("Token merging")
    values, left = names["found"], names["left"]
    assert left[0] == 50
    assert left[-1] == 50 / 5
    assert min(values["merged"]) > values["merged"][0] - 0.5
    assert values["dropped"][-1] < 80
    assert values["dropped"] == sorted(values["dropped"], reverse=True)


def test_enlarged_scans_are_read_as_before_with_the_pseudo_inverse_alone():
    values = drawn("Flexible patches")["found"]
    assert min(values["pseudo-inverse"]) > values["pseudo-inverse"][0] - 1
    assert max(values["interpolated"][-2:]) < 15


def test_the_reader_knows_how_good_it_is_on_sharp_scans_alone():
    errors = drawn("Calibration")["found"]
    assert errors["sharp"] < 2
    assert errors["blurred"] > 25
