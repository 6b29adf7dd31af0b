"""What the book's configuration promises."""

import re

import pytest
import yaml
from project_facts import ROOT

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
SPHINX = CONFIG["sphinx"]["config"]


@pytest.mark.parametrize(
    "name", ["PyTorch", "vit_from_scratch.model.ViT", "torchlike.Tensor", "Tensors", "Exception2"]
)
def test_nothing_of_ours_passes_as_a_name_of_another_package(name):
    for role, pattern in SPHINX["nitpick_ignore_regex"]:
        assert not (re.fullmatch(role, "py:class") and re.fullmatch(pattern, name)), pattern


def test_every_chapter_is_in_the_table_of_contents():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    globs = [entry["glob"] for part in toc["parts"] for entry in part["chapters"] if "glob" in entry]
    listed = {path.stem for pattern in globs for path in ROOT.glob(f"{pattern}.md")}
    assert listed == {path.stem for path in (ROOT / "notebooks").glob("*.md")}
