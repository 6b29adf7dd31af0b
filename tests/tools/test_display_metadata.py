"""Generated notebooks open in GitHub's viewer and in Colab: valid, light, nothing that needs a kernel."""

import json
import re

import nbformat
import pytest
from nbformat.validator import iter_validate
from project_facts import ROOT

FOLDERS = ("notebooks", "exercises", "vit_classroom/assignments/chapters")
NOTEBOOKS = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.ipynb"))
LARGEST = 1_000_000  # bytes; GitHub shows no notebook in full that is much larger
OF_NOTEBOOKS = {"kernelspec", "language_info", "accelerator", "colab"}
OF_CELLS = {"cellView", "jupyter", "tags", "nbgrader", "assignment", "id"}  # Colab finds a cell by "id"
CELL_ID = re.compile(r"[\w-]{1,64}")


def faults(text: str) -> list[str]:
    """Say what keeps a viewer without a kernel from showing a notebook as it is meant."""
    if len(text.encode()) > LARGEST:
        return [f"{len(text.encode())} bytes"]
    notebook = json.loads(text)
    if (notebook["nbformat"], notebook["nbformat_minor"]) < (4, 5):
        return ["cells have names since version 4.5 of the format"]
    found = [error.message for error in iter_validate(notebook)]
    names = [cell.get("id", "") for cell in notebook["cells"]]
    found += [f"the cell's name {name!r}" for name in names if not CELL_ID.fullmatch(name)]
    found += ["two cells of one name"] * (len(set(names)) < len(names))
    found += [f"metadata {key}" for key in notebook["metadata"].keys() - OF_NOTEBOOKS]
    for cell in notebook["cells"]:
        found += [f"metadata {key} of a cell" for key in cell["metadata"].keys() - OF_CELLS]
        found += ["outputs"] * bool(cell.get("outputs") or cell.get("execution_count"))
        found += ["an attachment"] * ("attachments" in cell)
        found += ["another id in the metadata"] * (cell["metadata"].get("id", cell["id"]) != cell["id"])
    spec = notebook["metadata"].get("kernelspec", {})
    found += ["no kernel named"] * ((spec.get("name"), spec.get("language")) != ("python3", "python"))
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_can_be_shown(path):
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_its_pictures_have_addresses_of_their_own(path):
    text = "\n".join(
        cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type != "code"
    )
    pictures = re.findall(r"!\[[^]]*\]\(([^)\s]+)|<img[^>]*\bsrc=\"([^\"]+)", text)
    assert pictures
    own = ("https://", "data:image/png;base64,")  # a drawing travels inside its notebook
    assert not [address for pair in pictures if not (address := "".join(pair)).startswith(own)]
