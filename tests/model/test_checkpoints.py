"""A saved model comes back whole, and nothing else is taken for one."""

import json
import os

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint, write_atomically
from vit_from_scratch.model.stem_config import StemConfig


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_model_comes_back_with_its_configuration_weights_and_type(tmp_path, small_model, dtype):
    model = small_model.to(dtype)
    for weight in model.parameters():
        torch.nn.init.normal_(weight)  # with every digit that the type has
    save_checkpoint(tmp_path / "model.safetensors", model)
    again = load_checkpoint(tmp_path / "model.safetensors")
    assert again.config == model.config
    assert not again.training
    for name, value in model.state_dict().items():
        assert again.state_dict()[name].dtype == dtype
        assert torch.equal(again.state_dict()[name], value)


def test_a_count_of_batches_does_not_hide_the_type_of_the_weights(tmp_path):
    config = ViTConfig(
        8, 4, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3, stem=StemConfig("conv", width=4)
    )
    save_checkpoint(tmp_path / "model.safetensors", VisionTransformer(config).half())
    assert load_checkpoint(tmp_path / "model.safetensors").head.weight.dtype == torch.float16


def test_a_place_where_nothing_can_be_written_is_one_sentence(tmp_path, small_model):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"cannot write .*model\.safetensors: .*Expected a folder"):
        save_checkpoint(tmp_path / "file" / "model.safetensors", small_model)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"no checkpoint at .*absent\.safetensors"):
        load_checkpoint(tmp_path / "absent.safetensors")


HUGE = b'{"w":{"dtype":"F32","shape":[9223372036854775808,0],"data_offsets":[0,0]}}'


@pytest.mark.parametrize(
    "content",
    [b"", b"not a checkpoint", b"\x80\x04\x95pickle", len(HUGE).to_bytes(8, "little") + HUGE],
    ids=["empty", "text", "pickle", "no tensor can be so large"],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        load_checkpoint(tmp_path / "model.safetensors")


def test_a_file_cut_short_is_refused(tmp_path, small_model):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, small_model)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        load_checkpoint(path)


def test_tensors_without_a_configuration_are_refused(tmp_path):
    save_file({"weight": torch.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="no ViT configuration"):
        load_checkpoint(tmp_path / "model.safetensors")


def write(path, fields, tensors=None):
    """Write a checkpoint by hand: its configuration as given (a string stays one), and its tensors."""
    tensors = {"weight": torch.zeros(3)} if tensors is None else tensors
    text = fields if isinstance(fields, str) else json.dumps(fields)
    save_file(tensors, path, metadata={"vit_config": text})
    return path


TEXTS = ["", "{", "null", "[]", "3", '"B/16"', "[" * 10**5, '{"dim": ' * 980 + "3" + "}" * 980, "9" * 5000]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:9])
def test_a_configuration_that_is_not_a_table_is_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"has a wrong ViT configuration: .+"):
        load_checkpoint(write(tmp_path / "model.safetensors", text))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": "24"}, "wrong ViT configuration: model.dim = '24': expected a whole number"),
        ({"image_size": None}, "wrong ViT configuration: model.image_size = None"),
        ({"image_size": [12, 16, 3]}, r"wrong ViT configuration: model.image_size = \[12, 16, 3\]"),
        ({"pool": ["cls"]}, "wrong ViT configuration: unknown model.pool"),
        ({"dropout": float("nan")}, "wrong ViT configuration: model.dropout = nan"),
        ({"depth": True}, "wrong ViT configuration: model.depth = True"),
        ({"stem": {"layers": [3, "4"]}}, r"wrong ViT configuration: model.stem.layers"),
        ({"dim": json.loads("[" * 900 + "]" * 900)}, "wrong ViT configuration: "),
        ({"width": 3}, "wrong ViT configuration: unknown option of .model. 'width'"),
        ({"norm": "x" * 100_000}, "wrong ViT configuration: unknown model.norm 'xxx"),
    ],
)
def test_a_configuration_with_a_wrong_value_is_refused(tmp_path, small_model, change, message):
    fields = small_model.config.to_dict() | change
    with pytest.raises(InputError, match=message) as raised:
        load_checkpoint(write(tmp_path / "model.safetensors", fields, small_model.state_dict()))
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize(
    "change",
    [
        {"depth": 3_000_000},
        {"dim": 2**62, "heads": 2},
        {"heads": 10**400},
        {"mlp_dim": 2**20, "num_classes": 2**20},
        {"image_size": [12, 10**30]},
        {"image_size": 4096, "patch_size": 1},
        {"image_size": 2**16, "patch_size": 4, "position": "sincos_2d"},
        {"stem": {"kind": "resnet", "layers": [1] * 100_000}},
        {"stem": {"kind": "conv", "width": 2**16}},
    ],
    ids=str,
)
def test_a_small_file_that_claims_a_huge_model_is_refused(tmp_path, small_model, change):
    fields = small_model.config.to_dict() | change
    message = "does not fit its own configuration|wrong ViT configuration"
    with pytest.raises(InputError, match=message):
        load_checkpoint(write(tmp_path / "model.safetensors", fields, small_model.state_dict()))


def test_the_smallest_of_models_is_no_smaller_than_it_claims(tmp_path):
    config = ViTConfig(
        1, 1, 1, dim=1, depth=1, heads=1, mlp_dim=1, num_classes=1, position="none", norm="none"
    )
    save_checkpoint(tmp_path / "model.safetensors", VisionTransformer(config))
    assert load_checkpoint(tmp_path / "model.safetensors").config == config


def test_tensors_that_do_not_fit_are_named_three_of_a_kind_and_counted(tmp_path, small_model):
    state = {f"other.{name}": value for name, value in small_model.state_dict().items()}
    state["head.bias"] = state.pop("other.head.bias")[:3]
    state["head.weight"] = state.pop("other.head.weight").int()
    with pytest.raises(InputError) as raised:
        load_checkpoint(write(tmp_path / "model.safetensors", small_model.config.to_dict(), state))
    message = str(raised.value)
    assert "(missing: patch_embedding.projection.weight, patch_embedding.projection.bias, tok" in message
    assert f" and {len(state) - 2 - 3} more; left over: other." in message
    assert "of another shape: head.bias (3,) for (7,); of another type: head.weight torch.int32)" in message
    assert len(message) < 800


def test_every_damaged_byte_gives_a_model_or_one_sentence(tmp_path, small_model):
    """Bytes of the header, where names, types, shapes and the configuration stand."""
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, small_model)
    content = path.read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        damaged = bytearray(content)
        for place in random.integers(0, 8 + int.from_bytes(content[:8], "little"), random.integers(1, 4)):
            damaged[place] = random.integers(0, 256)
        path.write_bytes(damaged)
        try:
            load_checkpoint(path)
        except InputError:
            refused += 1
    assert refused > 150


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")

    def disk_full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", disk_full)
    with pytest.raises(InputError, match=r"cannot write .*No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_windows_holds_for_a_moment_is_written_all_the_same(tmp_path, monkeypatch):
    held, replace = iter([True, True, False]), os.replace

    def held_by_a_scanner(*paths):
        if next(held):
            raise PermissionError(13, "Access is denied")
        replace(*paths)

    monkeypatch.setattr("os.name", "nt")
    monkeypatch.setattr("os.replace", held_by_a_scanner)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    write_atomically(tmp_path / "ours", b"content")
    monkeypatch.undo()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"content"]


def test_a_written_file_has_the_rights_that_any_new_file_has(tmp_path):
    write_atomically(tmp_path / "ours", b"content")
    (tmp_path / "plain").write_bytes(b"content")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_model_that_is_not_its_configurations_is_refused_before_anything_is_written(tmp_path, small_model):
    small_model.head = torch.nn.Linear(small_model.head.in_features, 2)
    with pytest.raises(InputError, match=r"of another shape: head\.weight \(2, .*num_classes"):
        save_checkpoint(tmp_path / "model.safetensors", small_model)
    assert not list(tmp_path.iterdir())
