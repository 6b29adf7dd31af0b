"""The notebook that runs a comparison of the page of claims: its rows exist, and one of them runs."""

import os
from itertools import pairwise

import nbformat
import pytest
from chapter_export.claim_cells import claim_rows, export_claims
from project_facts import ROOT

from vit_from_scratch import InputError
from vit_lab import load_result
from vit_lab.experiments.records import read_rows
from vit_lab.experiments.study import load_study, miniature, slug


@pytest.mark.parametrize("claim", claim_rows(ROOT))
def test_each_comparison_can_be_made_small(claim):
    name, *sides = claim_rows(ROOT)[claim]
    study = load_study(name)
    small = miniature(study, dict.fromkeys(sides, 0.001))
    assert list(small.rows) == sides
    assert small.seeds == study.seeds
    whole = {row.name: row.recipe for row in study.variants()[::-1]}  # of the first task
    for row in small.variants():
        assert row.recipe.train.learning_rate == 0.001
        assert row.recipe.train.epochs == min(3, whole[row.name].train.epochs)
        assert row.recipe.data.train_size == min(2000, whole[row.name].data.train_size or 2000)
        assert row.recipe.model == whole[row.name].model
        assert row.rates == ()
    assert {row.name for row in read_rows(load_result(name))} >= set(sides)


def test_nothing_is_cut_where_zero_is_asked_for():
    study = load_study("patch_size")
    (row,) = miniature(study, {"8 pixels": 0.02}, images=0, epochs=0).variants()
    assert (row.recipe.data.train_size, row.recipe.train.epochs) == (10_000, 10)


@pytest.mark.parametrize(
    ("study", "rates", "message"),
    [
        ("patch_size", {"5 pixels": 0.1}, r"rates = \['5 pixels'\]: expected names of rows: 4 pixels, 8"),
        ("small_data", {"+ Muon": 0.1}, "cumulative = True: expected a study whose rows"),
    ],
)
def test_rows_that_cannot_stand_alone_are_refused(study, rates, message):
    with pytest.raises(InputError, match=message):
        miniature(load_study(study), rates)


@pytest.mark.slow
def test_the_notebook_runs_a_comparison_of_scans(catalogue, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIT_DATA_DIR", raising=False)
    cells = nbformat.reads(export_claims(catalogue), 4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    claim = next(says for says, (study, *_) in claim_rows(ROOT).items() if study == "transfer_scans")
    names = {}
    for source in code[1:]:
        exec(source, names)
        if "CLAIM" in names and "name" not in names:
            names["CLAIM"] = claim
    before, here = capsys.readouterr().out.splitlines()[-2:]
    for line, start in ((before, "as we ran it"), (here, "here")):
        assert line.startswith(start)
        words = line.replace(",", "").split()
        low, mean, high = (float(words[at]) for at in (-3, words.index("points") - 1, -1))
        assert all(one <= other for one, other in pairwise((low, mean, high)))
    assert os.listdir("runs") == [slug(f"{claim} False")]


@pytest.mark.parametrize("units", ["0", "1"])
def test_a_device_without_units_for_bfloat16_computes_in_float32(catalogue, monkeypatch, units):
    monkeypatch.setenv("VIT_BFLOAT16_UNITS", units)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    cells = nbformat.reads(export_claims(catalogue), 4).cells
    source = next(cell.source for cell in cells if "miniature(" in cell.source)
    claim = next(says for says, (study, *_) in claim_rows(ROOT).items() if study == "data_hunger")
    names = {"ROWS": claim_rows(ROOT), "CLAIM": claim, "WHOLE": False}
    exec(source, names)
    precisions = {row.recipe.train.precision for row in names["small"].variants()}
    assert precisions == {"bfloat16" if units == "1" else "float32"}
