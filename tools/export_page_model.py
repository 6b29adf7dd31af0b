"""Write a model for the pages: one file that book/_static/vit/vit.js reads, its weights in a byte each.

    python tools/export_page_model.py --data-dir DEST    # all that the pages have
    python tools/export_page_model.py runs/x --data mnist --data-dir DEST
    python tools/export_page_model.py --check    # fails when a file is stale

writes book/_static/vit/DATA.bin from a model that ships or from a run, and DATA.json: what these weights do
on all test images beside those in full precision. The model of masked patches is one whose classes are
colours, for each patch, and its mask token; it is measured on held-out photos, corrupted as in its training.
A row of a matrix becomes whole numbers from -127 to 127 times a scale; everything else stays in single
precision. It takes minutes.

The file: MAGIC, VERSION, its length and that of its header, each four bytes, lowest first; the header in JSON
(config, classes, and name, shape and type of each tensor); the tensors in that order, each beginning at a
multiple of four bytes, rows of "int8" after one scale each; zlib's crc32 of everything before it.
"""

import argparse
import copy
import dataclasses
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure_masked import answers

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.data import DataConfig, open_dataset
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import sha256, write_atomically, write_json
from vit_from_scratch.model.checkpoints import model_from_tensors
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.pretrained import load_self_supervised
from vit_from_scratch.training import MaskedPatchPrediction
from vit_from_scratch.training.evaluation import measure
from vit_from_scratch.training.masked_patches import COLOURS, colours_of_numbers
from vit_lab import load_recipe
from vit_lab.runs.environment import environment
from vit_lab.runs.trained_models import TrainedModel, open_model

FOLDER = Path(__file__).resolve().parent.parent / "book/_static/vit"
MASKED = "tiny-imagenet-masked-patches"
PAGES = ("tiny-imagenet", "mnist", MASKED)  # the models that pages have
MAGIC, VERSION = b"ViTP", 1
PLAIN = {"pool": "cls", "norm": "final", "gelu": "erf", "mlp": "dense", "qkv_bias": True, "qk_norm": False}
PLAIN |= {"representation_size": None, "stem": "patch", "objective": "classes"}  # what vit.js computes
LARGEST_LOSS = 0.003  # of the accuracy, for a byte a weight


def page_model(weights: str) -> TrainedModel:
    """Open a model as a page has it: with colours as its classes, and its mask token, if it names colours."""
    trained = open_model(weights, "the weights")
    if trained.objective != MaskedPatchPrediction.objective:
        return trained
    task = load_self_supervised(weights)
    assert isinstance(task, MaskedPatchPrediction)
    tensors = {name: values for name, values in task.vit.state_dict().items() if not name.startswith("head.")}
    tensors |= {f"head.{name}": values for name, values in task.head.state_dict().items()}
    model = model_from_tensors(dataclasses.replace(task.vit.config, num_classes=COLOURS), tensors)
    model.tokens.register_buffer("mask", task.mask_token.detach())
    middles = colours_of_numbers(torch.arange(COLOURS)).long().tolist()
    colours = tuple(f"rgb({red} {green} {blue})" for red, green, blue in middles)
    return TrainedModel(weights, model, colours, trained.normalisation)


def packed(trained: TrainedModel) -> bytes:
    """Return the file of a model, or raise an `InputError` if it is one that vit.js does not compute."""
    config, scaling = trained.model.config, trained.scaling
    own = {"stem": config.stem.kind, "objective": trained.objective}
    own |= {name: getattr(config, name) for name in PLAIN if name not in own}
    if differs := {name: value for name, value in own.items() if value != PLAIN[name]}:
        raise InputError(f"{trained.name} has {differs}: expected a plain model that knows classes, {PLAIN}.")
    shapes = {"image_shape": config.image_shape, "grid": config.grid, "num_patches": config.num_patches}
    mean, std = ((values * config.channels)[: config.channels] for values in (scaling.mean, scaling.std))
    fields = {
        name: value for name, value in config.to_dict().items() if name != "qk_norm"
    }  # newer than files
    about = fields | shapes | {"mean": mean, "std": std}  # one number a channel
    header: dict[str, Any] = {"config": about, "classes": trained.class_names, "tensors": []}
    body = b""
    for name, tensor in page_tensors(trained.model).items():
        numbers = tensor.detach().float().numpy()
        kind = "int8" if name.endswith(".weight") and numbers.ndim == 2 else "float32"
        if kind == "int8":
            scales = np.maximum(np.abs(numbers).max(axis=1) / np.float32(127), np.finfo(np.float32).tiny)
            body += scales.astype("<f4").tobytes()
            numbers = np.rint(numbers / scales[:, None])
        body += numbers.astype("<f4" if kind == "float32" else "i1").tobytes()
        body += bytes(-len(body) % 4)
        header["tensors"].append({"name": name, "shape": numbers.shape, "type": kind})
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 4)
    content = MAGIC + struct.pack("<3I", VERSION, 20 + len(text) + len(body), len(text)) + text + body
    return content + struct.pack("<I", zlib.crc32(content))


def page_tensors(model: VisionTransformer) -> dict[str, torch.Tensor]:
    """Return a plain model's weights by name, and the tokens' class token (D), positions (T, D), mask (D)."""
    weights = {name: values for name, values in model.state_dict().items() if not name.startswith("tokens.")}
    first, position = model.tokens.class_token[0, 0], model.tokens.position_embedding()
    table = torch.zeros(model.config.num_tokens, len(first)) if position is None else position[0]
    masks = {f"tokens.{name}": values for name, values in model.tokens.named_buffers() if name == "mask"}
    return weights | {"tokens.class_token": first, "tokens.position": table} | masks


def unpacked(content: bytes) -> tuple[VisionTransformer, dict[str, Any]]:
    """Return the model that a page finds in a file, in PyTorch, and the file's header."""
    version, length, size = struct.unpack_from("<3I", content, 4)
    checksum = struct.unpack("<I", content[-4:])[0] == zlib.crc32(content[:-4])
    if not (content[:4] == MAGIC and version == VERSION and length == len(content) and checksum):
        raise InputError(f"not a whole model for pages of version {VERSION}: export it again.")
    header = json.loads(content[16 : 16 + size])
    tensors, at = {}, 16 + size
    for tensor in header["tensors"]:
        shape, count = tensor["shape"], int(np.prod(tensor["shape"]))
        scales = np.float32(1)
        if tensor["type"] == "int8":
            scales = np.frombuffer(content, "<f4", shape[0], at)[:, None]  # (rows, 1)
            at += 4 * shape[0]
        kind = np.dtype("i1" if tensor["type"] == "int8" else "<f4")
        numbers = np.frombuffer(content, kind, count, at).reshape(shape) * scales
        tensors[tensor["name"]] = torch.from_numpy(numbers.astype(np.float32))
        at += -(-count * kind.itemsize // 4) * 4
    known = {field.name for field in dataclasses.fields(ViTConfig)}
    fields = {name: value for name, value in header["config"].items() if name in known}
    config = ViTConfig.from_dict(fields | {"position": "learned"})
    tensors["tokens.class_token"] = tensors["tokens.class_token"][None, None]
    tensors["tokens.position"] = tensors["tokens.position"][None]
    mask = tensors.pop("tokens.mask", None)
    model = model_from_tensors(config, tensors)
    if mask is not None:
        model.tokens.register_buffer("mask", mask)
    return model, header


def task_of(model: VisionTransformer) -> MaskedPatchPrediction:
    """Return the task that a page's model of masked patches comes from, with the weights of the page."""
    task = MaskedPatchPrediction(copy.deepcopy(model)).eval()
    task.head.load_state_dict(model.head.state_dict())
    task.mask_token.data = model.get_buffer("tokens.mask")
    return task


def colours_right(model: VisionTransformer, data_dir: str | None) -> dict[str, Any]:
    """Return how many corrupted patches of the held-out photos a model of masked patches names right."""
    data = open_dataset(load_recipe(MASKED).data, data_dir)
    found = answers(task_of(model), data)
    right = (found["model"] == found["target"]).double().mean().item()
    return {"accuracy": right, "patches": len(found["target"]), "images": data.size_of("validation")}


def measured(trained: TrainedModel, content: bytes, data: str, data_dir: str | None) -> dict[str, Any]:
    """Return how right a file's model is on all test images, and how right it was in full precision."""
    models, part = {"page": unpacked(content)[0], "full_precision": trained.model}, "test"
    if data == MASKED:
        part, found = "validation", {key: colours_right(model, data_dir) for key, model in models.items()}
    else:
        test = open_dataset(DataConfig(data), data_dir)
        found = {key: dataclasses.asdict(measure(model, test.batches(part))) for key, model in models.items()}
    lost = found["full_precision"]["accuracy"] - found["page"]["accuracy"]
    if lost > LARGEST_LOSS:
        raise InputError(f"a byte a weight costs {lost:.2%}: expected {LARGEST_LOSS:.1%} at most.")
    return {"part": part} | found


def check(weights: str, name: str) -> None:
    """Raise an `InputError` if a model's file, or what it tells of it, is not as it would be written now."""
    target, result = FOLDER / f"{name}.bin", FOLDER / f"{name}.json"
    content = packed(page_model(weights))
    fresh = target.exists() and result.exists() and target.read_bytes() == content
    if not (fresh and json.loads(result.read_text("utf-8"))["sha256"] == sha256(target)):
        raise InputError(f"{target.name} or {result.name} is stale: export it again.")


def export(weights: str, name: str, data_dir: str | None) -> None:
    """Write a model's file and what it tells of it, once it has been measured."""
    target, trained = FOLDER / f"{name}.bin", page_model(weights)
    content = packed(trained)
    summary = measured(trained, content, name, data_dir)
    write_atomically(target, content)
    about = {"bytes": len(content), "sha256": sha256(target), "model_sha256": open_model(weights).sha256}
    about["parameters"] = count_parameters(trained.model)
    write_json(target.with_suffix(".json"), about | summary | environment(1, "cpu"))
    print(json.dumps(about | summary, indent=1))


def main() -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", nargs="*", help="models that ship, or a run (default: all of the pages)")
    parser.add_argument("--data", help="the data set, which names the file (default: as the weights)")
    parser.add_argument("--data-dir", help="folder that holds the data set")
    parser.add_argument("--check", action="store_true", help="only say whether files are as they would be")
    options = parser.parse_args()
    several = options.weights or PAGES
    if options.data and len(several) > 1:
        parser.error("--data names one file: expected one model beside it.")
    try:
        for weights in several:
            name = options.data or weights
            check(weights, name) if options.check else export(weights, name, options.data_dir)
    except InputError as error:
        print(f"export_page_model: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
