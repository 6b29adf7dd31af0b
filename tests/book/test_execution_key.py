"""Chapters run again when anything that their outputs depend on has changed, and only then."""

import pytest
from sphinx.errors import ConfigError
from vit_book import execution

FILES = {
    "vit_from_scratch/model/vit.py": "print(1)",
    "vit_classroom/checks/vit.py": "print(1)",
    "vit_lab/recipes/digits.toml": "epochs = 1",
    "vit_lab/results/digits.json": "{}",
    "vit_from_scratch/weights/cifar10.safetensors": "weights",
    "requirements.lock": "torch==2.9",
    "book/extensions/kernel_figures/layout.py": "WIDTH = 4.0",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_changes_the_key(tree, name):
    before = execution.execution_key(tree, "quick")
    (tree / name).write_text(FILES[name] + "\n# changed", encoding="utf-8")
    assert execution.execution_key(tree, "quick") != before


def test_a_new_and_a_renamed_file_and_the_budget_change_the_key(tree):
    keys = [execution.execution_key(tree, "quick")]
    (tree / "vit_from_scratch" / "new.py").write_text("", encoding="utf-8")
    keys.append(execution.execution_key(tree, "quick"))
    (tree / "vit_from_scratch" / "new.py").rename(tree / "vit_from_scratch" / "newer.py")
    keys.append(execution.execution_key(tree, "quick"))
    keys.append(execution.execution_key(tree, "full"))
    assert len(set(keys)) == 4


def test_what_chapters_do_not_see_leaves_the_key_alone(tree):
    before = execution.execution_key(tree, "quick")
    (tree / "README.md").write_text("words", encoding="utf-8")
    for name in (
        "vit_from_scratch/__pycache__/vit.pyc",
        "vit_classroom/assignments/chapters/1.ipynb",
    ):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text("{}", encoding="utf-8")
    assert execution.execution_key(tree, "quick") == before


@pytest.mark.parametrize("name", [*execution.SHARED, "tools/chapter_export/quiz.py", "book/extensions/x.py"])
def test_what_pages_are_made_with_reads_them_anew_and_runs_nothing(tree, name):
    for path in (*execution.SHARED, name):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text("before", encoding="utf-8")
    before = execution.execution_key(tree, "quick"), execution.pages_key(tree)
    (tree / name).write_text("after", encoding="utf-8")
    assert execution.execution_key(tree, "quick") == before[0]
    assert execution.pages_key(tree) != before[1]


@pytest.mark.parametrize("name", ["book/_static/custom.css", "book/templates/layout.html"])
def test_a_changed_style_writes_pages_anew_and_runs_nothing(tree, name):
    def keys():
        return execution.execution_key(tree, "quick"), execution.pages_key(tree), execution.styles_key(tree)

    for path in (*(tree / shared for shared in execution.SHARED), tree / name):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("before", encoding="utf-8")
    before = keys()
    (tree / name).write_text("after", encoding="utf-8")
    assert [old == new for old, new in zip(before, keys(), strict=True)] == [True, True, False]


def test_chapters_run_quick_and_without_progress_bars_unless_told(monkeypatch):
    monkeypatch.delenv("VIT_BUDGET", raising=False)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert execution.prepare_environment() == "quick"
    assert "MPLBACKEND" not in execution.os.environ, "pages would have no pictures"
    assert execution.os.environ["TQDM_DISABLE"] == "1"
    monkeypatch.setenv("VIT_BUDGET", "full")
    assert execution.prepare_environment() == "full"


def test_an_unknown_budget_is_refused(monkeypatch):
    monkeypatch.setenv("VIT_BUDGET", "huge")
    with pytest.raises(ConfigError, match="'huge'; it must be one of quick, full"):
        execution.prepare_environment()
