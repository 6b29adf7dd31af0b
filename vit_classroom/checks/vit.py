"""Check of chapter 5: the whole model."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from vit_classroom.checks.encoder import EPS, with_eps
from vit_classroom.checks.judging import check, judge_module
from vit_classroom.checks.report import Case, Piece, randomise
from vit_classroom.checks.starts import spread_like_linear, starts_at_zero, starts_normal
from vit_from_scratch.model import vit as ours
from vit_from_scratch.model.config import ViTConfig

VIT = Piece(
    "VisionTransformer",
    "VisionTransformer(image_size=, patch_size=, channels=, dim=, depth=, heads=, mlp_dim=, num_classes=)",
    "(B, K)",
    'chapter 5, "The finished model"',
)
FIELDS = {
    "image_size": 12,
    "patch_size": 3,
    "channels": 3,
    "dim": 48,
    "depth": 3,
    "heads": 3,
    "mlp_dim": 20,
    "num_classes": 5,
}


@check(VIT)
def vision_transformer(cls: Callable[..., object]) -> None:
    """Check a class like :class:`vit_from_scratch.model.vit.VisionTransformer`.

    It is called with the keywords ``image_size, patch_size, channels, dim, depth, heads, mlp_dim,
    num_classes``; submodules ``patch_embedding``, ``tokens``, ``encoder`` (``blocks`` and ``norm``) and
    ``head``, a zero-initialised linear layer.

    Raises:
        CheckFailed: if parameters or results differ, or the head does not start at zero.
    """
    reference = ours.VisionTransformer(ViTConfig.from_dict(FIELDS))
    randomise(reference)
    with (
        torch.no_grad()
    ):  # black images then give tokens of a small scale, so that the eps of the norms shows
        for part in (reference.tokens, reference.patch_embedding):
            for parameter in part.parameters():
                parameter.mul_(0.1 if parameter.ndim != 2 else 1.0)  # positions, class token, bias

    def cases() -> list[Case]:
        found = []
        for scale, batch in ((1.0, 2), (0.3, 3)):
            images = scale * torch.randn(batch, 3, 12, 12)
            label = f"images of shape {tuple(images.shape)}"
            found.append(Case((images,), reference(images), _mistakes(reference, images), label))
        quiet = torch.zeros(2, 3, 12, 12)
        found.append(Case((quiet,), reference(quiet), _mistakes(reference, quiet), "images that are black"))
        return found

    judge_module(VIT, cls, FIELDS, reference, cases, _look_at_start)


def _mistakes(reference: ours.VisionTransformer, images: Tensor) -> dict[str, Tensor]:
    """What each wrong way from tokens to logits gives."""
    encoder, head = reference.encoder, reference.head
    assert head is not None
    embeddings = reference.patch_embedding(images)
    tokens = reference.tokens(embeddings)

    def through(blocks: Iterable[nn.Module], start: Tensor, each: bool = False) -> Tensor:
        for block in blocks:
            start = block(start)[0]
            start = encoder.norm(start) if each else start
        return start

    blocks = list(encoder.blocks)
    last = through(blocks, tokens)
    encoded = encoder.norm(last)
    logits = head(encoded[:, 0])
    position = reference.tokens.get_parameter("position")
    mistakes = {
        "the final LayerNorm (equation 4) is missing": head(last[:, 0]),
        "the head reads the mean of all tokens; equation 4 takes the class token": head(encoded.mean(1)),
        "the head reads the mean of the patches; equation 4 takes the class token": head(
            encoded[:, 1:].mean(1)
        ),
        "the head reads the last token; the class token is the first, number 0": head(encoded[:, -1]),
        "the head reads the first patch; the class token is number 0": head(encoded[:, 1]),
        "the head reads the sum of all tokens; equation 4 takes the class token": head(encoded.sum(1)),
        "the head reads the largest value of all tokens; equation 4 takes the class token": head(
            encoded.amax(1)
        ),
        "the head reads every token: take the class token, [:, 0]": head(encoded),
        "only the first block is called; equation 2 runs over all L layers": head(
            encoder.norm(through(blocks[:1], tokens))[:, 0]
        ),
        "the last block is left out; equation 2 runs over all L layers": head(
            encoder.norm(through(blocks[:-1], tokens))[:, 0]
        ),
        "one and the same block is called L times": head(
            encoder.norm(through(blocks[:1] * len(blocks), tokens))[:, 0]
        ),
        "the blocks are called in reverse": head(encoder.norm(through(blocks[::-1], tokens))[:, 0]),
        "the blocks are not called: the head reads the first tokens": head(encoder.norm(tokens)[:, 0]),
        "the final norm follows every block; equation 4 comes once, at the end": head(
            through(blocks, tokens, each=True)[:, 0]
        ),
        "the final norm comes before the blocks as well": head(
            encoder.norm(through(blocks, encoder.norm(tokens)))[:, 0]
        ),
        "the final norm comes before the blocks; equation 4 comes at the end": head(
            through(blocks, encoder.norm(tokens))[:, 0]
        ),
        "a softmax follows the head; the model returns logits, and the loss does the rest": logits.softmax(
            -1
        ),
        "a log-softmax follows the head; the model returns logits, and the loss does the rest": (
            logits.log_softmax(-1)
        ),
        "a sigmoid follows the head; the model returns logits": logits.sigmoid(),
        "a ReLU follows the head; the model returns logits": logits.relu(),
        "a tanh comes before the head; that is a pre-training head": head(encoded[:, 0].tanh()),
        "the positions are added a second time before the blocks": head(
            encoder.norm(through(blocks, tokens + position))[:, 0]
        ),
        "rows and columns of the images are swapped": reference(images.mT),
        "the features are returned; the head is not called": encoded[:, 0],
    }
    mistakes |= {sentence: with_eps(reference, eps)(images) for eps, sentence in EPS.items()}
    return mistakes


def _look_at_start(module: nn.Module) -> None:
    zero = "untrained logits are then all 0, and the loss is the same for every image"
    starts_at_zero(VIT, module, ["head.weight", "head.bias"], zero)
    starts_at_zero(VIT, module, ["tokens.class_token"], "the reference code begins it at 0")
    starts_normal(VIT, module, "tokens.position", 0.02)
    spread_like_linear(VIT, module, ["patch_embedding.projection.weight"])
