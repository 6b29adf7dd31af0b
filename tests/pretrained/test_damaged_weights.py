"""Whatever is in a file of weights: a model, or one sentence."""

import io
import zipfile

import numpy as np
import pytest
import torch
import torchvision
from test_google import CONFIG, big_vision_arrays, saved, vision_transformer_arrays

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.pretrained import load_google_npz, load_pretrained
from vit_from_scratch.pretrained.registry import RELEASES

TINY = ViTConfig(4, 2, 1, dim=2, depth=1, heads=1, mlp_dim=2, num_classes=2)


def tiny_archive(compressed):
    """The bytes of an archive for TINY."""
    part = "Transformer/encoderblock_0/"
    attention = part + "MultiHeadDotProductAttention_1/"
    shapes = {
        "cls": (1, 1, 2),
        "embedding/kernel": (2, 2, 1, 2),
        "embedding/bias": (2,),
        "Transformer/posembed_input/pos_embedding": (1, 5, 2),
        attention + "out/kernel": (1, 2, 2),
        attention + "out/bias": (2,),
        "head/kernel": (2, 2),
        "head/bias": (2,),
    }
    for name in ("query", "key", "value"):
        shapes |= {f"{attention}{name}/kernel": (2, 1, 2), f"{attention}{name}/bias": (1, 2)}
    for name in ("Dense_0", "Dense_1"):
        shapes |= {f"{part}MlpBlock_3/{name}/kernel": (2, 2), f"{part}MlpBlock_3/{name}/bias": (2,)}
    for name in (part + "LayerNorm_0", part + "LayerNorm_2", "Transformer/encoder_norm"):
        shapes |= {f"{name}/scale": (2,), f"{name}/bias": (2,)}
    file = io.BytesIO()
    write = np.savez_compressed if compressed else np.savez
    write(file, **{name: np.ones(shape, np.float32) for name, shape in shapes.items()})
    return file.getvalue()


def mutated(content, random):
    """Change a few bytes, take some out, or put some in."""
    content = bytearray(content)
    for _ in range(random.integers(1, 4)):
        place, kind = int(random.integers(len(content))), random.integers(4)
        if kind < 2:
            content[place] = random.integers(256)
        elif kind == 2:
            del content[place : place + int(random.integers(1, 40))]
        else:
            content[place:place] = random.bytes(int(random.integers(1, 8)))
    return bytes(content)


@pytest.mark.parametrize("compressed", [False, True])
def test_every_damaged_archive_gives_a_model_or_one_sentence(tmp_path, compressed):
    content, random = tiny_archive(compressed), np.random.default_rng(0)
    model, path = VisionTransformer(TINY), tmp_path / "w.npz"
    path.write_bytes(content)
    load_google_npz(model, path)
    refused = 0
    for _ in range(150):
        path.write_bytes(mutated(content, random))
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        try:
            load_google_npz(model, path)
        except InputError:
            refused += 1
            assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert refused > 100


def rewritten(content, change):
    """Write an archive anew, each entry changed by `change(entry)`."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name)
            new.writestr(entry, change(old.read(name)))
    return file.getvalue()


def flagged(content, offset, value):
    """Set two bytes of the first entry, which stand in the archive's directory and before the entry."""
    content, central = bytearray(content), content.index(b"PK\x01\x02")
    for place in (offset, central + offset + 2):
        content[place : place + 2] = value.to_bytes(2, "little")
    return bytes(content)


def array_alone():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


BROKEN = {
    "an empty file": (lambda: b"", "cannot be read"),
    "no archive": (lambda: b"no archive", "cannot be read"),
    "an archive cut off": (lambda: tiny_archive(False)[:200], "cannot be read"),
    "one array, not an archive": (array_alone, "cannot be read"),
    "an encrypted entry": (lambda: flagged(tiny_archive(False), 6, 1), "cannot be read .*encrypted"),
    "an unknown compression": (lambda: flagged(tiny_archive(False), 8, 97), "cannot be read"),
    "damaged compression": (lambda: damaged_deflate(), "cannot be read"),
    "entries that are not arrays": (lambda: rewritten(tiny_archive(False), lambda _: b"text"), "of the type"),
    "empty entries": (lambda: rewritten(tiny_archive(False), lambda _: b""), "(cannot be read|of the type)"),
    "an array too large for any memory": (
        lambda: rewritten(
            tiny_archive(False),
            lambda old: old.replace(b"(2,), }".ljust(30), b"(10000000000000,), }".ljust(30)),
        ),
        "cannot be read .*allocate",
    ),
}


def damaged_deflate():
    """Turn the first compressed bytes into a block of a type that does not exist."""
    content = bytearray(tiny_archive(True))
    start = 30 + int.from_bytes(content[26:28], "little") + int.from_bytes(content[28:30], "little")
    content[start] = 0xFF
    return bytes(content)


@pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN)
def test_an_archive_that_cannot_be_read_is_one_sentence(tmp_path, content, message):
    (tmp_path / "w.npz").write_bytes(content())
    with pytest.raises(InputError, match=message) as raised:
        load_google_npz(VisionTransformer(TINY), tmp_path / "w.npz")
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("dtype", ["<U3", "complex64", "V2"])
def test_arrays_of_no_numbers_are_refused_by_name(tmp_path, dtype):
    arrays = vision_transformer_arrays()
    arrays["head/bias"] = np.zeros(7, dtype)
    with pytest.raises(InputError, match=r"has head/bias of the type .*: expected numbers, such as float32"):
        load_google_npz(VisionTransformer(CONFIG), saved(tmp_path, arrays))


def test_positions_of_no_patches_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"another shape: tokens\.position \(1, 0, 24\) for \(1, 17, 24\)"):
        load_google_npz(VisionTransformer(CONFIG), saved(tmp_path, vision_transformer_arrays(tokens=0)))


NORM = "params/Transformer/encoderblock/LayerNorm_0/"
KEY = "params/Transformer/encoderblock/MultiHeadDotProductAttention_0/key/kernel"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda a: a.pop(NORM + "scale"),
            r"missing: .*0\.attention_norm\.weight \(from Transformer/encoderblock_0/LayerNorm_0/scale\)",
        ),
        (
            lambda a: a.update({NORM + "bias": a[NORM + "bias"][:, :9]}),
            rf"of another shape: .*attention_norm\.bias \(9,\) for \(24,\) \(from {NORM}bias\)",
        ),
        (lambda a: a.pop(KEY), r"qkv\.weight \(from Transformer/encoderblock_0/MultiHead\w+_1/key/kernel\)"),
        (lambda a: a.pop("params/pos_embedding"), r"missing: tokens\.position \(from Transformer/posembed"),
        (lambda a: a.update({"params/extra": np.zeros(2)}), "left over: params/extra"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, change, message):
    arrays = big_vision_arrays(scanned=True)
    change(arrays)
    with pytest.raises(InputError, match=message):
        load_google_npz(VisionTransformer(CONFIG), saved(tmp_path, arrays))


@pytest.mark.parametrize(
    ("depth", "message"), [(3, r"missing: encoder\.blocks\.2\..* and 9 more"), (1, "left over: params/")]
)
def test_a_file_of_another_depth_is_refused(tmp_path, depth, message):
    model = VisionTransformer(ViTConfig.from_dict(CONFIG.to_dict() | {"depth": depth}))
    with pytest.raises(InputError, match=message):
        load_google_npz(model, saved(tmp_path, big_vision_arrays(scanned=True)))


PTH = {
    "empty": b"",
    "text": b"no weights",
    "an archive without weights": b"PK\x05\x06" + bytes(18),
    "a pickle that runs code": b"cos\nsystem\n(S'exit'\ntR.",
}


@pytest.mark.parametrize("content", PTH.values(), ids=PTH)
def test_damaged_weights_of_torchvision_are_one_sentence(tmp_path, monkeypatch, content):
    monkeypatch.setenv("VIT_WEIGHTS_DIR", str(tmp_path))
    monkeypatch.setattr("torchvision.models.vit_b_16", lambda: torch.nn.Linear(2, 2))
    assert RELEASES["torchvision-B/16"].url.endswith(".pth")
    (tmp_path / "torchvision-B_16.pth").write_bytes(content)
    with pytest.raises(InputError, match=r"torchvision-B_16\.pth cannot be read \(.+\).*Delete it"):
        load_pretrained("torchvision-B/16")


def test_every_damaged_byte_of_torchvisions_weights_gives_a_model_or_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("VIT_WEIGHTS_DIR", str(tmp_path))
    monkeypatch.setattr("torchvision.models.vit_b_16", lambda: torch.nn.Linear(2, 2))
    monkeypatch.setattr("vit_from_scratch.pretrained.torchvision.from_torchvision", lambda model: model)
    path, random = tmp_path / "torchvision-B_16.pth", np.random.default_rng(0)
    torch.save(torch.nn.Linear(2, 2).state_dict(), path)
    content, refused = path.read_bytes(), 0
    for _ in range(100):
        path.write_bytes(mutated(content, random))
        try:
            load_pretrained("torchvision-B/16")
        except InputError:
            refused += 1
    assert refused > 50


def test_torchvisions_weights_are_loaded_without_a_draw(tmp_path, monkeypatch):
    def small():
        return torchvision.models.VisionTransformer(32, 16, 1, 2, 8, 16)

    monkeypatch.setenv("VIT_WEIGHTS_DIR", str(tmp_path))
    monkeypatch.setattr("torchvision.models.vit_b_16", small)
    theirs = small().eval()
    torch.nn.init.normal_(theirs.heads[0].weight)
    torch.save(theirs.state_dict(), tmp_path / "torchvision-B_16.pth")
    before = torch.get_rng_state()
    ours = load_pretrained("torchvision-B/16")
    assert torch.equal(torch.get_rng_state(), before)
    images = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(ours(images), theirs(images))
