"""Google's published weights (.npz) in our model."""

import os
from pathlib import Path

import numpy as np

from vit_from_scratch.errors import InputError, reason
from vit_from_scratch.model.checkpoints import misfits
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.google_layouts import Layout, converted


def load_google_npz(model: VisionTransformer, path: str | os.PathLike[str]) -> None:
    """Fill a model with weights as Google publishes them; either all are taken or none.

    Read are the layouts of vision_transformer (also under `opt/target/`, with or without `pre_logits`) and of
    big_vision (under `params/`, blocks one by one or stacked along a first axis). Positions are interpolated
    if the model's grid is another. Those weights were trained with the tanh form of GELU and images scaled to
    [-1, 1]: build the model with `gelu="tanh"`; the loader never changes it.

    Args:
        model: in place; its sizes must be the file's.
        path: the .npz file.

    Raises:
        InputError: no such file, no such layout, or arrays that are missing, left over or of another shape,
            by name; the model is then as it was. Pickled arrays are refused, not opened.
    """
    layout, arrays = _read(Path(path))
    tensors, theirs = converted(arrays, layout, model)
    own = model.state_dict()
    if problems := misfits(tensors, own, theirs):
        raise InputError(
            f"{path} does not fit the model ({problems}): expected weights of its sizes. "
            "Build the model that the file is of; nothing was loaded."
        )
    # On the meta device, where `load_pretrained` builds it, a model has no memory to copy to.
    weights = {name: tensors[name].to(own[name].dtype) for name in own}
    model.load_state_dict(weights, assign=model.head.weight.is_meta)


def _read(path: Path) -> tuple[Layout, dict[str, np.ndarray]]:
    """Find out the layout of an archive, and read every array of its weights under the file's name for it."""
    if not path.is_file():
        raise InputError(f"no weights at {path}: expected an .npz file; check the path.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except Exception as error:  # a damaged or encrypted archive, or no archive at all, fails in many ways
        raise InputError(
            f"{path} cannot be read ({reason(error)}): expected an archive of plain arrays, "
            "as Google publishes them. Delete it and fetch it again."
        ) from None
    layout = Layout.of(arrays)
    if layout is None:
        some = ", ".join(list(arrays)[:3])
        raise InputError(
            f"{path} holds no ViT (it begins with {some}): expected 'embedding/kernel', alone or under "
            "'opt/target/' or 'params/'. Take a file of vision_transformer or big_vision."
        )
    weights = {name: array for name, array in arrays.items() if name.startswith(layout.prefix)}
    for name, array in weights.items():
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"{path} has {name} of the type {array.dtype}: expected numbers, such as float32."
            )
    return layout, weights
