"""Where bfloat16 is fast is read off the device."""

import argparse

import pytest
import torch

from vit_from_scratch.precisions import has_bfloat16_units
from vit_lab.cli.training import affordable
from vit_lab.experiments.recipes import load_recipe

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
    monkeypatch.delenv("VIT_BFLOAT16_UNITS", raising=False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert has_bfloat16_units("cpu") is expected
    monkeypatch.setattr("sys.platform", "darwin")
    assert not has_bfloat16_units("cpu"), "no fast kernels there"


def test_an_older_pytorch_is_asked_for_avx512(monkeypatch):
    monkeypatch.delenv("VIT_BFLOAT16_UNITS", raising=False)
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr("sys.platform", "linux")
    assert has_bfloat16_units("cpu")


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_nvidias_have_them_from_ampere_on(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.version, "hip", None)
    assert has_bfloat16_units("cuda:0") is expected


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_bfloat16_becomes_float32_where_it_is_slow_and_it_is_said(monkeypatch, capsys, units, precision):
    monkeypatch.setenv("VIT_BFLOAT16_UNITS", str(int(units)))
    recipe = load_recipe("digits", {"train": {"precision": precision}})
    train = affordable(recipe, argparse.Namespace(set=[]), "cpu").train
    slow = precision == "bfloat16" and not units
    assert train.precision == ("float32" if slow else precision)
    assert ("no units for bfloat16" in capsys.readouterr().err) == slow
    insisting = argparse.Namespace(set=[f"train.precision={precision}"])
    assert affordable(recipe, insisting, "cpu").train.precision == precision
