"""What tests of the laboratory share: a folder of their own, and runs that take no longer than they must."""

import functools

import pytest
import sklearn.datasets

from vit_from_scratch.files import write_atomically


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
