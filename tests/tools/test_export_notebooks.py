"""A chapter's notebook reads well where MyST is unknown, and always comes out the same."""

import json
from pathlib import Path

import export_notebooks
import nbformat
import pytest
from chapter_export import ExportError, export_chapter
from project_facts import ROOT, TRAINING_CHAPTERS, chapter_number, chapters

CHAPTERS = chapters()
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}
DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def notebook(catalogue):
    return nbformat.reads(export_chapter(DATA / "99_everything.md", catalogue), as_version=4)


@pytest.fixture(scope="module")
def text(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def test_begins_with_what_it_is_about_and_the_set_up(notebook):
    opening, setup, rest = notebook.cells[:3]
    address = (
        "https://colab.research.google.com/github/vit-from-scratch/vit_from_scratch/blob/main/notebooks/"
    )
    title, about, badge = opening.source.split("\n\n")
    assert title == "# 99. Everything"
    assert about.startswith("A chapter with every construct that chapters may use.")
    assert f"]({address}99_everything.ipynb)" in badge
    assert rest.source.startswith("A token is one of many words.")
    assert setup.cell_type == "code"
    assert setup.source.startswith("#@title")
    assert "BUDGET" not in setup.source, "nothing in it asks for one"
    assert setup.metadata == FOLDED


def test_where_a_run_has_two_budgets_one_is_asked_for():
    opening, setup = nbformat.read(ROOT / "notebooks/08_first_training_run.ipynb", 4).cells[:2]
    budget = opening.source.split("\n\n")[-1]
    assert budget.startswith("Not yet run with the full budget on a GPU. What is said of outputs is said of")
    assert setup.source.splitlines()[1] == 'BUDGET = "quick" #@param ["quick", "full"]'


def test_below_each_answer_of_the_books_there_is_a_cell_for_the_readers_own():
    found = 0
    for path in sorted((ROOT / "notebooks").glob("[01]*.ipynb")):
        cells = nbformat.read(path, 4).cells
        ours = [place for place, cell in enumerate(cells) if cell.source.startswith("# @title Ours\n")]
        for place in ours:
            own, check = (cell.source for cell in cells[place + 1 : place + 3])
            assert own == "# Yours. Left empty, the check below looks at ours."
            assert check.startswith("checks."), path.name
        found += len(ours)
    assert found > 40


HOME = "https://github.com/vit-from-scratch/vit_from_scratch"
SAID = {
    "admonitions are quotations with a bold title": [
        "> **What you will be able to do**\n>\n> - Read **this** in a notebook.",
        "> ```python\n> kept = True\n> ```",
        "> **Note**\n>\n> A note cites",
        "> <details>\n> <summary>Inner</summary>\n>\n> Inside.\n>\n> </details>",
    ],
    "side notes are quotations that say so and terms are words": [
        "A token is one of many words.\n\n> **Side note: Shapes of $x$**\n>\n",
        "> First (B, N, D).\\\n> Then (99.1).",
    ],
    "hints are folded": [
        "<details>\n<summary>Hint</summary>\n\nLook at (99.1).\n\n</details>",
        "<details>\n<summary>Help, I get <code>a &lt; b</code></summary>\n\nThink.\n\n</details>",
    ],
    "exercises have the numbers of the book": [
        "### Exercise 99.1: Write it\n\nWrite a function, see Equations.",
        "### Exercise 99.2\n\nSay it.",
    ],
    "a solution without code is folded": [
        "<details>\n<summary>Solution</summary>\n\nSaid.\n\n</details>",
    ],
    "a quiz folds its reasons": [
        "**How much is $1 + 1$, by (99.2)?**\n\n"
        "<details>\n<summary>One</summary>\n\n**No.** That is *one* of them.\n\n</details>\n\n"
        "<details>\n<summary>Two</summary>\n\n**Right.** See (99.2).\n\n</details>",
    ],
    "labelled equations show their number and others their own tag": [
        "$$\na = 1 \\tag{99.1}\n$$",
        "$$\nb = 2 \\tag{99.2}\n$$",
        "$$\nA = \\text{softmax}(q k^\\top) \\tag{6}\n$$",
    ],
    "references become text or links to sibling notebooks": [
        "We use (99.1), (99.2) and [(98.1)](98_neighbour.ipynb), then the sixth, Equations,",
        "[there](98_neighbour.ipynb),\nExercise 99.1, [Exercise 98.1](98_neighbour.ipynb)",
        "[that place](98_neighbour.ipynb). The [neighbour](98_neighbour.ipynb)",
        "Follow [98. The neighbour](98_neighbour.ipynb), with [another name](98_neighbour.ipynb).",
        "[site](https://example.org)",
    ],
    "what looks like a role inside code stays": [
        "Plain code such as `{doc}` stays, and so does $x^2$.",
        "| (99.1) | `{eq}` |",
    ],
    "what one can touch is a still figure, with what to try and to notice": [
        "**Try it: live in the book, [99. Everything](https://vit-from-scratch.github.io/vit_from_scratch/"
        "notebooks/99_everything.html#vit-run).** Only in the book.\n\n![Two losses by epoch, ",
        ")\n\n*Loss by epoch of this run, in training (blue) and on validation digits (orange, dashed).*"
        "\n\n<details>\n<summary>What to notice</summary>\n\n"
        "Something.\n\n</details>",
    ],
    "citations link the work": [
        "[Dosovitskiy et al. (2021)](https://arxiv.org/abs/2010.11929)",
        "([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762); [Loshchilov and Hutter, 2019](",
        "([Ba et al., 2016](https://arxiv.org/abs/1607.06450))",
    ],
    "files and pictures are addressed where they are hosted": [
        f"[`vit_from_scratch/__init__.py`]({HOME}/blob/main/vit_from_scratch/__init__.py)",
        f"[`tools/`]({HOME}/tree/main/tools)",
        f"[`facts`]({HOME}/blob/main/tools/project_facts.py)",
        f"![A grid]({HOME}/raw/main/book/_static/logo.svg)",
        f"![The grid again]({HOME}/raw/main/book/_static/logo.svg)\n\n*Figure 99.2: A caption with (99.2).*",
    ],
}


@pytest.mark.parametrize("words", SAID.values(), ids=list(SAID))
def test_what_plain_markdown_says(text, words):
    assert [word for word in words if word not in text] == []


def test_a_gated_solution_is_one_cell_of_text(notebook):
    (cell,) = [cell for cell in notebook.cells if "return 42" in cell.source]
    assert cell.cell_type == "markdown"
    assert cell.source.startswith("<details>\n<summary>Solution</summary>\n\nSome words first.")
    assert (
        "```python\ndef answer():\n    return 42\n```\n\n```python\nchecks.answer(answer)\n```" in cell.source
    )
    assert "```\n\nThen some more, with (99.2)." in cell.source
    assert cell.source.endswith("</details>")


def test_captions_stand_below_what_a_cell_draws_with_the_numbers_of_the_book(notebook, text):
    drawn = next(place for place, cell in enumerate(notebook.cells) if cell.source.endswith('print("first")'))
    assert notebook.cells[drawn + 1].source == "*Figure 99.1: What $x$ does, by (99.2).*"
    assert "Look at Figure 99.2 and Figure 99.1." in text


def test_targets_and_comments_are_dropped(text):
    assert "(here)=" not in text
    assert "nobody sees" not in text


def test_cells_keep_only_the_options_that_matter(notebook):
    code = {cell.source: dict(cell.metadata) for cell in notebook.cells if cell.cell_type == "code"}
    assert code['# @title Show the code of this figure\nprint("first")'] == FOLDED
    assert code["1 / 0"] == {"tags": ["raises-exception"]}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("```{mermaid}\nA-->B\n```", "directive {mermaid}"),
        ("Words {sub}`2`.", "role {sub}"),
        ("See {doc}`97_nowhere`.", "no chapter 97_nowhere"),
        ("See {eq}`eq-nowhere`.", "no label eq-nowhere"),
        ("See {cite:t}`nobody1999`.", "nobody1999 is not in"),
        ("See {source}`vit_from_scratch/nothing.py`.", "there is no vit_from_scratch/nothing.py"),
        ("![](../book/_static/logo.svg)", "no alternative text"),
        ("Term\n: A definition.", "definition list"),
        ("- ```{note}\n  nested\n  ```", "inside a list"),
        (":::{admonition} Cut\n\n```{code-cell} ipython3\n1\n```\n\n:::", "gated form"),
        ("```{solution-start} ex-code\n```\n\nNo end.", "without its solution-end"),
        ("```{solution-end}\n```", "without its solution-start"),
        ("```{figure} ../book/_static/logo.svg\n:alt: A grid\nA caption.\n```", "needs a name"),
        (":::{quiz} Two?\n+ Yes :: So it is.\n- No :: It is.\n:::", "got 2 lines, 1 of them right"),
        (":::{quiz} Two?\n" + "- No :: It is.\n" * 4 + ":::", "got 4 lines, 0 of them right"),
        (":::{quiz} Two?\n+ Yes :: It is.\n" + "- No\n" * 3 + ":::", "expected 4 lines"),
        ("```{code-cell} ipython3\n:tags: [surprise]\n\n1\n```", "surprise"),
    ],
)
def test_what_cannot_be_shown_is_an_error_that_names_it(tmp_path, catalogue, source, message):
    chapter = tmp_path / "97_wrong.md"
    chapter.write_text(
        f"---\nkernelspec: {{name: python3, display_name: Python 3}}\n---\n\n# 97. Wrong\n\n{source}\n"
    )
    with pytest.raises(ExportError, match=message):
        export_chapter(chapter, catalogue)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_asks_three_questions_and_no_place_is_always_right(path):
    parts = path.read_text(encoding="utf-8").split("\n## ")
    (asked,) = [part for part in parts if part.startswith("Three questions")]
    right = [quiz.partition("\n+ ")[0].count("\n") for quiz in asked.split(":::{quiz} ")[1:]]
    assert len(right) == 3, "a new question replaces one"
    assert len(set(right)) > 1


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_only_chapters_that_train_ask_colab_for_a_gpu(path):
    metadata = json.loads(path.with_suffix(".ipynb").read_text(encoding="utf-8"))["metadata"]
    trains = chapter_number(path.stem) in TRAINING_CHAPTERS
    assert (metadata.get("accelerator") == "GPU") == trains
    assert ("gpuType" in metadata.get("colab", {})) == trains


def test_check_notices_a_stale_a_missing_and_an_orphaned_notebook(copied_project, capsys):
    notebooks = copied_project / "notebooks"
    assert export_notebooks.main(["--check"], copied_project) == 1  # missing
    assert export_notebooks.main([], copied_project) == 0
    assert export_notebooks.main(["--check"], copied_project) == 0
    chapter = notebooks / "98_neighbour.md"
    chapter.write_text(chapter.read_text(encoding="utf-8") + "\nOne more sentence.\n", encoding="utf-8")
    assert export_notebooks.main(["--check"], copied_project) == 1  # stale
    assert "stale: notebooks/98_neighbour.ipynb" in capsys.readouterr().out
    assert export_notebooks.main([], copied_project) == 0
    (notebooks / "97_gone.ipynb").write_text("{}", encoding="utf-8")
    assert export_notebooks.main(["--check"], copied_project) == 1  # orphaned
