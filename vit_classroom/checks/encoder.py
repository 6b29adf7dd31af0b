"""Checks of chapter 4: the MLP, the encoder block and the stack of blocks."""

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_classroom.checks.attention import without_weights
from vit_classroom.checks.judging import class_check, function_check, judge_function
from vit_classroom.checks.report import Case, Piece, normalised, randomise, same
from vit_classroom.checks.starts import spread_like_linear
from vit_from_scratch.model import encoder as ours
from vit_from_scratch.model.config import ViTConfig

EPS = {
    1e-5: "the eps of LayerNorm is 1e-5, PyTorch's own; the reference code has 1e-6",
    1e-12: "the eps of LayerNorm is 1e-12, as in BERT; the reference code has 1e-6",
}
"""Tokens of a small scale show it."""


OTHERS: dict[str, Callable[[Tensor], Tensor]] = {
    "ReLU": torch.relu,
    "SiLU (swish)": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "leaky ReLU": F.leaky_relu,
    "ELU": F.elu,
    "softplus": F.softplus,
    "softmax": lambda hidden: hidden.softmax(-1),
}
"""What may stand where the GELU belongs."""


def with_eps(module: nn.Module, eps: float) -> nn.Module:
    """Return a copy of a norm, or of a module with norms, that has another eps."""
    changed = copy.deepcopy(module)
    for layer in changed.modules():
        if isinstance(layer, nn.LayerNorm):
            layer.eps = eps
    return changed


@class_check(
    "Mlp(dim, mlp_dim)",
    "(B, T, D)",
    'chapter 4, "GELU and the MLP"',
    lambda *sizes: randomise(ours.Mlp(*sizes)),
    (6, 10),
    [3.0, 0.3],
    starts=[spread_like_linear("hidden.weight", "output.weight")],
)
def mlp(reference: ours.Mlp, scale: float) -> Case:
    """Check a class like :class:`vit_from_scratch.model.encoder.Mlp`.

    It is called as ``cls(dim, mlp_dim)``; linear layers ``hidden`` and ``output``.
    """
    tokens = scale * torch.randn(2, 5, 6)
    return Case((tokens,), reference(tokens), functools.partial(_mlp_mistakes, reference, tokens))


def _mlp_mistakes(reference: ours.Mlp, tokens: Tensor) -> dict[str, Tensor]:
    first, second = reference.hidden, reference.output
    hidden, right = first(tokens), reference(tokens)
    mistakes = {
        f"the non-linearity is a {name}; the paper takes a GELU": second(function(hidden))
        for name, function in OTHERS.items()
    }
    exact = "the package's default is the exact one"
    tanh, sigmoid = F.gelu(hidden, approximate="tanh"), hidden * (1.702 * hidden).sigmoid()
    return mistakes | {
        f"the GELU is the tanh approximation; {exact}": second(tanh),
        f"the GELU is x sigmoid(1.702 x), an approximation; {exact}": second(sigmoid),
        "there is no non-linearity between the two layers": second(hidden),
        "a GELU follows the second layer, too": F.gelu(right),
        "the GELU stands at the end; it belongs between the two layers": F.gelu(second(hidden)),
        "the GELU stands before the first layer; it belongs between the two": second(first(F.gelu(tokens))),
        "the GELU is applied twice": second(F.gelu(F.gelu(hidden))),
        "the input is added; that is the block's part, equation 3": right + tokens,
        "a norm comes first; that is the block's part, equation 3": reference(F.layer_norm(tokens, (6,))),
    }


def _block(dim: int, heads: int, mlp_dim: int, *_: object) -> ours.Block:
    """Make a block; the wider one's attention is so quiet that what its second norm reads stays small."""
    reference = randomise(ours.Block(ViTConfig(4, 2, dim=dim, depth=1, heads=heads, mlp_dim=mlp_dim)))
    with torch.no_grad():
        for parameter in reference.attention.projection.parameters():
            parameter.mul_(1e-3 if dim == 16 else 1.0)
    return without_weights(reference)


@class_check(
    "Block(dim, heads, mlp_dim)",
    "(B, T, D)",
    'chapter 4, "The block"',
    _block,
    [(12, 3, 20), (16, 2, 10)],
    [(1.0, 1, 5), (1e-3, 2, 7)],  # small tokens show the eps of the norms
)
def block(reference: ours.Block, scale: float, batch: int, count: int) -> Case:
    """Check a class like :class:`vit_from_scratch.model.encoder.Block`.

    It is called as ``cls(dim, heads, mlp_dim)``; submodules ``attention_norm``, ``attention``,
    ``mlp_norm`` and ``mlp``; it returns (B, T, D) alone.
    """
    tokens = scale * torch.randn(batch, count, reference.attention.qkv.in_features)
    note = f"values of about {scale:g}"
    mistakes = functools.partial(_block_mistakes, reference, tokens)
    return Case((tokens,), reference(tokens), mistakes, note)


def _block_mistakes(reference: ours.Block, tokens: Tensor) -> dict[str, Tensor]:
    def attend(x: Tensor) -> Tensor:
        return reference.attention(x)[0]

    norm_1, norm_2, feed = reference.attention_norm, reference.mlp_norm, reference.mlp
    bare = attend(norm_1(tokens))
    middle, picked = tokens + bare, tokens + bare[:1]

    def fed(start: Tensor, read: Tensor | None = None) -> Tensor:
        """Add what the MLP makes of these tokens, or of others."""
        return start + feed(start if read is None else read)

    unnormed = tokens + attend(tokens)
    post = norm_1(unnormed)
    after = tokens + norm_1(attend(tokens))
    normed = norm_1(tokens) + bare
    fed_first = tokens + feed(norm_2(tokens))
    across = tokens + attend(norm_2(tokens))
    twice = middle + attend(norm_1(middle))
    right = middle + feed(norm_2(middle))
    to_input, of_input = fed(tokens, norm_2(middle)), fed(middle, norm_2(tokens))
    first = "equations 2 and 3 normalise first"
    stream = "what is added is the stream itself"
    mistakes = {
        f"the norms come after the additions (post-norm); {first}": norm_2(post + feed(post)),
        f"the norms come after the layers, before the additions; {first}": after + norm_2(feed(after)),
        "the residual around the attention is missing (the + z of equation 2)": bare + feed(norm_2(bare)),
        "the residual around the MLP is missing (the + z' of equation 3)": feed(norm_2(middle)),
        "both residuals are missing (the + z of equation 2, the + z' of equation 3)": feed(norm_2(bare)),
        "the MLP's residual adds the block's input; equation 3 adds z', the result of equation 2": to_input,
        f"both residuals start from the normalised tokens; {stream}: z + MSA(LN(z))": fed(norm_2(normed)),
        f"the attention's residual begins with normalised tokens; {stream}, z": fed(normed, norm_2(normed)),
        f"the residual around the MLP starts from the normalised tokens; {stream}, z'": fed(norm_2(middle)),
        "attention_norm is declared and never called": unnormed + feed(norm_2(unnormed)),
        "mlp_norm is declared and never called": middle + feed(middle),
        "both norms are declared and never called": unnormed + feed(unnormed),
        "the two norms have changed places": across + feed(norm_1(across)),
        "the attention's norm is used for the MLP, too; equation 3 has its own": fed(middle, norm_1(middle)),
        "the MLP's norm is used for the attention, too; equation 2 has its own": fed(across, norm_2(across)),
        "the MLP comes before the attention; equation 2 comes first": fed_first + attend(norm_1(fed_first)),
        "the MLP reads the block's input; equation 3 feeds it the result of equation 2": of_input,
        "the MLP is missing": middle,
        "the attention is missing": fed_first,
        "a further norm follows; the final one belongs to the encoder": norm_2(right),
        "what the attention returns for image 0 is added to every image; a [0] takes the result out of the "
        "package's pair, and image 0 out of a plain tensor": fed(picked, norm_2(picked)),
        "the attention is called twice": twice + feed(norm_2(twice)),
    }
    for eps, sentence in EPS.items():
        mistakes[sentence] = with_eps(reference, eps)(tokens)
        for name in ("attention_norm", "mlp_norm"):
            one = copy.deepcopy(reference)
            setattr(one, name, with_eps(one.get_submodule(name), eps))
            mistakes[sentence.replace("LayerNorm", name)] = one(tokens)
    return mistakes


def _encoder(dim: int, depth: int, heads: int, mlp_dim: int) -> ours.Encoder:
    """Make an encoder whose quiet blocks leave quiet tokens quiet, so that the eps of the last norm shows."""
    config = ViTConfig(4, 2, dim=dim, depth=depth, heads=heads, mlp_dim=mlp_dim)
    reference = randomise(ours.Encoder(config))
    with torch.no_grad():
        for name, parameter in reference.blocks.named_parameters():
            if "projection" in name or "output" in name:
                parameter.mul_(0.1)
    return reference


@class_check(
    "Encoder(dim, depth, heads, mlp_dim)",
    "(B, T, D)",
    'chapter 4, "Stack them"',
    _encoder,
    [(12, 3, 2, 20), (16, 2, 4, 10)],
    [(1.0, 1, 5), (0.03, 2, 7)],
)
def encoder(reference: ours.Encoder, scale: float, batch: int, count: int) -> Case:
    """Check a class like :class:`vit_from_scratch.model.encoder.Encoder`.

    It is called as ``cls(dim, depth, heads, mlp_dim)``; submodules ``blocks``, a list of blocks as
    :func:`block` wants them, and ``norm``; it maps (B, T, D) to (B, T, D).
    """
    tokens = scale * torch.randn(batch, count, len(reference.norm.get_parameter("weight")))
    note = f"values of about {scale:g}"
    mistakes = functools.partial(_encoder_mistakes, reference, tokens)
    return Case((tokens,), reference(tokens), mistakes, note)


def run_through(tokens: Tensor, blocks: Iterable[nn.Module], after: nn.Module | None = None) -> Tensor:
    """Run tokens through blocks that return weights, too, with a module after each, perhaps."""
    for block in blocks:
        tokens = block(tokens)[0]
        tokens = after(tokens) if after else tokens
    return tokens


def _encoder_mistakes(reference: ours.Encoder, tokens: Tensor) -> dict[str, Tensor]:
    norm, blocks = reference.norm, list(reference.blocks)
    through = functools.partial(run_through, tokens)
    last, each = through(blocks), through(blocks, norm)
    right, added_again, run = norm(last), tokens, "the tokens run through all L"
    for block in blocks:
        added_again = added_again + block(added_again)[0]
    weights = norm.get_parameter("weight"), norm.get_parameter("bias")
    own_eps = {
        sentence.replace("LayerNorm", "the last norm"): F.layer_norm(last, weights[0].shape, *weights, eps)
        for eps, sentence in EPS.items()
    }
    normed_after = {
        "the last norm follows every block, and once more the last of them; it comes once, at the end": each,
        "the norm comes before the blocks as well as behind the last": run_through(norm(tokens), blocks),
        f"only the first block is called; {run}": through(blocks[:1]),
        f"the last block is left out; {run}": through(blocks[:-1]),
        f"the first block is left out; {run}": through(blocks[1:]),
        "one and the same block is called L times; there are L of them": (through(blocks[:1] * len(blocks))),
        "the blocks are called in reverse": through(blocks[::-1]),
        "the blocks are not called": tokens,
        "every block reads z_0: hand each the last one's result, `z = block(z)`": (through(blocks[-1:])),
        "every block's residual is added by the encoder as well; the blocks do that themselves": added_again,
        "every block reads z_0, and the results are added; each reads the result of the one before": sum(
            (block(tokens)[0] for block in blocks), torch.zeros_like(tokens)
        ),
        "the encoder's input is added at the end; the residuals are inside the blocks": last + tokens,
    }
    return {sentence: norm(z) for sentence, z in normed_after.items()} | {
        "the last norm is missing, or never called; equation 4 needs it": last,
        "the last norm follows every block; it comes once, at the end": each,
        "the norm comes before the blocks; it belongs behind the last": run_through(norm(tokens), blocks),
        "the encoder's input is added after the norm; the residuals are inside the blocks": right + tokens,
        "it returns the class token alone; the model picks it, the encoder returns all tokens": (right[:, 0]),
        "it returns the mean of the tokens; the encoder returns all of them": right.mean(1),
        **own_eps,
        **{f"in all norms {sentence}": with_eps(reference, eps)(tokens) for eps, sentence in EPS.items()},
    }


@function_check(
    "(..., D)",
    'chapter 4, exercise "LayerNorm from scratch"',
    lambda x, weight, bias, eps: F.layer_norm(x, x.shape[-1:], weight, bias, eps),
    [  # small values show an eps
        ((3, 8), 1.0, 0.1),
        ((2, 5, 6), 3.0, 1e-5),
        ((2, 3, 4, 7), 1e-3, 1e-6),
        ((4, 6), 1e-3, 1e-5),
    ],
)
def layer_norm(shape: tuple[int, ...], scale: float, eps: float) -> Case:
    """Check a function ``(x, weight, bias, eps)`` that normalises the last axis of x, (..., D).

    ``weight`` and ``bias`` are (D,).
    """
    x = scale * (torch.randn(shape) + 0.5)
    weight, bias = torch.randn(2, shape[-1]).unbind()
    right = F.layer_norm(x, shape[-1:], weight, bias, eps)
    return Case((x, weight, bias, eps), right, _norm_mistakes(x, weight, bias, eps))


def _norm_mistakes(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> dict[str, Tensor]:
    centred = x - x.mean(-1, keepdim=True)
    variance, unbiased = (x.var(-1, keepdim=True, correction=n) for n in (0, 1))
    normal, everywhere = normalised(x, -1, eps), tuple(range(x.ndim))
    mean_square = x.square().mean(-1, keepdim=True)
    taken = "mean and variance are taken over"
    normals = {
        "the variance divides by D - 1; take correction=0": normalised(x, -1, eps, correction=1),
        "eps stands outside of the root; it belongs inside": centred / (variance.sqrt() + eps),
        "eps stands outside the root, and the variance divides by D - 1": (centred / (unbiased.sqrt() + eps)),
        "eps is added to the quotient; it stands with the variance under the root, in brackets": centred
        / variance.sqrt()
        + eps,
        "the mean alone is divided, not the difference: put it in brackets, (x - mean)": x
        - (x - centred) / (variance + eps).sqrt(),
        "eps is missing": centred / variance.sqrt(),
        "the root is missing: the standard deviation divides, not the variance": centred / (variance + eps),
        "the mean is not taken off (that is another layer, RMSNorm)": x / (mean_square + eps).sqrt(),
        "the mean is taken off, and nothing divides": centred,
        "the mean is not taken off before the standard deviation divides": x / (variance + eps).sqrt(),
        **{
            f"eps is always {other:g}; take the one that is handed in": normalised(x, -1, other)
            for other in (1e-5, 1e-6, 1e-8, 1e-12)
            if other != eps
        },
        "eps is a floor of the variance; it is added to it": centred / variance.clamp(min=eps).sqrt(),
        "the root is taken of eps as well; it stands with the variance under one root": centred
        / (variance.sqrt() + eps**0.5),
        "the deviations are averaged by size; take the root of their mean square": centred
        / (centred.abs().mean(-1, keepdim=True) + eps),
        "the values are scaled to length 1, as F.normalize does": F.normalize(centred, dim=-1),
        f"{taken} axis 1, which is another one for each number of axes; take dim=-1": normalised(x, 1, eps),
        f"{taken} the last two axes; take the last alone, dim=-1": normalised(x, (-2, -1), eps),
        f"{taken} all values; each token has its own": normalised(x, everywhere, eps),
        f"{taken} the first axis; take the last, dim=-1": normalised(x, 0, eps),
        f"{taken} the tokens; take the last axis, dim=-1": normalised(x, -2, eps),
    }
    return {sentence: wrong * weight + bias for sentence, wrong in normals.items()} | {
        "weight and bias are not used": normal,
        "the bias is not added": normal * weight,
        "the weight is not used": normal + bias,
        "the bias is added before the weight multiplies": (normal + bias) * weight,
        "the sum of weight and bias multiplies; multiply by the weight, then add the bias": normal
        * (weight + bias),
        "weight and bias have changed places": normal * bias + weight,
        "the weight is added to 1; it multiplies as it is": normal * (1 + weight) + bias,
        "weight and bias come before the norm; they follow it": normalised(x * weight + bias, -1, eps),
    }


DROPPED = 0.25
"""Not a half: what is dropped and what is kept have to differ."""
NEARLY_ALL = 1 - 1e-8
"""Not 1, for readers who divide by 1 - dropout."""


def _judge_in_training(piece: Piece, cls: Callable[..., Any], reference: ours.Block) -> None:
    piece = dataclasses.replace(piece, gradients=False, call=f"{piece.name}(z)")
    _judge_share_used(piece, cls, reference)
    everything = _in_training(cls, reference, NEARLY_ALL)
    z = torch.randn(2, 5, 12)
    case = Case((z,), z, _dropout_mistakes(reference, z), "in training, dropout nearly 1: nothing to add")
    judge_function(piece, everything, lambda z: z, [case], [])
    _judge_results_dropped(piece, cls, reference)
    _judge_attention_whole(piece, cls, reference)
    _judge_hidden_dropped(piece, cls, reference)
    _judge_default(piece, cls, reference)


def _silenced(reference: ours.Block, attended: float | None, fed: float) -> ours.Block:
    """Copy a block, of which attention, unless it is None, and MLP return nothing but these numbers."""
    quiet = copy.deepcopy(reference)
    with torch.no_grad():
        for layer, value in ((quiet.attention.projection, attended), (quiet.mlp.output, fed)):
            if value is None:
                continue
            layer.weight.zero_()
            layer.bias.fill_(value)
    return quiet


def _judge_share_used(piece: Piece, cls: Callable[..., Any], reference: ours.Block) -> None:
    """See that more of the attention's result is dropped where `dropout` is larger."""
    ones, z = _silenced(reference, 1.0, 0.0), torch.zeros(4, 60, 12)
    few, most = ((_added(cls, ones, z, p) == 0).float().mean().item() for p in (DROPPED, NEARLY_ALL))
    told = f"with dropout={DROPPED} {few:.0%} of the attention's results are dropped"
    if few > 0.02 and abs(few - most) < 0.04:
        unused = "`dropout` is not used; hand it to nn.Dropout, or to F.dropout as its p"
        raise piece.failed(f"{told}, and with nearly 1 no more: {unused}")
    if most < 0.02 and abs(few - (1 - DROPPED)) < 0.06:
        share = "p of nn.Dropout is the share that is dropped, `dropout` and not 1 - dropout"
        raise piece.failed(f"{told}, and with nearly 1 none: {share}")


def _judge_results_dropped(piece: Piece, cls: Callable[..., Any], reference: ours.Block) -> None:
    """Look at each value that is dropped, or not, of attention that returns 1 and an MLP that returns 3."""
    result = _added(cls, _silenced(reference, 1.0, 3.0), torch.zeros(4, 60, 12))
    if len(result.unique()) == 2:
        raise piece.failed("one mask is used twice: draw a new one for the MLP's result")
    kept_one = result[result > 0].min()
    found = (result / kept_one).round()
    attended, fed = ((found == one) | (found == 4) for one in (1, 3))
    for name, kept in (("attention's", attended), ("MLP's", fed)):
        share = 1 - kept.float().mean().item()
        if (kept == kept[..., :1]).all():
            raise piece.failed(f"of the {name} result whole tokens are dropped: each value has its chance")
        if (kept == kept[:1]).all() or (kept == kept[:, :1]).all():
            raise piece.failed(f"of the {name} result all tokens lose the same values: each has its own mask")
        if abs(share - DROPPED) > 0.06:
            told = f"with dropout={DROPPED} {share:.0%} of the {name} results go"
            raise piece.failed(f"{told}: does the argument arrive?")
    if same(result, result.round()):
        raise piece.failed("what is not dropped stays as it is; divide it by 1 - dropout")
    if not same(result, (attended + 3.0 * fed) / (1 - DROPPED)):
        raise piece.failed("what is not dropped has to be divided by 1 - dropout, and only once")


def _judge_attention_whole(piece: Piece, cls: Callable[..., Any], reference: ours.Block) -> None:
    """See that what is kept of the attention's result is that of all tokens, and all of their weights."""
    z = torch.randn(4, 60, 12)
    added = _added(cls, _silenced(reference, None, 0.0), z)
    with torch.no_grad():
        attended = reference.attention(reference.attention_norm(z))[0]
    kept = added != 0
    if not same(added[kept], attended[kept] / (1 - DROPPED)):
        raise piece.failed(
            "something is dropped before the attention's result is there, of its input or of its weights A: "
            "drop the result alone"
        )


def _judge_hidden_dropped(piece: Piece, cls: Callable[..., Any], reference: ours.Block) -> None:
    """Look at the values after the GELU, which a second layer hands on one by one."""
    quiet, z = _silenced(reference, 0.0, 0.0), torch.randn(4, 60, 12)
    with torch.no_grad():
        quiet.mlp.output.weight.copy_(torch.eye(12, 20))
        hidden = quiet.mlp.hidden(quiet.mlp_norm(z))[..., :12]
    added, kept = _added(cls, quiet, z), 1 / (1 - DROPPED)
    seen = (added.abs() > 1e-4) & (F.gelu(hidden).abs() > 1e-2)
    if same(added[seen], kept * F.gelu(hidden)[seen]):
        raise piece.failed("the values after the GELU are not dropped: the MLP has two places")
    if same(added[seen], kept * F.gelu(kept * hidden)[seen]):
        raise piece.failed("the dropout stands before the GELU; it follows it")
    if (added == 0).all(-1).float().mean() > DROPPED / 2:
        raise piece.failed("after the GELU whole tokens are dropped: each value has its own chance")
    if not same(added[seen], kept**2 * F.gelu(hidden)[seen]):
        raise piece.failed("what is not dropped after the GELU has to be divided by 1 - dropout, only once")


def _judge_default(piece: Piece, cls: Callable[..., Any], reference: ours.Block) -> None:
    """Look at how many of the attention's results go where nobody says how many."""
    try:
        added = _added(cls, _silenced(reference, 1.0, 0.0), torch.zeros(4, 60, 12), None)
    except TypeError as error:
        said = f"it cannot be called as {piece.name}(dim, heads, mlp_dim): dropout has a default, 0.1"
        raise piece.failed(f"{said} ({error})") from None
    share = (added == 0).float().mean().item()
    if abs(share - 0.1) > 0.04:
        raise piece.failed(f"where it is not handed in dropout is 0.1; here {share:.0%} of the results go")


def _added(
    cls: Callable[..., Any], reference: nn.Module, z: Tensor, dropout: float | None = DROPPED
) -> Tensor:
    """What a reader's block adds to z in training."""
    with torch.no_grad():
        return _in_training(cls, reference, dropout)(z) - z


def _in_training(cls: Callable[..., Any], reference: nn.Module, dropout: float | None) -> nn.Module:
    """Return a reader's block that trains, with the reference's weights."""
    theirs = cls(12, 3, 20) if dropout is None else cls(12, 3, 20, dropout)
    theirs.load_state_dict(reference.state_dict(), strict=False)
    return theirs.train()


@class_check(
    "BlockWithDropout(dim, heads, mlp_dim, dropout)",
    "(B, T, D)",
    'chapter 4, exercise "Dropout in its three places"',
    _block,
    (12, 3, 20, 0.5),
    [5, 7],
    may_drop=True,
    also=_judge_in_training,
)
def block_with_dropout(reference: ours.Block, count: int) -> Case:
    """Check a class like that of :func:`block` that drops values in three places while it trains.

    It is called as ``cls(dim, heads, mlp_dim, dropout)``; the default of dropout is 0.1. Dropped are the
    attention's result, the values after the GELU, and the MLP's result; in evaluation nothing is.
    """
    z = torch.randn(2, count, 12)
    mistakes = functools.partial(_block_mistakes, reference, z)
    return Case((z,), reference(z), mistakes, "in evaluation")


def _dropout_mistakes(reference: ours.Block, z: Tensor) -> dict[str, Tensor]:
    """What a block returns that drops everything, and forgets a place."""
    attended = reference.attention(reference.attention_norm(z))[0]
    bias = reference.mlp.output.bias
    feed = reference.mlp(reference.mlp_norm(z))
    both = z + attended
    of_zeros, mlp_of_zeros = reference.attention(torch.zeros_like(z))[0], reference.mlp(torch.zeros_like(z))
    no_attention, no_output = "the attention's result is not dropped", "the MLP's result is not dropped"
    return {
        no_attention: both,
        no_output: z + bias,
        "nothing is dropped in the MLP: after the GELU and after the second layer": z + feed,
        f"{no_attention}, and {no_output}": both + bias,
        "nothing is dropped in training": both + reference.mlp(reference.mlp_norm(both)),
        "the stream itself is dropped; drop what is added to it, z + dropout(...)": torch.zeros_like(z),
        "the normalised tokens are dropped; drop what the layers return": z + of_zeros + mlp_of_zeros,
        "what the attention reads is dropped, and its result is not; drop the result": z + of_zeros,
    }
