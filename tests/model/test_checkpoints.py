"""A saved model comes back whole, and nothing else is taken for one."""

import json

import pytest
import torch
from safetensors.torch import save_file

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.model.checkpoints import load_checkpoint, save_checkpoint, write_atomically


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_model_comes_back_with_its_configuration_weights_and_type(tmp_path, small_model, dtype):
    model = small_model.to(dtype)
    save_checkpoint(tmp_path / "model.safetensors", model)
    again = load_checkpoint(tmp_path / "model.safetensors")
    assert again.config == model.config
    assert not again.training
    for name, value in model.state_dict().items():
        assert again.state_dict()[name].dtype == dtype
        assert torch.equal(again.state_dict()[name], value)


def test_a_count_of_batches_does_not_hide_the_type_of_the_weights(tmp_path):
    config = ViTConfig(8, 4, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3, stem="conv", stem_width=4)
    save_checkpoint(tmp_path / "model.safetensors", VisionTransformer(config).half())
    assert load_checkpoint(tmp_path / "model.safetensors").head.weight.dtype == torch.float16


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"no checkpoint at .*absent\.safetensors"):
        load_checkpoint(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x80\x04\x95pickle"])
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


def test_a_checkpoint_whose_tensors_do_not_fit_is_refused(tmp_path, small_model):
    state = {name: value.contiguous() for name, value in small_model.state_dict().items()}
    state.pop("head.bias")
    metadata = {"vit_config": json.dumps(small_model.config.to_dict())}
    save_file(state, tmp_path / "model.safetensors", metadata=metadata)
    with pytest.raises(InputError, match=r"does not fit.*head\.bias"):
        load_checkpoint(tmp_path / "model.safetensors")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")

    def disk_full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", disk_full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_has_the_rights_that_any_new_file_has(tmp_path):
    write_atomically(tmp_path / "ours", b"content")
    (tmp_path / "plain").write_bytes(b"content")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
