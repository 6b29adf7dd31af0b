"""Who may import whom: imports run one way, and the plain model knows nothing of ablations."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "vit_from_scratch"
BELOW = {
    "model": set(),
    "data": {"model"},
    "training": {"data", "model", "plots"},  # plots: the curves of a run
    "inspection": {"training", "data", "model"},
    "experiments": {"training", "data", "model", "pretrained"},
    "pretrained": {"training", "data", "model"},  # training: what a model without labels needs beside it
    "plots": set(),
    "checks": {"training", "data", "model", "inspection", "pretrained"},
    "assignments": {"checks"},
    "cli": {"assignments", "inspection", "experiments", "training", "data", "model", "pretrained", "plots"},
}
"""Each folder, and the folders that it may import from; the modules beside the folders are for all."""
PLAIN = ("vit.py", "encoder.py", "attention.py")


def imported(path: Path) -> set[str]:
    """Every module that a file imports, those inside functions and of type checkers included."""
    tree = ast.parse(path.read_text("utf-8"))
    package = ".".join(path.relative_to(PACKAGE.parent).parent.parts)
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            module = f"{package}.{node.module}" if node.level else node.module or ""
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def folders_of(path: Path) -> set[str]:
    """The folders of the package that a file imports from."""
    parts = [name.split(".") for name in imported(path)]
    found = {names[1] for names in parts if names[0] == "vit_from_scratch" and len(names) > 1}
    return found & BELOW.keys()


def sources(folder: str) -> list[Path]:
    return sorted([*(PACKAGE / folder).rglob("*.py"), *(PACKAGE / folder).rglob("*.pyi")])


def test_every_folder_has_its_place_in_the_order():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == BELOW.keys()


@pytest.mark.parametrize("folder", BELOW)
def test_imports_run_one_way(folder):
    for path in sources(folder):
        upwards = folders_of(path) - BELOW[folder] - {folder}
        assert not upwards, f"{path.relative_to(PACKAGE)} imports {', '.join(sorted(upwards))}"


def test_the_order_has_no_circle():
    left = dict(BELOW)
    while left:
        lowest = [folder for folder, below in left.items() if not below & left.keys()]
        assert lowest, f"a circle among {', '.join(left)}"
        for folder in lowest:
            del left[folder]


def test_no_two_files_import_each_other():
    files = [
        path
        for folder in BELOW
        for path in sources(folder)
        if path.name not in ("__init__.py", "__init__.pyi")
    ]
    name = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files}
    sees = {name[path]: imported(path) & set(name.values()) for path in files}

    def reaches(start: str) -> set[str]:
        seen, front = set(), {start}
        while front:
            front = set().union(*(sees[module] for module in front)) - seen
            seen |= front
        return seen

    circular = [module for module in sees if module in reaches(module)]
    assert not circular


def test_nothing_but_assignments_imports_checks():
    for path in PACKAGE.rglob("*.py*"):
        if path.suffix in (".py", ".pyi") and path.parent.name not in ("checks", "assignments"):
            assert "checks" not in folders_of(path), path


@pytest.mark.parametrize("file", PLAIN)
def test_the_plain_path_is_free_of_what_only_an_ablation_needs(file):
    path = PACKAGE / "model" / file
    fields = {
        node.attr for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Attribute)
    }
    assert not fields & {"initialisation", "stochastic_depth", "root_stride", "eps_on_variance"}
    seen = {
        name
        for name in imported(path)
        if name.startswith(("vit_from_scratch.model.variants", "vit_from_scratch.model.hybrid"))
    }
    choices = {f"vit_from_scratch.model.variants{name}" for name in ("", ".choose_stem", ".choose_encoder")}
    assert seen <= (choices if file == "vit.py" else set())
