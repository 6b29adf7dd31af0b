"""Our models as timm's Vision Transformers: the inverse of `from_timm`."""

from functools import partial
from typing import Any

from torch import Tensor, nn

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.model.modes import evaluating
from vit_from_scratch.model.patches import PatchEmbedding
from vit_from_scratch.model.vit import VisionTransformer
from vit_from_scratch.pretrained.conversion import proved, spelt_out
from vit_from_scratch.pretrained.timm import NAMES
from vit_lab.export.formats import require_packages

EPS = 1e-6
"""What timm's VisionTransformer adds to the variance in its norms, unless it is told otherwise."""


def to_timm(model: VisionTransformer) -> Any:
    """Convert one of our models to a `timm.models.vision_transformer.VisionTransformer` with the same logits.

    Args:
        model: any that timm's class can be: plain patches, dense MLPs, plain queries, positions that are
            added at the stem or none, a linear head; it is left as it is.

    Returns:
        timm's model in evaluation mode, its weights copied, in their type and on their device. Rates of
        dropout and stochastic depth are those of our model.

    Raises:
        InputError: timm is not installed, or has no such model: the message names the difference.
    """
    arguments = timm_arguments(model.config)
    require_packages(["timm"], "to_timm")
    from timm.models.vision_transformer import VisionTransformer as Timm

    theirs = Timm(**arguments).to(model.head.weight.device, model.head.weight.dtype)
    theirs.load_state_dict(timm_weights(model))
    with evaluating(model):
        proved(model, theirs, "timm")
    return theirs.eval()


def timm_weights(model: VisionTransformer) -> dict[str, Tensor]:
    """Return the weights of a model under timm's names and in timm's shapes."""
    own = model.state_dict()
    names = spelt_out(NAMES, model.config.depth)
    weights = {theirs: own[name] for theirs, name in names.items() if name in own}
    if isinstance(model.patch_embedding, PatchEmbedding):
        weights["patch_embed.proj.weight"] = model.patch_embedding.as_convolution_weight().contiguous()
    position = model.tokens.position_embedding()  # a table to timm, whatever it is made of
    return weights if position is None else weights | {"pos_embed": position.detach().contiguous()}


def timm_arguments(config: ViTConfig) -> dict[str, Any]:
    """Return what `timm.create_model` is told to build the same model: sizes, and what is not its default.

    Raises:
        InputError: timm has no such model.
    """
    differences = {
        f"a {config.stem.kind!r} stem": config.stem.kind != "patch",
        "local MLPs": config.mlp == "local",
        "normalised queries (qk_norm)": config.qk_norm,
        "positions in every layer": config.position_at != "stem",
        "relative positions": config.position == "relative",
        "a hidden layer before the head (representation_size)": config.representation_size is not None,
    }
    if found := " and ".join(name for name, has_it in differences.items() if has_it):
        raise InputError(
            f"this model has {found}: expected plain patches, dense MLPs, plain queries, positions added "
            "at the stem or none, and a linear head, as timm's VisionTransformer has them. Export it as ONNX."
        )
    height, width = config.image_shape
    rounded_down = int(config.dim * (config.mlp_dim / config.dim)) < config.mlp_dim  # as timm does
    sizes = {
        "img_size": height if height == width else (height, width),
        "patch_size": config.patch_size,
        "in_chans": config.channels,
        "num_classes": config.num_classes,
        "embed_dim": config.dim,
        "depth": config.depth,
        "num_heads": config.heads,
        "mlp_ratio": (config.mlp_dim + 0.5 * rounded_down) / config.dim,
    }
    others = {
        "class_token": (config.class_token, True),
        "global_pool": ("token" if config.pool == "cls" else "avg", "token"),
        "fc_norm": (config.norm == "pooled", config.pool == "gap"),  # timm's default follows the pooling
        "final_norm": (config.norm != "none", True),
        "pos_embed": ("none" if config.position == "none" else "learn", "learn"),
        "qkv_bias": (config.qkv_bias, True),
        "act_layer": ("gelu_tanh" if config.gelu == "tanh" else "gelu", "gelu"),
        "pos_drop_rate": (config.dropout, 0.0),
        "proj_drop_rate": (config.dropout, 0.0),
        "drop_path_rate": (config.stochastic_depth, 0.0),
    }
    changed = {name: value for name, (value, default) in others.items() if value != default}
    if config.layer_norm_eps != EPS:
        changed["norm_layer"] = partial(nn.LayerNorm, eps=config.layer_norm_eps)
    return sizes | changed
