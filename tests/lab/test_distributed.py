"""Two and four processes (gloo, on the CPU) against one: the same losses, weights and files."""

import copy
import os
import re
from dataclasses import asdict, replace

import pytest
import torch
from several import in_processes
from stopping import Stop, weights, without_time

from vit_from_scratch import InputError
from vit_from_scratch.data import Augmentation
from vit_from_scratch.model.checkpoints import load_checkpoint
from vit_from_scratch.training import StepLog, TrainConfig, evaluate_hidden
from vit_from_scratch.training.evaluation import Evaluation, evaluate_batches
from vit_from_scratch.training.state import TrainingState
from vit_lab.failures import ElsewhereError
from vit_lab.runs import distributed as together
from vit_lab.runs import train
from vit_lab.runs.processes import Processes
from vit_lab.runs.sharding import local

CONFIG = TrainConfig(
    epochs=2,
    batch_size=16,
    warmup_steps=2,
    label_smoothing=0.1,
    accumulation=2,
    clip_norm=0.1,
    average_decay=0.8,
    augmentation=Augmentation(shift=1, rotation=10.0, erase=0.2),
)


@pytest.fixture
def same_model(make_model):
    """A model without dropout, whose head is random; by the same seed everywhere."""

    def build(**fields):
        model = make_model(dropout=0.0, qkv_bias=False, **fields)  # a key's bias has no gradient but noise
        torch.nn.init.normal_(model.head.weight)
        return model

    return build


def trained(model, data, config, out_dir=None, stop=None):
    """What a process has in the end: history, weights, losses by step."""
    log = StepLog()
    folder = None if out_dir is None else out_dir / str(Processes.current().rank)
    try:
        history = train(model, data, config, folder, [log, *([Stop(stop)] if stop else [])])
    except (KeyboardInterrupt, ElsewhereError):
        return None
    return without_time(history), weights(model), [(step.loss, step.gradient_norm) for step in log.steps]


def assert_same(result, expected, tolerance=1e-5):
    for mine, theirs in zip(result[0], expected[0], strict=True):
        assert asdict(mine) == pytest.approx(asdict(theirs), rel=tolerance, abs=tolerance)
    assert torch.allclose(result[1], expected[1], atol=2 * tolerance)
    if result[2]:
        assert torch.allclose(torch.tensor(result[2]), torch.tensor(expected[2]), atol=10 * tolerance)


UNEVEN = {"batch_size": 66, "accumulation": 3}  # of 50 images: 17, 17 and 16 in three processes


@pytest.mark.parametrize(
    ("count", "changes"),
    [
        (2, {}),
        (2, {"sharding": "full"}),
        (4, {"sharding": "full"}),
        (2, {"optimiser": "muon"}),
        (2, {"optimiser": "sgd", "learning_rate": 0.1}),
        (3, UNEVEN),
        (3, UNEVEN | {"optimiser": "sgd", "sharding": "full"}),
        (2, {"curriculum": ((0.0, 4), (0.5, 8)), "patience": 1, "accumulation": 1}),
    ],
)
def test_several_processes_train_as_one_does(same_model, few_digits, count, changes):
    config = replace(CONFIG, **changes)
    expected = trained(same_model(), few_digits, config)
    first, *others = in_processes(count, trained, same_model(), few_digits, config)
    tolerance = 2e-3 if config.optimiser == "muon" else 1e-5  # its steps are worked out in bfloat16
    for result in (first, *others):
        assert_same(result, expected, tolerance)
        assert torch.equal(result[1], first[1])
    assert len(first[2]) == len(expected[2])
    assert not any(result[2] for result in others), "callbacks are the first process's"


def type_of_muon(model, data, config):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIT_BFLOAT16_UNITS", str(Processes.current().rank))
        return together.current_engine().start(model, data, config).optimiser.optimisers[0].dtype


def test_all_processes_work_in_a_type_that_each_is_fast_in(same_model, few_digits):
    """The first has no units for bfloat16 and the second has."""
    config = replace(CONFIG, optimiser="muon")
    assert in_processes(2, type_of_muon, same_model(), few_digits, config) == [torch.float32] * 2


def held(model, data, config):
    """How many numbers of the weights, and of what the optimiser keeps of them, a process holds."""
    state = together.current_engine().start(model, data, config)
    parameters = [*state.model.parameters()]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    state.optimiser.step()
    kept = [value for values in state.optimiser.state.values() for value in values.values() if value.ndim]
    return [sum(local(value).numel() for value in values) for values in (parameters, kept)]


@pytest.mark.parametrize(("sharding", "most"), [("none", 1.0), ("full", 0.55)])
def test_a_sharded_model_is_nowhere_whole(same_model, few_digits, sharding, most):
    config = replace(CONFIG, sharding=sharding, average_decay=0.0)
    whole = sum(parameter.numel() for parameter in same_model().parameters())
    parts = in_processes(2, held, same_model(), few_digits, config)
    for weights_held, moments_held in parts:
        assert moments_held == 2 * weights_held
        assert 0.8 * most * whole <= weights_held <= most * whole
    if sharding == "full":
        assert sum(weights_held for weights_held, _ in parts) == whole


@pytest.mark.parametrize("sharding", ["none", "full"])
def test_bfloat16(same_model, few_digits, sharding):
    config = replace(CONFIG, precision="bfloat16", sharding=sharding)
    expected = trained(same_model(), few_digits, config)
    found = in_processes(2, trained, same_model(), few_digits, config)[0]
    losses = torch.tensor([loss for loss, _ in found[2]])
    assert torch.allclose(losses, torch.tensor([loss for loss, _ in expected[2]]), rtol=0.01)


@pytest.mark.parametrize(
    ("first", "second", "sharding"),
    [(2, 1, "none"), (1, 2, "none"), (2, 1, "full"), (1, 2, "full"), (4, 2, "full")],
)
def test_a_run_goes_on_with_another_number_of_processes(
    same_model, few_digits, tmp_path, first, second, sharding
):
    config = replace(CONFIG, sharding=sharding, patience=9)
    expected = trained(same_model(), few_digits, config)
    for count, stop in ((first, 1), (second, None)):
        job = (same_model(), few_digits, config, tmp_path, stop)
        results = [trained(*job)] if count == 1 else in_processes(count, trained, *job)
    for result in results:
        assert_same((*result[:2], None), expected)
    assert sorted(os.listdir(tmp_path)) == ["0"], "one process writes, and the others need not see it"
    names = ["config.toml", "curves.png", "metrics.jsonl", "model.safetensors"]
    assert sorted(os.listdir(tmp_path / "0")) == names
    assert torch.allclose(weights(load_checkpoint(tmp_path / "0/model.safetensors")), results[0][1])


def test_a_finished_run_is_loaded_in_all_processes(same_model, few_digits, tmp_path):
    expected = trained(same_model(), few_digits, CONFIG, tmp_path)
    for sharding in ("none", "full"):
        config = replace(CONFIG, sharding=sharding)
        for result in in_processes(2, trained, same_model(), few_digits, config, tmp_path):
            assert torch.equal(result[1], expected[1])
            assert result[0] == expected[0]


def own_beginning(make_model, data, config):
    model = make_model(seed=Processes.current().rank, dropout=0.0)
    return trained(model, data, config)


@pytest.mark.parametrize("sharding", ["none", "full"])
def test_the_first_process_decides_the_initial_weights(make_model, few_digits, sharding):
    config = replace(CONFIG, sharding=sharding)
    expected = trained(make_model(dropout=0.0), few_digits, config)
    for result in in_processes(2, own_beginning, make_model, few_digits, config):
        assert_same(result, expected)


def measured(model, data, part):
    return together.current_engine().measure(model, data, part, 0)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("images", [3, 4, 19])
def test_each_image_is_measured_once(same_model, few_digits, count, images):
    data = replace(
        few_digits, test_images=few_digits.test_images[:images], test_labels=few_digits.test_labels[:images]
    )
    expected = evaluate_batches(same_model(), data.batches("test"))
    for found in in_processes(count, measured, same_model(), data, "test"):
        assert (found.accuracy, found.images) == (expected.accuracy, expected.images)
        assert found.loss == pytest.approx(expected.loss, rel=1e-6)


def test_parts_of_different_sizes_are_not_averaged_as_if_they_were_equal():
    found = together.pooled([Evaluation(1.0, 2.0, 3, 1.0), Evaluation(0.0, 6.0, 1, 0.0)])
    assert found == Evaluation(0.75, 3.0, 4, 0.75)


@pytest.mark.parametrize("sharding", ["none", "full"])
@pytest.mark.parametrize("objective", ["masked-patches", "masked-pixels"])
def test_learning_without_labels(make_task, colours, objective, sharding):
    config = replace(CONFIG, label_smoothing=0.0, sharding=sharding)
    model = make_task(objective)
    fresh = evaluate_hidden(model, colours.batches("validation"))
    results = in_processes(2, trained, copy.deepcopy(model), colours, config)
    assert results[0][0][-1].validation_loss == results[1][0][-1].validation_loss
    assert torch.equal(results[0][1], results[1][1])
    assert (results[0][1] != weights(model)).float().mean() > 0.8
    assert in_processes(2, measured, model, colours, "validation")[0] == fresh


def statistics(model, data, config):
    history = train(model, data, config)
    return torch.cat([buffer.flatten() for buffer in model.buffers()]), without_time(history)


@pytest.mark.parametrize("sharding", ["none", "full"])
def test_batch_norm_has_the_same_statistics_everywhere(same_model, few_digits, sharding):
    model = same_model(stem={"kind": "conv", "width": 4})
    config = replace(CONFIG, sharding=sharding)
    first, second = in_processes(2, statistics, model, few_digits, config)
    assert first[0].numel() > 0
    assert torch.equal(first[0], second[0])
    assert first[1] == second[1]


def reductions(model, data, config):
    """How often gradients are sent in a step, and which synchronisations a sharded model is told of."""
    engine = together.SeveralProcesses(Processes.current())
    state = TrainingState(model, data, config, together.build_optimiser(model, config), engine=engine)
    sent = []

    def count(_, bucket):
        sent.append(bucket.index())
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    state.network.register_comm_hook(None, count)
    from vit_from_scratch.training.loop import train_step

    images, labels = next(data.shared(engine.processes.share).training_batches(16, Augmentation(), 0))
    train_step(state, data.normalise(images), labels)
    return sent


def test_gradients_are_sent_once_for_a_batch_in_pieces(same_model, few_digits):
    for sent in in_processes(2, reductions, same_model(), few_digits, replace(CONFIG, accumulation=4)):
        assert len(sent) == len(set(sent)) > 0


def refused(model, data, config, other=None):
    if other is not None and Processes.current().rank == 1:
        config = other
    try:
        train(model, data, config)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"batch_size": 15}, r"train.batch_size = 15 on 2 processes: expected a multiple of 2, .* Take 14"),
        ({"accumulation": 9}, r"train.accumulation = 9 on 2 processes: expected at most 8"),
        ({"optimiser": "muon", "sharding": "full"}, r"Muon needs whole matrices"),
    ],
)
def test_what_does_not_fit_several_processes_is_refused(same_model, few_digits, changes, sentence):
    for said in in_processes(2, refused, same_model(), few_digits, replace(CONFIG, **changes)):
        assert said is not None
        assert re.search(sentence, said), said


def test_processes_with_other_settings_are_refused_in_all(same_model, few_digits):
    other = replace(CONFIG, learning_rate=0.5)
    for said in in_processes(2, refused, same_model(), few_digits, CONFIG, other):
        assert "process 1 of this run has other settings than process 0" in said
        assert "train.learning_rate" in said


def test_fewer_images_than_processes_are_refused(same_model, few_digits):
    few = replace(
        few_digits, train_images=few_digits.train_images[:3], train_labels=few_digits.train_labels[:3]
    )
    config = replace(CONFIG, accumulation=1)
    for said in in_processes(4, refused, same_model(), few, config):
        assert said.startswith("3 training images on 4 processes")


def test_no_two_processes_drop_the_same():
    seeds = [together.SeveralProcesses(Processes(rank, 4)).seed(11) for rank in range(4)]
    assert seeds[0] == 11
    assert len(set(seeds)) == 4


def fails_first(folder):
    def fail():
        raise InputError("no")

    try:
        Processes.current().from_first(fail)
    except (InputError, ElsewhereError) as error:
        return type(error).__name__


def test_what_fails_in_the_first_process_ends_all(tmp_path):
    assert in_processes(3, fails_first, tmp_path) == ["InputError", "ElsewhereError", "ElsewhereError"]


def test_processes_of_torchrun_that_have_not_joined_are_refused(monkeypatch, make_model, few_digits):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("WORLD_SIZE", "2")
    model = make_model()
    before = weights(model)
    with pytest.raises(InputError, match="2 processes of torchrun without a process group"):
        train(model, few_digits, CONFIG)
    assert torch.equal(weights(model), before)
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert type(together.current_engine()).__name__ == "Engine"
