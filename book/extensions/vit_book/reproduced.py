"""The directives of "Reproduce it": when test images were measured, where we leave the paper, its Table 6."""

import re
from dataclasses import astuple
from pathlib import Path

from project_facts import ROOT, chapters
from sphinx.application import Sphinx

from vit_book.recipes import add_table, table
from vit_lab.experiments.packaged import load_result, packaged_names
from vit_lab.experiments.records import read_rows
from vit_lab.experiments.table_6 import TABLE_6

DEVIATION = re.compile(r":::\{admonition\} [^\n]*\n:class: deviation(?: dropdown)?\n(.*?)\n:::", re.DOTALL)


def tested_text() -> list[str]:
    """Write a table with a row for each result that measured test images: how many models, and when."""
    cells = []
    for name in packaged_names("results", ".json"):
        result = load_result(name)
        rows = read_rows(result) if "runs" in result or "rows" in result else []
        measured = [row for row in rows if "test_accuracy" in row.runs[0].measured]
        models = sum(len(row.runs) for row in measured) or int("test_accuracy" in result)
        if models:
            cells.append([result["date"].partition("T")[0], str(models), f"`{name}`"])
    return table(("ended", "models measured", "result"), cells)


def deviations_text(root: Path = ROOT) -> list[str]:
    """Write every deviation that the chapters name, each with a link to its chapter."""
    found = []
    for source in chapters(root):
        for text in DEVIATION.findall(source.read_text(encoding="utf-8")):
            words = " ".join(text.split()).replace("<../book/", "<").replace("`../book/", "`")
            link = re.sub(r"\{doc\}`(\d\d_\w+)`", r"{doc}`../notebooks/\1`", words)
            found.append(f"- {{doc}}`../notebooks/{source.stem}`: {link}")
    return found


def table_6_text() -> list[str]:
    """Write the paper's Table 6, as it reports it."""
    head = ("", "epochs", "ImageNet", "ReaL", "CIFAR-10", "CIFAR-100", "Pets", "Flowers", "exaFLOPs")
    rows = [
        (row.name, str(row.epochs), *map("{:.2f}".format, astuple(row)[2:8]), f"{row.exaflops:,}")
        for row in TABLE_6
    ]
    return table(head, rows)


def setup(app: Sphinx) -> None:
    """Register the directives."""
    add_table(app, "tested", tested_text)
    add_table(app, "table_6", table_6_text)
    add_table(app, "deviations", lambda: deviations_text())
