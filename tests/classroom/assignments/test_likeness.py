"""Answers that are alike are listed, whatever was renamed in them; honest ones are not."""

import inspect
import re

import pytest
from banks import RIGHT

from vit_classroom import checks
from vit_classroom.assignments.likeness import like_others, likenesses
from vit_classroom.assignments.notebooks import read_chapter
from vit_classroom.assignments.variations import assigned

CHAPTER, NAME = read_chapter("03_attention"), "MultiHeadSelfAttention"
BOOKS = {task.name: task.answer for task in CHAPTER.tasks}
OWN = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.to_q, self.to_k, self.to_v, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.heads, self.width = heads, dim // heads

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, self.width).transpose(1, 2)

    def forward(self, tokens):
        weights = self.split(self.to_q(tokens)) @ self.split(self.to_k(tokens)).transpose(-1, -2)
        weights = torch.softmax(weights / self.width**0.5, -1)
        mixed = weights @ self.split(self.to_v(tokens))
        return self.out(mixed.transpose(1, 2).flatten(2))
"""
RENAMED = re.sub(r"\bweights\b", "a", re.sub(r"\btokens\b", "inputs", OWN)).replace(
    "a = torch", "# now the softmax\n        a = torch"
)
WORDS = (
    "The scores grow with the square of the number of tokens, since every query meets every key. At 64 "
    "that is little beside the projections; at 4608 both cost the same, and beyond it attention is most."
)
OTHERS = (
    "I took the best of five. The fused one wins from 256 tokens on. T squared comes from both products with "
    "A; when T is 6 D they are as dear as the dense layers, which for ViT-B means a thousand pixels."
)


def records(**written):
    """Of a class, by student and answer."""
    return [
        {
            "student": student,
            "chapter": CHAPTER.name,
            "marks": [
                {"name": name, "own": own, "state": "right" if name == NAME else "to read"}
                for name, own in answers.items()
            ],
        }
        for student, answers in written.items()
    ]


def found(**written):
    return [(one.name, set(one.students), one.same) for one in likenesses(records(**written))]


def test_code_is_alike_whatever_its_variables_are_called():
    one_line_more = OWN.replace("mixed = ", "assert weights.ndim == 4\n        mixed = ")
    assert found(ada={NAME: OWN}, bob={NAME: RENAMED}) == [(NAME, {"ada", "bob"}, True)]
    assert found(ada={NAME: one_line_more}, bob={NAME: RENAMED}) == [(NAME, {"ada", "bob"}, False)]


def test_a_private_task_is_compared_too():
    (task, *_) = [task for task in assigned("03_attention", 2027).tasks if task.variant is not None]
    cls = [one | {"variant": 2027} for one in records(ada={task.name: OWN}, bob={task.name: OWN})]
    for one in cls:
        one["marks"][0]["state"] = "right"
    assert [(one.name, set(one.students)) for one in likenesses(cls)] == [(task.name, {"ada", "bob"})]


def test_who_is_like_two_makes_one_group_of_them():
    words = [f"word{number}" for number in range(110)]
    one, between, other = (" ".join(words[start : start + 70]) for start in (0, 20, 40))
    alike = found(ada={"ex-cost": one}, eve={"ex-cost": other}, bob={"ex-cost": between})
    assert alike == [("ex-cost", {"ada", "bob", "eve"}, False)]


def test_right_answers_of_ones_own_are_not_alike():
    """Another of the bank beside the book's; short ones are not held against each other."""
    (other,) = [one for one in RIGHT[checks.multi_head_attention] if one.__name__ == "Attention"]
    assert found(ada={NAME: OWN}, bob={NAME: inspect.getsource(other)}) == []
    assert found(ada={"attention": BOOKS["attention"]}, bob={"attention": BOOKS["attention"]}) == []
    for unreadable in ("def f(:", "q" + ".mT" * 450):
        assert found(ada={NAME: unreadable}, bob={NAME: unreadable}) == []


def test_of_an_answer_of_megabytes_the_beginning_is_compared():
    long = " ".join(map(str, range(50_000)))
    (one,) = likenesses(records(ada={"ex-cost": f"{long} a"}, bob={"ex-cost": f"{long} b"}))
    assert one.same


def test_words_are_alike_when_few_are_others():
    swapped = WORDS.replace("grow", "rise").replace("little", "not much")
    assert found(ada={"ex-cost": WORDS}, bob={"ex-cost": swapped}) == [("ex-cost", {"ada", "bob"}, False)]
    assert found(ada={"ex-cost": WORDS}, bob={"ex-cost": OTHERS}) == []


def test_the_books_words_are_named_and_are_nobody_elses():
    cls = records(
        ada={"ex-cost": BOOKS["ex-cost"]}, bob={"ex-cost": BOOKS["ex-cost"]}, eve={"ex-cost": WORDS}
    )
    (one,) = likenesses(cls)
    assert str(one) == "03_attention, ex-cost: ada, bob, the book, all the same"
    assert [like_others(record, [one]) for record in cls] == [[], [], []]


def test_the_table_names_three_others_at_most():
    cls = records(
        **{who: {"ex-cost": WORDS} for who in ("ada", "bob", "eve", "fay", "gus")}, ida={"ex-cost": OTHERS}
    )
    lines = [like_others(record, likenesses(cls)) for record in cls]
    assert lines[0] == ["ex-cost is the same as that of bob, eve, fay and 1 more"]
    assert lines[-1] == []


@pytest.mark.parametrize("state", ["to do", "to read"])
def test_what_was_not_done_is_like_nothing(state):
    cls = records(ada={"ex-cost": WORDS}, bob={"ex-cost": WORDS})
    cls[0]["marks"][0]["state"] = state
    assert bool(likenesses(cls)) == (state == "to read")
