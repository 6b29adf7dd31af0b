"""Exported files give the model's logits in programs that are not this one."""

import dataclasses
import io
import json
import typing

import onnx
import onnxruntime
import pytest
import timm
import torch
from safetensors import safe_open

from vit_classroom.checks.report import randomise
from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.stem_config import StemConfig
from vit_from_scratch.training.fine_tuning import adapted
from vit_lab.export import exports
from vit_lab.export.exports import export_model
from vit_lab.export.formats import FORMATS
from vit_lab.export.graphs import ScaledViT, onnx_file
from vit_lab.runs.trained_models import TrainedModel

SIZES = {"image_size": 8, "patch_size": 4, "dim": 8, "depth": 1, "heads": 2, "mlp_dim": 8, "num_classes": 3}
HYBRID = StemConfig("resnet", width=8, layers=(1, 1, 1), root_stride=1)
KINDS = {
    "plain": {},
    "average pooling": {"class_token": False, "pool": "gap", "norm": "pooled", "position": "learned_2d"},
    "conv stem, local": {"stem": StemConfig("conv", width=4), "mlp": "local", "position": "sincos_2d"},
    "relative": {"position": "relative"},
    "positions in every layer": {"position_at": "every_layer"},
    "shared positions": {"position_at": "every_layer_shared", "position": "learned_2d"},
    "hybrid": {"stem": HYBRID, "position": "none", "norm": "none", "pool": "gap"},
    "the rest": {
        "image_size": (8, 12),
        "channels": 1,
        "gelu": "tanh",
        "representation_size": 5,
        "qkv_bias": False,
        "depth": 2,
        "dropout": 0.1,
        "stochastic_depth": 0.1,
        "initialisation": "mimetic",
    },
}
"""Together every value of every option is in one of them."""


def trained_model(scaling: str | None = "imagenet", **changes) -> TrainedModel:
    """A small model without zeros, and with the statistics of BatchNorm as after training."""
    model = randomise(VisionTransformer(ViTConfig(**(SIZES | changes))))
    for name, buffer in model.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    names = tuple(f"kind {number}" for number in range(model.config.num_classes))
    return TrainedModel(
        "home/me/small.safetensors", model, names, "half" if model.config.channels == 1 else scaling
    )


def assert_same_logits(trained: TrainedModel, run) -> None:
    """Compare a file's logits for images in [0, 1] with those of `vit predict`, in batches of 1, 8 and 3."""
    config = trained.model.config
    for batch in (1, 8, 3):
        images = torch.rand(batch, config.channels, *config.image_shape)
        with torch.no_grad():
            expected = trained.model(trained.scaling(255 * images))
        assert expected.std() > 1e-2
        found = torch.as_tensor(run(images))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_every_value_of_every_option_is_exported():
    defaults = [vars(ViTConfig(**(SIZES | changes))) for changes in KINDS.values()]
    for owner, seen in ((ViTConfig, defaults), (StemConfig, [vars(fields["stem"]) for fields in defaults])):
        for name, hint in typing.get_type_hints(owner).items():
            if typing.get_origin(hint) is typing.Literal and name != "root_stride":
                assert {fields[name] for fields in seen} == set(typing.get_args(hint)), name
    assert {fields["class_token"] for fields in defaults} == {True, False}


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_onnx_runtime_gives_the_same_logits(changes, tmp_path):
    trained = trained_model(**changes)
    done = export_model(trained, tmp_path / "a.onnx")
    assert done.difference is not None
    assert done.difference < 1e-4
    session = onnxruntime.InferenceSession(done.path, providers=["CPUExecutionProvider"])
    assert_same_logits(trained, lambda images: session.run(None, {"images": images.numpy()})[0])
    (images,), (logits,) = session.get_inputs(), session.get_outputs()
    config = trained.model.config
    assert images.shape == ["batch", config.channels, *config.image_shape]
    assert logits.shape == ["batch", config.num_classes]
    assert session.get_modelmeta().custom_metadata_map == done.notes
    content = done.path.read_bytes()
    assert b".py" not in content, "no trace of this machine's folders"
    assert not [entry for node in onnx.load(done.path).graph.node for entry in node.metadata_props]
    assert [path.name for path in tmp_path.iterdir()] == ["a.onnx"]


def test_a_file_says_what_it_takes_and_gives(tmp_path):
    trained = trained_model()
    notes = export_model(trained, tmp_path / "a.timm.safetensors", "safetensors-timm").notes
    assert (notes["model"], notes["normalisation"]) == ("small.safetensors", "before")
    assert notes["input"] == "images, float32 (B, 3, 8, 8), (x - mean) / std of 0 to 1"
    assert json.loads(notes["mean"]) == [0.485, 0.456, 0.406]
    assert json.loads(notes["std"]) == [0.229, 0.224, 0.225]
    assert json.loads(notes["image_size"]) == [8, 8]
    assert json.loads(notes["class_names"]) == ["kind 0", "kind 1", "kind 2"]
    assert ViTConfig.from_dict(json.loads(notes["vit_config"])) == trained.model.config


def test_torch_export_gives_the_same_logits(tmp_path):
    trained = trained_model()
    path = export_model(trained, tmp_path / "a.pt2", "pt2").path
    extra = {"vit_from_scratch.json": ""}
    assert_same_logits(trained, torch.export.load(path, extra_files=extra).module())
    assert json.loads(extra["vit_from_scratch.json"])["normalisation"] == "inside"


@pytest.mark.parametrize("changes", [{}, {"gelu": "tanh", "layer_norm_eps": 1e-3, "image_size": (8, 12)}])
def test_timm_loads_its_weights_with_the_line_that_is_printed(changes, tmp_path):
    trained = trained_model(**changes)
    export_model(trained, "a.safetensors", "safetensors-timm")
    with safe_open("a.safetensors", "pt") as file:
        line = file.metadata()["create"]
    import functools

    theirs = eval(line, {"timm": timm, "torch": torch, "functools": functools}).eval()
    assert_same_logits(trained, lambda images: theirs(trained.scaling(255 * images)).detach())


@pytest.mark.parametrize("shift", [torch.nan, 0.05, -0.05])
@pytest.mark.parametrize("format", FORMATS)
def test_other_logits_are_no_export(format, shift, tmp_path, monkeypatch):
    def wrong(model, notes):
        return b"", lambda images: model(images) + shift

    monkeypatch.setattr(exports, "MAKERS", dict.fromkeys(exports.MAKERS, wrong))
    with pytest.raises(
        InputError, match=f"--format {format} makes .* gives other logits .*nothing was written"
    ):
        export_model(trained_model(), tmp_path / "x", format)
    assert not list(tmp_path.iterdir())


def test_without_onnx_runtime_a_file_is_not_called_checked(tmp_path, monkeypatch):
    monkeypatch.setattr("vit_lab.export.formats.find_spec", lambda name: name != "onnxruntime" or None)
    done = export_model(trained_model(), tmp_path / "a.onnx")
    assert done.difference is None
    assert done.path.exists()


def test_a_model_too_large_for_onnx_is_refused_before_anything_is_made():
    with torch.device("meta"):
        model = VisionTransformer(ViTConfig(dim=1280, depth=32, heads=16, mlp_dim=5120))
        scaled = ScaledViT(model, trained_model().scaling)
    with pytest.raises(InputError, match=r"take 2\.4 GiB: expected less than 2 GiB"):
        onnx_file(scaled, {})


def test_an_exported_model_may_take_another_image_size(tmp_path):
    trained = trained_model()
    path = export_model(trained, tmp_path / "a.pt2", "pt2", image_size=16).path
    run = torch.export.load(io.BytesIO(path.read_bytes())).module()
    larger = adapted(trained.model, 16, trained.model.config.num_classes, keep_head=True).eval()
    assert_same_logits(dataclasses.replace(trained, model=larger), run)
    with pytest.raises(InputError, match="patch_size 4 does not divide the image size 18 x 18"):
        export_model(trained, tmp_path / "b.pt2", "pt2", image_size=18)


def test_a_file_names_a_published_model_whole(tmp_path):
    trained = dataclasses.replace(trained_model(), name="R50+B/16-384")
    assert export_model(trained, tmp_path / "a.pt2", "pt2").notes["model"] == trained.name


def test_a_model_alone_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(InputError, match="a model of type VisionTransformer: expected what open_classifier"):
        export_model(trained_model().model, tmp_path / "m.onnx")
