"""Where bfloat16 is fast is read off the device; `vit train` says so where it is not."""

import pytest
import torch

from vit_from_scratch.precisions import has_bfloat16_units
from vit_lab.cli import main

XEON = {"avx512_f": True, "avx512_bf16": False, "amx_bf16": False, "architecture": "x86_64"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (XEON, False),
        (XEON | {"amx_bf16": True}, True),
        ({"neon": True, "bf16": True}, True),
        ({"neon": True}, False),
    ],
)
def test_a_processors_units(monkeypatch, found, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    assert has_bfloat16_units("cpu") is expected


def test_an_older_pytorch_is_asked_for_avx512(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    assert has_bfloat16_units("cpu")


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_nvidias_have_them_from_ampere_on(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.version, "hip", None)
    assert has_bfloat16_units("cuda:0") is expected


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_says_where_bfloat16_is_slow(monkeypatch, tmp_path, capsys, units, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: XEON | {"amx_bf16": units}, raising=False)
    settings = ["model.depth=1", "model.dim=8", "model.heads=1", f"train.precision={precision}"]
    train = ["train", "--data", "digits", "--device", "cpu", "--epochs", "1", "--out", str(tmp_path / "x")]
    assert main([*train, "--set", *settings]) == 0
    said = "no units for bfloat16: --set train.precision=float32 is faster" in capsys.readouterr().err
    assert said == (precision == "bfloat16" and not units)
