"""The code cell that every notebook begins with: it installs the package in Colab, and nowhere else."""

import re
from pathlib import Path
from string import Template

from project_facts import Repository, read_project, read_version

LEFT_ALONE = ("torch", "torchvision")  # Colab's own fit its driver; another version would break them
SETUP = Path(__file__).with_name("setup_cell.txt")
BUDGET = re.compile(r"^(BUDGET = .*\n|if BUDGET .*\n.*\n|    if BUDGET .*\n.*\n)", re.MULTILINE)
NEEDS_GPU = re.compile(r"^    if BUDGET .*\n.*\n", re.MULTILINE)


def colab_requirements(root: Path, chapter: str = "") -> list[str]:
    """What package and chapter need besides torch, as pip is asked for it.

    Of the book's extra only what the chapter's text imports is among them.
    """
    project = read_project(root)
    imported = set(re.findall(r"^import (\w+)$", chapter, flags=re.MULTILINE))
    extra = project.get("optional-dependencies", {}).get("book", [])
    needed = [*project["dependencies"], *(wanted for wanted in extra if _name(wanted) in imported)]
    return [wanted for wanted in needed if _name(wanted) not in LEFT_ALONE]


def oldest_torch(root: Path) -> str:
    """The lower bound that the project states for torch, such as "2.9"."""
    (wanted,) = (wanted for wanted in read_project(root)["dependencies"] if _name(wanted) == "torch")
    return wanted.partition(">=")[2]


def _name(requirement: str) -> str:
    """The name of a package in a requirement such as "timm>=1.0"."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def setup_source(root: Path, repository: Repository, chapter: str = "") -> str:
    """The code of the set-up cell: it installs the package in Colab, elsewhere it says if that is missing.

    A chapter that asks for no budget is not asked for one; with one it says that it needs a GPU where it can
    use one, not where it fetches weights alone.
    """
    lines = [f'    "{wanted}",' for wanted in colab_requirements(root, chapter)]
    torch = oldest_torch(root)
    text = Template(SETUP.read_text(encoding="utf-8")).substitute(
        url=repository.url,
        branch=repository.branch,
        version=read_version(root),
        requirements="\n".join(["[", *lines, "]"]),
        torch=torch,
        torch_list=", ".join(torch.split(".")[:2]),
    )
    if "by_budget(" not in chapter:
        text = BUDGET.sub("", text)
    elif "cuda" not in chapter:
        text = NEEDS_GPU.sub("", text)
    return text.rstrip()
