"""Who may import whom, and how much an import loads: the package that the book builds stays small."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "vit_from_scratch": set(),
    "vit_lab": {"vit_from_scratch"},
    "vit_classroom": {"vit_from_scratch"},
}
"""Each package, and the packages that it may import from."""
FOLDERS = {
    "model": set(),
    "data": {"model"},
    "training": {"data", "model"},
    "inspection": {"training", "data", "model"},
    "pretrained": {"training", "data", "model"},  # training: what a model without labels needs beside it
    "plots": set(),
    "weights": set(),
}
"""Each folder of vit_from_scratch, and those that it may import from; the modules beside are for all."""
PLAIN = ("vit.py", "encoder.py", "attention.py")


def imported(path: Path) -> set[str]:
    """Every module that a file imports, those inside functions and of type checkers included."""
    package = ".".join(path.relative_to(ROOT).parent.parts)
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            module = f"{package}.{node.module}" if node.level else node.module or ""
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def sources(folder: str) -> list[Path]:
    return sorted([*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.pyi")])


def lines(place: str) -> int:
    files = (ROOT / place).rglob("*.py") if (ROOT / place).is_dir() else [ROOT / place]
    return sum(len(path.read_text("utf-8").splitlines()) for path in files)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_laboratory_and_the_classroom_know_the_package_and_nothing_knows_them(package):
    for path in sources(package):
        found = {name.split(".")[0] for name in imported(path)} & PACKAGES.keys()
        upwards = found - PACKAGES[package] - {package}
        assert not upwards, f"{path.relative_to(ROOT)} imports {', '.join(sorted(upwards))}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_inside_the_package_imports_run_one_way(folder):
    for path in sources(f"vit_from_scratch/{folder}"):
        parts = [name.split(".") for name in imported(path)]
        found = {names[1] for names in parts if names[0] == "vit_from_scratch" and len(names) > 1}
        upwards = (found & FOLDERS.keys()) - FOLDERS[folder] - {folder}
        assert not upwards, f"{path.relative_to(ROOT)} imports {', '.join(sorted(upwards))}"


def test_every_folder_has_its_place_in_the_order():
    folders = {path.name for path in (ROOT / "vit_from_scratch").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == FOLDERS.keys()


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_files_import_each_other(package):
    files = [path for path in sources(package) if path.stem != "__init__"]
    name = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    sees = {name[path]: imported(path) & set(name.values()) for path in files}

    def reaches(start: str) -> set[str]:
        seen, front = set(), {start}
        while front:
            front = set().union(*(sees[module] for module in front)) - seen
            seen |= front
        return seen

    assert not [module for module in sees if module in reaches(module)]


@pytest.mark.parametrize("file", PLAIN)
def test_the_plain_path_is_free_of_what_only_an_ablation_needs(file):
    path = ROOT / "vit_from_scratch" / "model" / file
    fields = {
        node.attr for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Attribute)
    }
    assert not fields & {"initialisation", "stochastic_depth", "root_stride", "eps_on_variance"}
    seen = {
        name
        for name in imported(path)
        if name.startswith(("vit_from_scratch.model.variants", "vit_from_scratch.model.hybrid"))
    }
    choices = {f"vit_from_scratch.model.variants{name}" for name in ("", ".build_stem", ".build_encoder")}
    assert seen <= (choices if file == "vit.py" else set())


LOADED = """
from pathlib import Path
import sys
packages = ("vit_from_scratch", "vit_lab", "vit_classroom")
files = {module.__file__ for name, module in sys.modules.items() if name.startswith(packages)}
print(len(files), sum(len(Path(file).read_text("utf-8").splitlines()) for file in files))
"""


@pytest.mark.parametrize(
    ("entry", "most_files", "most_lines"),
    [
        ("from vit_from_scratch import build_model; build_model", 17, 1_900),
        ("from vit_from_scratch.pretrained import load_pretrained; load_pretrained('cifar10')", 25, 2_600),
        ("from vit_from_scratch.training import train; train", 30, 4_000),
    ],
)
def test_an_entry_loads_no_more_than_it_needs(entry, most_files, most_lines):
    done = subprocess.run([sys.executable, "-c", entry + LOADED], capture_output=True, text=True, check=True)
    files, loaded = map(int, done.stdout.split())
    assert files <= most_files
    assert loaded <= most_lines


@pytest.mark.parametrize(
    ("place", "most"),
    [
        ("vit_from_scratch/training/loop.py", 250),
        ("vit_from_scratch/model", 2_150),
        ("vit_from_scratch", 8_050),
    ],
)
def test_the_package_can_be_read_in_an_evening(place, most):
    assert lines(place) <= most, "make something shorter first"
