"""What tests of the laboratory share: a folder of their own, and runs that take no longer than they must."""

import functools

import pytest
import sklearn.datasets
import torch
from study_pages import Page

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.files import write_atomically
from vit_from_scratch.model.checkpoints import save_checkpoint


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """A folder of its own, on a processor with units for bfloat16: else a line more says float32."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIT_BFLOAT16_UNITS", "1")
    for name in ("VIT_DATA_DIR", "VIT_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def _digits_are_read_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn.datasets, "load_digits", functools.cache(sklearn.datasets.load_digits))
        yield


@pytest.fixture(scope="session", autouse=True)
def _curves_are_not_drawn():
    """They take most of the time of a run as short as these; a test that starts a process has them drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "vit_lab.runs.run_folder.save_curves", lambda path, _: write_atomically(path, b"curves")
        )
        yield


@pytest.fixture
def page(tmp_path):
    return Page(tmp_path)


@pytest.fixture
def saved(tmp_path):
    """A function that saves a small ViT of three classes, changed as asked for, and returns its path."""

    def save(name="start.safetensors", seed: int = 0, change=lambda model: None, **fields) -> str:
        torch.manual_seed(seed)
        sizes = {"dim": 8, "depth": 1, "heads": 2, "mlp_dim": 8, "num_classes": 3}
        model = VisionTransformer(ViTConfig(**({"image_size": 8, "patch_size": 4} | sizes | fields)))
        change(model)
        save_checkpoint(tmp_path / name, model)
        return str(tmp_path / name)

    return save
