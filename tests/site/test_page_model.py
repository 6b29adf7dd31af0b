"""The model in the page computes what the package does with the same weights, with every option."""

import base64
import copy
import json
import re
import struct
import zlib

import numpy as np
import pytest
import torch
from export_page_model import FOLDER, MASKED, PAGES, VERSION, main, packed, page_model, task_of, unpacked
from serve import served
from sklearn.datasets import load_digits
from torch.nn import functional as F

from vit_classroom.checks.report import randomise
from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.errors import InputError
from vit_from_scratch.examples import PHOTOS, photo
from vit_from_scratch.files import sha256
from vit_from_scratch.model.patches import patchify, unpatchify
from vit_from_scratch.pretrained import load_self_supervised
from vit_from_scratch.training.masked_patches import Corruption
from vit_lab import load_result
from vit_lab.runs.trained_models import TrainedModel, open_model

pytestmark = pytest.mark.site

SIZE, PATCH, LAYERS, HEADS = 64, 8, 8, 6  # of the Tiny-ImageNet model
NAME = "tiny-imagenet.bin"
LARGEST = {
    "tiny-imagenet": 4_000_000,
    "mnist": 500_000,
    MASKED: 4_000_000,
}  # bytes that a page may have to fetch
LOGITS, ATTENTION = 1e-4, 1e-5  # as far as page and PyTorch may be apart
# In the page: ask `vit.js` or the worker, and hand the arrays over as the bytes of all, and their lengths.
ASK = """async ([module, name, text, options]) => {
    const pixels = new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
    const { load } = await import(`/vit/${module}`);
    window.models ??= {};
    const model = window.models[module + name] ??= await load(`/vit/${name}`);
    const found = await model.forward(pixels, options);
    const arrays = Object.entries(found).map(([key, value]) => [key, [value].flat()]);
    const bytes = new Uint8Array(await new Blob(arrays.flatMap(([, list]) => list)).arrayBuffer());
    let letters = "";
    for (let at = 0; at < bytes.length; at += 8192) {
        letters += String.fromCharCode(...bytes.subarray(at, at + 8192));
    }
    return [arrays.map(([key, list]) => [key, list.map((one) => one.length)]), btoa(letters)];
}"""
LOAD = """async ([module, name]) => {
    const heard = [];
    try {
        const { load } = await import(`/vit/${module}`);
        const model = await load(`/vit/${name}`, (share) => heard.push(share));
        return ["loaded", heard, model.config, model.classes];
    } catch (error) {
        return [error.message, heard];
    }
}"""


@pytest.fixture(scope="module")
def statics():
    with served(FOLDER.parent) as root:
        yield root


@pytest.fixture
def live(page, statics):
    page.goto(f"{statics}vit/vit.js")
    return page


@pytest.fixture(scope="module")
def content():
    return (FOLDER / NAME).read_bytes()


@pytest.fixture(scope="module")
def model(content):
    return unpacked(content)[0]


def some_photos(count):
    """Crops of the photos that the book uses, shifted, mirrored and noisy: `count` of (64, 64, 3), 0 to 1."""
    chance = torch.Generator().manual_seed(0)
    for number in range(count):
        name = list(PHOTOS)[number % len(PHOTOS)]
        corner = tuple(torch.randint(0, most, (), generator=chance).item() for most in (1, 150))
        square = photo(SIZE, name, (PHOTOS[name][1][0], corner[1]) if number >= len(PHOTOS) else None)
        square = square.flip(-1) if number % 2 else square
        noise = 0.05 * (number % 5) * torch.randn(square.shape, generator=chance)
        yield (square + noise).clamp(0, 1)[0].permute(1, 2, 0).contiguous()


def ask(page, pixels, options=None, name=NAME, module="vit.js"):
    """What the page answers, by name; lists of arrays are stacked."""
    text = base64.b64encode(pixels.numpy().astype("<f4").tobytes()).decode()
    parts, letters = page.evaluate(ASK, [module, name, text, options or {}])
    numbers, found, at = np.frombuffer(base64.b64decode(letters), "<f4"), {}, 0
    for key, lengths in parts:
        found[key] = torch.from_numpy(numbers[at : at + sum(lengths)].copy()).reshape(len(lengths), -1)
        at += sum(lengths)
    return found


@torch.no_grad()
def expected(model, pixels):
    """The same from PyTorch, for pixels (H, W, C) from 0 to 1, shaped as `ask` returns it."""
    logits, inside = model((pixels.permute(2, 0, 1)[None] - 0.5) / 0.5, return_intermediates=True)
    tokens = torch.cat([inside["tokens"], *inside["layers"]])  # (L + 1, T, D)
    return {
        "logits": logits,
        "probabilities": logits.softmax(dim=1),
        "attention": torch.cat(inside["attention"]).flatten(1),
        "tokens": tokens.flatten(1),
        "lens": model.head(model.encoder.norm(tokens[1:, 0])),
    }


def distances(found, wanted):
    assert set(found) == set(wanted)
    assert {key: found[key].shape for key in found} == {key: wanted[key].shape for key in wanted}
    return {key: (found[key] - wanted[key]).abs().max().item() for key in wanted}


def assert_close(found, wanted):
    far = distances(found, wanted)
    allowed = {"logits": LOGITS, "lens": LOGITS, "attention": ATTENTION, "probabilities": ATTENTION}
    assert {key: far[key] for key, most in allowed.items() if far[key] > most} == {}
    assert far["tokens"] <= 1e-4 * max(1, wanted["tokens"].abs().max().item())
    return far


# ---- The file


@pytest.mark.parametrize("name", PAGES)
def test_the_file_is_fresh_and_fits_a_page(name):
    content = (FOLDER / f"{name}.bin").read_bytes()
    assert packed(page_model(name)) == content, (
        "run tools/export_page_model.py; or leave a new option out there"
    )
    assert len(content) <= LARGEST[name]


def test_what_is_stale_is_said(monkeypatch, capsys, tmp_path):
    for ending in (".bin", ".json"):
        (tmp_path / f"mnist{ending}").write_bytes((FOLDER / f"mnist{ending}").read_bytes())
    monkeypatch.setattr("export_page_model.FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["export_page_model.py", "mnist", "--check"])
    assert main() == 0
    (tmp_path / "mnist.bin").write_bytes(flipped(300_000)((FOLDER / "mnist.bin").read_bytes()))
    assert main() == 2
    assert "mnist.bin or mnist.json is stale: export it again" in capsys.readouterr().err


@pytest.mark.parametrize("name", PAGES)
def test_a_byte_a_weight_costs_at_most_three_tenths_of_a_point(name):
    told = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    assert told["sha256"] == sha256(FOLDER / f"{name}.bin")
    assert told["bytes"] == (FOLDER / f"{name}.bin").stat().st_size
    images = 5_000 if name == MASKED else 10_000
    assert told["page"]["images"] == told["full_precision"]["images"] == images
    assert told["full_precision"]["accuracy"] - told["page"]["accuracy"] <= 0.003


@torch.no_grad()
def test_the_model_of_masked_patches_is_the_one_that_ships():
    """Before its weights are cut to a byte: to the bit, with each kind of corruption."""
    images = torch.stack([2 * pixels.permute(2, 0, 1) - 1 for pixels in some_photos(4)])
    ships, ours = load_self_supervised(MASKED), task_of(page_model(MASKED).model)
    corruption = ships.draw(images, torch.Generator().manual_seed(0))
    assert torch.equal(ours.logits(images, corruption), ships.logits(images, corruption))
    _, low, high = load_result("masked_tiny_imagenet")["colours"]["accuracy"]["model"]
    assert low < json.loads((FOLDER / f"{MASKED}.json").read_text("utf-8"))["page"]["accuracy"] < high


def test_each_weight_is_within_half_a_step_of_its_own(model):
    whole = open_model("tiny-imagenet").model.state_dict()
    for name, values in model.state_dict().items():
        step = whole[name].abs().amax(-1, keepdim=True) / 127 if values.ndim == 2 else torch.tensor(0.0)
        assert ((values - whole[name]).abs() <= 0.5001 * step).all(), name


@pytest.mark.parametrize("position", ["learned", "sincos_2d", "learned_2d", "none"])
@torch.no_grad()
def test_positions_of_any_kind_are_a_table_in_the_file(position):
    config = ViTConfig(
        image_size=(12, 16), patch_size=4, dim=24, depth=1, heads=3, mlp_dim=40, position=position
    )
    trained = VisionTransformer(config).eval()
    randomise(trained)
    table = trained.tokens.position_embedding()
    again, header = unpacked(packed(TrainedModel("small", trained, ("a",) * 1000, "imagenet")))
    assert torch.equal(again.tokens.position, torch.zeros(1, 13, 24) if table is None else table)
    assert header["config"]["grid"] == [3, 4]
    assert header["config"]["mean"] == [0.485, 0.456, 0.406]


@pytest.mark.parametrize("fields", [{"pool": "gap"}, {"mlp": "local"}, {"gelu": "tanh"}, {"qkv_bias": False}])
def test_a_model_that_the_page_does_not_compute_is_not_exported(fields):
    other = VisionTransformer(ViTConfig(image_size=8, patch_size=4, dim=24, depth=1, heads=3, **fields))
    with pytest.raises(InputError, match=f"x has {re.escape(str(fields))}: expected a plain model"):
        packed(TrainedModel("x", other, ("a",) * 1000, "half"))


# ---- Page and PyTorch agree


def test_on_photos(live, model):
    far = [assert_close(ask(live, pixels), expected(model, pixels)) for pixels in some_photos(51)]
    print({key: max(one[key] for one in far) for key in far[0]})


def some_digits():
    """Fifty scans that scikit-learn has, made larger: (28, 28, 1) each."""
    scans = torch.tensor(load_digits().images[:50], dtype=torch.float32)[:, None] / 16  # (50, 1, 8, 8)
    return F.interpolate(scans, (28, 28), mode="bilinear").permute(0, 2, 3, 1).contiguous()


def test_on_digits(live):
    model = unpacked((FOLDER / "mnist.bin").read_bytes())[0]
    far = [
        assert_close(ask(live, pixels, name="mnist.bin"), expected(model, pixels)) for pixels in some_digits()
    ]
    print({key: max(one[key] for one in far) for key in far[0]})


def test_on_digits_with_a_model_of_another_shape(live):
    """Patches of 4 in 28 x 28 pixels of one channel, ten classes: not multiples of 4 or 2."""
    config = {"image_size": 28, "patch_size": 4, "channels": 1, "dim": 48, "depth": 3, "heads": 3}
    trained = VisionTransformer(ViTConfig(**config, mlp_dim=90, num_classes=10)).eval()
    randomise(trained)
    file = packed(TrainedModel("digits", trained, tuple("0123456789"), "half"))
    live.route("**/digits.bin", lambda route: route.fulfill(body=file))
    for pixels in some_digits()[:10]:
        assert_close(ask(live, pixels, name="digits.bin"), expected(unpacked(file)[0], pixels))


def without_positions(model, pixels):
    model.tokens.position.data.zero_()


def hotter(model, pixels):
    for block in model.encoder.blocks:
        for values in (block.attention.qkv.weight, block.attention.qkv.bias):
            values.data[: model.config.dim] *= 2.5  # the queries


def without_heads(model, pixels):
    width = model.config.dim // HEADS
    for layer, head in ((0, 5), (3, 0), (3, 2)):
        projection = model.encoder.blocks[layer].attention.projection
        projection.weight.data[:, head * width : (head + 1) * width] = 0


def without_layer(model, pixels):
    attention, mlp = model.encoder.blocks[6].attention.projection, model.encoder.blocks[6].mlp.output
    for layer in (attention, mlp):
        layer.weight.data.zero_()
        layer.bias.data.zero_()


def shuffle(model, pixels):
    patches = patchify(pixels.permute(2, 0, 1)[None], PATCH)[:, ORDER]
    pixels.copy_(unpatchify(patches, PATCH, (8, 8))[0].permute(1, 2, 0))


def erase(model, pixels):
    colour = pixels.mean(dim=(0, 1))
    for patch in (0, 27, 63):
        row, column = (PATCH * place for place in divmod(patch, 8))
        pixels[row : row + PATCH, column : column + PATCH] = colour


def erase_and_shuffle(model, pixels):
    erase(model, pixels)
    shuffle(model, pixels)


ORDER = torch.randperm(64, generator=torch.Generator().manual_seed(1)).tolist()
OPTIONS = {
    "none": ({}, lambda model, pixels: None),
    "positions": ({"positions": False}, without_positions),
    "scale": ({"scale": 2.5}, hotter),
    "heads": ({"without": [[0, 5], [3, 0], [3, 2]]}, without_heads),
    "layer": ({"without": [[6]]}, without_layer),
    "shuffle": ({"shuffle": ORDER}, shuffle),
    "erase": ({"erase": [0, 27, 63]}, erase),
    "erase and shuffle": ({"erase": [0, 27, 63], "shuffle": ORDER}, erase_and_shuffle),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_with_each_option_as_with_changed_weights_or_pixels(live, model, name):
    options, change = OPTIONS[name]
    for pixels in some_photos(3):
        found, changed, painted = ask(live, pixels, options), copy.deepcopy(model), pixels.clone()
        change(changed, painted)
        wanted = expected(changed, painted)
        if name == "layer":
            wanted["attention"][6] = 0  # nobody looked
        assert_close(found, wanted)
        if options:
            assert distances(found, expected(model, pixels))["logits"] > 100 * LOGITS, "the option matters"


def test_the_mean_of_the_patches_can_answer(live, model):
    """As in a model of the package that pools the patches."""
    for pixels in some_photos(3):
        found, wanted = ask(live, pixels, {"pool": "gap"}), expected(model, pixels)
        with torch.no_grad():
            last = wanted["tokens"][-1].view(-1, model.config.dim)  # (T, D)
            wanted["logits"] = model.head(model.encoder.norm(last)[1:].mean(dim=0, keepdim=True))
        wanted["probabilities"] = wanted["logits"].softmax(dim=1)
        assert_close(found, wanted)


@torch.no_grad()
def test_each_patch_answers_with_mask_tokens_as_in_pre_training(live):
    """The page's weights, a byte each, in the package's task."""
    task = task_of(unpacked((FOLDER / f"{MASKED}.bin").read_bytes())[0])
    hidden = torch.randperm(64, generator=torch.Generator().manual_seed(2))[:40]
    masked = torch.zeros(1, 64, dtype=torch.bool).index_fill_(1, hidden, True)
    for pixels in some_photos(3):
        corruption = Corruption(masked, masked, torch.arange(64)[None])
        wanted = task.logits((pixels.permute(2, 0, 1)[None] - 0.5) / 0.5, corruption)[0]  # (64, 512)
        options = {"masked": hidden.tolist(), "pool": "each"}
        found = ask(live, pixels, options, name=f"{MASKED}.bin")
        assert (found["logits"].view(64, 512) - wanted).abs().max() < LOGITS
        shares = found["probabilities"].view(64, 512)
        assert (shares - wanted.softmax(dim=1)).abs().max() < ATTENTION
        unmasked = ask(live, pixels, {"pool": "each"}, name=f"{MASKED}.bin")["logits"]
        assert (unmasked - found["logits"]).abs().max() > 1, "the masks matter"


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("linear(x, hidden).map(gelu)", "linear(x, hidden).map((x) => x / (1 + Math.exp(-1.702 * x)))"),
        ("scale / Math.sqrt(Dh)", "scale"),
        ("-1.453152027", "-1.453252027"),
        ("mean) ** 2 / D", "mean) ** 2 / (D - 1)"),
        ("scales[row] * numbers", "scales[0] * numbers"),
    ],
)
def test_planted_faults_are_seen(page, statics, model, what, instead):
    program = (FOLDER / "vit.js").read_text("utf-8")
    assert program.count(what) == 1
    faulty = {"body": program.replace(what, instead), "content_type": "text/javascript"}
    page.route("**/vit.js", lambda route: route.fulfill(**faulty))
    page.goto(f"{statics}vit/vit.js")
    pixels = next(some_photos(1))
    far = distances(ask(page, pixels), expected(model, pixels))
    assert far["logits"] > LOGITS or far["attention"] > ATTENTION


def test_gelu_is_exact_to_a_millionth(live):
    points = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    values = live.evaluate(
        "async (points) => points.map((await import('/vit/vit.js')).gelu)",
        points.tolist(),
    )
    assert (torch.tensor(values, dtype=torch.float64) - F.gelu(points)).abs().max() < 1e-6


# ---- What is refused


def other_version(content):
    changed = content[:4] + struct.pack("<I", VERSION + 1) + content[8:-4]
    return changed + struct.pack("<I", zlib.crc32(changed))


def flipped(place):
    return lambda content: content[:place] + bytes([content[place] ^ 1]) + content[place:][1:]


SPOILT = {
    "cut": (lambda content: content[:-1000], r"holds \d+ of \d+ bytes"),
    "cut to little": (lambda content: content[:10], "is not a whole model of this book"),
    "empty": (lambda content: b"", "is not a whole model of this book"),
    "another file": (lambda content: b"<html>" * 100, "is not a whole model of this book"),
    "too long": (lambda content: content + bytes(4), r"holds \d+ of \d+ bytes"),
    "another version": (other_version, f"is of version {VERSION + 1}, and this page reads version {VERSION}"),
    "a byte of the header": (flipped(300), "is damaged"),
    "a byte of a weight": (flipped(2_000_000), "is damaged"),
    "a byte of the last weight": (flipped(-6), "is damaged"),
    "a byte of the checksum": (flipped(-2), "is damaged"),
    "a byte of the header's length": (flipped(12), "is damaged"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_file_is_refused_in_a_sentence(live, content, name):
    spoil, reason = SPOILT[name]
    live.route(f"**/{NAME}", lambda route: route.fulfill(body=spoil(content)))
    for module in ("vit.js", "worker.js"):
        sentence = live.evaluate(LOAD, [module, NAME])[0]
        assert re.search(reason, sentence)
        assert sentence.endswith("; load the page again.")


def test_no_file_and_no_network_are_refused_in_a_sentence(live):
    assert "(the server answered 404)" in live.evaluate(LOAD, ["vit.js", "none.bin"])[0]
    live.route("**/none.bin", lambda route: route.abort())
    assert "cannot be fetched" in live.evaluate(LOAD, ["worker.js", "none.bin"])[0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"erase": [64]}, "expected patches to erase or mask from 0 to 63, not 64"),
        ({"masked": [64]}, "expected patches to erase or mask from 0 to 63, not 64"),
        ({"masked": [3]}, "expected no masked patches, for this model has no mask token"),
        ({"shuffle": [0] * 64}, "expected a shuffle with each patch from 0 to 63 once"),
        ({"without": [[8, 0]]}, "expected layers from 0 to 7 and heads from 0 to 5 to be without, not 8,0"),
        ({"without": [[0, 6]]}, "expected layers from 0 to 7 and heads from 0 to 5 to be without, not 0,6"),
    ],
)
@pytest.mark.parametrize("module", ["vit.js", "worker.js"])
def test_options_that_do_not_fit_are_refused_in_a_sentence(live, options, sentence, module):
    with pytest.raises(Exception, match="expected") as caught:
        ask(live, next(some_photos(1)), options, module=module)
    assert sentence in str(caught.value)
    with pytest.raises(Exception, match="expected 64 x 64 x 3 numbers as image, not 300"):
        ask(live, torch.zeros(10, 10, 3), module=module)


# ---- In a worker


def test_the_worker_answers_as_the_module_does(live):
    pixels = next(some_photos(1))
    options = {"erase": [3], "without": [[0]]}
    here, there = (ask(live, pixels, options, module=module) for module in ("vit.js", "worker.js"))
    assert distances(here, there) == dict.fromkeys(here, 0)


def test_loading_says_how_far_it_is_and_what_the_model_is(live):
    said, heard, config, classes = live.evaluate(LOAD, ["worker.js", NAME])
    assert said == "loaded"
    assert heard == sorted(heard)
    assert heard[0] > 0
    assert heard[-1] == 1
    assert (config["patch_size"], config["depth"], config["heads"]) == (PATCH, LAYERS, HEADS)
    assert len(classes) == 200
    assert "Egyptian cat" in classes


def test_a_matrix_is_given_by_its_path_and_one_that_is_not_there_refused(live, model):
    found, refused, sent = live.evaluate(
        """async (name) => {
            const model = await (await import("/vit/worker.js")).load(name);
            const refused = await model.weights("tokens.places").catch((error) => error.message);
            const table = await model.weights("tokens.position");
            return [[...table], refused, table.buffer.byteLength / table.byteLength];
        }""",
        f"/vit/{NAME}",
    )
    assert torch.tensor(found) == pytest.approx(model.tokens.position.detach().flatten(), abs=1e-6)
    assert refused == "there is no tokens.places"
    assert sent == 1, "and not the whole file with it"


def test_a_newer_question_stops_the_older_of_the_same_asker_alone(live):
    answers = live.evaluate(
        """async (name) => {
            const { load } = await import("/vit/worker.js");
            const [one, other] = await Promise.all([load(name), load(name)]);
            const grey = (value) => new Float32Array(64 * 64 * 3).fill(value);
            const asked = [0.1, 0.2, 0.3].map((value) => one.forward(grey(value)));
            asked.push(other.forward(grey(0.4)));
            await asked[2];
            asked.push(one.forward(grey(0.3)));
            const found = await Promise.all(asked);
            return found.map((answer) => answer && answer.logits[0]);
        }""",
        f"/vit/{NAME}",
    )
    assert answers[:2] == [None, None]
    assert answers[2] == answers[4]
    assert None not in answers[2:]
    assert answers[2] != answers[3]


def test_a_stopped_question_costs_little_and_the_page_goes_on(live):
    """The worker is asked 200 times at once: it works on the last alone, and the page draws meanwhile."""
    took, one, frames = live.evaluate(
        """async (name) => {
            const { load } = await import("/vit/worker.js");
            const model = await load(name), pixels = new Float32Array(64 * 64 * 3);
            const timed = async (times) => {
                const start = performance.now();
                let last;
                for (let i = 0; i < times; i++) last = model.forward(pixels);
                await last;
                return performance.now() - start;
            };
            await timed(1);
            let frames = 0, going = true;
            const count = () => { frames += 1; if (going) setTimeout(count, 10); };
            count();
            const found = [await timed(200), await timed(1)];
            going = false;
            return [...found, frames];
        }""",
        f"/vit/{NAME}",
    )
    assert took < 50 * one
    assert frames > 5
