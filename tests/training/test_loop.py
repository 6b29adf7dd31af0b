import contextlib
import copy
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from stopping import AtStep, weights, without_validation
from torch.utils.data import DataLoader, TensorDataset

from vit_from_scratch import InputError
from vit_from_scratch.data import Augmentation
from vit_from_scratch.data.normalisation import NORMALISATIONS
from vit_from_scratch.errors import DivergedError
from vit_from_scratch.training import Callback, StepLog, TrainConfig, evaluate, loop, predict, train
from vit_from_scratch.training.callbacks import StepMetrics
from vit_from_scratch.training.loop import train_step
from vit_from_scratch.training.optimisers import build_optimiser
from vit_from_scratch.training.self_supervised import share_right
from vit_from_scratch.training.state import TrainingState
from vit_lab import runs
from vit_lab.runs import progress_bar
from vit_lab.runs.progress_bar import ProgressBar


def test_a_vit_learns_fifty_digits_by_heart(make_model, few_digits):
    model = make_model(dropout=0.0)
    config = TrainConfig(epochs=80, batch_size=25, learning_rate=5e-3, warmup_steps=5)
    history = train(model, few_digits, config)
    found = evaluate(model, few_digits.train_images, few_digits.train_labels, few_digits.normalise)
    assert found.accuracy == 1
    assert history[0].train_loss > 2
    assert history[-1].train_loss < 0.1


def test_an_untrained_vit_has_the_loss_of_a_guess(make_model, few_digits):
    measured = evaluate(make_model(), few_digits.test_images, few_digits.test_labels, few_digits.normalise)
    assert measured.loss == pytest.approx(torch.tensor(10.0).log().item())


@pytest.mark.parametrize("validation", [True, False])
def test_history_has_an_entry_an_epoch(make_model, few_digits, short, validation):
    history = train(make_model(), few_digits if validation else without_validation(few_digits), short)
    assert [metrics.epoch for metrics in history] == [1, 2, 3, 4]
    assert [metrics.step for metrics in history] == [3, 6, 9, 12]  # 50 images make 3 whole batches of 16
    assert {metrics.validation_accuracy is not None for metrics in history} == {validation}
    assert {metrics.validation_loss is not None for metrics in history} == {validation}


def test_the_same_seed_gives_the_same_weights_to_the_bit_and_another_does_not(make_model, few_digits, short):
    models = [make_model() for _ in range(3)]
    for number, (model, seed) in enumerate(zip(models, (0, 0, 1), strict=True)):
        torch.manual_seed(number)  # what else draws random numbers does not matter
        train(model, few_digits, replace(short, seed=seed))
    assert torch.equal(weights(models[0]), weights(models[1]))
    assert not torch.equal(weights(models[0]), weights(models[2]))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_seed_decides_the_order_and_the_dropout(make_model, few_digits, dropout):
    """Each alone: without dropout only the order can differ, and with equal images only dropout."""
    if dropout:
        images, labels = few_digits.train_images, few_digits.train_labels
        few_digits = replace(
            few_digits, train_images=images[:1].expand_as(images), train_labels=labels[:1].expand_as(labels)
        )
    losses = []
    for seed in (0, 1):
        model, log = make_model(dropout=dropout), StepLog()
        torch.nn.init.normal_(model.head.weight)
        still = TrainConfig(epochs=1, batch_size=5, learning_rate=1e-30, warmup_steps=0, seed=seed)
        train(model, few_digits, still, callbacks=[log])
        losses.append(log.steps[0].loss)
    assert abs(losses[0] - losses[1]) > 1e-3


def test_a_model_that_comes_in_evaluation_is_trained_in_training(make_model, few_digits, short):
    modes = []

    class Mode(Callback):
        def on_step(self, state):
            modes.append(state.model.training)

    train(make_model().eval(), few_digits, short, callbacks=[Mode()])
    assert all(modes)


def test_an_epochs_loss_is_the_mean_of_its_steps(make_model, few_digits, short):
    log = StepLog()
    (epoch,) = train(make_model(), few_digits, replace(short, epochs=1), callbacks=[log])
    assert epoch.train_loss == pytest.approx(sum(step.loss for step in log.steps) / 3)


def test_a_log_of_steps_makes_no_gpu_wait_until_it_is_read(monkeypatch):
    read = []
    for name in ("item", "tolist"):
        original = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor, name, lambda tensor, original=original: read.append(1) or original(tensor)
        )
    log = StepLog()
    for step in (1, 2, 3):
        loss, norm = torch.tensor(step / 2), torch.tensor(step / 4)
        log.on_step(SimpleNamespace(step=step, learning_rate=0.1, loss=loss, gradient_norm=norm))
    assert read == []
    assert log.steps == [StepMetrics(step, 0.1, step / 2, step / 4) for step in (1, 2, 3)]
    assert StepLog().steps == []


def test_a_log_of_steps_has_each_step_of_all_epochs(make_model, few_digits, short):
    class Look(Callback):
        def on_step(self, state):
            assert log.steps[-1].loss == state.loss.item()

    log = StepLog()
    train(make_model(), few_digits, replace(short, epochs=2), callbacks=[log, Look()])
    assert [step.step for step in log.steps] == [1, 2, 3, 4, 5, 6]


def test_every_epoch_has_an_order_of_its_own(make_model, few_digits):
    """With a rate next to zero the model stands still, so only the order can change the first loss."""
    log = StepLog()
    still = TrainConfig(epochs=3, batch_size=5, learning_rate=1e-30, warmup_steps=0)
    model = make_model(dropout=0.0)
    torch.nn.init.normal_(model.head.weight)
    train(model, few_digits, still, callbacks=[log])
    assert len({step.loss for step in log.steps[::10]}) == 3


def test_training_leaves_the_callers_random_numbers_alone(make_model, few_digits, short):
    model = make_model()
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    train(model, few_digits, short)
    assert torch.equal(torch.rand(1), expected)


def test_the_test_part_is_never_read(make_model, few_digits, short):
    poisoned = replace(few_digits, test_images=torch.empty(0), test_labels=torch.empty(0))
    assert len(train(make_model(), poisoned, short)) == 4


def test_warmup_and_decay_reach_the_optimiser(make_model, few_digits, short):
    log = StepLog()
    train(make_model(), few_digits, replace(short, learning_rate=1e-3, schedule="linear"), callbacks=[log])
    rates = [step.learning_rate for step in log.steps]
    assert rates[:3] == pytest.approx([5e-4, 1e-3, 1e-3])
    assert rates[-1] == pytest.approx(1e-4)


def test_clipping_bounds_the_step_of_sgd(make_model, few_digits):
    def moved(clip: float) -> float:
        model = make_model(dropout=0.0)
        before = weights(model)
        plain = {"optimiser": "sgd", "learning_rate": 1.0, "weight_decay": 0.0, "warmup_steps": 0}
        sgd = TrainConfig(epochs=1, batch_size=50, clip_norm=clip, **plain)
        train(model, few_digits, sgd)
        return (weights(model) - before).norm().item()

    assert moved(0.01) == pytest.approx(0.01, rel=1e-3)
    assert moved(0.0) > 0.1


def test_a_step_of_plain_sgd_is_the_gradient_and_its_norm_is_that_before_clipping(make_model, few_digits):
    images, labels = few_digits.normalise(few_digits.train_images[:16]), few_digits.train_labels[:16]

    def stepped(clip: float) -> tuple[torch.Tensor, torch.Tensor, float]:
        model = make_model(dropout=0.0)
        torch.nn.init.normal_(model.head.weight)
        loss = F.cross_entropy(model(images), labels)
        gradients = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
        before = weights(model)
        plain = {"optimiser": "sgd", "momentum": 0.0, "weight_decay": 0.0, "warmup_steps": 0}
        config = TrainConfig(batch_size=16, learning_rate=1.0, clip_norm=clip, **plain)
        state = TrainingState(model, few_digits, config, build_optimiser(model, config))
        train_step(state, images, labels)
        return before - weights(model), gradients, float(state.gradient_norm)

    moved, gradients, norm = stepped(0.0)
    assert torch.allclose(moved, gradients, atol=1e-5)
    clipped, _, same = stepped(0.01)
    assert torch.allclose(clipped, 0.01 * gradients / gradients.norm(), atol=1e-6)
    assert norm == pytest.approx(gradients.norm().item(), rel=1e-5)
    assert same == pytest.approx(norm, rel=1e-5)


def test_label_smoothing_is_in_the_training_loss_alone(make_model, few_digits):
    still = TrainConfig(epochs=1, batch_size=50, learning_rate=1e-30, warmup_steps=0, label_smoothing=0.3)
    model = make_model(dropout=0.0)
    torch.nn.init.normal_(model.head.weight)
    metrics = train(model, few_digits, still)[0]
    logits = predict(model, few_digits.train_images, few_digits.normalise)
    smoothed = F.cross_entropy(logits, few_digits.train_labels, label_smoothing=0.3)
    assert metrics.train_loss == pytest.approx(smoothed.item(), rel=1e-4)
    held_out = evaluate(
        model, few_digits.validation_images, few_digits.validation_labels, few_digits.normalise
    )
    assert metrics.validation_loss == pytest.approx(held_out.loss)
    held_out_logits = predict(model, few_digits.validation_images, few_digits.normalise).double()
    places = torch.arange(len(held_out_logits)), few_digits.validation_labels
    expected = held_out_logits.logsumexp(1) - held_out_logits[places]
    assert held_out.loss == pytest.approx(expected.mean().item(), rel=1e-5)


@pytest.mark.parametrize("optimiser", ["adamw", "adam", "sgd"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_optimiser_trains_in_every_precision(make_model, few_digits, short, optimiser, precision):
    model, before = make_model(), weights(make_model())
    history = train(model, few_digits, replace(short, optimiser=optimiser, precision=precision))
    assert weights(model).isfinite().all()
    assert weights(model).dtype == torch.float32
    assert (weights(model) != before).float().mean() > 0.9
    assert history[-1].train_loss < history[0].train_loss


def spoil(state):
    state.model.head.bias.data[0] = torch.nan


@pytest.mark.parametrize(("interval", "bad"), [(1, 5), (2, 5), (2, 6), (9, 5)])
def test_a_loss_that_is_not_finite_stops_the_run_and_names_its_step_whenever_it_is_read(
    make_model, few_digits, short, monkeypatch, interval, bad
):
    assert loop.reading_interval(torch.device("cpu")) == 1
    assert loop.reading_interval(torch.device("cuda")) > 10, "a GPU does not wait for each"
    monkeypatch.setattr(loop, "reading_interval", lambda device: interval)
    message = rf"the loss is nan at step {bad} \(epoch 2\).*none was kept.*lower learning_rate"
    with pytest.raises(DivergedError, match=message):
        train(make_model(), few_digits, replace(short, steps=7), callbacks=[AtStep(bad - 1, spoil)])


@pytest.mark.parametrize("validation", [True, False])
def test_an_epoch_that_ends_with_weights_that_are_not_finite_is_not_kept(
    make_model, few_digits, short, tmp_path, validation
):
    data = few_digits if validation else without_validation(few_digits)
    last_of_epoch_2 = AtStep(6, spoil)  # no loss is computed with it
    message = r"head\.bias is not finite after step 6 \(epoch 2\).*, after epoch 1\. .*in another folder"
    with pytest.raises(DivergedError, match=message):
        runs.train(make_model(), data, short, tmp_path, [last_of_epoch_2])
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1


def test_a_validation_loss_that_is_not_finite_stops_the_run(make_model, few_digits, short):
    def explode(state):
        state.model.head.weight.data.fill_(3e38)  # finite, and its logits are not

    with pytest.raises(DivergedError, match=r"the validation loss is nan after epoch 1"):
        train(make_model(), few_digits, short, callbacks=[AtStep(3, explode)])


@pytest.mark.parametrize("scale", [1e6, 1e30])
def test_a_loss_far_above_that_of_a_guess_stops_the_run(make_model, few_digits, short, scale):
    def explode(state):
        state.model.head.bias.data[0] = scale  # finite, and so are its losses

    with pytest.raises(DivergedError, match=r"the training loss is .*, over 1,000 times that of a guess"):
        train(make_model(), few_digits, short, callbacks=[AtStep(1, explode)])


def test_float32_may_round_to_tf32_on_a_gpu_as_long_as_a_run_lasts(few_digits, short, monkeypatch):
    state = SimpleNamespace(device=torch.device("cuda"), config=short)
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices: contextlib.nullcontext())
    with loop.numerics(state):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"channels": 3}, r"model\.channels = 3: expected 1 for digits\. Build the model for the data"),
        ({"image_size": 16}, r"model\.image_size = \(16, 16\): expected \(8, 8\) for digits"),
        ({"num_classes": 5}, r"model\.num_classes = 5: expected 10 for digits"),
    ],
)
def test_a_model_for_other_data_is_refused_before_anything_is_written(
    make_model, few_digits, short, tmp_path, changes, message
):
    with pytest.raises(InputError, match=message):
        runs.train(make_model(**changes), few_digits, short, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_scaling_of_three_colours_is_refused_of_grey_images(make_model, few_digits, short):
    data = replace(few_digits, normalise=NORMALISATIONS["imagenet"])
    with pytest.raises(
        InputError, match=r"data\.normalisation = .* has 3 colours and digits 1: expected 'half'"
    ):
        train(make_model(), data, short)


def test_of_shares_of_the_classes_the_largest_is_right():
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    shares = torch.tensor([[0.1, 0.3, 0.6], [0.6, 0.4, 0.0], [0.5, 0.2, 0.3], [0.0, 1.0, 0.0]])
    assert share_right(logits, shares) == share_right(logits, torch.tensor([2, 0, 0, 1])) == 0.75


def test_of_mixed_images_the_class_with_the_largest_share_is_the_right_answer(
    make_model, few_digits, short, monkeypatch
):
    def to_class_0(images, labels, *_):
        return images, F.one_hot(0 * labels, 10).float()

    monkeypatch.setattr(loop, "blend", to_class_0)
    (first, *_) = train(make_model(), few_digits, replace(short, learning_rate=1e-12))
    assert first.train_accuracy == 1, "equal logits, of which the first is taken, whatever the digits are"


def test_a_shift_past_the_image_is_refused(make_model, few_digits, short):
    far = replace(short, augmentation=Augmentation(shift=8))
    with pytest.raises(InputError, match=r"shift = 8: expected fewer pixels than the images' side, 8"):
        train(make_model(), few_digits, far)


def test_a_shift_is_one_of_the_stored_images(make_model, few_digits, short):
    """They are shifted before they are brought to the size that the model takes."""
    data = replace(few_digits, config=replace(few_digits.config, image_size=16))
    far = replace(short, augmentation=Augmentation(shift=8))
    with pytest.raises(InputError, match=r"shift = 8: expected fewer pixels than the images' side, 8"):
        train(make_model(image_size=16), data, far)


def test_a_batch_larger_than_the_data_is_one_step(make_model, few_digits, short):
    assert train(make_model(), few_digits, replace(short, batch_size=500))[-1].step == 4


def test_prediction_does_not_depend_on_the_batch_and_leaves_the_mode(make_model, few_digits):
    model = make_model().train()
    torch.nn.init.normal_(model.head.weight)
    whole = predict(model, few_digits.test_images, few_digits.normalise)
    parts = predict(model, few_digits.test_images, few_digits.normalise, batch_size=3)
    assert torch.allclose(whole, parts, atol=1e-6)
    assert model.training


def test_a_short_run_is_silent_away_from_a_terminal(make_model, few_digits, short, capsys):
    train(make_model(), few_digits, short, callbacks=[ProgressBar()])
    assert capsys.readouterr() == ("", "")


def test_the_progress_bar_shows_itself_when_asked(make_model, few_digits, short, capsys, monkeypatch):
    monkeypatch.setenv("VIT_PROGRESS", "1")
    train(make_model(), few_digits, short, callbacks=[ProgressBar("digits")])
    assert "digits: 100%" in capsys.readouterr().err


def test_away_from_a_terminal_a_line_a_minute_says_how_far_it_is(make_model, few_digits, monkeypatch, capsys):
    monkeypatch.delenv("VIT_PROGRESS", raising=False)
    clock = iter(range(0, 10_000, 25))  # it is asked at the start, after an epoch, and when a line is written
    monkeypatch.setattr(progress_bar, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    config = TrainConfig(epochs=8, batch_size=25)
    train(make_model(), few_digits, config, callbacks=[ProgressBar("digits")])
    out, err = capsys.readouterr()
    assert out == ""
    first, *others = err.splitlines()
    said = r"digits: epoch 3/8, loss \d\.\d{3}, validation \d+\.\d%, about 3 minutes left"
    assert re.fullmatch(said, first)
    assert len(others) == 1
    monkeypatch.setenv("VIT_PROGRESS", "0")
    train(make_model(), few_digits, config, callbacks=[ProgressBar("digits")])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, r"train\.epochs = 0: expected at least 1"),
        ({"learning_rate": -1}, r"train\.learning_rate = -1\.0: expected a number above 0"),
        ({"optimiser": "adamW"}, r"unknown train\.optimiser 'adamW'.*did you mean 'adam'"),
        ({"mix_until": -0.1}, r"train\.mix_until = -0\.1: expected a share of the run, 0 to 1"),
        ({"augment_until": 1.5}, r"train\.augment_until = 1\.5: expected a share of the run, 0 to 1"),
        ({"label_smoothing": 1}, r"label_smoothing = 1\.0: expected 0 or more, below 1"),
        ({"batch_size": 1.5}, r"batch_size = 1\.5: expected a whole number"),
        ({"epochs": True}, r"epochs = True: expected a whole number"),
        ({"betas": (0.9,)}, r"betas = \(0\.9,\): expected a list of 2, each a number"),
        ({"augmentation": "flip"}, r"unknown train.augmentation 'flip': expected one of 'none', 'cifar'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        TrainConfig(**options)


def test_images_of_bytes_0_and_1_are_trained_on(make_model, few_digits, short):
    dark = replace(few_digits, train_images=(few_digits.train_images > 100).to(torch.uint8))
    assert len(train(make_model(), dark, replace(short, epochs=1))) == 1


def test_a_data_loader_is_refused_in_one_sentence(make_model, short):
    loader = DataLoader(TensorDataset(torch.rand(4, 1, 8, 8), torch.zeros(4)))
    with pytest.raises(InputError, match="data of type DataLoader: expected a DataSet"):
        train(make_model(), loader, short)


def test_a_callback_for_a_moment_that_never_comes_is_refused():
    with pytest.raises(InputError, match=r"unknown callback method 'on_epoch_end': .*mean 'on_epoch'"):
        type("Late", (Callback,), {"on_epoch_end": print})


def test_an_optimiser_of_ones_own_takes_the_steps(make_model, few_digits, short):
    class Own(Callback):
        def on_start(self, state):
            state.optimiser = torch.optim.SGD(state.model.parameters(), lr=0.5)
            state.optimiser.param_groups[0]["base_lr"] = short.learning_rate

    before = make_model()
    model = copy.deepcopy(before)
    steps = replace(short, steps=1, clip_norm=0.0, warmup_steps=0, augmentation="none")
    (epoch,) = train(model, few_digits, steps, callbacks=[Own()])
    assert epoch.learning_rate == short.learning_rate
    moved = (model.head.bias - before.head.bias).abs().max()
    assert 0 < moved < short.learning_rate  # Adam's first step would be the rate itself
