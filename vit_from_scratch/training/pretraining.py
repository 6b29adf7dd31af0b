"""Self-supervised tasks by name; and a whole self-supervised model in a file, never pickle.

A run's model.safetensors is the ViT alone, which is what fine-tuning takes; this file also holds the parts
that only the task needs, such as a decoder.
"""

import json
import os
from pathlib import Path

from safetensors.torch import save as serialise

from vit_from_scratch.data.normalisation import Normalisation
from vit_from_scratch.errors import InputError
from vit_from_scratch.files import write_atomically
from vit_from_scratch.model.checkpoints import config_of_checkpoint, read_safetensors, tensor_mismatches
from vit_from_scratch.model.modes import shapes_only
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.training.masked_autoencoding import MaskedAutoencoder
from vit_from_scratch.training.masked_patches import MaskedPatchPrediction
from vit_from_scratch.training.self_supervised import SelfSupervised

PRETRAINING = "pretraining.safetensors"
"""The file in a run's folder."""

OURS = "a file that save_pretraining wrote; copy or train it again"

TASKS = {task.objective: task for task in (MaskedPatchPrediction, MaskedAutoencoder)}
"""What learns by each objective that needs no labels."""


def save_pretraining(path: str | os.PathLike[str], module: SelfSupervised) -> None:
    """Write a self-supervised model, weights and settings, to one ``.safetensors`` file, all or nothing.

    Raises:
        InputError: nothing can be written there.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}
    about = {
        "objective": module.objective,
        "vit_config": module.vit.config.to_dict(),
        "normalise": {"mean": module.normalise.mean, "std": module.normalise.std},
        "settings": module.settings,
    }
    # One entry: several would come in another order each time, and equal runs should leave equal bytes.
    content = serialise(tensors, {"pretraining": json.dumps(about)})
    write_atomically(Path(path), content)


def load_pretraining(path: str | os.PathLike[str]) -> SelfSupervised:
    """Read a file of :func:`save_pretraining` and return the model on the CPU, in evaluation mode.

    Raises:
        InputError: there is no such file, or it is not a whole one of this package. Sizes that no tensor in
            it has are refused before anything of that size is made.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise InputError(f"no pre-training at {path}: expected a {PRETRAINING} of a run; check the path.")
    tensors, metadata = read_safetensors(path, OURS)
    if "pretraining" not in metadata:
        raise InputError(f"{path} holds no pre-training: expected {OURS}.")
    try:
        about = json.loads(metadata["pretraining"])
        task, settings = TASKS[about["objective"]], about["settings"]
        normalise = Normalisation(
            **{key: tuple(map(float, some)) for key, some in about["normalise"].items()}
        )
        config = config_of_checkpoint(path, json.dumps(about["vit_config"]))
        with shapes_only():  # no memory yet: shapes are compared first
            module = task(VisionTransformer(config), normalise, **settings)
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
        raise InputError(f"{path} has wrong settings ({str(error)[:300]}): expected {OURS}.") from None
    if problems := tensor_mismatches(tensors, module.state_dict()):
        raise InputError(f"{path} does not fit its own settings ({problems}): expected {OURS}.")
    module.load_state_dict({name: tensor.float().clone() for name, tensor in tensors.items()}, assign=True)
    return module.eval()
