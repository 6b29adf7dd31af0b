"""What the judge and a student's process tell each other: JSON and tensors, never pickles.

A pickle runs code where it is read, and the student's side is not to be trusted with the judge's process.
"""

import json
import struct
from typing import IO, Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

LARGEST = 500_000_000
"""Bytes of a message; a larger one ends the conversation."""
LARGEST_TEXT = 10_000_000
"""Bytes of its text, and of what names its tensors, which take far more once they are read."""


class BrokenWire(Exception):
    """The other side is gone, or says what makes no sense."""


def send(stream: IO[bytes], message: dict[str, Any], tensors: list[Tensor]) -> None:
    """Write a message with its tensors."""
    text = json.dumps(message, ensure_ascii=False).encode(errors="replace")  # of half a character
    copies = {str(n): t.detach().clone(memory_format=torch.contiguous_format) for n, t in enumerate(tensors)}
    blob = safetensors.torch.save(copies)  # copies, because it refuses tensors that share memory
    stream.write(struct.pack(">QQ", len(text), len(blob)) + text + blob)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[Tensor]]:
    """Read a message with its tensors.

    Raises:
        BrokenWire: there is none, or it is damaged or too large.
    """
    try:
        sizes = struct.unpack(">QQ", _read(stream, 16))
        if sum(sizes) > LARGEST or sizes[0] > LARGEST_TEXT:
            raise BrokenWire(f"a message of {sizes[0]:,} bytes of text and {sizes[1]:,} of tensors")
        message = json.loads(_read(stream, sizes[0]))
        blob = _read(stream, sizes[1])
        if (names := int.from_bytes(blob[:8], "little")) > LARGEST_TEXT:
            raise BrokenWire(f"a message with {names:,} bytes of names of tensors")
        tensors = safetensors.torch.load(blob)
        if not isinstance(message, dict):
            raise BrokenWire("a message that is none")
        return message, [tensors[str(number)] for number in range(len(tensors))]
    except (OSError, ValueError, KeyError, RuntimeError, MemoryError, safetensors.SafetensorError) as error:
        raise BrokenWire(str(error)) from error


def _read(stream: IO[bytes], count: int) -> bytes:
    found = stream.read(count)
    if len(found) < count:
        raise BrokenWire("the other side is gone")
    return found


def pack(value: object, tensors: list[Tensor]) -> Any:
    """Describe a value in JSON; its tensors are added to a list, and numbered there."""
    if isinstance(value, Tensor):
        plain = value.detach().as_subclass(Tensor)
        if plain.device.type != "cpu" or plain.layout != torch.strided:
            return {"elsewhere": list(plain.shape), "dtype": str(plain.dtype).removeprefix("torch.")}
        tensors.append(plain)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, bool | int | float | str) or value is None:
        return {"value": value}
    if isinstance(value, np.generic):
        return pack(value.item(), tensors)
    if isinstance(value, tuple | list):
        items = [pack(part, tensors) for part in value[:8]]
        return {"items": items, "more": len(value) - len(items), "list": isinstance(value, list)}
    if isinstance(value, np.ndarray):
        return {"kind": "array"}
    if isinstance(value, nn.Module):
        return {"kind": "module", "name": type(value).__name__}
    return {"kind": "other", "name": type(value).__name__}


def unpack(packed: Any, tensors: list[Tensor]) -> Any:
    """Make a value of its description; what cannot be sent becomes an empty one of its kind."""
    if "tensor" in packed:
        return tensors[packed["tensor"]]
    if "value" in packed:
        return packed["value"]
    if "items" in packed:
        items = [unpack(part, tensors) for part in packed["items"]] + min(packed["more"], 10_000) * [None]
        return items if packed["list"] else tuple(items)
    if "elsewhere" in packed:
        return torch.empty(packed["elsewhere"], dtype=getattr(torch, packed["dtype"]), device="meta")
    if packed["kind"] == "array":
        return np.zeros(1)
    name = str(packed["name"])
    return type(name, (nn.Module if packed["kind"] == "module" else object,), {})()
