"""Save a model and get it back: safetensors with the configuration inside, never pickle."""

import json
import os
import tempfile
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.vit import VisionTransformer


def save_checkpoint(path: str | os.PathLike[str], model: VisionTransformer) -> None:
    """Write weights and configuration to one file; an older file stays whole until the new one is.

    Args:
        path: where to write; by custom it ends in ``.safetensors``.
        model: the model; its weights keep their type.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    content = serialise(tensors, metadata={"vit_config": json.dumps(model.config.to_dict())})
    write_atomically(Path(path), content)


def load_checkpoint(path: str | os.PathLike[str]) -> VisionTransformer:
    """Read a file of :func:`save_checkpoint` and return the model on the CPU, in evaluation mode.

    Raises:
        InputError: if there is no such file, or it is not a whole checkpoint of this package.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no checkpoint at {path}: expected a .safetensors file; check the path.")
    tensors, metadata = read_safetensors(path, "a file that save_checkpoint wrote; copy or train it again")
    if "vit_config" not in metadata:
        raise InputError(
            f"{path} holds tensors but no ViT configuration: expected a file that save_checkpoint wrote; "
            "build the model yourself to load weights from elsewhere."
        )
    model = VisionTransformer(ViTConfig.from_dict(json.loads(metadata["vit_config"])))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path} does not fit its own configuration ({reason}); train or save it again."
        ) from None
    types = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if len(types) == 1:
        model.to(types.pop())
    return model.eval()


def read_safetensors(path: Path, expected: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read every tensor and the metadata of a safetensors file; no code in it can run.

    Raises:
        InputError: it cannot be read; the message says what was ``expected``.
    """
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} cannot be read as safetensors ({error}): expected {expected}.") from None


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that at every moment either the old content or the new stands at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.umask(umask := os.umask(0))  # asking for the mask means setting it
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp lets only the owner read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
