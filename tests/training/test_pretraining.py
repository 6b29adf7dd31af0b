"""Training without labels runs in the same loop: it resumes to the bit and leaves a ViT to be fine-tuned."""

import json
import os
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from stopping import Never, Stop, content, weights, without_time
from torch import nn

from vit_from_scratch import InputError
from vit_from_scratch.data import Augmentation
from vit_from_scratch.data.normalisation import NORMALISATIONS
from vit_from_scratch.model.checkpoints import load_checkpoint, read_safetensors, save_checkpoint
from vit_from_scratch.training import (
    Callback,
    StepLog,
    TrainConfig,
    build_optimiser,
    evaluate_hidden,
    load_pretraining,
    save_pretraining,
    train,
)
from vit_from_scratch.training.loop import train_step
from vit_from_scratch.training.state import TrainingState
from vit_lab import runs
from vit_lab.runs.metrics import read_metrics

OBJECTIVES = ["masked-patches", "masked-pixels"]
PARTS = ("train", "validation", "test")
SHORT = TrainConfig(
    epochs=4, batch_size=16, warmup_steps=2, learning_rate=5e-3, augmentation=Augmentation(flip=True, shift=1)
)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("changes", [{}, {"optimiser": "muon", "average_decay": 0.5, "patience": 4}])
def test_a_stopped_run_ends_with_the_weights_of_one_never_stopped(
    make_task, colours, tmp_path, objective, changes
):
    config = replace(SHORT, **changes)
    whole, resumed = make_task(objective), make_task(objective, seed=9)
    history = train(whole, colours, config)
    with pytest.raises(KeyboardInterrupt):
        runs.train(make_task(objective), colours, config, tmp_path, [Stop(2)])
    torch.manual_seed(3)  # what else draws random numbers does not matter
    again = runs.train(resumed, colours, config, tmp_path)
    assert torch.equal(weights(resumed), weights(whole))
    assert without_time(again) == without_time(history)
    assert read_metrics(tmp_path) == again


def of_one_colour_each(images: torch.Tensor) -> torch.Tensor:
    """Paint each image (B, 3, H, W) in one of eight colours all over."""
    return (images.float().mean(dim=(2, 3), keepdim=True) // 128 * 128 + 64).byte().expand_as(images)


def test_hidden_colours_are_learned_from_the_patches_that_are_left(make_task, colours):
    """All patches of an image have one colour: who reads the others knows it, who guesses does not."""
    parts = {f"{part}_images": of_one_colour_each(getattr(colours, f"{part}_images")) for part in PARTS}
    flat, model = replace(colours, **parts), make_task(dropout=0.0)
    history = train(model, flat, replace(SHORT, epochs=40, augmentation=Augmentation(flip=True)))
    targets = model.targets(flat.normalise(flat.validation_images))[:, 0]
    guess = targets.bincount().max() / len(targets)
    assert guess < 0.5
    assert history[0].validation_accuracy < 0.5
    assert history[-1].validation_accuracy > 0.9
    assert history[-1].train_accuracy > 0.9


def test_hidden_pixels_are_learned_from_the_patches_that_are_left(make_task, colours):
    model = make_task("masked-pixels", dropout=0.0)
    history = train(model, colours, replace(SHORT, epochs=20, learning_rate=1e-2))
    assert history[0].validation_loss > 1
    assert history[-1].validation_loss < 0.9, "better than one tone a patch"
    assert {(epoch.train_accuracy, epoch.validation_accuracy) for epoch in history} == {(None, None)}


def test_the_training_accuracy_is_the_share_of_colours_named_correctly(make_task, colours):
    """A model that stands still and always says one colour is right as often as that colour is there."""
    model = make_task(dropout=0.0)
    nn.init.zeros_(model.head.weight)
    nn.init.zeros_(model.head.bias)
    flat = replace(colours, train_images=torch.full_like(colours.train_images, 10))  # colour 0
    flat.train_images[:40] = 200
    still = TrainConfig(epochs=1, batch_size=80, learning_rate=1e-30, warmup_steps=0)
    assert train(model, flat, still)[0].train_accuracy == pytest.approx(0.5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_same_patches_of_held_out_images_are_hidden_after_every_epoch(make_task, colours, objective):
    history = train(make_task(objective), colours, replace(SHORT, learning_rate=1e-30, weight_decay=0.0))
    assert len({epoch.validation_loss for epoch in history}) == 1
    assert len({epoch.train_loss for epoch in history}) == 4, "in training others each time"


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_measuring_averages_over_images_and_leaves_the_mode(make_task, colours, objective):
    model = make_task(objective).train()
    images = colours.normalise(colours.train_images)
    pieces = [(images[:7], None), (images[7:10], None)]
    found = evaluate_hidden(model, pieces)
    assert model.training
    model.eval()
    generator = torch.Generator().manual_seed(0)
    outcomes = [model(some, generator) for some, _ in pieces]
    losses = torch.cat([outcome.loss for outcome in outcomes])
    assert (found.images, found.loss) == (10, pytest.approx(losses.mean().item()))
    if found.accuracy is not None:
        right = torch.cat([outcome.right for outcome in outcomes])
        assert found.accuracy == pytest.approx(right.mean().item())
    assert (found.accuracy is None) == (objective == "masked-pixels")
    with pytest.raises(InputError, match="no images to measure on"):
        evaluate_hidden(model, [])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_accumulation_weighs_pieces_by_their_images(make_task, colours, objective):
    """Sixteen images in pieces of 6, 5 and 5: the loss is the mean over all of them."""
    config = TrainConfig(batch_size=16, accumulation=3)
    model = make_task(objective, dropout=0.0)
    state = TrainingState(model, colours, config, build_optimiser(model, config))
    images = colours.normalise(colours.train_images[:16])
    torch.manual_seed(4)
    with torch.no_grad():
        losses = torch.cat([model(piece).loss for piece in images.tensor_split(3)])
    torch.manual_seed(4)
    outcome = train_step(state, images, colours.train_labels[:16])
    assert torch.allclose(outcome.loss, losses)
    assert state.loss.item() == pytest.approx(losses.mean().item(), rel=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_curriculum_trains_on_small_images_first(make_task, colours, objective):
    sides = []

    class Watch(Callback):
        def on_step(self, state):
            sides.append(state.model.vit.image_shape[0])

    config = replace(SHORT, curriculum=((0.0, 8), (0.5, 16)))
    train(make_task(objective), colours, config, callbacks=[Watch(), StepLog()])
    assert sides == [8] * 10 + [16] * 10
    small = replace(SHORT, curriculum=((0.0, 4), (0.5, 16)))
    with pytest.raises(InputError, match=r"of 1 patches: expected some to be hidden and some to be left"):
        train(make_task(objective), colours, small)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bfloat16_trains(make_task, colours, objective):
    history = train(make_task(objective), colours, replace(SHORT, epochs=6, precision="bfloat16"))
    assert history[-1].validation_loss < history[0].validation_loss


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label_smoothing": 0.1}, r"train\.label_smoothing = 0\.1 with objective = 'masked-p"),
        ({"augmentation": Augmentation(mixup=0.5)}, r"train\.augmentation\.mixup = 0\.5 .*none is read"),
        ({"augmentation": Augmentation(cutmix=1.0)}, r"train\.augmentation\.cutmix = 1\.0 .*expected 0"),
    ],
)
def test_what_changes_labels_is_refused_before_anything_is_written(
    make_task, colours, tmp_path, objective, changes, message
):
    with pytest.raises(InputError, match=message):
        runs.train(make_task(objective), colours, replace(SHORT, **changes), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_images_that_are_scaled_otherwise_or_of_another_size_are_refused(make_task, colours):
    other = replace(colours, normalise=NORMALISATIONS["imagenet"])
    with pytest.raises(InputError, match=r"images scaled by Normalisation.*build it with data\.normalise"):
        train(make_task(), other, SHORT)
    with pytest.raises(InputError, match=r"model\.image_size = \(32, 32\): expected \(16, 16\)"):
        train(make_task(image_size=32), colours, SHORT)


@pytest.fixture(params=OBJECTIVES)
def finished(request, make_task, colours, tmp_path):
    """A finished run: its folder and what was trained."""
    model = make_task(request.param)
    runs.train(model, colours, replace(SHORT, epochs=1), tmp_path / "run")
    return tmp_path / "run", model.eval()


def test_a_folder_holds_the_vit_alone_and_the_whole_module_beside_it(finished, colours):
    folder, model = finished
    names = ["config.toml", "curves.png", "metrics.jsonl", "model.safetensors", "pretraining.safetensors"]
    assert sorted(os.listdir(folder)) == names
    assert f'objective = "{model.objective}"' in (folder / "config.toml").read_text()
    vit = load_checkpoint(folder / "model.safetensors")
    before = torch.get_rng_state()
    whole = load_pretraining(folder / "pretraining.safetensors")
    assert torch.equal(torch.get_rng_state(), before), "nothing is drawn"
    assert torch.equal(weights(vit), weights(model.vit))
    assert torch.equal(weights(whole), weights(model))
    assert (type(whole), whole.settings, whole.normalise) == (type(model), model.settings, model.normalise)
    assert not whole.training
    assert not vit.head.weight.any(), "the head was never asked"
    images = colours.normalise(colours.test_images)
    assert torch.equal(*(m(images, torch.Generator().manual_seed(1)).loss for m in (model, whole)))


def test_a_finished_run_is_loaded_and_not_trained_again(finished, make_task, colours):
    folder, model = finished
    before = content(folder)
    again = make_task(model.objective, seed=5)
    runs.train(again, colours, replace(SHORT, epochs=1), folder, [Never()])
    assert torch.equal(weights(again), weights(model))
    assert content(folder) == before


def test_another_objective_is_another_run(finished, make_task, colours):
    folder, model = finished
    other = next(name for name in OBJECTIVES if name != model.objective)
    with pytest.raises(InputError, match=rf"objective \({model.objective} there, {other} now\)"):
        runs.train(make_task(other), colours, replace(SHORT, epochs=1), folder)
    with pytest.raises(InputError, match=rf"objective \({model.objective} there, classes now\)"):
        runs.train(make_task(other).vit, colours, replace(SHORT, epochs=1), folder)


@pytest.mark.parametrize("damage", ["gone", "another"])
def test_a_finished_run_without_its_whole_module_is_refused(finished, make_task, colours, damage):
    folder, model = finished
    path = folder / "pretraining.safetensors"
    path.unlink()
    if damage == "another":
        save_pretraining(path, make_task(model.objective, seed=7))
    message = "no pre-training at" if damage == "gone" else "is not of the run of model.safetensors"
    with pytest.raises(InputError, match=message):
        runs.train(make_task(model.objective), colours, replace(SHORT, epochs=1), folder)


def settings(**changes) -> dict:
    small = {"share": 0.75, "decoder_dim": 8, "decoder_depth": 1, "decoder_heads": 2}
    return {"settings": small | changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (None, "has wrong settings"),
        ([], "has wrong settings"),
        ({"objective": "masked-words"}, "has wrong settings"),
        ({"settings": []}, "has wrong settings"),
        ({"normalise": {"mean": "a"}}, "has wrong settings"),
        (settings(share=2.0), "expected a share between 0 and 1"),
        (settings(width=2), "has wrong settings .*width"),
        (settings(decoder_dim="8"), "has wrong settings"),
        (settings(decoder_depth=90), "does not fit its own settings"),
        (settings(decoder_dim=2**16), "does not fit its own settings"),
        ({"vit_config": {}}, "does not fit its own settings"),
        ({"vit_config": {"heds": 3}}, "has a wrong ViT configuration: unknown option"),
    ],
)
def test_a_damaged_file_is_one_clear_error_and_takes_no_memory(make_task, tmp_path, changes, message):
    path = tmp_path / "pretraining.safetensors"
    save_pretraining(path, make_task("masked-pixels"))
    tensors, metadata = read_safetensors(path, "")
    about = json.loads(metadata["pretraining"])
    about = about | changes if isinstance(changes, dict) else changes
    save_file(tensors, path, {"pretraining": json.dumps(about)})
    with pytest.raises(InputError, match=message) as error:
        load_pretraining(path)
    assert str(error.value).startswith(str(path))


def test_other_files_are_refused(make_task, tmp_path):
    with pytest.raises(InputError, match=r"no pre-training at .*nowhere: expected a pretraining"):
        load_pretraining(tmp_path / "nowhere")
    save_checkpoint(tmp_path / "vit.safetensors", make_task().vit)
    message = "holds no pre-training: expected a file that save_pretraining wrote"
    with pytest.raises(InputError, match=message):
        load_pretraining(tmp_path / "vit.safetensors")
    (tmp_path / "text").write_text("?")
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        load_pretraining(tmp_path / "text")


def test_a_place_where_nothing_can_be_written_is_one_sentence(make_task, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"cannot write .*Expected a folder"):
        save_pretraining(tmp_path / "file" / "model.safetensors", make_task("masked-patches"))
