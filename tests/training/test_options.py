"""What the loop can do beyond the plain recipe: Muon, averages, patience, curriculum, accumulation."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from stopping import AtStep, Stop, without_time, without_validation
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.overrides import TorchFunctionMode

from vit_from_scratch import InputError, VisionTransformer, ViTConfig, build_model
from vit_from_scratch.data import Augmentation
from vit_from_scratch.model import StemConfig
from vit_from_scratch.training import (
    Callback,
    MaskedAutoencoder,
    TrainConfig,
    build_optimiser,
    evaluate,
    train,
)
from vit_from_scratch.training.loop import shrink, train_step
from vit_from_scratch.training.state import Engine, MovingAverage, TrainingState
from vit_lab import runs

WIDE = {
    "muon": {"optimiser": "muon", "learning_rate": 0.02},
    "average": {"average_decay": 0.9},
    "patience": {"patience": 2},
    "curriculum": {"curriculum": ((0.0, 4), (0.5, 8))},
    "accumulation": {"accumulation": 3},
    "mixup and cutmix": {"augmentation": Augmentation(mixup=0.2, cutmix=1.0, erase=0.3, crop=(0.6, 1.0))},
    "mixed at times": {"augmentation": Augmentation(cutmix=1.0, mix_probability=0.5), "mix_until": 0.6},
    "whole at the end": {"augmentation": Augmentation(crop=(0.5, 0.9), erase=0.3), "augment_until": 0.5},
}


@pytest.mark.parametrize("model", ["plain", "conv stem, local MLP, stochastic depth"])
@pytest.mark.parametrize("options", WIDE.values(), ids=WIDE)
def test_a_stopped_run_ends_with_the_weights_of_one_never_stopped(
    few_digits, short, tmp_path, options, model
):
    other = {"stem": StemConfig("conv", width=4), "mlp": "local", "stochastic_depth": 0.2}
    changes = {} if model == "plain" else other

    def build():
        torch.manual_seed(0)
        return VisionTransformer(
            ViTConfig(8, 4, 1, dim=16, depth=2, heads=2, mlp_dim=32, num_classes=10, dropout=0.1, **changes)
        )

    config = replace(short, **options)
    whole, resumed = build(), build()
    history = train(whole, few_digits, config)
    with pytest.raises(KeyboardInterrupt):
        runs.train(build(), few_digits, config, tmp_path, [Stop(2)])
    again = runs.train(resumed, few_digits, config, tmp_path)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name
    assert without_time(again) == without_time(history)


def test_muon_gets_the_matrices_of_the_blocks_and_adamw_the_rest(make_model):
    model = make_model()
    optimiser = build_optimiser(model, TrainConfig(optimiser="muon", learning_rate=0.02))
    muon, adamw = optimiser.optimisers
    names = {id(p): name for name, p in model.named_parameters()}
    with_muon = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    kinds = ("attention.qkv", "attention.projection", "mlp.hidden", "mlp.output")
    assert with_muon == {f"encoder.blocks.{i}.{kind}.weight" for i in (0, 1) for kind in kinds}
    with_adamw = [names[id(p)] for group in adamw.param_groups for p in group["params"]]
    assert sorted(with_adamw) == sorted(set(names.values()) - with_muon)


def test_muon_needs_blocks(few_digits):
    with pytest.raises(InputError, match=r"optimiser = 'muon': expected a model with matrices in blocks"):
        build_optimiser(torch.nn.Linear(2, 2), TrainConfig(optimiser="muon"))


def test_the_average_is_the_one_of_its_formula(make_model, few_digits, short):
    seen = []

    class Record(Callback):
        def on_step(self, state):
            seen.append(state.model.head.weight.detach().clone())

    model = make_model()
    train(model, few_digits, replace(short, average_decay=0.8), callbacks=[Record()])
    expected = seen[0]
    for weight in seen[1:]:
        expected = 0.8 * expected + 0.2 * weight
    assert torch.allclose(model.head.weight, expected, atol=1e-6)


def test_the_average_is_torchs_buffers_included():
    """Which sends a number to the device in every step, and a GPU waits for it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    ours = MovingAverage(model, 0.9)
    theirs = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    for _ in range(5):
        with torch.no_grad():
            model[0].weight.add_(torch.randn(4, 3))
        model(torch.randn(8, 3))
        ours.update_parameters(model)
        theirs.update_parameters(model)
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert list(ours) == list(theirs)
    count = "module.1.num_batches_tracked"
    assert ours.pop(count) == 5, "batches seen are counted, not averaged"
    theirs.pop(count)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_average_sends_nothing_to_the_models_device(make_model):
    sent = []

    class Noted(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            if func is torch.Tensor.to and found.device != args[0].device:
                sent.append(args[0])
            return found

    model = make_model().to("meta")
    average = MovingAverage(model, 0.9)
    average.update_parameters(model)  # the first one copies
    with Noted():
        average.update_parameters(model)
    assert sent == []
    assert average.n_averaged == 2


@pytest.mark.parametrize("patience", [0, 4])
def test_the_average_is_what_is_measured_and_kept(make_model, few_digits, short, patience):
    model = make_model()
    history = train(model, few_digits, replace(short, average_decay=0.9, patience=patience))
    losses = [epoch.validation_loss for epoch in history]
    found = evaluate(model, few_digits.validation_images, few_digits.validation_labels, few_digits.normalise)
    assert found.loss == pytest.approx(min(losses) if patience else losses[-1], rel=1e-6)


def by_heart(data):
    return replace(data, validation_images=data.train_images, validation_labels=data.train_labels)


def test_patience_stops_early_and_goes_back_to_the_best_epoch(make_model, few_digits, short):
    best = {}

    class Spoil(Callback):
        """Keep the second epoch's weights, then ruin the model so that validation cannot improve."""

        def on_epoch(self, state):
            if state.epoch == 2:
                best.update(copy.deepcopy(state.model.state_dict()))
                torch.nn.init.normal_(state.model.head.weight, std=30.0)

    model, patient = make_model(), replace(short, epochs=20, patience=3, learning_rate=1e-2)
    history = train(model, by_heart(few_digits), patient, callbacks=[Spoil()])
    losses = [epoch.validation_loss for epoch in history]
    assert losses.index(min(losses)) == 1
    assert len(history) == 5
    assert all(torch.equal(tensor, best[name]) for name, tensor in model.state_dict().items())


def test_a_resumed_run_goes_back_to_a_best_epoch_before_the_stop(make_model, few_digits, short, tmp_path):
    best, data, model = {}, by_heart(few_digits), make_model()

    class Keep(Callback):
        def on_epoch(self, state):
            best.update(copy.deepcopy(state.model.state_dict()))

    class Spoil(Callback):
        def on_start(self, state):
            torch.nn.init.normal_(state.model.head.weight, std=30.0)

    patient = replace(short, epochs=20, patience=3, learning_rate=1e-2)
    with pytest.raises(KeyboardInterrupt):
        runs.train(make_model(), data, patient, tmp_path, callbacks=[Keep(), Stop(2)])
    history = runs.train(model, data, patient, tmp_path, callbacks=[Spoil()])
    losses = [epoch.validation_loss for epoch in history]
    assert (losses.index(min(losses)), len(losses)) == (1, 5)
    assert all(torch.equal(values, best[name]) for name, values in model.state_dict().items())


def test_with_a_curriculum_patience_counts_in_its_last_stage(make_model, few_digits, short):
    class Spoil(Callback):
        def on_epoch(self, state):
            if state.epoch == 1:
                torch.nn.init.normal_(state.model.head.weight, std=30.0)

    growing = replace(short, epochs=20, patience=3, learning_rate=1e-6, curriculum=((0.0, 4), (0.5, 8)))
    history = train(make_model(), by_heart(few_digits), growing, callbacks=[Spoil()])
    losses = [epoch.validation_loss for epoch in history]
    assert losses.index(min(losses)) == 0, "nothing is better than before it was spoilt"
    assert len(history) == 10 + 3


def test_patience_without_validation_images_is_refused(make_model, few_digits, short):
    with pytest.raises(InputError, match=r"patience = 2: expected held-out images"):
        train(make_model(), without_validation(few_digits), replace(short, patience=2))


def test_accumulation_leaves_the_gradient_as_it_is(make_model, few_digits):
    gradients = []
    for pieces in (1, 3):
        model = make_model(dropout=0.0)
        torch.nn.init.normal_(model.head.weight)
        config = TrainConfig(batch_size=16, accumulation=pieces, clip_norm=0.0, label_smoothing=0.1)
        state = TrainingState(model, few_digits, config, build_optimiser(model, config))
        images = few_digits.normalise(few_digits.train_images[:16])
        logits = train_step(state, images, few_digits.train_labels[:16])
        assert logits.shape == (16, 10)
        gradients.append((torch.cat([p.grad.flatten() for p in model.parameters()]), state.loss))
    assert torch.allclose(gradients[0][0], gradients[1][0], atol=1e-6)
    assert torch.allclose(gradients[0][1], gradients[1][1], atol=1e-6)


def test_gradients_are_exchanged_with_the_last_piece_alone(make_model, few_digits):
    told = []

    class Heard(Engine):
        def gradients(self, model, last):
            told.append(last)
            return super().gradients(model, last)

    config = TrainConfig(batch_size=16, accumulation=3)
    state = Heard().start(make_model(), few_digits, config)
    images = few_digits.normalise(few_digits.train_images[:16])
    train_step(state, images, few_digits.train_labels[:16])
    assert told == [False, False, True]


def test_the_curriculum_feeds_small_images_first_and_full_ones_last(make_model, few_digits, short):
    sides = []

    class Watch(Callback):
        def on_step(self, state):
            sides.append(state.model.image_shape[0])

    model = make_model()
    train(model, few_digits, replace(short, curriculum=((0.0, 4), (0.5, 8))), callbacks=[Watch()])
    assert sides == [4] * 6 + [8] * 6
    assert model.image_shape == (8, 8)


def test_the_curriculums_images_are_shrunk_as_pillow_shrinks_them(make_model, few_digits, short):
    model, config = make_model(patch_size=2), replace(short, curriculum=((0.0, 6),))
    images = few_digits.test_images.float()
    state = TrainingState(model, few_digits, config, build_optimiser(model, config))
    for found, image in zip(shrink(state, images), images, strict=True):
        expected = Image.fromarray(image[0].numpy()).resize((6, 6), Image.Resampling.BILINEAR)
        assert np.allclose(found[0].numpy(), np.asarray(expected), atol=1e-3)
    smaller = replace(few_digits, config=replace(few_digits.config, image_size=6))
    assert torch.equal(smaller.at_size(images), shrink(state, images)), "so are those of a smaller size"


def test_an_interrupted_curriculum_leaves_the_model_at_full_size(make_model, few_digits, short):
    def pull_the_plug(state):
        raise KeyboardInterrupt

    model, growing = make_model(), replace(short, curriculum=((0.0, 4), (0.5, 8)))
    with pytest.raises(KeyboardInterrupt):
        train(model, few_digits, growing, callbacks=[AtStep(1, pull_the_plug)])
    assert model.image_shape == (8, 8)
    with pytest.raises(InputError, match="does not divide"):
        train(model, few_digits, replace(short, curriculum=((0.0, 4), (0.5, 5))))
    assert model.image_shape == (8, 8)


@pytest.mark.parametrize(
    ("curriculum", "message"),
    [
        (((0.5, 8),), "begin at 0"),
        (((0.0, 4), (1.0, 8)), "below 1"),
        (((0.0, 0),), "sides of 1 or more"),
        (((0.0, 5),), "does not divide"),
    ],
)
def test_a_curriculum_that_makes_no_sense_is_refused(make_model, few_digits, short, curriculum, message):
    with pytest.raises(InputError, match=message):
        train(make_model(), few_digits, replace(short, curriculum=curriculum))


def test_what_only_a_vit_can_do_is_refused_of_other_models_before_anything_is_written(
    few_digits, short, tmp_path
):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    with pytest.raises(InputError, match=r"train\.curriculum = .* was asked of a Sequential"):
        train(model, few_digits, replace(short, curriculum=((0.0, 4), (0.5, 8))))
    with pytest.raises(InputError, match="a run folder was asked of a Sequential"):
        runs.train(model, few_digits, short, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert len(train(model, few_digits, short)) == short.epochs


def one_batch(make_model, data, **options):
    """The state before the first step of a model whose logits are not 0, and four images."""
    model, config = make_model(dropout=0.0), TrainConfig(batch_size=4, **options)
    nn.init.normal_(model.head.weight)
    state = TrainingState(model, data, config, build_optimiser(model, config))
    return state, data.normalise(data.train_images[:4])


def test_soft_targets_are_learned_as_shares(make_model, few_digits):
    state, images = one_batch(make_model, few_digits)
    shares = torch.rand(4, 10).softmax(dim=1)
    logits = train_step(state, images, shares)
    expected = -(shares * logits.log_softmax(dim=1)).sum(dim=1).mean()
    assert state.loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_model_computes_in_the_type_that_is_asked_for(make_model, few_digits, precision):
    state, images = one_batch(make_model, few_digits, precision=precision)
    assert train_step(state, images, few_digits.train_labels[:4]).dtype == getattr(torch, precision)


def test_without_a_compiler_a_model_is_trained_as_it_is(make_model, few_digits, short, monkeypatch, capsys):
    plain, asked = make_model(dropout=0.0), make_model(dropout=0.0)
    expected = [epoch.train_loss for epoch in train(plain, few_digits, short)]
    monkeypatch.setattr(torch, "compile", None)  # not even tried
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setenv("CXX", "c++-of-nobody")
    found = train(asked, few_digits, replace(short, compile=True))
    assert [epoch.train_loss for epoch in found] == expected
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("train.compile")]
    assert said == [
        "train.compile = true: no C++ compiler (c++-of-nobody) was found, so the model is trained "
        "as it is. Install one to have it compiled."
    ]


@pytest.mark.slow
def test_a_compiled_model_learns_what_the_plain_one_learns(make_model, few_digits, short):
    plain, compiled = make_model(dropout=0.0), make_model(dropout=0.0)
    first = train(plain, few_digits, short)
    second = train(compiled, few_digits, replace(short, compile=True))
    assert [e.train_loss for e in second] == pytest.approx([e.train_loss for e in first], rel=1e-3)


def test_images_are_mixed_until_a_share_of_the_run(few_digits, short, make_model, monkeypatch):
    kinds = []

    def noted(state, images, targets):
        kinds.append(targets.ndim)
        return train_step(state, images, targets)

    monkeypatch.setattr("vit_from_scratch.training.loop.train_step", noted)
    config = replace(short, augmentation=Augmentation(mixup=0.5), mix_until=0.6)
    train(make_model(), few_digits, config)
    mixed = sum(step / len(kinds) < 0.6 for step in range(len(kinds)))
    assert 0 < mixed < len(kinds)
    assert kinds == [2] * mixed + [1] * (len(kinds) - mixed), "shares of classes first, then numbers"


def test_the_last_epochs_show_whole_images(few_digits, short, make_model):
    kinds = []

    class Noting(type(few_digits)):
        def training_batches(self, batch_size, augmentation, seed, workers=0):
            kinds.append(augmentation)
            return super().training_batches(batch_size, augmentation, seed, workers)

    data = Noting(**vars(few_digits))
    changes = Augmentation(shift=1, crop=(0.5, 0.9), erase=0.3)
    train(make_model(), data, replace(short, epochs=4, augmentation=changes, augment_until=0.5))
    assert kinds == [changes, changes, Augmentation(shift=1), Augmentation(shift=1)]


def test_each_layer_below_gets_a_share_of_the_rate_above():
    model = build_model("Ti/4", image_size=8, num_classes=3, depth=3)
    config = TrainConfig(optimiser="adamw", learning_rate=0.1, layer_decay=0.5, weight_decay=0.2)
    rates = {
        parameter: (group["base_lr"], group["weight_decay"])
        for group in build_optimiser(model, config).param_groups
        for parameter in group["params"]
    }
    expected = {
        "tokens.position": (0.1 / 16, 0.0),
        "patch_embedding.projection.weight": (0.1 / 16, 0.2),
        "encoder.blocks.0.mlp.hidden.weight": (0.1 / 8, 0.2),
        "encoder.blocks.2.attention.qkv.bias": (0.1 / 2, 0.0),
        "head.weight": (0.1, 0.2),
    }
    named = dict(model.named_parameters())
    assert len(rates) == len(named)
    assert {name: rates[named[name]] for name in expected} == {
        name: pytest.approx(both) for name, both in expected.items()
    }


def test_of_a_self_supervised_model_all_but_the_vit_has_the_whole_rate():
    model = MaskedAutoencoder(build_model("Ti/4", image_size=8, num_classes=3, depth=2))
    config = TrainConfig(optimiser="adamw", learning_rate=0.1, layer_decay=0.5)
    rates = {p: group["lr"] for group in build_optimiser(model, config).param_groups for p in group["params"]}
    ours = set(model.vit.parameters())
    assert {rate for parameter, rate in rates.items() if parameter not in ours} == {0.1}
    assert rates[model.vit.tokens.position] == 0.1 / 8
    assert rates[model.vit.patch_embedding.projection.weight] == 0.1 / 8


def test_a_hybrids_layers_are_its_blocks_and_not_its_stages():
    stem = {"kind": "resnet", "width": 8, "layers": (1, 1, 1), "root_stride": 1}
    model = build_model("Ti/4", image_size=8, num_classes=3, depth=2, stem=stem)
    config = TrainConfig(optimiser="adamw", learning_rate=0.1, layer_decay=0.5)
    rates = {
        parameter: group["lr"]
        for group in build_optimiser(model, config).param_groups
        for parameter in group["params"]
    }
    assert {rates[one] for one in model.patch_embedding.parameters()} == {0.1 / 8}
    assert {rates[one] for one in model.encoder.blocks[1].parameters()} == {0.1 / 2}
    assert rates[model.head.weight] == 0.1


def test_the_rate_that_is_logged_is_the_whole_one(make_model, few_digits, short):
    changes = {"optimiser": "adamw", "learning_rate": 0.01, "warmup_steps": 0, "schedule": "linear"}
    config = replace(short, **changes)
    plain, by_layer = (
        [epoch.learning_rate for epoch in train(make_model(), few_digits, replace(config, layer_decay=share))]
        for share in (1.0, 0.5)
    )
    assert by_layer == pytest.approx(plain)
    assert 0 < plain[-1] < plain[0] < 0.01


def test_a_share_by_layer_wants_blocks_and_another_optimiser_than_muon():
    with pytest.raises(InputError, match=r"layer_decay = 0.5 for a Linear: expected a model with blocks"):
        build_optimiser(torch.nn.Linear(2, 2), TrainConfig(layer_decay=0.5))
    with pytest.raises(InputError, match=r"layer_decay = 0.5: expected 1 with optimiser = .muon."):
        TrainConfig(optimiser="muon", layer_decay=0.5)
