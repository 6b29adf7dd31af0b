import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.checkpoints import save_checkpoint
from vit_from_scratch.model.stem_config import StemConfig
from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.pretrained import load_pretrained
from vit_from_scratch.training import TrainConfig, train
from vit_from_scratch.training.fine_tuning import adapted
from vit_lab.experiments.recipes import load_recipe
from vit_lab.runs.trained_models import open_model


@pytest.fixture
def pretrained():
    torch.manual_seed(1)
    config = ViTConfig(
        16, 4, channels=1, dim=16, depth=2, heads=2, mlp_dim=32, num_classes=7, representation_size=12
    )
    model = VisionTransformer(config)
    torch.nn.init.normal_(model.head.weight)
    return model.eval()


def test_an_adapted_model_has_a_zero_head_and_the_old_encoder(pretrained):
    model = adapted(pretrained, 16, 10)
    assert model.training
    assert not pretrained.training
    model.eval()
    images = torch.randn(3, 1, 16, 16)
    logits, new = model(images, return_intermediates=True)
    assert not logits.any()
    assert torch.equal(new["encoded"], pretrained(images, return_intermediates=True)[1]["encoded"])
    assert new["features"].shape == (3, 16), "the hidden layer before the head is gone"


def test_an_adapted_model_takes_larger_images_with_the_same_patches(pretrained):
    model = adapted(pretrained, 32, 10, dropout=0.1)
    expected = resize_positions(pretrained.tokens.position, (4, 4), (8, 8))
    assert torch.equal(model.tokens.position, expected)
    assert (model.config.patch_size, model.config.dropout) == (4, 0.1)


def test_a_model_of_half_the_bits_is_trained_in_all(pretrained):
    model = adapted(pretrained.bfloat16(), 32, 10)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_recipe_begins_from_weights(pretrained, digits, tmp_path):
    save_checkpoint(tmp_path / "start.safetensors", pretrained)
    start = str(tmp_path / "start.safetensors")
    recipe = load_recipe("digits", {"weights": start, "data": {"image_size": 16}})
    recipe = replace(recipe, model={"dropout": 0.2})
    data = replace(digits, config=recipe.data)
    model = recipe.build(data)
    assert data.image_shape == (1, 16, 16)
    assert model.config.dropout == 0.2
    assert torch.equal(
        model.encoder.blocks[0].mlp.hidden.weight, pretrained.encoder.blocks[0].mlp.hidden.weight
    )
    history = train(model, data, TrainConfig(epochs=1, batch_size=400))
    assert history[0].validation_loss < 2.4


def test_positions_by_row_and_column_are_interpolated_for_larger_images():
    torch.manual_seed(0)
    config = ViTConfig(16, 4, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3, position="learned_2d")
    start = VisionTransformer(config)
    rows = adapted(start, (28, 16), 5).tokens.row_position  # 7 rows in place of 4: every second is an old one
    assert torch.allclose(rows[::2], start.tokens.row_position)
    assert torch.allclose(rows[1::2], (rows[:-1:2] + rows[2::2]) / 2)


def test_a_head_that_is_kept_answers_as_before(pretrained):
    images = torch.randn(3, 1, 16, 16)
    kept = adapted(pretrained, 16, 7, keep_head=True).eval()
    assert torch.equal(kept(images), pretrained(images))
    larger = adapted(pretrained, 32, 7, keep_head=True)
    assert torch.equal(larger.head.weight, pretrained.head.weight)
    assert torch.equal(larger.tokens.position, adapted(pretrained, 32, 10).tokens.position)


@pytest.fixture
def trained(digits):
    """A model of the digits whose head knows something."""
    torch.manual_seed(2)
    model = VisionTransformer(load_recipe("digits").model_config(digits))
    torch.nn.init.normal_(model.head.weight)
    return model


def test_a_recipe_keeps_the_head_of_its_weights(digits, trained, tmp_path):
    save_checkpoint(start := tmp_path / "start.safetensors", trained)
    recipe = replace(load_recipe("digits"), weights=str(start), keep_head=True, model={})
    assert torch.equal(recipe.build(digits).head.weight, trained.head.weight)
    assert not replace(recipe, keep_head=False).build(digits).head.weight.any()
    assert recipe.start()["start"].keys() == {"sha256", "keep_head"}, "another run than one with a new head"


def write_run(folder, model, classes, normalisation="half"):
    """Write what `open_model` reads of a run: its model and the settings that matter here."""
    folder.mkdir(exist_ok=True)
    save_checkpoint(folder / "model.safetensors", model)
    (folder / "config.toml").write_text(
        f'[data]\nname = "digits"\nnormalisation = "{normalisation}"\n[model]\n[train]\n'
        f"[images]\nclasses = {list(classes)}\n"
    )


def test_a_head_is_kept_for_classes_of_the_same_names_only(digits, trained, tmp_path):
    recipe = replace(load_recipe("digits"), weights=str(tmp_path / "run"), keep_head=True, model={})
    write_run(tmp_path / "run", trained, digits.class_names)
    assert torch.equal(recipe.build(digits).head.weight, trained.head.weight)
    write_run(tmp_path / "run", trained, [*digits.class_names[:8], "9", "8"])
    message = r"keep_head: class 8 is '9' for .*run and '8' in digits: expected the same classes in the same"
    with pytest.raises(InputError, match=message):
        recipe.build(digits)
    assert not replace(recipe, keep_head=False).build(digits).head.weight.any(), "a new head may learn others"
    nameless = replace(digits, class_names=tuple(f"class {number}" for number in range(10)))
    assert torch.equal(recipe.build(nameless).head.weight, trained.head.weight), "nobody noted their names"


def test_no_head_is_kept_without_weights():
    with pytest.raises(InputError, match=r"keep_head = True: expected weights to begin from, or false"):
        replace(load_recipe("digits"), keep_head=True)


def test_a_change_of_an_unknown_field_is_refused(pretrained):
    with pytest.raises(InputError, match=r"unknown option of the model 'dropuot'.*did you mean 'dropout'"):
        adapted(pretrained, 16, 5, dropuot=0.1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"dim": 32},
            r"\(of another shape: .*projection\.weight \(16, 16\) for \(32, 16\), .*\d+ more\)",
        ),
        ({"depth": 3}, r"\(missing: encoder\.blocks\.2\.\S+, .* and \d+ more\)"),
        ({"depth": 1}, r"\(left over: encoder\.blocks\.1\.\S+, .* and \d+ more\)"),
        ({"norm": "none"}, r"\(left over: .*norm.*\)"),
    ],
)
def test_the_weights_that_do_not_fit_are_named(pretrained, changes, said):
    own = {"dropout": pretrained.config.dropout, "mlp_dim": pretrained.config.mlp_dim}
    message = rf"do not fit {re.escape(str(changes))} {said}: expected"
    with pytest.raises(InputError, match=message) as refusal:
        adapted(pretrained, 16, 10, **own | changes)
    assert "state_dict" not in str(refusal.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"heads": 4},
        {"heads": 5},
        {"position": "none"},
        {"qk_norm": True},
        {"layer_norm_eps": 1.0},
    ],
)
def test_changes_that_leave_the_weights_no_meaning_are_refused(changes):
    """Every weight would keep its shape."""
    config = ViTConfig(16, 4, dim=16, depth=1, heads=2, mlp_dim=16, num_classes=7, position="sincos_2d")
    (key, given), learned = *changes.items(), vars(config)
    message = rf"do not fit model\.{key} = {given!r}: expected {learned[key]!r}, .*training\. Leave it out"
    with pytest.raises(InputError, match=message):
        adapted(VisionTransformer(config), 16, 10, **changes)


def test_positions_are_not_added_elsewhere_than_they_were_learned(pretrained):
    with pytest.raises(InputError, match=r"model\.position_at = 'every_layer_shared': expected 'stem'"):
        adapted(pretrained, 16, 10, position_at="every_layer_shared")


def test_relative_positions_keep_their_size():
    model = VisionTransformer(
        ViTConfig(16, 4, dim=16, depth=1, heads=2, mlp_dim=16, num_classes=7, position="relative")
    )
    assert adapted(model, 16, 5).head.out_features == 5
    with pytest.raises(InputError, match=r"image_size = 32 for a model with relative positions: expected 16"):
        adapted(model, 32, 5)


def test_a_table_that_says_what_the_model_has_is_taken(pretrained):
    """As in recipes that name weights beside a whole [model] table."""
    decided = ("image_size", "num_classes", "channels", "representation_size")
    own = {key: value for key, value in vars(pretrained.config).items() if key not in decided}
    model = adapted(pretrained, 16, 10, **own)
    assert model.config == replace(pretrained.config, num_classes=10, representation_size=None)
    with pytest.raises(InputError, match=r"model\.heads = 4: expected 2"):
        adapted(pretrained, 16, 10, **own | {"heads": 4})


def test_a_new_head_may_read_another_pool_and_one_that_is_kept_may_not(pretrained):
    assert adapted(pretrained, 16, 7, pool="gap").config.pool == "gap"
    with pytest.raises(InputError, match=r"model\.pool = 'gap': expected 'cls'"):
        adapted(pretrained, 16, 7, keep_head=True, pool="gap")


def test_a_recipe_takes_weights_for_grey_images_to_colours(pretrained, digits, tmp_path):
    save_checkpoint(tmp_path / "start.safetensors", adapted(pretrained, 16, 2))
    recipe = replace(load_recipe("digits"), weights=str(tmp_path / "start.safetensors"), model={})
    coloured = replace(digits, train_images=digits.train_images.expand(-1, 3, -1, -1))
    assert recipe.build(coloured).config.channels == 3


def test_a_run_counted_in_steps_ends_inside_an_epoch(make_model, few_digits, short):
    history = train(make_model(), few_digits, replace(short, steps=7))
    assert [epoch.step for epoch in history] == [3, 6, 7]
    assert history[-1].learning_rate < history[0].learning_rate


def test_images_in_memory_are_enlarged_on_the_way(digits):
    data = replace(digits, config=replace(digits.config, image_size=16))
    for images, _ in (*data.batches("test"), *data.training_batches(400, TrainConfig().augmentation, 0)):
        assert images.shape[-2:] == (16, 16)
    scan = Image.fromarray(digits.test_images[0, 0].numpy()).resize((16, 16), Image.Resampling.BILINEAR)
    expected = digits.normalise(torch.from_numpy(np.array(scan)))
    assert torch.allclose(next(data.batches("test"))[0][0, 0], expected[0], atol=1 / 127)


@pytest.mark.parametrize(
    ("learned", "given", "seen"),
    [
        (3, 1, lambda grey: grey.expand(-1, 3, -1, -1)),
        (1, 3, lambda coloured: coloured.mean(dim=1, keepdim=True)),
    ],
)
def test_grey_is_three_equal_channels_and_colours_are_their_mean(learned, given, seen):
    torch.manual_seed(0)
    config = ViTConfig(16, 4, channels=learned, dim=16, depth=1, heads=2, mlp_dim=16, num_classes=4)
    before = VisionTransformer(config).eval()
    after = adapted(before, 16, 4, channels=given).eval()
    images = torch.randn(2, given, 16, 16)
    expected = before(seen(images), return_intermediates=True)[1]["encoded"]
    assert torch.allclose(after(images, return_intermediates=True)[1]["encoded"], expected, atol=1e-5)


@pytest.mark.parametrize(("channels", "stem"), [(2, {}), (1, {"stem": StemConfig("conv", width=4)})])
def test_other_channels_are_refused(channels, stem):
    config = ViTConfig(16, 4, channels=3, dim=16, depth=1, heads=2, mlp_dim=16, num_classes=4, **stem)
    with pytest.raises(InputError, match=rf"channels = {channels} for a model of 3: expected the same;"):
        adapted(VisionTransformer(config), 16, 4, channels=channels)


def test_a_recipe_begins_from_a_name_or_a_runs_folder(digits, tmp_path):
    data = replace(digits, config=replace(digits.config, image_size=64))
    recipe = load_recipe("digits", {"weights": "tiny-imagenet", "data": {"image_size": 64}})
    model = replace(recipe, model={}).build(data)
    shipped = load_pretrained("tiny-imagenet")
    assert torch.equal(model.encoder.blocks[3].mlp.hidden.weight, shipped.encoder.blocks[3].mlp.hidden.weight)
    assert (model.config.channels, model.config.num_classes) == (1, 10)
    save_checkpoint(tmp_path / "model.safetensors", shipped)
    again = replace(recipe, model={}, weights=str(tmp_path)).build(data)
    assert torch.equal(again.tokens.position, model.tokens.position)
    assert recipe.start()["start"].keys() == {"name", "sha256"}


def test_a_run_of_another_scaling_is_refused(digits, tmp_path):
    config = ViTConfig(16, 4, channels=3, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3)
    write_run(tmp_path, VisionTransformer(config), "abc", "imagenet")
    recipe = replace(load_recipe("digits"), weights=str(tmp_path), model={})
    coloured = digits.train_images.expand(-1, 3, -1, -1)
    data = replace(digits, config=replace(digits.config, image_size=16), train_images=coloured)
    with pytest.raises(
        InputError, match=r"data.normalisation = 'half': expected 'imagenet', which .* trained with"
    ):
        recipe.build(data)


@pytest.mark.parametrize("normalisation", ["half", "imagenet"])
def test_grey_images_are_refused_where_each_colour_has_a_scaling(digits, tmp_path, normalisation):
    config = ViTConfig(8, 4, channels=3, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3)
    write_run(tmp_path / "run", VisionTransformer(config), "abc", "imagenet")
    changes = {"weights": str(tmp_path / "run"), "data": {"normalisation": normalisation}}
    recipe = replace(load_recipe("digits", changes), model={})
    message = (
        r"scales each of 3 colours in its own way \('imagenet'\), and the images of digits have 1 channel: "
    )
    with pytest.raises(InputError, match=message + "expected colour photos"):
        recipe.build(replace(digits, config=recipe.data))


def test_a_model_that_a_run_kept_on_the_way_is_that_runs(pretrained, tmp_path, monkeypatch):
    write_run(tmp_path / "run", pretrained, "abcdefg", "imagenet")
    kept = tmp_path / "run" / "epochs" / "epoch-0005.safetensors"
    kept.parent.mkdir()
    save_checkpoint(kept, pretrained)
    found = open_model(str(kept))
    assert (found.class_names, found.normalisation) == (tuple("abcdefg"), "imagenet")
    monkeypatch.chdir(kept.parent)
    assert open_model(kept.name).class_names == tuple("abcdefg")
    elsewhere = tmp_path / "run" / "other"
    elsewhere.mkdir()
    save_checkpoint(elsewhere / kept.name, pretrained)
    alone = open_model(str(elsewhere / kept.name))
    assert (alone.class_names[0], alone.normalisation) == ("class 0", None)
