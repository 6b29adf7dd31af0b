"""Checks of chapter 4: the MLP, the encoder block and the stack of blocks."""

import copy
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_classroom.checks.judging import check, judge_module
from vit_classroom.checks.report import Case, Piece, randomise
from vit_classroom.checks.starts import spread_like_linear
from vit_from_scratch.model import encoder as ours
from vit_from_scratch.model.config import ViTConfig

MLP = Piece("Mlp", "Mlp(dim, mlp_dim)", "(B, T, D)", 'chapter 4, "GELU and the MLP"')
BLOCK = Piece("Block", "Block(dim, heads, mlp_dim)", "(B, T, D)", 'chapter 4, "The block"', pair=True)
ENCODER = Piece("Encoder", "Encoder(dim, depth, heads, mlp_dim)", "(B, T, D)", 'chapter 4, "Stack them"')

EPS = {
    1e-5: "the eps of LayerNorm is 1e-5, PyTorch's own; the reference code has 1e-6",
    1e-12: "the eps of LayerNorm is 1e-12, as in BERT; the reference code has 1e-6",
    1e-8: "the eps of LayerNorm is 1e-8; the reference code has 1e-6",
}
"""Tokens of a small scale show it."""

OTHERS: dict[str, Callable[[Tensor], Tensor]] = {
    "ReLU": torch.relu,
    "SiLU (swish)": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "leaky ReLU": F.leaky_relu,
    "ELU": F.elu,
    "softmax": lambda hidden: hidden.softmax(-1),
}
"""What may stand where the GELU belongs."""


def with_eps(module: nn.Module, eps: float) -> nn.Module:
    """Return a copy of a module whose norms have another eps."""
    changed = copy.deepcopy(module)
    for layer in changed.modules():
        if isinstance(layer, nn.LayerNorm):
            layer.eps = eps
    return changed


@check(MLP)
def mlp(cls: Callable[[int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.encoder.Mlp`.

    It is called as ``cls(dim, mlp_dim)``; linear layers ``hidden`` and ``output``.

    Raises:
        CheckFailed: if parameters or results differ; the message names another non-linearity.
    """
    reference = ours.Mlp(6, 10)
    randomise(reference)

    def cases() -> list[Case]:
        found = []
        for scale in (3.0, 0.3):
            tokens = scale * torch.randn(2, 5, 6)
            label = f"tokens of shape {tuple(tokens.shape)}"
            found.append(Case((tokens,), reference(tokens), _mlp_mistakes(reference, tokens), label))
        return found

    judge_module(MLP, cls, (6, 10), reference, cases, _look_at_start)


def _mlp_mistakes(reference: ours.Mlp, tokens: Tensor) -> dict[str, Tensor]:
    """What another function, or another order of the layers, gives."""
    first, second = reference.hidden, reference.output
    hidden, right = first(tokens), reference(tokens)
    mistakes = {
        f"the non-linearity is a {name}; the paper takes a GELU": second(function(hidden))
        for name, function in OTHERS.items()
    }
    exact = "the package's default is the exact one"
    approximate = second(F.gelu(hidden, approximate="tanh"))
    return mistakes | {
        f"the GELU is the tanh approximation; {exact}": approximate,
        f"the GELU is x sigmoid(1.702 x), an approximation; {exact}": second(
            hidden * (1.702 * hidden).sigmoid()
        ),
        "there is no non-linearity between the two layers": second(hidden),
        "a GELU follows the second layer, too": F.gelu(right),
        "the GELU stands at the end; it belongs between the two layers": F.gelu(second(hidden)),
        "the GELU stands before the first layer; it belongs between the two": second(first(F.gelu(tokens))),
        "the GELU is applied twice": second(F.gelu(F.gelu(hidden))),
        "the input is added; that is the block's part, equation 3": right + tokens,
        "a norm comes first; that is the block's part, equation 3": reference(F.layer_norm(tokens, (6,))),
    }


def _look_at_start(module: nn.Module) -> None:
    spread_like_linear(MLP, module, ["hidden.weight", "output.weight"])


@check(BLOCK)
def block(cls: Callable[[int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.encoder.Block`.

    It is called as ``cls(dim, heads, mlp_dim)``; submodules ``attention_norm``, ``attention``,
    ``mlp_norm`` and ``mlp``; it returns (B, T, D), or a pair that begins with it.

    Raises:
        CheckFailed: if parameters or results differ, or dropout works in evaluation.
    """
    config = ViTConfig(image_size=4, patch_size=2, dim=12, depth=1, heads=3, mlp_dim=20)
    reference = ours.Block(config)
    randomise(reference)

    def cases() -> list[Case]:
        found = []
        for scale, count in ((1.0, 5), (1e-3, 7), (1e-3, 5)):
            tokens = scale * torch.randn(2, count, 12)
            size = "ordinary" if scale == 1.0 else "small"
            label = f"{size} tokens of shape {tuple(tokens.shape)}"
            found.append(Case((tokens,), reference(tokens)[0], block_mistakes(reference, tokens), label))
        return found

    judge_module(BLOCK, cls, (12, 3, 20), reference, cases)


def block_mistakes(reference: ours.Block, tokens: Tensor) -> dict[str, Tensor]:
    """What each wrong wiring of the four layers gives."""

    def attend(x: Tensor) -> Tensor:
        return reference.attention(x)[0]

    norm_1, norm_2, feed = reference.attention_norm, reference.mlp_norm, reference.mlp
    bare = attend(norm_1(tokens))
    middle = tokens + bare
    unnormed = tokens + attend(tokens)
    post = norm_1(unnormed)
    after = tokens + norm_1(attend(tokens))
    from_normed = norm_1(tokens) + bare
    fed_first = tokens + feed(norm_2(tokens))
    crossed = tokens + attend(norm_2(tokens))
    twice = middle + attend(norm_1(middle))
    right = middle + feed(norm_2(middle))
    first = "equations 2 and 3 normalise first"
    stream = "what is added is the stream itself"
    mistakes = {
        f"the norms come after the additions (post-norm); {first}": norm_2(post + feed(post)),
        f"the norms come after the layers, before the additions; {first}": after + norm_2(feed(after)),
        "the residual around the attention is missing (the + z of equation 2)": bare + feed(norm_2(bare)),
        "the residual around the MLP is missing (the + z' of equation 3)": feed(norm_2(middle)),
        "both residuals are missing (the + z of equation 2, the + z' of equation 3)": feed(norm_2(bare)),
        "the MLP's residual adds the block's input; equation 3 adds z', the result of equation 2": (
            tokens + feed(norm_2(middle))
        ),
        f"both residuals start from the normalised tokens; {stream}: z + MSA(LN(z))": (
            norm_2(from_normed) + feed(norm_2(from_normed))
        ),
        f"the residual around the attention starts from the normalised tokens; {stream}, z": (
            from_normed + feed(norm_2(from_normed))
        ),
        f"the residual around the MLP starts from the normalised tokens; {stream}, z'": (
            norm_2(middle) + feed(norm_2(middle))
        ),
        "attention_norm is declared and never called": unnormed + feed(norm_2(unnormed)),
        "mlp_norm is declared and never called": middle + feed(middle),
        "both norms are declared and never called": unnormed + feed(unnormed),
        "the two norms have changed places": crossed + feed(norm_1(crossed)),
        "the attention's norm is used for the MLP, too; equation 3 has its own": middle
        + feed(norm_1(middle)),
        "the MLP's norm is used for the attention, too; equation 2 has its own": crossed
        + feed(norm_2(crossed)),
        "the MLP comes before the attention; equation 2 comes first": fed_first + attend(norm_1(fed_first)),
        "the MLP reads the block's input; equation 3 feeds it the result of equation 2": (
            middle + feed(norm_2(tokens))
        ),
        "the MLP is missing": middle,
        "the attention is missing": fed_first,
        "a further norm follows; the final one belongs to the encoder": norm_2(right),
        "the attention is called twice": twice + feed(norm_2(twice)),
    }
    return mistakes | {sentence: with_eps(reference, eps)(tokens)[0] for eps, sentence in EPS.items()}


@check(ENCODER)
def encoder(cls: Callable[[int, int, int, int], object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.encoder.Encoder`.

    It is called as ``cls(dim, depth, heads, mlp_dim)``; submodules ``blocks``, a list of blocks as
    :func:`block` wants them, and ``norm``; it maps (B, T, D) to (B, T, D).

    Raises:
        CheckFailed: if parameters or results differ; the message names a block that is left out, or a norm.
    """
    config = ViTConfig(image_size=4, patch_size=2, dim=12, depth=3, heads=2, mlp_dim=20)
    reference = ours.Encoder(config)
    randomise(reference)
    with torch.no_grad():  # quiet blocks leave quiet tokens quiet, so that the eps of the last norm shows
        for name, parameter in reference.blocks.named_parameters():
            if "projection" in name or "output" in name:
                parameter.mul_(0.1)

    def cases() -> list[Case]:
        found = []
        for scale, count in ((1.0, 5), (0.03, 7), (0.03, 5)):
            tokens = scale * torch.randn(2, count, 12)
            size = "ordinary" if scale == 1.0 else "small"
            label = f"{size} tokens of shape {tuple(tokens.shape)}, {config.depth} blocks"
            found.append(Case((tokens,), reference(tokens), _encoder_mistakes(reference, tokens), label))
        return found

    judge_module(ENCODER, cls, (12, 3, 2, 20), reference, cases)


def _encoder_mistakes(reference: ours.Encoder, tokens: Tensor) -> dict[str, Tensor]:
    """What each wrong way through blocks and norm gives."""
    norm, blocks = reference.norm, list(reference.blocks)

    def through(blocks: Iterable[nn.Module], start: Tensor, each: bool = False) -> Tensor:
        for block in blocks:
            start = block(start)[0]
            start = norm(start) if each else start
        return start

    last = through(blocks, tokens)
    right = norm(last)
    own_eps = {
        sentence.replace("LayerNorm", "the last norm"): F.layer_norm(
            last, (12,), norm.get_parameter("weight"), norm.get_parameter("bias"), eps
        )
        for eps, sentence in EPS.items()
    }
    return {
        "the last norm is missing, or never called; equation 4 needs it": last,
        "the last norm follows every block; it comes once, at the end": through(blocks, tokens, each=True),
        "the last norm follows every block, and once more the last of them; it comes once, at the end": norm(
            through(blocks, tokens, each=True)
        ),
        "the norm comes before the blocks; it belongs behind the last": through(blocks, norm(tokens)),
        "the norm comes before the blocks as well as behind the last": norm(through(blocks, norm(tokens))),
        "only the first block is called; the tokens run through all L": norm(through(blocks[:1], tokens)),
        "the last block is left out; the tokens run through all L": norm(through(blocks[:-1], tokens)),
        "the first block is left out; the tokens run through all L": norm(through(blocks[1:], tokens)),
        "one and the same block is called L times; L different ones follow each other": norm(
            through(blocks[:1] * len(blocks), tokens)
        ),
        "the blocks are called in reverse": norm(through(blocks[::-1], tokens)),
        "the blocks are not called": norm(tokens),
        "every block reads z_0: hand each one the result of the block before, `z = block(z)`": norm(
            through(blocks[-1:], tokens)
        ),
        "every block's residual is added by the encoder as well; the blocks do that themselves": norm(
            _added_again(blocks, tokens)
        ),
        "the encoder's input is added at the end; the residuals are inside the blocks": norm(last + tokens),
        "the encoder's input is added after the norm; the residuals are inside the blocks": right + tokens,
        "it returns the class token alone; picking it is the model's part, the encoder returns all tokens": (
            right[:, 0]
        ),
        "it returns the mean of the tokens; the encoder returns all of them": right.mean(1),
        **own_eps,
        **{f"in all norms {sentence}": with_eps(reference, eps)(tokens) for eps, sentence in EPS.items()},
    }


def _added_again(blocks: Iterable[nn.Module], tokens: Tensor) -> Tensor:
    for block in blocks:
        tokens = tokens + block(tokens)[0]
    return tokens
