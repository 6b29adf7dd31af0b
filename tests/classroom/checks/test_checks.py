"""Right answers pass, however they are written; wrong ones fail with the sentence that names the mistake."""

import inspect
import json
import random
import re
import sysconfig
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from bank_attention import attention_by_einsum
from bank_encoder import DroppingBlock, Mlp
from bank_patches import patchify_by_permute
from bank_vision_transformer import OneNameOff, ViT
from banks import RIGHT, WRONG
from IPython.core.interactiveshell import InteractiveShell
from project_facts import ROOT

from vit_classroom import checks
from vit_classroom.checks import sandbox
from vit_classroom.checks.judging import judge_function
from vit_classroom.checks.report import Case, Piece, number

BARE = "of them agree"
"""What is said of a result of the right shape about which nothing is known."""


@pytest.mark.parametrize(("check", "piece"), [(check, piece) for check in RIGHT for piece in RIGHT[check]])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_right_answer_passes_however_it_is_written(check, piece, seed, capsys):
    check(piece, seed=seed)
    assert re.fullmatch("✓ .*: values( and gradients)? agree with the package\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("check", "piece", "message"), WRONG, ids=[f"{check.__name__}-{n}" for n, (check, *_) in enumerate(WRONG)]
)
@pytest.mark.filterwarnings("ignore")
def test_a_mistake_is_called_by_its_name(check, piece, message, capsys, monkeypatch):
    if "come to an end" in message:  # the others have the time that a busy machine takes
        monkeypatch.setattr(sandbox, "LIMIT_SECONDS", 0.3)
    with pytest.raises(checks.CheckFailed) as failure:
        check(piece, seed=0)
    said = str(failure.value)
    assert re.search(message, said, re.DOTALL)
    assert "Read again: chapter" in said
    assert BARE not in said or BARE in message
    assert re.search(r": .+\. It stopped with", said) or "stopped with" not in said
    assert capsys.readouterr().out == ""
    assert min(failure.value.parts.values(), default=0) < 1, "or it would have all points"


@pytest.mark.parametrize(
    "check",
    [
        checks.adamw,
        checks.attention_distance,
        checks.block_flops,
        checks.cross_entropy,
        checks.deepest,
        checks.first_cost,
        checks.hide_patches,
        checks.orthogonalised,
        checks.principal_angles,
        checks.reach,
        checks.read_places,
        checks.repaired,
        checks.resize_table,
        checks.seeds_needed,
        checks.share_on_object,
        checks.smoothed_cross_entropy,
        checks.tokens_to_ridge,
        checks.visible_only,
        checks.window,
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_no_seed_lets_a_mistake_pass_that_only_some_inputs_show(check):
    for seed in range(2, 7):
        for piece in RIGHT[check]:
            check(piece, seed=seed)
        for other, piece, _ in WRONG:
            if other is check:
                with pytest.raises(checks.CheckFailed):
                    check(piece, seed=seed)


def test_the_bank_has_what_every_check_needs():
    every = {getattr(checks, name) for name in checks.__all__ if name != "CheckFailed"}
    wrong = Counter(check for check, _, _ in WRONG)
    assert set(wrong) == set(RIGHT) == every
    assert min(wrong.values()) >= 6
    assert sum(wrong.values()) >= 200
    assert min(len(pieces) for pieces in RIGHT.values()) >= 3


def test_nearly_every_wrong_answer_in_the_bank_is_known():
    """A bare share of values is said of no answer whose pattern does not have it; see above."""
    assert sum(BARE in message for _, _, message in WRONG) <= 0.05 * len(WRONG)


@pytest.mark.parametrize("stops_at", range(3))
def test_an_input_that_stops_an_answer_leaves_the_others_their_share(stops_at):
    piece = Piece("double(x)", "(3,)", "chapter 0")
    cases = [Case((x,), 2 * x) for x in torch.randn(3, 3)]

    def stops(x):
        if torch.equal(x, cases[stops_at].inputs[0]):
            raise ValueError("not this one")
        return 2 * x

    with pytest.raises(checks.CheckFailed, match="ValueError: not this one") as failure:
        judge_function(piece, stops, lambda x: 2 * x, cases, [])
    parts = failure.value.parts
    assert parts == {"shape": pytest.approx(2 / 3), "values": pytest.approx(2 / 3), "gradients": 0}


def test_an_answer_that_is_late_is_not_called_again(monkeypatch):
    monkeypatch.setattr(sandbox, "LIMIT_SECONDS", 0.1)
    piece = Piece("double(x)", "(3,)", "chapter 0")
    calls = []

    def waits(x):
        calls.append(x)
        while True:
            pass

    with pytest.raises(checks.CheckFailed, match="did not come to an end"):
        judge_function(piece, waits, lambda x: 2 * x, [Case((x,), 2 * x) for x in torch.randn(3, 3)], [])
    assert len(calls) == 1


def test_of_two_sentences_that_fit_both_are_said():
    """With one head the two scales are the same number."""
    x = torch.randn(3, 4)
    piece = Piece("double(x)", "(3, 4)", "chapter 0")
    case = Case((x,), 2 * x, {"it is squared": x + 1, "it is one more": x + 1, "it is half": x / 2})
    with pytest.raises(
        checks.CheckFailed,
        match="it gives what each of these mistakes would give:\n  · it is one more\n  · it is squared",
    ):
        judge_function(piece, lambda x: x + 1, lambda x: 2 * x, [case], [])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda y: y / 2, "an input comes back as it was"),
        (lambda y: y.flip(1), "axis 1 is turned round"),
        (lambda y: y.roll(1, 0), "one place beside where it belongs, along axis 0"),
        (lambda y: y.mT, "axes 0 and 1 have changed places"),
        (lambda y: 0 * y, "all is 0"),
        (lambda y: y.abs(), "their signs are lost"),
        (lambda y: -y, "the sign is turned"),
        (lambda y: 3 * y, "all are 3 times as large"),
        (lambda y: y * y.norm(), "all are off by one factor"),
        (lambda y: y + 2, "to each the same is added, 2"),
        (lambda y: y * torch.arange(1, 5), "off by factors, one for each place along axis 1"),
        (lambda y: y + torch.arange(4)[:, None], "added that changes along axis 0 alone"),
        (lambda y: y[torch.tensor([0, 2, 1, 3])][:, torch.tensor([3, 1, 2, 0])], "at another place"),
        (
            lambda y: torch.cat([y[:3], y[3:] ** 3]),
            "along axis 0 only 1 of 4 are wrong, first of all number 3",
        ),
        (lambda y: y + 0.001 * y.sin(), "differ by more than rounding"),
        (lambda y: y.flatten(), "its values are right: reshape them"),
        (lambda y: y.mean(0), "it is the mean over axis 0, which has to stay"),
        (lambda y: y.sum(1), "it is the sum over axis 1, which has to stay"),
        (lambda y: y[:, 0], "it holds the first of axis 1 alone"),
        (lambda y: y[:-1], "the last of axis 0 is missing"),
        (lambda y: y + torch.rand(()), "two calls with one input differ"),
        (lambda y: y * torch.randn(4, 4, generator=torch.Generator().manual_seed(0)), "0% of them agree"),
    ],
)
def test_an_unknown_mistake_is_held_against_what_is_expected(change, said):
    piece = Piece("double(x)", "(4, 4)", "chapter 0")
    cases = [Case((x,), 2 * x) for x in torch.randn(2, 4, 4)]
    with pytest.raises(checks.CheckFailed, match=re.escape(said)):
        judge_function(piece, lambda x: change(2 * x), lambda x: 2 * x, cases, [])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda count: torch.tensor(float(count)), "16,777,216: expected 16,777,217; float32 holds"),
        (lambda count: count / 2, "16,777,217; it is 2 times too small"),
    ],
)
def test_a_whole_number_nearly_right_lacks_digits_and_no_sign(wrong, said):
    piece = Piece("same(count)", "or a plain number", "chapter 0", exact=True, number=True, gradients=False)
    case = Case((2**24 + 1,), number(2**24 + 1))
    with pytest.raises(checks.CheckFailed, match=re.escape(said)):
        judge_function(piece, wrong, lambda count: number(count), [case], [])


@pytest.mark.parametrize(
    ("shares", "named"),
    [((0.25, 0.5, 0.25), True), ((0.25, 0.5, 0.75), False), ((1, 2, 3), True), ((True, False, False), True)],
)
def test_a_drawn_number_explains_nothing(shares, named):
    """A float that one input alone has is no reason why that one came out right."""
    piece = Piece("times(x, share)", "(3,)", "chapter 0")
    cases = [Case((x, share), share * x) for x, share in zip(torch.randn(3, 3), shares, strict=True)]
    with pytest.raises(checks.CheckFailed) as failure:
        judge_function(piece, lambda x, share: shares[0] * x, lambda x, share: share * x, cases, [])
    assert (f"right only where share is {shares[0]}" in str(failure.value)) == named


@pytest.mark.parametrize("result", ["(), a single number", "a number"])
def test_a_shape_is_said_once(result):
    piece = Piece("mean(x)", result, "chapter 0", gradients=False)
    case = Case((torch.ones(3),), torch.ones(()))
    with pytest.raises(checks.CheckFailed) as failure:
        judge_function(piece, lambda x: 2 * x, torch.mean, [case], [])
    assert f"shape (3,): expected (), {result.removeprefix('(), ')}" in str(failure.value)


def test_what_fits_only_some_of_the_inputs_is_not_said():
    def wrong_for_colour(images, size):
        patches = patchify_by_permute(images, size)
        return patches.flip(-1) if images.shape[1] > 1 else patches

    with pytest.raises(checks.CheckFailed, match=r"(?s)the values are not.*; 1 of 4 inputs came out right"):
        checks.patchify(wrong_for_colour)


def test_an_error_is_shown_with_its_line():
    def mistyped(q, k, v):
        scores = q @ k.mT
        return scores.softmx(-1) @ v

    with pytest.raises(checks.CheckFailed, match=r"in line \d+: return scores.softmx\(-1\) @ v"):
        checks.attention(mistyped)


@pytest.mark.parametrize("file", ["<the book's answers>", "/Python/Lib/brought.py"])
def test_the_line_is_the_readers_own_though_other_code_stops(file, monkeypatch):
    """Be it the book's, or the library's of a Python that is installed as on Windows."""
    brought = {}
    exec(compile("def softened(scores):\n    return scores.softmx(-1)", file, "exec"), brought)
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": "/Python/Lib"})

    def calls_it(q, k, v):
        return brought["softened"](q @ k.mT) @ v

    with pytest.raises(checks.CheckFailed, match=r"""in line \d+: return brought\["softened"\]"""):
        checks.attention(calls_it)


def test_a_check_says_what_it_takes():
    signature = inspect.signature(checks.attention)
    theirs, seed, name = signature.parameters.values()
    assert (theirs.name, theirs.kind) == ("theirs", inspect.Parameter.POSITIONAL_ONLY)
    assert (seed.name, seed.kind, seed.default) == ("seed", inspect.Parameter.KEYWORD_ONLY, None)
    assert (name.name, name.kind, name.default) == ("name", inspect.Parameter.KEYWORD_ONLY, "")


def test_the_same_seed_draws_the_same_input():
    seen = []

    def keeps(q, k, v):
        seen.append(q.clone())
        return v

    for seed in (3, 3, 4):
        with pytest.raises(checks.CheckFailed) as failure:
            checks.attention(keeps, seed=seed)
        assert f"seed={seed}" in failure.value.__notes__[0]
    first, second, third = seen[0], seen[len(seen) // 3], seen[2 * len(seen) // 3]
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def random_state():
    """All of the states from which a reader's code may draw."""
    kind, numbers, *rest = np.random.get_state()  # noqa: NPY002 - a reader may use it
    return torch.get_rng_state().tolist(), random.getstate(), (kind, numbers.tolist(), *rest)


def test_random_states_and_defaults_stay_as_they_were():
    def draws(q, k, v):
        torch.manual_seed(1)
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002 - what a reader may do
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.rand(3)
        with torch.enable_grad():
            return attention_by_einsum(q, k, v)

    before = random_state()
    checks.attention(draws)
    assert random_state() == before
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()


def test_the_random_numbers_of_a_graphics_card_stay_as_they_were(monkeypatch):
    """The state of its generator could not be given back without starting the card."""
    seeds = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    monkeypatch.setattr(torch.cuda, "manual_seed", seeds.append)
    checks.attention(attention_by_einsum)
    assert seeds == []


def test_the_readers_defaults_change_no_verdict():
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            checks.mlp(Mlp)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_dropout_that_ends_with_evaluation_is_right():
    made = []

    def keeps(*arguments):
        made.append(DroppingBlock(*arguments))
        return made[-1]

    checks.block_with_dropout(keeps)
    assert all(parameter.grad is None for parameter in made[0].parameters())


def test_what_a_reader_prints_is_kept_short_and_off_the_verdict(monkeypatch, capsys):
    monkeypatch.setattr(sandbox, "LIMIT_SECONDS", 0.3)

    def chatters(q, k, v):
        while True:
            print("still here")

    with pytest.raises(checks.CheckFailed, match="did not come to an end"):
        checks.attention(chatters)
    assert capsys.readouterr().out == ""


def test_a_notebook_shows_what_is_said_and_no_traceback(capsys):
    shell = InteractiveShell()
    cell = "from vit_classroom import checks; checks.mlp(12)"
    assert isinstance(shell.run_cell(cell).error_in_exec, checks.CheckFailed)
    shown = re.sub(r"\x1b\[[\d;]*m", "", "".join(capsys.readouterr()))
    assert shown.startswith("Mlp: it got a int: hand in `Mlp` itself, a function or a class.")
    assert "draws the same again" in shown
    assert "Traceback" not in shown
    assert ".py" not in shown


def test_where_the_cat_is_named_a_wrong_class_is_told_what_does_not_fit(capsys):
    notebook = json.loads((ROOT / "exercises" / "05_vision_transformer.ipynb").read_text(encoding="utf-8"))
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    (set_up,) = [source for source in sources if source.startswith("# @title Show the set-up")]
    (named,) = [source for source in sources if 'load_state_dict(load_pretrained("tiny-imagenet")' in source]
    shell = InteractiveShell()
    assert shell.run_cell(set_up).success
    for wrong, said in (
        (OneNameOff, "encoder.blocks.0.attention_norm.weight"),
        (lambda: 1, "cannot be called"),
    ):
        shell.user_ns["VisionTransformer"] = wrong
        assert isinstance(shell.run_cell(named).error_in_exec, checks.CheckFailed)
        shown = "".join(capsys.readouterr())
        assert said in shown
        assert "Traceback" not in shown
    shell.user_ns["VisionTransformer"] = ViT
    assert shell.run_cell(named).success
    plt.close("all")


def test_no_drawn_matrix_stops_the_check_of_least_squares(monkeypatch):
    """With fewer images than values a matrix of a planted mistake is singular, to the last bit by chance."""
    monkeypatch.setattr(torch, "randn", lambda *shape, dtype: torch.ones(*shape, dtype=dtype))
    checks.least_squares(RIGHT[checks.least_squares][0], seed=0)
