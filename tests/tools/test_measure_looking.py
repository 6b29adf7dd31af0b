"""Moments of several runs are counted from the beginning of the first, and heads are held against chance."""

import json

import measure_looking
import numpy as np
import pytest
import torch
from measure_looking import (
    centre_scores,
    distances,
    fold,
    masked_hits,
    masking,
    measure_stem,
    moments_of,
    object_masks,
    on_object,
    tokens_on_the_way,
    weights_alone,
)
from scipy import stats
from scipy.spatial.distance import pdist

from vit_from_scratch import InputError
from vit_from_scratch.inspection import attention_distances, class_token_maps, layer_attention, layer_tokens
from vit_from_scratch.inspection.masking import rollout_scores
from vit_from_scratch.model.checkpoints import save_checkpoint


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """A function that makes the folder of a run of so many epochs, which kept some of them."""
    monkeypatch.setattr(
        measure_looking, "read_result", lambda run: json.loads((run / "result.json").read_text("utf-8"))
    )

    def make(name, epochs, kept):
        run = tmp_path / name
        (run / "epochs").mkdir(parents=True)
        for epoch in kept:
            (run / "epochs" / f"epoch-{epoch:04}.safetensors").touch()
        (run / "result.json").write_text(json.dumps({"epochs": epochs}), encoding="utf-8")
        return run

    return make


def test_a_run_goes_on_where_the_one_before_ended(make_run):
    first, second = make_run("a", 16, [0, 1, 8]), make_run("b", 7, [0, 2])
    assert moments_of([first, second], 0) == {
        0: first / "epochs" / "epoch-0000.safetensors",
        1: first / "epochs" / "epoch-0001.safetensors",
        8: first / "epochs" / "epoch-0008.safetensors",
        16: first / "model.safetensors",
        18: second / "epochs" / "epoch-0002.safetensors",
        23: second / "model.safetensors",
    }


def test_runs_go_on_from_those_that_were_measured_before(make_run):
    runs = [make_run("b", 7, [0, 2]), make_run("c", 5, [4])]
    assert list(moments_of(runs, 16)) == [18, 23, 27, 28]


def test_the_first_run_must_have_kept_the_model_before_training(make_run):
    with pytest.raises(InputError, match=r"kept no model before training: expected vit train --keep-epochs"):
        moments_of([make_run("a", 16, [2])], 0)


def test_a_run_with_a_stem_is_measured_at_its_moments_on_a_quarter_of_the_photos(
    make_run, make_model, monkeypatch
):
    images = torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(measure_looking, "open_photos", lambda data_dir: (None, images, torch.zeros(8)))
    run = make_run("stem", 1, [0])
    models = {str(seed): make_model(seed=seed, stem={"kind": "conv", "width": 4}).eval() for seed in (0, 1)}
    save_checkpoint(run / "epochs" / "epoch-0000.safetensors", models["0"])
    save_checkpoint(run / "model.safetensors", models["1"])
    found = measure_stem(run, None, 8)
    assert found["images"] == 2
    assert list(found["on_the_way"]) == ["0", "1"]
    for epoch, model in models.items():
        with torch.no_grad():
            wanted = attention_distances(model, images[:2]).mean(dim=1)  # (L, h)
        assert found["on_the_way"][epoch]["pixels"] == pytest.approx(wanted.numpy(), abs=1e-5)


def test_the_best_head_is_chosen_on_half_of_the_photos_and_compared_on_the_rest(make_model):
    """With one box for all photos, its lead over another photo's map is the difference of the two shares."""
    model, untrained = make_model().eval(), make_model(seed=1).eval()
    images = torch.randn(8, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    masks = torch.zeros(8, 8, 8)
    masks[:, :4, :4] = 1  # the first of 2 x 2 patches
    found = on_object(model, untrained, images, masks)
    with torch.no_grad():
        maps = class_token_maps(layer_attention(model, images), model.config.grid)  # (L, N, h, gh, gw)
    shares = maps[..., 0, 0] / maps.sum(dim=(-2, -1))  # of what the patches get
    inside = shares.transpose(1, 2).flatten(0, 1)  # (L h, N)
    best = inside[:, ::2].mean(dim=1).argmax().item()
    assert found["best_head"]["index"] == best
    ahead = inside[best] - inside[best].roll(1)
    for part, photos in (("less_where_chosen", ahead[::2]), ("less_elsewhere", ahead[1::2])):
        mean, low, high = found["best_head"][part]["another photo's map"]
        assert mean == pytest.approx(photos.mean().item(), abs=1e-6)
        half = 1.96 * photos.std().item() / len(photos) ** 0.5
        assert (high - low) / 2 == pytest.approx(half, rel=1e-3)
    away = (images - images.mean(dim=(2, 3), keepdim=True)).abs()  # contrast needs no model
    contrast = away[:, :, :4, :4].sum(dim=(1, 2, 3)) / away.sum(dim=(1, 2, 3))
    rollout, before = (
        scores[:, 0, 0] / scores.sum(dim=(1, 2))
        for scores in (rollout_scores(one, images).detach() for one in (model, untrained))
    )
    less = {name: mean for name, (mean, _, _) in found["rollout_less"].items()}
    assert "rollout" not in less
    assert less["before training"] == pytest.approx((rollout - before).mean().item(), abs=1e-6)
    assert less["another photo's map"] == pytest.approx((rollout - rollout.roll(1)).mean().item(), abs=1e-6)
    assert less["the same everywhere"] == pytest.approx(rollout.mean().item() - 1 / 4, abs=1e-6)
    lead = [mean for mean, _, _ in found["head_less"]["contrast"]]
    assert lead == pytest.approx((inside - contrast).mean(dim=1).tolist(), abs=1e-5)


def test_what_hiding_costs_is_compared_with_the_best_head_too(make_model, monkeypatch):
    monkeypatch.setattr(measure_looking, "HIDDEN", [1, 2])
    model = make_model().eval()
    torch.nn.init.normal_(model.head.weight)
    images, labels = torch.randn(40, 1, 8, 8), torch.arange(40) % 10
    found = masking(model, images, labels, (1, 0))
    assert "best head, another photo's" in found["accuracy"]
    for reference in ("most attended", "best head"):
        less = found[f"less_{reference.replace(' ', '_')}"]
        assert reference not in less
        for name, rows in less.items():
            means = [row[0] for row in found["accuracy"][name]]
            own = [row[0] for row in found["accuracy"][reference]]
            wanted = [mean - base for mean, base in zip(means, own, strict=True)]
            assert [row[0] for row in rows] == pytest.approx(wanted, abs=1e-6)


def test_patches_are_hidden_in_the_order_that_each_way_is_called_after(make_model, monkeypatch):
    ways = []

    def noted(model, images, labels, score, counts):
        ways.append(score(images))
        return torch.ones(len(counts), len(images))

    monkeypatch.setattr(measure_looking, "masked_hits", noted)
    model, images = make_model().eval(), torch.randn(4, 1, 8, 8)
    names = list(masking(model, images, torch.arange(4), (1, 0))["accuracy"])
    scores = dict(zip(names, ways[1:], strict=True))
    assert torch.equal(scores["least attended"], -scores["most attended"])
    assert torch.equal(scores["best head"], class_token_maps(layer_attention(model, images), (2, 2))[1, :, 0])
    assert torch.equal(scores["the middle"], centre_scores(images, (2, 2)))


def test_photos_are_those_of_the_test_part(monkeypatch):
    asked = []

    class Photos:
        def batches(self, part):
            asked.append(part)
            yield torch.zeros(1, 3, 8, 8), torch.zeros(1)

    monkeypatch.setattr(measure_looking, "open_dataset", lambda config, folder: Photos())
    measure_looking.open_photos(None)
    assert asked == ["test"]


def test_the_middle_is_scored_highest_and_both_sides_alike():
    centre = centre_scores(torch.zeros(4, 3, 8, 8), (3, 5))
    assert centre.shape == (4, 3, 5)
    assert (centre.flatten(1).argmax(dim=1) == 7).all()
    assert torch.equal(centre, centre.flip(1, 2))
    assert centre_scores(torch.zeros(4, 3, 8, 8), (1, 1)).shape == (4, 1, 1)


def test_hits_are_found_for_every_number_of_hidden_patches(make_model):
    model, images = make_model().eval(), torch.randn(7, 1, 8, 8)
    torch.nn.init.normal_(model.head.weight)
    labels = model(images).argmax(dim=1)
    found = masked_hits(model.train(), images, labels, lambda some: centre_scores(some, (2, 2)), [0, 4])
    assert model.training
    model.eval()
    assert found[0].all()
    blank = images.mean(dim=(2, 3), keepdim=True).expand_as(images)
    assert torch.equal(found[1], model(blank).argmax(dim=1) == labels)


def test_the_box_of_each_object_is_a_mask_with_both_ends_inside(tmp_path):
    (tmp_path / "tiny-imagenet-200/val").mkdir(parents=True)
    lines = "val_0.JPEG\tn01\t0\t0\t9\t9\nval_1.JPEG\tn02\t5\t60\t7\t63\n"
    (tmp_path / "tiny-imagenet-200/val/val_annotations.txt").write_text(lines)
    first, second = object_masks(tmp_path)
    assert first.shape == (64, 64)
    assert first[:10, :10].all()
    assert first.sum() == 100
    rows, columns = second.nonzero().T.tolist()
    assert rows == [60] * 3 + [61] * 3 + [62] * 3 + [63] * 3
    assert set(columns) == {5, 6, 7}


@pytest.fixture
def looked_at(small_model):
    """Six images for the small model, whose grid has 3 rows and 4 columns."""
    return torch.randn(6, 3, 12, 16)


def test_a_heads_error_and_the_patches_that_it_attends_to_are_scipys(small_model, looked_at, monkeypatch):
    monkeypatch.setattr(measure_looking, "BATCH", 4)
    found = distances(small_model, looked_at)
    with torch.no_grad():
        pixels = attention_distances(small_model, looked_at).numpy()  # (L, N, h)
        weights = torch.stack(layer_attention(small_model, looked_at))[..., 1:, 1:].double().numpy()
    assert np.allclose(found["pixels"], pixels.mean(axis=1))
    assert np.allclose(found["standard_error"], stats.sem(pixels, axis=1))
    attended = np.exp(stats.entropy(weights, axis=-1)).mean(axis=(1, 3))  # it lets rows sum to 1
    assert np.allclose(found["attended"], attended, atol=1e-4)


def test_tokens_on_the_way_are_compared_pair_by_pair(small_model, looked_at):
    found = tokens_on_the_way(small_model, looked_at[:3])
    for layer, tokens in enumerate(layer_tokens(small_model, looked_at[:3])):
        flat = tokens.flatten(1, 2).double().numpy()  # (B, N, D)
        norms = np.linalg.norm(flat, axis=-1)
        middle = np.median(np.quantile(norms, 0.5, axis=1, method="lower"))
        alike = np.mean([1 - pdist(one, "cosine") for one in flat])
        assert found["median_norm"][layer] == pytest.approx(middle, rel=1e-5)
        assert found["largest_norm"][layer] == pytest.approx(norms.max(), rel=1e-5)
        assert found["mean_cosine"][layer] == pytest.approx(alike, abs=1e-5)


def test_answers_with_moved_positions_are_those_of_the_table_written_out_anew(small_model, looked_at):
    small_model.head.bias.data -= small_model(looked_at).detach().mean(dim=0)  # some answers change
    own = small_model(looked_at)
    labels = own.argmax(dim=1)
    found = fold(small_model, looked_at, labels)
    table = small_model.tokens.position.detach().clone()
    sources = {
        "learned": range(12),
        "mirrored left-right": [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8],
        "mirrored top-bottom": [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3],
        "none": [None] * 12,
    }
    for name, places in sources.items():
        for patch, source in enumerate(places):
            small_model.tokens.position.data[0, 1 + patch] = 0 if source is None else table[0, 1 + source]
        logits = small_model(looked_at)
        hits = (logits.argmax(dim=1) == labels).double()
        assert found[name]["accuracy"][0] == pytest.approx(hits.mean().item())
        assert found[name]["less_learned"][0] == pytest.approx(hits.mean().item() - 1)
        assert found[name]["logit_change"] == pytest.approx((logits - own).abs().mean().item(), abs=1e-5)


def test_positions_are_compared_with_their_mirror_images_and_their_distances_pair_by_pair(small_model):
    found = weights_alone(small_model)
    table = small_model.tokens.position[0, 1:].detach().double().numpy()
    cosine = table @ table.T / np.outer(*[np.linalg.norm(table, axis=1)] * 2)
    places = [divmod(patch, 4) for patch in range(12)]
    mirrors = {
        "left-right": [4 * r + 3 - c for r, c in places],
        "top-bottom": [4 * (2 - r) + c for r, c in places],
    }
    for name, mirror in mirrors.items():
        assert found["mirror_similarity"][name] == pytest.approx(cosine[range(12), mirror].mean(), abs=1e-6)
    upper = np.triu_indices(12, 1)
    assert found["position_correlation"] == pytest.approx(
        stats.pearsonr(pdist(places), cosine[upper]).statistic, abs=1e-5
    )
