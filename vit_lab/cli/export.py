"""`vit export`: a trained model as a file for other programs."""

import argparse
import json
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path
from vit_lab.cli.options import refuse_existing
from vit_lab.export.formats import FORMATS, check_ending, export_path, format_named
from vit_lab.runs.trained_models import CLASSIFIERS, TrainedModel, open_classifier

EPILOG = """\
examples:
  vit export cifar10                                     # cifar10.onnx
  vit export runs/try --image-size 64                    # runs/try/model.onnx
  vit export cifar10 --format safetensors-timm           # cifar10.timm.safetensors, for timm.create_model

onnx and pt2 take images from 0 to 1 in batches of any size and scale them inside; timm's models take scaled
images. What a file takes and gives, its classes too, is printed and is in its metadata."""

AS = "vit export"


def add_parser(commands: Any) -> None:
    """Add `export` to the commands."""
    parser = commands.add_parser(
        "export",
        help="write a trained model for ONNX Runtime, timm and others",
        description="Write a trained model to a file that other programs read, after comparing its logits "
        "with those here (of ONNX only where onnxruntime is installed).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "weights", metavar="MODEL", help=f"{', '.join(CLASSIFIERS)}, a .safetensors file or a run's folder"
    )
    parser.add_argument("--format", choices=FORMATS, default="onnx", help="(default: onnx)")
    parser.add_argument(
        "--out", type=own_path, metavar="FILE", help="(default: RUN/model.onnx, NAME.onnx and so on)"
    )
    parser.add_argument(
        "--image-size", type=int, metavar="S", help="side in pixels (default: the model's own)"
    )
    parser.set_defaults(run=export_command)


def export_command(options: argparse.Namespace) -> None:
    """Carry out `vit export`."""
    kind = format_named(options.format)
    path = options.out or export_path(options.weights, kind, AS)
    check_ending(path, kind)
    refuse_existing([path], "name another file with --out FILE")
    if options.image_size is not None and options.image_size < 1:
        raise InputError(f"--image-size {options.image_size}: expected a side in pixels, 1 or more.")
    trained = open_classifier(options.weights, AS)
    from vit_lab.export.exports import CHECKED_BATCHES, export_model

    done = export_model(trained, path, options.format, options.image_size)
    notes = done.notes
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    print(f"  takes {notes['input']}")
    print(f"  scaled by mean {said(notes['mean'])}, std {said(notes['std'])}{unless_noted(trained)}")
    print(f"  gives {notes['output']}; {classes(trained)}")
    if "create" in notes:
        print(f"  load it with {notes['create']}")
    if done.difference is None:
        print("  not checked, as onnxruntime is not installed here; to check it: pip install onnxruntime")
    else:
        batches = " and ".join(map(str, CHECKED_BATCHES))
        print(f"  checked: logits as here in batches of {batches}, within {done.difference:.0e}")


def said(values: str) -> str:
    """Return the mean or standard deviation of each channel as one reads it."""
    return ", ".join(f"{value:g}" for value in json.loads(values))


def unless_noted(trained: TrainedModel) -> str:
    """Return what to add where nobody noted how images were scaled."""
    return "" if trained.normalisation else ", which is taken for granted: the file does not say"


def classes(trained: TrainedModel) -> str:
    """Return the first and the last class names."""
    names = trained.class_names
    some = names if len(names) <= 3 else (*names[:2], "...", names[-1])
    return f"classes {', '.join(some)}"
