from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.experiments.recipes import load_recipe
from vit_from_scratch.model.checkpoints import save_checkpoint
from vit_from_scratch.model.stem_config import StemConfig
from vit_from_scratch.model.tokens import resize_positions
from vit_from_scratch.pretrained import load_pretrained
from vit_from_scratch.training import TrainConfig, train
from vit_from_scratch.training.fine_tuning import adapted


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
    model = adapted(pretrained, 16, 10).eval()
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


@pytest.mark.parametrize("changes", [{"dim": 32}, {"depth": 3}])
def test_changes_that_do_not_fit_the_weights_are_refused(pretrained, changes):
    with pytest.raises(InputError, match=r"the pre-trained weights do not fit \{.*Leave the others out"):
        adapted(pretrained, 16, 10, **changes)


def test_weights_for_other_channels_are_refused(pretrained, digits, tmp_path):
    save_checkpoint(tmp_path / "start.safetensors", adapted(pretrained, 16, 2))
    recipe = replace(load_recipe("digits"), weights=str(tmp_path / "start.safetensors"), model={})
    coloured = replace(digits, train_images=digits.train_images.expand(-1, 3, -1, -1))
    with pytest.raises(InputError, match=r"takes 1 channels and digits has 3: expected as many"):
        recipe.build(coloured)


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


def test_a_model_of_colours_sees_grey_images_as_photos_of_three_equal_channels():
    torch.manual_seed(0)
    config = ViTConfig(16, 4, channels=3, dim=16, depth=1, heads=2, mlp_dim=16, num_classes=4)
    coloured = VisionTransformer(config).eval()
    grey = adapted(coloured, 16, 4, channels=1).eval()
    images = torch.randn(2, 1, 16, 16)
    expected = coloured(images.expand(-1, 3, -1, -1), return_intermediates=True)[1]["encoded"]
    assert torch.allclose(grey(images, return_intermediates=True)[1]["encoded"], expected, atol=1e-5)


@pytest.mark.parametrize(("channels", "stem"), [(2, {}), (1, {"stem": StemConfig("conv", width=4)})])
def test_other_channels_are_refused(channels, stem):
    config = ViTConfig(16, 4, channels=3, dim=16, depth=1, heads=2, mlp_dim=16, num_classes=4, **stem)
    with pytest.raises(InputError, match=rf"channels = {channels} for a model of 3: expected as many, or 1"):
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


def test_a_run_of_another_scaling_is_refused(pretrained, digits, tmp_path):
    save_checkpoint(tmp_path / "model.safetensors", pretrained)
    (tmp_path / "config.toml").write_text(
        '[data]\nname = "imagenette"\nnormalisation = "imagenet"\n[model]\n[train]\n'
    )
    recipe = replace(load_recipe("digits"), weights=str(tmp_path), model={})
    data = replace(digits, config=replace(digits.config, image_size=16))
    with pytest.raises(
        InputError, match=r"data.normalisation = 'half': expected 'imagenet', by which .* trained"
    ):
        recipe.build(data)
