"""The notebook that runs the smallest form of any comparison on the page of claims that rests on a study."""

import tomllib
from pathlib import Path

import nbformat

from chapter_export.catalogue import Catalogue
from chapter_export.cells import framed

CLAIMS, NOTEBOOK = "book/claims.toml", "notebooks/run_a_claim.ipynb"

TEXT = """# Run a claim yourself

Choose a comparison from the book's page "What our runs say", and train both of its sides.

Each side has three seeds, a few passes over at most 2,000 images, and the learning rate that its sweep \
chose. That takes minutes, and so small a run seldom settles anything. It shows what is compared, and how \
wide an interval of three seeds is. `WHOLE = True` runs both rows as we ran them, which needs a GPU. Photos \
are downloaded."""

CHOICE = """ROWS = {{
{rows}
}}
CLAIM = "{first}" #@param {choices}
WHOLE = False #@param {{type: "boolean"}}"""

RUN = """from dataclasses import replace
from pathlib import Path

import torch

from vit_from_scratch.precisions import has_bfloat16_units
from vit_from_scratch.settings import merged
from vit_lab import load_result
from vit_lab.experiments.comparing import paired_interval, seed_by_seed
from vit_lab.experiments.records import read_rows
from vit_lab.experiments.study import load_study, miniature, slug
from vit_lab.experiments.study_runs import Place, run_study

name, *sides = ROWS[CLAIM]
study, known = load_study(name), read_rows(load_result(name))
reached = [next(r for r in known if (r.task, r.name) == (known[0].task, side)) for side in sides]
rates = {row.name: row.config["train"]["learning_rate"] for row in reached}
small = miniature(study, rates, *((0, 0) if WHOLE else ()))
device = "cuda" if torch.cuda.is_available() else "cpu"
if not has_bfloat16_units(device):  # imitated, it is slow
    small = replace(small, changes=merged(small.changes, {"train": {"precision": "float32"}}))
place = Place(device=device, say=print)
print(study.claim, *(row.label for row in reached), sep="\\n  ")"""

SAY = """done = run_study(small, Path("runs") / slug(f"{CLAIM} {WHOLE}"), place)
for label, rows in (("as we ran it", reached), ("here", read_rows(done))):
    accuracies = [[100 * value for value in side] for side in seed_by_seed(*rows)]
    mean, low, high = paired_interval(*accuracies)
    print(f"{label:13} {mean:+5.1f} points, from {low:+.1f} to {high:+.1f}")"""


def claim_rows(root: Path) -> dict[str, tuple[str, str, str]]:
    """Return the comparisons that rest on a study, by their sentence: study, better row, worse row."""
    claims = tomllib.loads((root / CLAIMS).read_text(encoding="utf-8"))["claims"]
    return {
        ": ".join(
            filter(None, (claim["says"].rstrip("."), evidence.get("label", evidence["result"])))
        ).replace('"', "'"): (evidence["result"], evidence["better"], evidence["worse"])
        for claim in claims
        for evidence in claim.get("evidence", [])
        if evidence["kind"] == "study"
    }


def export_claims(catalogue: Catalogue) -> str:
    """Return the text of the .ipynb file."""
    rows = claim_rows(catalogue.root)
    table = "\n".join(f'    "{says}": {row!r},' for says, row in rows.items())
    choices = "[" + ", ".join(f'"{says}"' for says in rows) + "]"
    choice = CHOICE.format(rows=table, first=next(iter(rows)), choices=choices)
    code = [nbformat.v4.new_code_cell(source) for source in (choice, RUN, SAY)]
    cells = [nbformat.v4.new_markdown_cell(TEXT), *code]
    return framed(catalogue.root / CLAIMS, catalogue, NOTEBOOK, cells)
