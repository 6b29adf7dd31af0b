"""Checks of chapter 5: the whole model, its position table and its operations."""

import functools
from typing import Any

import torch
from torch import Tensor

from vit_classroom.checks.encoder import EPS, run_through, with_eps
from vit_classroom.checks.judging import class_check, function_check
from vit_classroom.checks.report import Case, draw, number, numbers, randomise
from vit_classroom.checks.starts import spread_like_linear, starts_at_zero, starts_normal
from vit_from_scratch import examples
from vit_from_scratch.model import cost
from vit_from_scratch.model import vit as ours
from vit_from_scratch.model.config import ViTConfig
from vit_from_scratch.pretrained import input_scaling, load_pretrained

FIELDS: dict[str, Any] = {"image_size": 12, "patch_size": 3, "channels": 2, "dim": 48, "depth": 3, "heads": 4}
FIELDS |= {"mlp_dim": 20, "num_classes": 5}
TRAINED: dict[str, Any] = {
    "image_size": 64,
    "patch_size": 8,
    "channels": 3,
    "dim": 192,
    "depth": 8,
    "heads": 6,
}
TRAINED |= {"mlp_dim": 768, "num_classes": 200}
WHY_ZERO = "a head of zeros makes every first logit 0, so that the first loss is the same for every image"
SIZES = "image_size, patch_size, channels, dim, depth, mlp_dim, num_classes"


def _vit(**fields: Any) -> ours.VisionTransformer:
    return randomise(ours.VisionTransformer(ViTConfig(**fields)))


def _quiet_vit(**fields: Any) -> ours.VisionTransformer:
    """Make a model in which black images give small tokens, so that the eps of the norms shows."""
    reference = _vit(**fields)
    with torch.no_grad():
        for parameter in (*reference.tokens.parameters(), *reference.patch_embedding.parameters()):
            parameter.mul_(0.1 if parameter.ndim != 2 else 1.0)  # positions, class token, bias
    return reference


@class_check(
    "VisionTransformer(image_size=, patch_size=, channels=, dim=, depth=, heads=, mlp_dim=, num_classes=)",
    "(B, K)",
    'chapter 5, "The finished model"',
    _quiet_vit,
    FIELDS,
    [(1.0, 2), (0.3, 1), (0.0, 2)],
    starts=[
        starts_at_zero("head.weight", "head.bias", why=WHY_ZERO),
        starts_at_zero("tokens.class_token", why="the reference code begins it at 0"),
        starts_normal("tokens.position"),
        spread_like_linear("patch_embedding.projection.weight"),
    ],
)
def vision_transformer(reference: ours.VisionTransformer, scale: float, batch: int) -> Case:
    """Check a class like :class:`vit_from_scratch.model.vit.VisionTransformer`.

    It is called with the keywords ``image_size, patch_size, channels, dim, depth, heads, mlp_dim,
    num_classes``; submodules ``patch_embedding``, ``tokens``, ``encoder`` (``blocks`` and ``norm``) and
    ``head``, a zero-initialised linear layer.
    """
    images = scale * torch.randn(batch, 2, 12, 12)
    note = "" if scale else "all of them black"
    return Case((images,), reference(images), functools.partial(_mistakes, reference, images), note)


def _mistakes(reference: ours.VisionTransformer, images: Tensor) -> dict[str, Tensor]:
    encoder, head = reference.encoder, reference.head
    assert head is not None
    norm, blocks = encoder.norm, list(encoder.blocks)
    embedded = reference.patch_embedding(images)
    tokens = reference.tokens(embedded)
    through = functools.partial(run_through, tokens)
    last, early = through(blocks), run_through(norm(tokens), blocks)
    encoded = norm(last)
    first = encoded[:, 0]
    logits, log_softmax = head(first), head(first).log_softmax(-1)
    takes, runs, rest = (
        "equation 4 takes the class token",
        "equation 2 runs over all L layers",
        "the model returns logits",
    )
    read = {
        f"the head reads the mean of all tokens; {takes}": encoded.mean(1),
        f"the head reads the mean of the patches; {takes}": encoded[:, 1:].mean(1),
        "the head reads the last token; the class token is the first, number 0": encoded[:, -1],
        "the head reads the first patch; the class token is number 0": encoded[:, 1],
        f"the head reads the sum of all tokens; {takes}": encoded.sum(1),
        f"the head reads the largest value of all tokens; {takes}": encoded.amax(1),
        "the head reads every token: take the class token, [:, 0]": encoded,
        "a tanh comes before the head; that is a pre-training head": first.tanh(),
    }
    ways = {
        "the final LayerNorm (equation 4) is missing": last,
        f"only the first block is called; {runs}": norm(through(blocks[:1])),
        f"the last block is left out; {runs}": norm(through(blocks[:-1])),
        "one and the same block is called L times": norm(through(blocks[:1] * len(blocks))),
        "the blocks are called in reverse": norm(through(blocks[::-1])),
        "the blocks are not called: the head reads the first tokens": norm(tokens),
        "the final norm follows every block; equation 4 comes once, at the end": through(blocks, norm),
        "the final norm comes before the blocks; equation 4 comes at the end": early,
        "the final norm is applied twice; the encoder's own is that of equation 4 already": norm(encoded),
        "`tokens` is not called: class token and positions are missing, equation 1": encoder(embedded),
        "`encoder` is not called: the head reads the class token as it began": tokens,
    }
    read |= {sentence: each[:, 0] for sentence, each in ways.items()}
    return {sentence: head(each) for sentence, each in read.items()} | {
        f"a softmax follows the head; {rest}, and the loss does the rest": logits.softmax(-1),
        f"a log-softmax follows the head; {rest}, and the loss does the rest": log_softmax,
        f"a sigmoid follows the head; {rest}": logits.sigmoid(),
        f"a ReLU follows the head; {rest}": logits.relu(),
        "rows and columns of the images are swapped": reference(images.mT),
        "the colours of the images are turned round": reference(images.flip(1)),
        "the features are returned; the head is not called": first,
        **{sentence: with_eps(reference, eps)(images) for eps, sentence in EPS.items()},
    }


@class_check(
    "VisionTransformer(image_size=64, patch_size=8, channels=3, dim=192, depth=8, heads=6, mlp_dim=768, "
    "num_classes=200)",
    "(B, K)",
    'chapter 5, "Your model looks at the cat"',
    lambda **fields: load_pretrained("tiny-imagenet"),
    TRAINED,
    ["cat"],
    may_drop=True,
)
def trained_weights(reference: ours.VisionTransformer, photo: str) -> Case:
    """Check that a class like that of :func:`vision_transformer` takes the weights of ``"tiny-imagenet"``.

    Its parameters have the names and shapes of those weights, and with them it answers for a photo as the
    package does.
    """
    images = input_scaling("tiny-imagenet")(255 * examples.photo(64, photo))
    mistakes = functools.partial(_mistakes, reference, images)
    return Case((images,), reference(images), mistakes, f"the photo of the {photo}")


def _repaired(position: Tensor, order: Tensor) -> Tensor:
    return torch.cat([position[:, :1], position[:, 1:][:, order]], dim=1)


@function_check(
    "(1, N + 1, D)",
    'chapter 5, exercise "Photos from a jigsaw"',
    _repaired,
    [(6, 4), (9, 5), (5, 8)],
    exact=True,
    gradients=False,
)
def repaired(count: int, dim: int) -> Case:
    """Check a function ``(position, order)`` that fits a position table to patches in another order.

    The table is (1, N + 1, D), the class token's row first; ``order`` (N,) holds the numbers 0 to N - 1, and
    place j shows patch ``order[j]``. The result is the new table, (1, N + 1, D).
    """
    position, order = torch.randn(1, count + 1, dim), torch.randperm(count)
    while torch.equal(order[order], torch.arange(count)):  # its own inverse
        order = torch.randperm(count)
    first, patches = position[:, :1], position[:, 1:]
    moved, whole = patches[:, order], position[:, order]
    row = "patch n has row n + 1, since row 0 is the class token's"
    mistakes = {
        "the order is used the wrong way round: place j shows patch order[j], so it takes that patch's row": (
            torch.cat([first, patches[:, order.argsort()]], 1)
        ),
        f"the class token's row is moved with the others, and the last row is lost; {row}": whole,
        f"the class token's row is moved with the others, and the last row stays; {row}": torch.cat(
            [whole, position[:, -1:]], 1
        ),
        f"place j takes row order[j] of the whole table; {row}": torch.cat([first, whole], 1),
        "the class token's row is missing; keep it in front, as it was": moved,
        "the class token's row stands last; keep it in front": torch.cat([moved, first], 1),
        "the class token's row is 0; keep it as it was": torch.cat([0 * first, moved], 1),
        "the table is unchanged; its rows have to follow the patches": position,
        "the order is read from its end; row j + 1 belongs to place j": torch.cat([first, moved.flip(1)], 1),
    }
    return Case((position, order), _repaired(position, order), mistakes)


@function_check(
    "or a plain number",
    'chapter 5, exercise "The bill in operations"',
    lambda *sizes: number(cost.forward_flops(_config(*sizes))),
    [()] * 4,
    answers=[cost.forward_flops],
    call=f"predicted_operations({SIZES})",
    number=True,
)
def predicted_operations() -> Case:
    """Check a function that counts the operations of a ViT's forward pass for one image, from its sizes.

    It is called as ``(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes)`` and returns a
    number. Matrix products count, a multiply-add as 2 operations; biases, norms, softmax, GELU and additions
    do not.
    """
    sizes = _sizes()
    right = cost.forward_flops(_config(*sizes))
    mistakes = {sentence: right + 2 * off for sentence, off in _left_out(*sizes).items()} | {
        "a multiply-add counts once; here it counts as 2 operations": right // 2,
        "a multiply-add counts as 2 operations, and here they count twice": 2 * right,
        "biases are counted, an operation for each addition; count matrix products alone": right
        + _biases(*sizes),
    }
    return Case(sizes, number(right), numbers(mistakes))


def _biases(
    image_size: int, patch_size: int, channels: int, dim: int, depth: int, mlp_dim: int, num_classes: int
) -> int:
    patches = (image_size // patch_size) ** 2
    return patches * dim + depth * (patches + 1) * (5 * dim + mlp_dim) + num_classes


def _left_out(
    image_size: int, patch_size: int, channels: int, dim: int, depth: int, mlp_dim: int, num_classes: int
) -> dict[str, int]:
    side = image_size // patch_size
    patches = side**2
    tokens, values = patches + 1, patch_size**2 * channels
    dense = 4 * dim * dim + 2 * dim * mlp_dim

    def layers(tokens: int) -> int:
        return depth * (tokens * dense + 2 * tokens**2 * dim)

    block, square, embedding = layers(tokens) // depth, tokens * dim * dim * depth, patches * values * dim
    pairs = tokens**2 * dim * depth
    one_row = (side - patches) * values * dim + layers(side + 1) - layers(tokens)
    one_token = -(patches - 1) * values * dim - (tokens - 1) * dense * depth
    return {
        "the class token is missing: T = N + 1 in every block": layers(patches) - layers(tokens),
        "the class token is cut and embedded like a patch; E meets the N patches only": values * dim,
        "both products with the T x T weights are missing, q k^T and A v": -2 * pairs,
        "the two products with the T x T weights cost T^2 here; each costs T^2 D": 2 * pairs // dim
        - 2 * pairs,
        "one of the two products with the T x T weights is missing: q k^T, and A v": -pairs,
        "queries, keys and values are one product with D x D; they are three": -2 * square,
        "the output projection of the attention is missing": -square,
        "the MLP has one product here; it has two": -tokens * dim * mlp_dim * depth,
        "the MLP is taken to be 4 D wide; it is mlp_dim wide": 2 * tokens * dim * (4 * dim - mlp_dim) * depth,
        "the MLP is missing": -2 * tokens * dim * mlp_dim * depth,
        "image_size / patch_size is taken for the number of patches; so many lie along each side": one_row,
        "there is one block only: multiply by the depth": -block * (depth - 1),
        "the head is missing": -dim * num_classes,
        "the head reads every token; it reads the class token alone": (tokens - 1) * dim * num_classes,
        "the patch embedding is missing": -embedding,
        "a patch has one channel here: P P C values": -embedding + patches * patch_size**2 * dim,
        "each matrix multiplies one token only; every one of T tokens passes it": one_token,
    }


def _sizes() -> tuple[int, ...]:
    """Draw image size, patch size, channels, width, depth, the MLP's width and classes of a model."""
    patch = draw(2, 9)
    image = patch * draw(3, 12)
    return image, patch, draw(2, 4), 4 * draw(5, 30), draw(2, 9), draw(130, 300), draw(3, 99)


def _config(
    image: int, patch: int, channels: int, dim: int, depth: int, mlp_dim: int, classes: int
) -> ViTConfig:
    return ViTConfig(image, patch, channels, dim, depth, heads=1, mlp_dim=mlp_dim, num_classes=classes)


@class_check(
    "MeanViT(image_size=, ...)",
    "(B, K)",
    'chapter 5, exercise "Average pooling"',
    lambda **fields: _vit(**fields, pool="gap"),
    FIELDS,
    [(1.0, 2), (0.3, 1)],
)
def mean_vit(reference: ours.VisionTransformer, scale: float, batch: int) -> Case:
    """Check a class like that of :func:`vision_transformer` whose head reads the mean of the patch tokens.

    It is called with the same keywords and has the same parameters. The class token stays in the sequence and
    is left out of the mean, which is taken after the final norm.
    """
    images = scale * torch.randn(batch, 2, 12, 12)
    return Case((images,), reference(images), functools.partial(_mean_mistakes, reference, images))


def _mean_mistakes(reference: ours.VisionTransformer, images: Tensor) -> dict[str, Tensor]:
    encoder, head = reference.encoder, reference.head
    assert head is not None
    last = reference.tokens(reference.patch_embedding(images))
    for block in encoder.blocks:
        last = block(last)[0]
    encoded = encoder.norm(last)
    first, patches = encoded[:, 0], encoded[:, 1:]
    mean, early = patches.mean(1), "taken before the final norm; the norm comes first"
    read = {
        "the head reads the class token; here it reads the mean of the patches": first,
        "the class token is in the mean; leave it out, [:, 1:]": encoded.mean(1),
        "the mean leaves the last patch out, not the class token, number 0": (encoded[:, :-1].mean(1)),
        f"the mean is {early}": encoder.norm(last[:, 1:].mean(1)),
        f"the mean of all tokens is {early}, and the class token is left out": encoder.norm(last.mean(1)),
        "the final norm is missing": last[:, 1:].mean(1),
        "the final norm is applied twice": encoder.norm(mean),
        "the head reads the sum of the patches, not their mean": patches.sum(1),
        "the head reads the largest value of the patches, not their mean": patches.amax(1),
        "the head reads every patch: take their mean first, or the mean of its answers": patches,
    }
    return {sentence: head(each) for sentence, each in read.items()} | {
        "the features are returned; the head is not called": mean,
        "a softmax follows the head; the model returns logits": head(mean).softmax(-1),
    }
