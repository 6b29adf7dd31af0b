"""Google's layouts, on files of random arrays, against timm's loader of the same files."""

import numpy as np
import pytest
import timm
import torch
from scipy.ndimage import zoom

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.pretrained import load_google_npz

CONFIG = ViTConfig(32, 8, dim=24, depth=2, heads=3, mlp_dim=48, num_classes=7, gelu="tanh")
EXTRA_LAYERS = {"pre_logits/kernel": (24, 24), "pre_logits/bias": (24,)}


def vision_transformer_arrays(tokens: int = 17) -> dict[str, np.ndarray]:
    """Random arrays in the layout of vision_transformer's checkpoints."""
    shapes: dict[str, tuple[int, ...]] = {
        "cls": (1, 1, 24),
        "embedding/kernel": (8, 8, 3, 24),
        "embedding/bias": (24,),
        "Transformer/posembed_input/pos_embedding": (1, tokens, 24),
        "Transformer/encoder_norm/scale": (24,),
        "Transformer/encoder_norm/bias": (24,),
        "head/kernel": (24, 7),
        "head/bias": (7,),
    }
    for layer in range(2):
        block = f"Transformer/encoderblock_{layer}/"
        for norm in ("LayerNorm_0", "LayerNorm_2"):
            shapes |= {f"{block}{norm}/scale": (24,), f"{block}{norm}/bias": (24,)}
        attention = block + "MultiHeadDotProductAttention_1/"
        for part in ("query", "key", "value"):
            shapes |= {f"{attention}{part}/kernel": (24, 3, 8), f"{attention}{part}/bias": (3, 8)}
        shapes |= {attention + "out/kernel": (3, 8, 24), attention + "out/bias": (24,)}
        for dense, (before, after) in {"Dense_0": (24, 48), "Dense_1": (48, 24)}.items():
            shapes |= {
                f"{block}MlpBlock_3/{dense}/kernel": (before, after),
                f"{block}MlpBlock_3/{dense}/bias": (after,),
            }
    random = np.random.default_rng(0)
    return {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def big_vision_arrays(scanned: bool) -> dict[str, np.ndarray]:
    """The same arrays under big_vision's names; positions without a row for the class token."""
    renamed = {}
    for name, array in vision_transformer_arrays(tokens=16).items():
        name = name.replace("Transformer/posembed_input/pos_embedding", "pos_embedding")
        for theirs, ours in (
            ("LayerNorm_2", "LayerNorm_1"),
            ("MlpBlock_3", "MlpBlock_0"),
            ("Attention_1", "Attention_0"),
        ):
            name = name.replace(theirs, ours)
        renamed["params/" + name] = array
    if scanned:
        stacked = {}
        for name in [name for name in renamed if "encoderblock_0" in name]:
            pair = [renamed.pop(name), renamed.pop(name.replace("block_0", "block_1"))]
            stacked[name.replace("block_0", "block")] = np.stack(pair)
        renamed |= stacked
    return renamed


def saved(tmp_path, arrays):
    np.savez(tmp_path / "weights.npz", **arrays)
    return tmp_path / "weights.npz"


def timm_twin(path, size=32, patch_size=8, **options):
    model = timm.models.vision_transformer.VisionTransformer(
        img_size=size,
        patch_size=patch_size,
        embed_dim=24,
        depth=2,
        num_heads=3,
        mlp_ratio=2,
        num_classes=7,
        act_layer="gelu_tanh",
        norm_layer=lambda dim, **dd: torch.nn.LayerNorm(dim, eps=1e-6, **dd),
        **options,
    )
    model.load_pretrained(str(path))
    return model.eval()


@pytest.mark.parametrize("prefix", ["", "opt/target/"])
@pytest.mark.parametrize("size", [32, 48])
def test_the_layout_of_vision_transformer_gives_timms_logits(tmp_path, prefix, size):
    path = saved(tmp_path, {prefix + name: array for name, array in vision_transformer_arrays().items()})
    model = VisionTransformer(ViTConfig.from_dict(CONFIG.to_dict() | {"image_size": size}))
    load_google_npz(model, path)
    images = torch.randn(2, 3, size, size)
    theirs = timm_twin(path, size)
    if size != 32:  # timm interpolates bicubically unless told otherwise; the reference code zooms linearly
        position = vision_transformer_arrays()["Transformer/posembed_input/pos_embedding"]
        zoomed = zoom(position[0, 1:].reshape(4, 4, -1), (1.5, 1.5, 1), order=1).reshape(1, 36, -1)
        theirs.pos_embed.data = torch.from_numpy(np.concatenate([position[:, :1], zoomed], axis=1))
    assert torch.allclose(model.eval()(images), theirs(images), atol=1e-4)


@pytest.mark.parametrize("scanned", [False, True])
def test_the_layout_of_big_vision_gives_the_same_weights(tmp_path, scanned):
    model, plain = VisionTransformer(CONFIG), VisionTransformer(CONFIG)
    load_google_npz(model, saved(tmp_path, big_vision_arrays(scanned)))
    arrays = vision_transformer_arrays(tokens=16)
    position = arrays["Transformer/posembed_input/pos_embedding"]
    arrays["Transformer/posembed_input/pos_embedding"] = np.concatenate(
        [0 * position[:, :1], position], axis=1
    )
    load_google_npz(plain, saved(tmp_path, arrays))
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name


def test_the_hidden_layer_before_the_head_is_read(tmp_path):
    random = np.random.default_rng(1)
    extra = {name: random.normal(size=shape).astype(np.float32) for name, shape in EXTRA_LAYERS.items()}
    path = saved(tmp_path, vision_transformer_arrays() | extra)
    model = VisionTransformer(ViTConfig.from_dict(CONFIG.to_dict() | {"representation_size": 24}))
    load_google_npz(model, path)
    assert np.allclose(model.representation[0].weight.detach().numpy(), extra["pre_logits/kernel"].T)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop("head/bias"), r"missing: head\.bias"),
        (
            lambda a: a.pop("Transformer/encoderblock_1/MlpBlock_3/Dense_0/kernel"),
            r"missing: encoder\.blocks\.1\.mlp\.hidden",
        ),
        (
            lambda a: a.pop("Transformer/encoderblock_0/MultiHeadDotProductAttention_1/key/bias"),
            r"missing: .*qkv\.bias.*left over: .*query/bias",
        ),
        (lambda a: a.update(extra=np.zeros(3)), r"left over: extra"),
        (
            lambda a: a.update({"head/kernel": np.zeros((24, 9))}),
            r"of another shape: head\.weight \(9, 24\) for \(7, 24\)",
        ),
        (lambda a: a.update({"embedding/kernel": np.zeros((8, 24))}), r"of another shape: patch_embedding"),
        (
            lambda a: a.pop("embedding/kernel") is a.pop("embedding/bias"),
            r"holds no ViT \(it begins with cls",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused_and_nothing_is_loaded(tmp_path, change, message):
    arrays = vision_transformer_arrays()
    change(arrays)
    model = VisionTransformer(CONFIG)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(InputError, match=message):
        load_google_npz(model, saved(tmp_path, arrays))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_pickled_arrays_are_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (print, ("opened",))

    np.savez(tmp_path / "bad.npz", **{"embedding/kernel": np.array([Bomb()], dtype=object)})
    with pytest.raises(InputError, match=r"cannot be read \(Object arrays cannot be loaded"):
        load_google_npz(VisionTransformer(CONFIG), tmp_path / "bad.npz")


def test_no_file_is_said_so(tmp_path):
    with pytest.raises(InputError, match="no weights at"):
        load_google_npz(VisionTransformer(CONFIG), tmp_path / "none.npz")


def hybrid_arrays() -> dict[str, np.ndarray]:
    """Random arrays of a small R50 hybrid: a root and stages of (1, 2) units, patches of 1 x 1."""
    shapes: dict[str, tuple[int, ...]] = {
        "conv_root/kernel": (7, 7, 3, 64),
        "embedding/kernel": (1, 1, 512, 24),
    }
    norms = {"gn_root": 64}
    channels = 64
    for stage, units in enumerate((1, 2), 1):
        narrow = 64 * 2 ** (stage - 1)
        for unit in range(1, units + 1):
            start = f"block{stage}/unit{unit}/"
            shapes[start + "conv1/kernel"] = (1, 1, channels, narrow)
            shapes[start + "conv2/kernel"] = (3, 3, narrow, narrow)
            shapes[start + "conv3/kernel"] = (1, 1, narrow, 4 * narrow)
            norms |= {start + "gn1": narrow, start + "gn2": narrow, start + "gn3": 4 * narrow}
            if unit == 1:
                shapes[start + "conv_proj/kernel"] = (1, 1, channels, 4 * narrow)
                norms[start + "gn_proj"] = 4 * narrow
            channels = 4 * narrow
    random = np.random.default_rng(2)
    arrays = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    for name, size in norms.items():
        arrays[f"{name}/scale"] = random.normal(1, 0.3, size).astype(np.float32)
        arrays[f"{name}/bias"] = random.normal(0, 0.3, size).astype(np.float32)
    return vision_transformer_arrays() | arrays


def test_the_layout_of_the_hybrids_gives_timms_logits(tmp_path):
    from functools import partial

    from timm.layers import StdConv2dSame
    from timm.models.resnetv2 import ResNetV2
    from timm.models.vision_transformer_hybrid import HybridEmbed

    path = saved(tmp_path, hybrid_arrays())
    eps = {"norm_eps": 1e-5, "conv_eps": 1e-8, "eps_on_variance": True}  # as timm has them
    config = CONFIG.to_dict() | {"stem": {"kind": "resnet", "layers": [1, 2]} | eps}
    model = VisionTransformer(ViTConfig.from_dict(config))
    load_google_npz(model, path)
    backbone = ResNetV2(
        layers=(1, 2),
        channels=(256, 512),
        num_classes=0,
        global_pool="",
        preact=False,
        stem_type="same",
        conv_layer=partial(StdConv2dSame, eps=1e-8),
    )
    theirs = timm_twin(path, patch_size=1, embed_layer=partial(HybridEmbed, backbone=backbone))
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.allclose(model.eval()(images), theirs(images), atol=1e-4)


@pytest.mark.parametrize("heads", [2, 4])
def test_another_number_of_heads_is_refused(tmp_path, heads):
    model = VisionTransformer(ViTConfig.from_dict(CONFIG.to_dict() | {"heads": heads}))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    message = r"of another shape: .*attention\.projection\.weight \(3, 8, 24\) for \(24, 24\)"
    with pytest.raises(InputError, match=message):
        load_google_npz(model, saved(tmp_path, vision_transformer_arrays()))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_hybrids_file_without_a_unit_is_refused_by_name(tmp_path):
    arrays = hybrid_arrays()
    arrays.pop("block2/unit2/conv3/kernel")
    model = VisionTransformer(
        ViTConfig.from_dict(CONFIG.to_dict() | {"stem": {"kind": "resnet", "layers": [1, 2]}})
    )
    with pytest.raises(InputError, match=r"missing: patch_embedding\.stages\.1\.1\.conv3\.weight"):
        load_google_npz(model, saved(tmp_path, arrays))


def test_fixed_positions_are_refused_since_big_visions_have_columns_first(tmp_path):
    arrays = big_vision_arrays(scanned=False)
    left_out = {name for name in arrays if name.endswith(("pos_embedding", "/cls"))}
    path = saved(tmp_path, {name: array for name, array in arrays.items() if name not in left_out})
    changes = {"position": "sincos_2d", "class_token": False, "pool": "gap"}
    model = VisionTransformer(ViTConfig.from_dict(CONFIG.to_dict() | changes))
    with pytest.raises(InputError, match=r"position='sincos_2d'.*columns first"):
        load_google_npz(model, path)
    plain = VisionTransformer(ViTConfig.from_dict(CONFIG.to_dict() | changes | {"position": "none"}))
    load_google_npz(plain, path)
