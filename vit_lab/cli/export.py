"""`vit export`: a trained model as a file for other programs."""

import argparse
import json
from pathlib import Path
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path
from vit_lab.cli.options import add_command, add_shared, refuse_existing, weights_help
from vit_lab.export.formats import FORMATS, format_named
from vit_lab.runs.trained_models import CLASSIFIERS, KNOWN, checkpoint_path, open_classifier

EPILOG = """\
examples:
  vit export cifar10                                     # cifar10.onnx
  vit export runs/try --image-size 64                    # runs/try/model.onnx
  vit export cifar10 --format safetensors-timm           # cifar10.timm.safetensors, for timm.create_model

onnx and pt2 take images from 0 to 1 in batches of any size and scale them inside; timm's models take scaled
images. What a file takes and gives, its classes too, is printed and is in its metadata."""


def add_parser(commands: Any) -> None:
    """Add `export` to the commands."""
    parser = add_command(
        commands,
        "export",
        run,
        help="write a trained model for ONNX Runtime, timm and others",
        description="Write a trained model to a file that other programs read, after comparing its logits "
        "with those here (for ONNX, if onnxruntime is installed).",
        epilog=EPILOG,
    )
    parser.add_argument("weights", metavar="MODEL", help=weights_help(CLASSIFIERS))
    parser.add_argument("--format", choices=FORMATS, default="onnx", help="(default: onnx)")
    about = "(default: RUN/model.onnx, NAME.onnx and so on)"
    parser.add_argument("--out", type=own_path, metavar="FILE", help=about)
    add_shared(parser, "--image-size")


def run(options: argparse.Namespace) -> None:
    """Carry out `vit export`."""
    name, suffix = options.weights, format_named(options.format).suffix
    if options.out is not None and options.out.suffix != Path(f"x{suffix}").suffix:
        raise InputError(f"--out {options.out}: expected a name that ends in {Path(f'x{suffix}').suffix}.")
    own = (
        Path(name.replace("/", "-")) if name in KNOWN else checkpoint_path(name, "vit export").with_suffix("")
    )
    path = options.out or own.with_name(own.name + suffix)
    refuse_existing([path], "name another file with --out FILE")
    trained = open_classifier(name, "vit export")
    from vit_lab.export.exports import CHECKED_BATCHES, export_model

    done = export_model(trained, path, options.format, options.image_size)
    notes, names = done.notes, trained.class_names
    unsaid = "" if trained.normalisation else ", assumed: the file does not say"
    mean, std = (", ".join(f"{value:g}" for value in json.loads(notes[key])) for key in ("mean", "std"))
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    print(f"  takes {notes['input']}")
    print(f"  scaled by mean {mean}, std {std}{unsaid}")
    some = names if len(names) <= 3 else (*names[:2], "...", names[-1])
    print(f"  gives {notes['output']}; classes {', '.join(some)}")
    if "create" in notes:
        print(f"  load it with {notes['create']}")
    if done.difference is None:
        print("  not checked, as onnxruntime is not installed here; to check it: pip install onnxruntime")
    else:
        batches = " and ".join(map(str, CHECKED_BATCHES))
        print(f"  checked: logits as here in batches of {batches}, within {done.difference:.0e}")
