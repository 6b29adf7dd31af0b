"""The formats that a trained model can be exported to, and where a file goes. Nothing here needs PyTorch."""

from dataclasses import dataclass
from pathlib import Path

from vit_from_scratch.errors import InputError, unknown_name
from vit_lab.packages import require_packages
from vit_lab.runs.trained_models import KNOWN, checkpoint_path


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

    @property
    def ending(self) -> str:
        """What the name of such a file ends in."""
        return f".{self.suffix.rpartition('.')[2]}"


FORMATS = {
    "onnx": Format(".onnx", ("onnx", "onnxscript")),
    "pt2": Format(".pt2"),
    "safetensors-timm": Format(".timm.safetensors", ("timm",), scaled_inside=False),
}
"""Each by its name: a graph for ONNX Runtime and others, torch.export, timm's own weights."""


def format_named(name: str) -> Format:
    """Return a format whose packages are here.

    Raises:
        InputError: there is none of that name, or a package is missing.
    """
    if name not in FORMATS:
        raise unknown_name("format", name, FORMATS)
    require_packages(FORMATS[name].needs, f"--format {name}")
    return FORMATS[name]


def export_path(weights: str, kind: Format, option: str) -> Path:
    """Return where an export goes: beside a run's model or a file, a named model into the current folder.

    Raises:
        InputError: the weights are none of these.
    """
    if weights in KNOWN:
        return Path(weights.replace("/", "-") + kind.suffix)
    return checkpoint_path(weights, option).with_suffix(kind.suffix)


def check_ending(path: Path, kind: Format) -> None:
    """Raise an `InputError` if a file's name ends otherwise than files of its kind."""
    if path.suffix != kind.ending:
        raise InputError(f"--out {path}: expected a name that ends in {kind.ending}. Choose another name.")
