"""The formats that a trained model can be exported to, and the packages that they need, without PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from vit_from_scratch.errors import InputError, unknown_name


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes:
        suffix: what a file is called by default, after the model's name.
        needs: packages that write it.
        scaled_inside: whether the file takes images in [0, 1] and scales them itself.
    """

    suffix: str
    needs: tuple[str, ...] = ()
    scaled_inside: bool = True


FORMATS = {
    "onnx": Format(".onnx", ("onnx", "onnxscript")),
    "pt2": Format(".pt2"),
    "safetensors-timm": Format(".timm.safetensors", ("timm",), scaled_inside=False),
}
"""Each by its name: a graph for ONNX Runtime and others, torch.export, timm's own weights."""


def format_named(name: str) -> Format:
    """Return a format whose packages are installed.

    Raises:
        InputError: an unknown name, or a package is missing.
    """
    if name not in FORMATS:
        raise unknown_name("format", name, FORMATS)
    require_packages(FORMATS[name].needs, f"--format {name}")
    return FORMATS[name]


def missing_packages(names: Sequence[str]) -> list[str]:
    """Return those of the packages that are not installed; none is imported."""
    return [name for name in names if find_spec(name) is None]


def require_packages(names: Sequence[str], purpose: str) -> None:
    """Raise an `InputError` that says what to install for a purpose, unless all packages are installed."""
    if missing := " ".join(missing_packages(names)):
        raise InputError(
            f"{purpose} needs {', '.join(names)}; not installed here: {missing}. Run: pip install {missing}"
        )
