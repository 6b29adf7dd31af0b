"""A model, scaling of its images included, as an ONNX or a torch.export file, and what runs the file."""

import io
import json
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.export import Dim

from vit_from_scratch.data.normalisation import Normalisation
from vit_from_scratch.errors import InputError
from vit_from_scratch.model.cost import count_parameters
from vit_from_scratch.model.vit import VisionTransformer
from vit_lab.export.formats import missing_packages

Run = Callable[[Tensor], Tensor]
"""Images (B, C, H, W) to logits (B, K), with what an exported file holds."""

NOTES = "vit_from_scratch.json"
"""The file inside a file of torch.export that says what it takes and gives."""

LARGEST_ONNX = 2**31
"""Bytes that one ONNX file can hold."""


class ScaledViT(nn.Module):
    """A model that takes images in [0, 1] and scales them as it was trained to want them.

    Args:
        model: any of ours.
        scaling: the mean and standard deviation of each channel.
    """

    def __init__(self, model: VisionTransformer, scaling: Normalisation) -> None:
        super().__init__()
        self.model = model
        # Not "mean" and "std": the ONNX exporter calls what it folds in a hybrid's weights so.
        self.register_buffer("image_mean", torch.tensor(scaling.mean).view(-1, 1, 1))
        self.register_buffer("image_std", torch.tensor(scaling.std).view(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) in [0, 1] to logits (B, K)."""
        return self.model(self.scaled(images))

    def scaled(self, images: Tensor) -> Tensor:
        """Map images (B, C, H, W) in [0, 1] to what the model takes."""
        return (images - self.get_buffer("image_mean")) / self.get_buffer("image_std")

    def example(self, batch: int) -> Tensor:
        """Return random images (B, C, H, W) in [0, 1], the same ones each time."""
        config = self.model.config
        generator = torch.Generator().manual_seed(batch)
        return torch.rand(batch, config.channels, *config.image_shape, generator=generator)


def onnx_file(model: ScaledViT, notes: dict[str, str]) -> tuple[bytes, Run | None]:
    """Return an ONNX file, with an open batch axis and notes in its metadata, and what runs it.

    There is nothing to run it where ONNX Runtime is not installed.

    Raises:
        InputError: the weights are more than one such file can hold.
    """
    if (size := 4 * count_parameters(model.model)) >= 0.99 * LARGEST_ONNX:
        raise InputError(
            f"the weights take {size / 2**30:.1f} GiB: expected less than 2 GiB, all that an ONNX file "
            "holds. Take --format pt2 or safetensors-timm."
        )
    import onnx

    names = {"input_names": ["images"], "output_names": ["logits"], "dynamic_shapes": ({0: Dim("batch")},)}
    program = torch.onnx.export(model, (model.example(2),), **names, dynamo=True, verbose=False)
    assert program is not None  # only the older way of exporting returns nothing
    proto = program.model_proto
    parts = [*proto.graph.node, *proto.graph.value_info, *proto.graph.initializer]
    parts += [*proto.graph.input, *proto.graph.output, proto.graph]
    for part in parts:  # stack traces, which name this machine's folders
        part.ClearField("metadata_props")
    onnx.helper.set_model_props(proto, notes)
    onnx.checker.check_model(proto)
    content = proto.SerializeToString()
    if missing_packages(["onnxruntime"]):
        return content, None
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return content, lambda images: torch.from_numpy(session.run(["logits"], {"images": images.numpy()})[0])


def pt2_file(model: ScaledViT, notes: dict[str, str]) -> tuple[bytes, Run]:
    """Return a file of torch.export, with an open batch axis, and what runs it."""
    program = torch.export.export(model, (model.example(2),), dynamic_shapes=({0: Dim("batch")},))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it names this machine's folders
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={NOTES: json.dumps(notes)})
    return buffer.getvalue(), torch.export.load(buffer).module()
