"""The page of claims: verdicts follow from results, and a result that changes or goes stops the build."""

import json
import math
import tomllib
from dataclasses import replace

import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup
from scipy import stats
from sphinx.errors import ExtensionError
from vit_book import claims, evidence

from vit_from_scratch.errors import InputError
from vit_from_scratch.examples import PHOTOS, photo
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained import load_pretrained
from vit_lab import load_result
from vit_lab.experiments.records import read_rows

ROWS = {"better": "depth 2, width 184", "worse": "depth 1, width 260"}
STUDY = {"kind": "study", "result": "depth_width", **ROWS}


def test_every_claim_with_evidence_has_the_verdict_of_its_results():
    found = claims.read_claims()
    assert len(found) >= 20
    assert {claim["verdict"] for claim in found} <= set(claims.VERDICTS)
    assert sum(bool(claim["found"]) for claim in found) >= 14


def test_a_difference_of_seeds_is_paired_with_students_interval():
    (found,) = evidence.differences(STUDY)
    rows = {row.name: np.array(row.values()) for row in read_rows(load_result("depth_width"))}
    gaps = 100 * (rows[STUDY["better"]] - rows[STUDY["worse"]])
    margin = stats.t.ppf(0.975, 2) * gaps.std(ddof=1) / np.sqrt(3)
    assert [found.mean, found.low, found.high] == pytest.approx(
        [gaps.mean(), gaps.mean() - margin, gaps.mean() + margin], abs=1e-6
    )


def test_a_lead_that_closes_is_the_difference_of_two_leads_paired_by_seed():
    line = {"kind": "lead", "result": "data_hunger", "better": "ResNet", "worse": "ViT"}
    (found,) = evidence.differences(line | {"first": "1,000 photos", "last": "45,000 photos"})
    rows = read_rows(load_result("data_hunger"))
    value = {(row.task, row.name): np.array(row.values()) for row in rows}
    leads = [
        value[f"{size} photos", "ResNet"] - value[f"{size} photos", "ViT"] for size in ("1,000", "45,000")
    ]
    test = stats.ttest_rel(100 * leads[0], 100 * leads[1])
    assert found.mean == pytest.approx(100 * (leads[0] - leads[1]).mean())
    assert (found.low, found.high) == pytest.approx(tuple(test.confidence_interval()))
    assert not found.seen, "it grows"


OTHERS = [
    {"result": "transfer_adamw", "task": "500 photos", "row": "from scratch"},
    {
        "result": "scratch_regularised",
        "row": "mixed photos and dropout, four times as long",
    },  # a study without tasks
]


@pytest.mark.parametrize("worse", OTHERS, ids=lambda side: side["result"])
def test_rows_of_two_studies_are_paired_by_seed(worse):
    better = {"result": "transfer_photos", "task": "500 photos", "row": "Tiny-ImageNet's labels"}
    (found,) = evidence.differences({"kind": "runs", "better": better, "worse": worse})
    values = [
        next(
            row.values()
            for row in read_rows(load_result(side["result"]))
            if (row.task, row.name) == (side.get("task", ""), side["row"])
        )
        for side in (better, worse)
    ]
    test = stats.ttest_rel(*(100 * np.array(value) for value in values))
    assert found.mean == pytest.approx(100 * (np.mean(values[0]) - np.mean(values[1])))
    assert (found.low, found.high) == pytest.approx(tuple(test.confidence_interval()))
    told = evidence.told({"kind": "runs", "better": better, "worse": worse})
    assert "transfer_photos" in told
    assert worse["result"] in told


def test_seeds_are_joined_by_their_number_and_one_that_diverged_is_left_out(monkeypatch):
    before, rows = evidence.differences(STUDY), read_rows(load_result("depth_width"))
    turned = [replace(row, runs=row.runs[:: (-1) ** place]) for place, row in enumerate(rows)]
    monkeypatch.setattr(evidence, "read_rows", lambda result: turned)
    for found, expected in zip(evidence.differences(STUDY), before, strict=True):
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    shorter = [replace(rows[0], runs=rows[0].runs[1:], diverged=[0]), *rows[1:]]
    monkeypatch.setattr(evidence, "read_rows", lambda result: shorter)
    (found,) = evidence.differences(STUDY)
    ours, theirs = (next(row for row in rows if row.name == STUDY[side]) for side in ("better", "worse"))
    gaps = [100 * (one - other) for one, other in zip(ours.values()[1:], theirs.values()[1:], strict=True)]
    assert found.mean == pytest.approx(np.mean(gaps))


def test_a_lead_is_joined_by_seed_too(monkeypatch):
    line = {"kind": "lead", "result": "data_hunger", "better": "ResNet", "worse": "ViT"}
    line |= {"first": "1,000 photos", "last": "45,000 photos"}
    (before,), rows = evidence.differences(line), read_rows(load_result("data_hunger"))
    turned = [replace(row, runs=row.runs[:: (-1) ** (row.name == "ViT")]) for row in rows]
    monkeypatch.setattr(evidence, "read_rows", lambda result: turned)
    (found,) = evidence.differences(line)
    assert (found.low, found.high) == pytest.approx((before.low, before.high))


def test_a_best_rate_at_an_end_is_told():
    assert "at an end" not in evidence.told(STUDY | {"result": "positions"})
    told = evidence.told(STUDY | {"result": "hybrids_by_cost"})
    assert "the best rate lies at an end of those tried in: ResNet, 13 million. Again: " in told


def test_a_stored_difference_is_told_in_points(monkeypatch):
    monkeypatch.setattr(evidence, "load_result", lambda name: {"a": {"b": [0.02, 0.01, 0.03]}})
    (found,) = evidence.differences({"kind": "stored", "result": "x", "at": ["a", "b"]})
    assert (found.mean, found.low, found.high) == pytest.approx((2, 1, 3))


def test_what_was_run_is_told_in_numbers():
    """A study without rates: its runs are all of its time."""
    rows = load_result("depth_width")["rows"]
    minutes = sum(run["seconds"] for row in rows for run in row["runs"]) / 60
    sizes = [row["parameters"] for row in rows]
    said = evidence.told(STUDY)
    assert f": cifar10, {min(sizes):,} to {max(sizes):,} parameters, 3 seeds, " in said
    assert f"{minutes:,.0f} minutes in all, held-out accuracy" in said
    assert "test accuracy" in evidence.told({"kind": "runs", "better": "poster-local", "worse": "poster"})


def test_the_picture_is_to_scale():
    drawn = BeautifulSoup(claims.picture([evidence.Difference("a", 2, 1, 4)], paper=3.0), "html.parser")
    marks = [(".zero", "x1"), (".interval", "x1"), ("circle", "cx"), (".source", "cx"), (".interval", "x2")]
    places = [float(drawn.select_one(tag)[key].rstrip("%")) for tag, key in marks]
    assert np.diff(places) == pytest.approx(np.full(4, 100 / 4.48), abs=0.05)
    assert "+3.0 points" in drawn.text


def test_what_was_run_names_its_command_and_links_to_its_settings():
    study = BeautifulSoup(evidence.told(STUDY), "html.parser")
    assert study.select("a")[-1].text == "vit study depth_width --data-dir DEST"
    assert study.select("a")[-1]["href"].endswith("vit_lab/studies/depth_width.toml")
    runs = {"kind": "runs", "better": "poster-local", "worse": "poster"}
    assert evidence.told(runs).count("vit train --recipe poster") == 2
    found = tomllib.loads(claims.FILE.read_text(encoding="utf-8"))["claims"]
    for line in (line for claim in found for line in claim.get("evidence", []) if "result" in line):
        assert "Again: " in evidence.told(line)


def test_a_vit_beside_a_resnet_is_measured_against_nine_tenths_of_its_speed(monkeypatch):
    vit = {"over_resnet": [1.0, 1.2, 1.1], "kept_bytes": 50}
    sides = {"64": {"vit": vit, "resnet": {"kept_bytes": 75}}}
    monkeypatch.setattr(evidence, "load_result", lambda name: {"sides": sides})
    line = {"kind": "beside", "result": "any", "better": "vit", "worse": "resnet"}
    (speed,) = evidence.differences(line | {"of": "speed", "label": "speed"})
    margin = stats.t.ppf(0.975, 2) * 10 / np.sqrt(3)
    assert [speed.mean, speed.low, speed.high] == pytest.approx([20, 20 - margin, 20 + margin])
    assert speed.label == "speed, 64 px"
    (batch,) = evidence.differences(line | {"of": "batch"})
    assert (batch.mean, batch.low, batch.high, batch.seen) == (50, 50, 50, True)


def test_single_seeds_are_blurred_by_counting_test_photos():
    names = "imagenette-ls01", "imagenette-ls0"
    (found,) = evidence.differences({"kind": "runs"} | dict(zip(("better", "worse"), names, strict=True)))
    first, second = (load_result(name)["test_accuracy_mean"] for name in names)
    error = np.sqrt((first * (1 - first) + second * (1 - second)) / 3925)
    assert found.mean == pytest.approx(100 * (first - second))
    assert found.high - found.low == pytest.approx(100 * 2 * 1.96 * error)


def test_a_single_seed_is_compared_with_the_same_seed_of_several():
    several = read_rows(load_result("cifar10-half-hour-plain"))[0]
    found = evidence.between_rows("", replace(several, runs=several.runs[1:2]), several)
    assert (found.mean, found.low < 0 < found.high) == (0, True)


@pytest.mark.parametrize("of", ["neighbours", "one place"])
def test_neighbours_are_compared_with_all_others_or_with_the_mirror_image_patch_by_patch(of):
    (found,) = evidence.differences({"kind": "positions", "of": of})
    model = load_pretrained("tiny-imagenet")
    vectors = model.tokens.position[0, 1:].detach().double().numpy()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    gaps = []
    for one in range(64):
        cosines = {other: vectors[one] @ vectors[other] for other in range(64) if other != one}
        steps = {other: abs(one // 8 - other // 8) + abs(one % 8 - other % 8) for other in cosines}
        near = [cosines[other] for other in cosines if steps[other] == 1]
        far, mirror = [other for other in cosines if steps[other] > 1], 8 * (one // 8) + 7 - one % 8
        if of == "one place":
            far = [other for other in far if other == mirror]  # in the middle it is a neighbour
        gaps += [np.mean(near) - np.mean([cosines[other] for other in far])] if far else []
    assert len(gaps) == (64 if of == "neighbours" else 48)
    assert found.mean == pytest.approx(np.mean(gaps), abs=1e-4)


@pytest.mark.parametrize("of", ["row", "column"])
def test_a_line_is_compared_with_places_that_are_as_far_within_one_half(of):
    (found,) = evidence.differences({"kind": "positions", "of": of})
    vectors = load_pretrained("tiny-imagenet").tokens.position[0, 1:].detach().double().numpy()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    gaps = []
    for one in range(64):
        half = [n for n in range(64) if n % 8 // 4 == one % 8 // 4]
        down, across = (
            {n: abs(place(n) - place(one)) for n in half} for place in (lambda n: n // 8, lambda n: n % 8)
        )
        rest = {n: np.hypot(down[n], across[n]) for n in half if down[n] and across[n]}
        seen, at = {n: vectors[one] @ vectors[n] for n in half}, sorted({*rest.values()})
        means = [np.mean([seen[n] for n in rest if rest[n] == far]) for far in at]
        other, along = (down, across) if of == "row" else (across, down)
        line = [n for n in half if not other[n] and 1 < along[n] <= at[-1]]
        gaps.append(np.mean([seen[n] - np.interp(along[n], at, means) for n in line]))
    assert found.mean == pytest.approx(np.mean(gaps), abs=1e-4)


def leading(model):
    """The first 28 patterns of a model's filters, (28, C P P)."""
    rows = model.patch_embedding.as_convolution_weight().detach().flatten(1).double().numpy()
    return np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:28]


def kept(patterns):
    """How much of each patch of three photos the patterns redraw, in %."""
    found = []
    for name in PHOTOS:
        tiles = photo(64, name)[0].double().numpy().reshape(3, 8, 8, 8, 8).transpose(1, 3, 0, 2, 4)
        tiles = tiles.reshape(64, -1) - tiles.reshape(64, -1).mean(axis=0)
        lost = tiles - tiles @ patterns.T @ patterns
        found += (100 - 100 * (lost**2).sum(axis=1) / (tiles**2).sum(axis=1)).tolist()
    return np.mean(found)


def smoothness(patterns):
    """The correlation of neighbouring pixels, across and down, of all patterns."""
    tiles = patterns.reshape(-1, 3, 8, 8)
    pairs = [(one[:, :, 1:], one[:, :, :-1]) for one in tiles] + [(one[:, 1:], one[:, :-1]) for one in tiles]
    return np.mean([stats.pearsonr(a.ravel(), b.ravel()).statistic for a, b in pairs])


def test_components_are_compared_with_those_of_a_model_that_has_seen_nothing_and_with_a_half():
    trained = load_pretrained("tiny-imagenet")
    torch.manual_seed(0)
    ours, others = leading(trained), leading(VisionTransformer(trained.config))
    mean = {
        of: evidence.differences({"kind": "filters", "of": of})[0].mean
        for of in ("smooth", "untrained", "half")
    }
    assert mean["smooth"] == pytest.approx(smoothness(ours) - smoothness(others), abs=0.01)
    assert mean["untrained"] == pytest.approx(kept(ours) - kept(others), abs=0.05)
    assert mean["half"] == pytest.approx(kept(ours) - 50, abs=0.05)


def welch(some, others):
    """The difference of two means, and its interval by the formula of Welch and Satterthwaite."""
    parts = [np.var(values, ddof=1) / np.size(values) for values in (some, others)]
    freedom = sum(parts) ** 2 / sum(
        p**2 / (np.size(v) - 1) for p, v in zip(parts, (some, others), strict=True)
    )
    mean, margin = np.mean(some) - np.mean(others), stats.t.ppf(0.975, freedom) * np.sqrt(sum(parts))
    return mean, mean - margin, mean + margin


def test_error_falls_as_a_power_of_the_operations():
    rows = load_result("scaling")["rows"]
    x = np.log10([row["forward_flops"] for row in rows])
    y = np.log10([1 - row["validation_accuracy_mean"] for row in rows])
    slope = np.cov(x, y)[0, 1] / np.var(x, ddof=1)
    rest = y - y.mean() - slope * (x - x.mean())
    margin = stats.t.ppf(0.975, 3) * np.sqrt((rest**2).sum() / 3 / ((x - x.mean()) ** 2).sum())
    (found,) = evidence.differences({"kind": "fit", "result": "scaling"})
    assert (found.mean, found.low, found.high) == pytest.approx((-slope, -slope - margin, -slope + margin))


def test_heads_are_compared_over_heads_by_welch_and_one_by_one_by_their_error_over_photos():
    looked = load_result("inspection_tiny_imagenet")
    pixels, error = (np.array(looked["distance"]["trained"][key]) for key in ("pixels", "standard_error"))
    stem = load_result("inspection_stem")["on_the_way"]["16"]["pixels"][:4]
    wanted = {"depth": welch(pixels[4:], pixels[:4])}
    wanted["stem"] = welch(stem, looked["on_the_way"]["16"]["distance"][:4])
    uniform = 8 * np.mean([math.dist(divmod(a, 8), divmod(b, 8)) for a in range(64) for b in range(64)])
    values = list(zip(pixels[:3].ravel(), error[:3].ravel(), strict=True))
    for of, (far, spread), limit in (("wide", max(values), 0.9), ("local", min(values), 0.5)):
        gap = (far - limit * uniform) * (1 if of == "wide" else -1)
        wanted[of] = (gap, gap - 1.96 * spread, gap + 1.96 * spread)
    near = [
        np.sum(np.array(one) < 0.9 * uniform) for one in (looked["on_the_way"]["16"]["distance"][:4], stem)
    ]
    wanted["near"] = (near[0] - near[1],) * 3
    for of, numbers in wanted.items():
        (found,) = evidence.differences({"kind": "heads", "of": of})
        assert (found.mean, found.low, found.high) == pytest.approx(numbers), of


@pytest.mark.parametrize(
    ("low", "high", "above", "alike"),
    [
        (-0.9, 0.8, False, True),
        (0.1, 0.9, True, True),
        (-0.5, 2, False, False),
        (-2, 0.5, False, False),
        (0.1, 2, True, False),
        (-2, -0.1, False, False),
    ],
)
def test_what_is_said_to_be_alike_is_within_a_point_of_zero_and_all_else_above_it(low, high, above, alike):
    found = evidence.Difference("", (low + high) / 2, low, high)
    assert found.seen == above
    assert replace(found, alike=True).seen == alike


def test_evidence_of_an_unknown_kind_stops_the_build():
    with pytest.raises(ExtensionError, match="evidence of kind 'head'"):
        evidence.differences({"kind": "head", "of": "depth"})


def written(tmp_path, monkeypatch, **claim):
    file = tmp_path / "claims.toml"
    whole = {"says": "Deeper is better.", "where": "here", "why": "So it is."} | claim
    lines = [f"{key} = {json.dumps(value)}" for key, value in whole.items() if key != "evidence"]
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in claim.get("evidence", {}).items())
    lines += [f"evidence = [{{ {table} }}]"] if table else []
    file.write_text("[[claims]]\n" + "\n".join(lines), encoding="utf-8")
    assert tomllib.loads(file.read_text(encoding="utf-8"))
    monkeypatch.setattr(claims, "FILE", file)


def test_another_verdict_than_the_results_give_stops_the_build(tmp_path, monkeypatch):
    written(tmp_path, monkeypatch, verdict="holds here", evidence=STUDY)
    assert claims.read_claims()[0]["found"]
    written(tmp_path, monkeypatch, verdict="not seen here", evidence=STUDY)
    with pytest.raises(ExtensionError, match=r"'Deeper is better.'.*'not seen here'.*'holds here'"):
        claims.read_claims()


def test_a_verdict_without_evidence_or_without_a_reason_stops_the_build(tmp_path, monkeypatch):
    written(tmp_path, monkeypatch, verdict="holds here")
    with pytest.raises(ExtensionError, match="not run yet"):
        claims.read_claims()
    written(tmp_path, monkeypatch, verdict="not run yet", why="")
    with pytest.raises(ExtensionError, match="sentence why"):
        claims.read_claims()


def test_what_the_runs_leave_open_is_told_in_the_fold(tmp_path, monkeypatch):
    written(tmp_path, monkeypatch, verdict="holds here", evidence=STUDY, limits="One < three seeds.")
    page = BeautifulSoup(claims.claims_html(claims.read_claims()), "html.parser")
    assert page.details.summary.text == "What we ran, and what it leaves open"
    assert page.details.p.text == "One < three seeds."
    written(tmp_path, monkeypatch, verdict="holds here", evidence=STUDY)
    page = BeautifulSoup(claims.claims_html(claims.read_claims()), "html.parser")
    assert page.details.summary.text == "What we ran"


def test_the_fold_tells_the_accuracies_of_both_sides(tmp_path, monkeypatch):
    written(tmp_path, monkeypatch, verdict="holds here", evidence=STUDY | {"label": "2 < 1 layers"})
    page = BeautifulSoup(claims.claims_html(claims.read_claims()), "html.parser")
    means = {row.name: 100 * np.mean(row.values()) for row in read_rows(load_result("depth_width"))}
    both = " and ".join(f"{means[ROWS[side]]:.1f}" for side in ("better", "worse"))
    assert page.details("li")[-1].text == f"accuracies, the side first named first: 2 < 1 layers {both} %"


def test_a_task_that_does_not_count_is_left_out():
    line = {"kind": "study", "result": "transfer_adamw", "better": "Tiny-ImageNet's labels"}
    line |= {"worse": "from scratch", "but": "100 scans"}
    assert [found.label for found in evidence.differences(line)] == ["500 photos", "5,000 photos"]


def test_a_result_that_is_gone_stops_the_build(tmp_path, monkeypatch):
    written(tmp_path, monkeypatch, verdict="holds here", evidence=STUDY | {"result": "gone"})
    with pytest.raises(InputError, match="gone"):
        claims.read_claims()


def test_a_result_that_changes_changes_the_page(tmp_path, monkeypatch):
    written(tmp_path, monkeypatch, verdict="holds here", evidence=STUDY)
    before = claims.claims_html(claims.read_claims())
    rows = read_rows(load_result("depth_width"))
    better = [replace(run, measured={"validation_accuracy": 0.9}) for run in rows[1].runs]
    changed = [rows[0], replace(rows[1], runs=better), *rows[2:]]
    monkeypatch.setattr(evidence, "read_rows", lambda result: changed)
    assert claims.claims_html(claims.read_claims()) != before


@pytest.mark.built
def test_the_page_shows_every_claim_with_its_picture(built):
    page = BeautifulSoup((built / "book/claims.html").read_text(encoding="utf-8"), "html.parser")
    articles = page.select("article.claim")
    as_told = claims.read_claims()
    found = sorted(as_told, key=lambda claim: list(claims.VERDICTS).index(claim["verdict"]))
    assert [one.h3.get_text() for one in articles] == [claim["says"] for claim in found], "as it is sorted"
    told = sorted(articles, key=lambda one: int(one["style"].removeprefix("--told: ")))
    assert [one.h3.get_text() for one in told] == [claim["says"] for claim in as_told]
    for one, claim in zip(articles, found, strict=True):
        rows = one.select(".differences .row")
        numbers = [row.select("span")[-1].get_text().replace("\xa0", " ") for row in rows]
        assert [difference.words for difference in claim["found"]] == numbers[: len(claim["found"])]
