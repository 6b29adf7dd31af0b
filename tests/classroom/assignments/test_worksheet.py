"""A worksheet says what is right, and goes on with the book's answer where something is not."""

import pytest
import torch

from vit_classroom.assignments import Worksheet
from vit_from_scratch.errors import InputError


@pytest.fixture
def notebook():
    space = {}
    exec("import math, torch\nfrom torch import nn\nfrom einops import rearrange", space)
    return space


@pytest.fixture
def sheet(notebook):
    return Worksheet("03_attention", notebook)


def test_a_right_answer_stays(sheet, notebook, answers, capsys):
    exec(answers["attention"], notebook)
    theirs = notebook["attention"]
    sheet.check("attention")
    assert notebook["attention"] is theirs
    assert capsys.readouterr().out == "✓ attention: values and gradients agree with the package\n"


def test_a_wrong_one_is_named_and_the_book_fills_in(sheet, notebook, capsys):
    exec("def attention(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v", notebook)
    sheet.check("attention")
    out, err = capsys.readouterr()
    assert "the scores are not divided by sqrt(Dh)" in err
    assert out == "The cells below use the package's attention.\n"
    q, k, v = torch.randn(3, 2, 5, 4)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(notebook["attention"](q, k, v), expected)


def test_an_answer_goes_by_its_own_name_and_not_by_its_checks(sheet, notebook, answers, capsys):
    exec("def attention_einsum(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v", notebook)
    sheet.check("attention_einsum")
    assert capsys.readouterr().err.startswith("attention_einsum: the scores are not divided")
    exec(answers["attention_einsum"], notebook)
    sheet.check("attention_einsum")
    assert capsys.readouterr().out.startswith("✓ attention_einsum: ")


@pytest.mark.parametrize("source", ["", "def attention(q, k, v):\n    return v"])
def test_the_books_answer_is_not_taken_for_theirs_at_the_next_check(sheet, notebook, answers, source, capsys):
    exec(source, notebook)
    sheet.check("attention")
    capsys.readouterr()
    for again in (sheet, Worksheet("03_attention", notebook)):
        again.check("attention")
        assert again.states.get("attention") != "right"
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("attention: the book's stands here in place of yours. Run the cell with yours")
    exec(answers["attention"], notebook)
    sheet.check("attention")
    assert sheet.states["attention"] == "right"


@pytest.mark.parametrize("stub", ["", 'def attention(q, k, v):\n    raise NotImplementedError("your turn")'])
def test_what_is_not_written_stops_nobody(sheet, notebook, stub, capsys):
    exec(stub, notebook)
    sheet.check("attention")
    assert callable(notebook["attention"])
    said = "yours is still to be written" if stub else "nothing has this name yet. Run the cell that defines"
    assert said in capsys.readouterr().err


def test_the_progress_counts_what_passed(sheet, notebook, answers, capsys):
    exec(answers["attention"], notebook)
    sheet.check("attention")
    sheet.check("MultiHeadSelfAttention")
    capsys.readouterr()
    sheet.progress()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["✓", "attention", "5", "points", "right"]
    assert "not yet right" in lines[1]
    assert "not checked yet" in lines[2]
    assert lines[-4] == "1 of 5 checks have passed. A person reads:"
    assert lines[-2] == "  Exercise 3.5: What attention costs, 5 points"


def test_names_that_nobody_asks_for(sheet):
    with pytest.raises(InputError, match=r"unknown answer 'atention'.*did you mean 'attention'"):
        sheet.check("atention")
    with pytest.raises(InputError, match="unknown chapter"):
        Worksheet("nothing", {})


def test_answers_of_earlier_chapters_come_in_one_call(sheet, notebook, capsys):
    sheet.bring("patchify", "PatchEmbedding")
    assert capsys.readouterr().out == "Here are the book's patchify, PatchEmbedding.\n"
    assert notebook["PatchEmbedding"](4, 3, 8)(torch.zeros(1, 3, 8, 8)).shape == (1, 4, 8)
