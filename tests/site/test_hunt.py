"""Chapter 6's bugs to find: what is compared, what speaks against a suspect, and that each can be named."""

import json
import re

import pytest
from playwright.sync_api import expect
from project_facts import ROOT
from widgets import come_near

pytestmark = pytest.mark.site

PARTS = ("patch embedding", "tokens", "attention", "MLP", "block", "encoder", "whole model")


def planted():
    """How far each bug puts each part off, as the page holds it: {name: {part: [a number a measurement]}}."""
    data = re.search(r"data-bugs='(.*?)'", (ROOT / "book/widgets/hunt.html").read_text(encoding="utf-8"))
    return {bug["name"]: bug["off"] for bug in json.loads(data[1].replace("&#39;", "'"))["bugs"]}


@pytest.fixture
def bugs():
    return planted()


@pytest.fixture
def hunt(page, book):
    return come_near(page, book, "hunt")


def press(widget, name):
    widget.whole.get_by_role("button", name=re.compile(rf"^{re.escape(name)}( |$)")).press("Enter")
    return widget.said()


def compare(widget, part):
    """Compare a part, and return how far it is off, as its box and the words below say."""
    said, words = (
        press(widget, part),
        widget.whole.get_by_role("button", name=re.compile(f"^{part} ")).inner_text(),
    )
    off = re.search(rf"^{part}: off by up to ([\d.e-]+)(?: \(last time [\d.e-]+\))?\.$", said)
    assert off or re.match(rf"{part}: equal, up to rounding( \(last time as well\))?\.$", said)
    assert words.split()[-2 if off else -1 :] == (["✗", off[1]] if off else ["✓"])
    return float(off[1]) if off else 0


def culprit(widget, bugs):
    """Compare every part twice, and return the bugs that do what was seen."""
    seen = {part: [compare(widget, part) for _ in range(2)] for part in PARTS}
    return [
        name
        for name, off in bugs.items()
        if all(pair == [off[part][time % len(off[part])] for time in range(2)] for part, pair in seen.items())
    ]


def test_each_bug_is_planted_once_and_can_be_named(hunt, bugs):
    found = []
    for _ in bugs:
        assert hunt.said() == "One of these bugs, or none, is in the model."
        (name,) = culprit(hunt, bugs)
        assert press(hunt, name).startswith(f"Yes, it is “{name}”. ")
        assert hunt.said().endswith(" You needed 14 comparisons, and named 0 wrong ones.")
        chosen = hunt.whole.get_by_role("button", name=name, exact=True)
        expect(chosen).to_have_attribute("aria-pressed", "true")
        told = hunt.said()
        for other in (name, *[one for one in bugs if one != name]):
            assert press(hunt, other) == told, "it is over"
        found.append(name)
        press(hunt, "Plant another")
    assert sorted(found) == sorted(bugs)


def plant(widget, wanted, bugs):
    """Plant bugs until it is the wanted one, which all parts were compared for twice to see."""
    for _ in range(2 * len(bugs)):
        if culprit(widget, bugs) == [wanted]:
            break
        press(widget, "Plant another")
    else:
        raise AssertionError(f"{wanted} was not planted")


def test_what_speaks_against_a_suspect_is_said(hunt, bugs):
    plant(hunt, "dropout left on", bugs)
    about = f"{sum(bugs['GELU in its tanh form']['MLP']):.1e}".replace("e-0", "e-")
    for other, why in (
        ("no bug", ": with it, “attention” would be equal."),
        ("GELU in its tanh form", ": with it, “attention” would be equal."),
        ("scores divided by √D", ": with it, “attention” would be off by the same amount each time."),
    ):
        assert press(hunt, other) == f"Not “{other}”{why}"
        ruled_out = hunt.whole.get_by_role("button", name=other, exact=True)
        expect(ruled_out).to_have_attribute("aria-disabled", "true")
        expect(ruled_out).to_be_focused()
    assert press(hunt, "dropout left on").endswith(" You needed 14 comparisons, and named 3 wrong ones.")
    assert compare(hunt, "attention") > 0, "its clue can be checked"
    press(hunt, "Plant another")
    expect(hunt.whole.locator("[aria-disabled]")).to_have_count(0)
    assert set(hunt.whole.locator(".part > button span").all_inner_texts()) == {"?"}
    plant(hunt, "LayerNorm with another eps", bugs)
    assert f"“MLP” would be off by about {about}." in press(hunt, "GELU in its tanh form")
    far = bugs["a norm never called"]["block"][0]
    assert f"“block” would be off by about {far}." in press(hunt, "a norm never called")


def test_size_alone_tells_the_wrong_scales_apart(hunt, bugs):
    right, wrong = scales = ["scores divided by √D", "scores multiplied by √Dₕ"]
    for _ in range(2 * len(bugs)):
        off = compare(hunt, "attention")
        if off in [bugs[name]["attention"][0] for name in scales]:
            break
        press(hunt, "Plant another")
    if off == bugs[wrong]["attention"][0]:
        right, wrong = wrong, right
    about = f"{bugs[wrong]['attention'][0]}"
    assert press(hunt, wrong) == f"Not “{wrong}”: with it, “attention” would be off by about {about}."
    assert press(hunt, right).endswith(" You needed 1 comparison, and named 1 wrong one.")


def test_without_a_comparison_nothing_speaks_against_one(hunt, bugs):
    names = [*bugs]
    said = press(hunt, names[0])
    if said.startswith("Yes"):
        press(hunt, "Plant another")
        said = press(hunt, names[0])
    assert said == (f"Not “{names[0]}”, though nothing that you compared speaks against it.")


def test_what_chapter_6_says_of_it(bugs):
    fails = {name: [part for part in PARTS if off[part] != [0]] for name, off in bugs.items()}
    assert sum("block" in parts for parts in fails.values()) == 6
    rest = [name for name, parts in fails.items() if "block" not in parts]
    assert {name: "encoder" in fails[name] for name in rest} == {"no bug": False, "no final norm": True}
    drawn, *scales = ("dropout left on", "scores divided by √D", "scores multiplied by √Dₕ")
    assert fails[drawn] == fails[scales[0]] == fails[scales[1]]
    assert len({*bugs[drawn]["attention"]}) > 1
    assert bugs[scales[1]]["attention"][0] > 2 * bugs[scales[0]]["attention"][0]


def test_what_gives_each_away_is_so(bugs):
    def largest(part):
        return max(bugs, key=lambda name: bugs[name][part][0])

    off = [name for name in bugs if bugs[name]["block"][0]]
    assert largest("encoder") == "no final norm"
    assert largest("block") == "a norm never called"
    assert min(off, key=lambda name: bugs[name]["block"][0]) == "LayerNorm with another eps"
    assert [name for name in bugs if bugs[name]["MLP"][0]] == ["GELU in its tanh form"]
    for name in ("a norm never called", "LayerNorm with another eps"):
        assert bugs[name]["attention"] == bugs[name]["MLP"] == [0]
