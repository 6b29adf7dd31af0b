"""Checks of chapter 8: what a training step is made of."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_classroom.checks.judging import function_check
from vit_classroom.checks.report import Case
from vit_from_scratch.training.schedules import Decay, schedule_factor


@function_check(
    "(), one number",
    'chapter 8, "One step by hand"',
    F.cross_entropy,
    [((5, 4), 1.0), ((7, 10), 3.0), ((3, 6), 300.0), ((4, 5), 1.0, 80.0)],
    call="cross_entropy(logits, labels)",
)
def cross_entropy(shape: tuple[int, int], scale: float, apart: float = 0.0) -> Case:
    """Check a function ``(logits, labels)`` that gives the mean cross-entropy of a batch, in nats.

    Logits are (B, K), labels (B,) class numbers; some logits are too large for `exp`.
    """
    batch, classes = shape
    logits, labels = scale * torch.randn(batch, classes), torch.randint(classes, (batch,))
    if scale > 100:  # too large for `exp`, and no row is below another
        logits += scale - logits.amax(1, keepdim=True)
        labels[0], labels[1] = logits[0].argmin(), logits[1].argmax()
    if apart:  # small enough for `exp`, and some rows are far below others
        logits += apart * (-1) ** torch.arange(batch)[:, None]
        labels = torch.arange(batch) % (classes - 1)
    losses = F.cross_entropy(logits, labels, reduction="none")
    shares = logits.softmax(1)
    logs, picked = logits.log_softmax(1), (torch.arange(batch), labels)
    target = F.one_hot(labels, classes).float()
    right = losses.mean()
    by_sigmoid = F.binary_cross_entropy_with_logits(logits, target)
    by_batch = -logits.log_softmax(0)[picked].mean()
    mistakes = {
        "the losses are added; take their mean": losses.sum(),
        "there is a loss for each image, and no mean over the batch": losses,
        "each row gives the values of all labels; take one from each row, that of its own label": (
            -logs[:, labels].mean()
        ),
        "the mean runs over all B x K values; there are B losses": right / classes,
        "the logits go through a softmax twice; log_softmax takes logits": F.cross_entropy(shares, labels),
        "the logarithm is missing: minus the mean probability is left": -shares[picked].mean(),
        "that is the logarithm of a mean; take the mean of logarithms": -shares[picked].mean().log(),
        "the softmax is missing: that is minus the mean logit of the right class": -logits[picked].mean(),
        "the softmax runs over the batch; it runs over the classes, dim=1": by_batch,
        "the logarithm has base 2; nats are natural logarithms": right / torch.tensor(2.0).log(),
        "the logarithm has base 10; nats are natural logarithms": right / torch.tensor(10.0).log(),
        "each class gets a sigmoid of its own; the classes share one softmax": by_sigmoid,
        "the logarithms of all classes are added; only the right class counts": -logs.sum(1).mean(),
        "that is the entropy of the model's answer; weigh its logarithms with the labels": -(shares * logs)
        .sum(1)
        .mean(),
    }
    for little in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5):
        said = f"{little:g} is added to probabilities, or their least, which caps a loss; take log_softmax"
        mistakes[said] = -(shares[picked] + little).log().mean()
        mistakes[f"{said} (of all classes)"] = -shares.clamp(min=little)[picked].log().mean()
    if scale > 100:
        mistakes |= {
            "large logits end in no number: exp overflows, or 0 meets the logarithm of 0; log_softmax "
            "takes both at once": torch.tensor(torch.nan),
            "large logits end in an infinite loss: exp overflows, or a probability rounds to 0; "
            "log_softmax takes both at once": torch.tensor(torch.inf),
        }
    if apart:
        far = "one maximum is taken from all rows, and a row far below it loses all its shares"
        mistakes |= {
            f"{far}, which ends in NaN; each row needs its own maximum": torch.tensor(torch.nan),
            f"{far}, which ends in an infinite loss; each row needs its own maximum": torch.tensor(
                -torch.inf
            ),
        }
    return Case((logits, labels), right, mistakes)


def _smoothed(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    return F.cross_entropy(logits, labels, label_smoothing=smoothing)


@function_check(
    "(), one number",
    'chapter 8, "Label smoothing"',
    _smoothed,
    [((5, 4), 0.1, 2.0, True), ((6, 10), 0.3, 200.0, False), ((4, 7), 0.0, 2.0, False)],
)
def smoothed_cross_entropy(shape: tuple[int, int], smoothing: float, scale: float, absent: bool) -> Case:
    """Check a function ``(logits, labels, smoothing)`` that gives the mean loss of smoothed labels.

    Some logits are too large for `exp`.
    """
    batch, classes = shape
    logits, labels = scale * torch.randn(batch, classes), torch.randint(classes, (batch,))
    if absent:
        labels = torch.arange(batch) % (classes - 1)
    hot = F.one_hot(labels, classes).float()
    logs = logits.log_softmax(1)
    right = _smoothed(logits, labels, smoothing)

    kept, smooth = (1 - smoothing) * hot, (1 - smoothing) * hot + smoothing / classes
    targets = {
        "the smoothing is for wrong classes; all K share it": (kept + smoothing / (classes - 1) * (1 - hot)),
        "the labels are not smoothed": hot,
        "every class gets the whole smoothing; each gets smoothing / K": kept + smoothing,
        "the right class keeps its full 1; it gives away the smoothing": hot + smoothing / classes,
        "the right class has 1 - smoothing alone; it gets smoothing / K as well, as each class does": (
            kept + smoothing / classes * (1 - hot)
        ),
        "the wrong classes get nothing; each class gets smoothing / K": kept,
        "the smoothing and what is left have changed places": smoothing * hot + (1 - smoothing) / classes,
        "the smoothing is always 0.1; take the one that is handed in": 0.9 * hot + 0.1 / classes,
    }
    mistakes = {sentence: -(target * logs).sum(1).mean() for sentence, target in targets.items()} | {
        "the losses are added; take their mean": batch * right,
        "there is a loss for each image, and no mean over the batch": -(smooth * logs).sum(1),
        "the mean runs over all B x K values; there are B losses": right / classes,
        "the logarithm is missing": -(smooth * logs.exp()).sum(1).mean(),
        "the entropy of the target is taken away: that is the distance from it (KL), which can reach 0": (
            right - torch.special.entr(smooth).sum(1).mean()
        ),
    }
    if scale > 100:
        mistakes |= {
            "large logits end in an infinite loss: shares round to 0; take log_softmax": logits.sum()
            + torch.inf,
        }
    note = "and no label of the highest class" if absent else ""
    return Case((logits, labels, smoothing), right, mistakes, note)


def _schedule(steps: Tensor, total: int, warmup: int, decay: Decay = "cosine") -> Tensor:
    return torch.tensor([schedule_factor(int(step), total, warmup, decay) for step in steps])


def _half_wave(angles: Tensor) -> Tensor:
    return 0.5 * (1 + angles.cos())


@function_check(
    "(S,)",
    'chapter 8, "The loop"',
    _schedule,
    [(20, 5, True), (37, 10, False), (12, 0, True)],
    answers=[schedule_factor],
    gradients=False,
)
def schedule(total: int, warmup: int, every: bool) -> Case:
    """Check a function ``(steps, total, warmup)``: a linear warm-up, then half a cosine down to 0.

    Steps are (S,) floats, counted from 0, in any order; the result is (S,), what the base rate is multiplied
    by. Like ``schedule_factor`` for each of them.
    """
    steps = torch.arange(float(total))
    steps = steps if every else steps[torch.randperm(total)[: total // 2 + 1]]
    right = _schedule(steps, total, warmup)
    first, length = max(warmup, 1), total - warmup
    turn, whole = torch.pi * (steps - warmup), _half_wave(torch.pi * steps / total)

    def climb(factors: Tensor | float, then: Tensor = right) -> Tensor:
        return torch.where(steps < warmup, factors, then)

    def fall(factors: Tensor) -> Tensor:
        return climb(right, factors)

    zero, last = "the warm-up begins at a rate of 0 and", "it is (step + 1) / warmup"
    long = torch.where(steps <= warmup, (steps + 1) / first, right)
    early = _half_wave(turn / max(length - 1, 1))
    mistakes = {
        f"{zero} wastes a step; {last}": climb(steps / first),
        f"{zero} reaches 1 in its last step; {last}": climb(steps / max(warmup - 1, 1)),
        "the warm-up is one step too long, and its last factor lies above 1": long,
        "there is no warm-up": whole,
        "the factor is 1 during the warm-up; it climbs": climb(1.0),
        "the cosine counts from step 0; it begins where the warm-up ends": fall(whole),
        "the cosine is stretched over `total` steps; it has total - warmup": fall(_half_wave(turn / total)),
        "the warm-up is multiplied by a cosine; one follows the other": (climb(right * whole, whole)),
        "the cosine falls to -1; half of (1 + cos) ends at 0": fall((turn / length).cos()),
        "the cosine begins at 2; take half of it": fall(2 * _half_wave(turn / length)),
        "a quarter of a wave; it is half a wave, from top to bottom": fall((turn / length / 2).cos()),
        "the fall is linear; it follows a cosine": _schedule(steps, total, warmup, "linear"),
        "the factor stays at 1 after the warm-up": fall(torch.ones(len(steps))),
        "the cosine reaches 0 in the last step; it would do so at step `total`, one later": fall(early),
        "the cosine rises; it begins at 1 and falls": fall(1 - _half_wave(turn / length)),
        "the cosine is taken of degrees; torch.cos and math.cos take radians": fall(
            _half_wave(180 / torch.pi * turn / length)
        ),
    }
    counted = _schedule(torch.arange(total), total, warmup)
    mistakes |= {
        "the factors are those of all steps from 0 on; give those of `steps`": counted,
        "the factors are those of the first steps; `steps` may be any": counted[: len(steps)],
    }
    return Case((steps, total, warmup), right, mistakes)


def _adam(
    weight: Tensor,
    gradients: Tensor,
    rate: float,
    decay: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    *,
    correct_m: bool = True,
    correct_s: bool = True,
    coupled: bool = False,
    first: int = 1,
    always_first: bool = False,
    carried: bool = False,
    eps_in_root: bool = False,
    root: bool = True,
    whole: bool = False,
    anew: bool = False,
    late: bool = False,
) -> Tensor:
    """AdamW, and what it becomes by a mistake."""
    m, s = torch.zeros_like(weight), torch.zeros_like(weight)
    shrink = 1 - rate * decay
    for step, gradient in enumerate(gradients, first):
        if anew:
            m, s, step = torch.zeros_like(weight), torch.zeros_like(weight), 1
        if coupled:
            gradient, shrink = gradient + decay * weight, 1.0
        m = beta1 * m + (1.0 if whole else 1 - beta1) * gradient
        s = beta2 * s + (1 - beta2) * gradient**2
        power = 1 if always_first else step
        m_hat = m / (1 - beta1**power) if correct_m else m
        s_hat = s / (1 - beta2**power) if correct_s else s
        if carried:
            m, s = m_hat, s_hat
        divisor = (s_hat + eps).sqrt() if eps_in_root else (s_hat.sqrt() if root else s_hat) + eps
        weight = shrink * weight - (shrink if late else 1.0) * rate * m_hat / divisor
    return weight


@function_check(
    "(n,)",
    'chapter 8, "Weight decay"',
    _adam,
    [
        (1, 4, 0.1, 0.3, {}),
        (3, 5, 0.02, 0.5, {}),
        (6, 3, 0.1, 0.1, {}),
        (4, 4, 0.05, 0.2, {"beta1": 0.7, "beta2": 0.95, "eps": 1e-6}),
    ],
    gradients=False,
    call="adamw(weight, gradients, rate, decay, beta1, beta2, eps)",
)
def adamw(steps: int, size: int, rate: float, decay: float, options: dict[str, float]) -> Case:
    """Check a function ``(weight, gradients, rate, decay)`` that takes a step of AdamW for each gradient.

    The weight is (n,), the gradients (S, n), one a step; it returns the weight after the last one. Also tried
    is ``(weight, gradients, rate, decay, beta1, beta2, eps)``; without, they are 0.9, 0.999 and 1e-8.
    """
    weight = torch.randn(size)
    gradients = torch.randn(steps, size) * 10 ** torch.empty(size).uniform_(-3, 1)
    gradients[:, 0] *= 1e-6 / gradients[:, 0].abs().max()  # so small that eps and its place can be seen

    def variant(gradients: Tensor = gradients, decay: float = decay, **changes: object) -> Tensor:
        changes = options | changes
        return _adam(weight, gradients, rate, decay, **changes)  # pyright: ignore[reportArgumentType]

    right, first_only, descended = variant(), variant(always_first=True), weight
    for gradient in gradients:  # SGD with L2
        descended = descended - rate * (gradient + decay * descended)
    mistakes = {
        "the decay goes into the gradient, and is divided with it: that is Adam with L2; AdamW shrinks "
        "the weight itself": variant(coupled=True),
        "the decay is not multiplied by the rate": variant(decay=decay / rate),
        "there is no decay": variant(decay=0.0),
        "the weight grows with the decay: it is multiplied by 1 - rate * decay": variant(decay=-decay),
        "the decay comes after the step; it shrinks the weight as it was before": variant(late=True),
        "the means are not corrected for their start at 0": variant(correct_m=False, correct_s=False),
        "m is not corrected for its start at 0": variant(correct_m=False),
        "s is not corrected for its start at 0": variant(correct_s=False),
        "the correction is always that of step 1; take beta to the power of the step": first_only,
        "the steps are counted from 0, and the first correction divides by 0; count from 1": variant(first=0),
        "the corrected means go on into the next step; go on with m and s": variant(carried=True),
        "the betas have changed places: 0.9 for m, 0.999 for s": variant(
            beta1=options.get("beta2", 0.999), beta2=options.get("beta1", 0.9)
        ),
        "eps stands under the root; it is added to the root": variant(eps_in_root=True),
        "eps is left out": variant(eps=0.0),
        "the root is missing: divide by sqrt(s) + eps": variant(root=False),
        "the gradient is added to m whole; it comes in with a share of 1 - beta1": variant(whole=True),
        "m is left out: the step goes along the last gradient": variant(beta1=0.0),
        "m and s begin anew at each step": variant(anew=True),
        "only the first gradient is used": variant(gradients=gradients[:1]),
        "only the last gradient is used": variant(gradients=gradients[-1:]),
        "the weight climbs along the gradient; take the step away": variant(gradients=-gradients),
        "the gradients are used as in SGD; divide by the root of s": weight - rate * gradients.sum(0),
        "the gradients are used as they are, with the decay in them, like SGD; divide by sqrt(s)": descended,
        "that is the sum of the steps; return the weight after them": right - weight,
    }
    if options:
        usual = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
        taken: dict[str, dict[str, Any]] = {
            f"{name} is always {value:g}": {name: value} for name, value in usual.items()
        }
        taken["the betas are always 0.9 and 0.999"] = {name: usual[name] for name in ("beta1", "beta2")}
        taken["the betas and eps are always 0.9, 0.999 and 1e-8"] = usual
        mistakes |= {f"{said}; take what is handed in": variant(**given) for said, given in taken.items()}
    return Case((weight, gradients, rate, decay, *options.values()), right, mistakes)


def _clipped(gradient: Tensor, limit: float) -> Tensor:
    return gradient * min(1.0, limit / max(gradient.norm().item(), 1e-12))


@function_check(
    "(n,)",
    'chapter 8, exercise "Shorten a gradient"',
    _clipped,
    [(3.0, 0.5), (7.0, 2.0), (0.6, 1.5), (0.0, 1.0)],
    gradients=False,
)
def clipped(length: float, limit: float) -> Case:
    """Check a function ``(gradient, limit)`` that shortens a gradient (n,) which is longer than a limit."""
    gradient = length * F.normalize(torch.randn(9), dim=0)
    norm = gradient.norm()
    long = bool(norm > limit)

    def by(size: Tensor) -> Tensor:
        return gradient * (limit / size).clamp(max=1.0)

    mistakes = {
        "each value is cut off, which turns the gradient; shorten the whole": gradient.clamp(-limit, limit),
        "a gradient shorter than the limit is made longer; it stays as it is": gradient * limit / norm,
        "the result has length 1; a long gradient gets the limit's, a short one its own": gradient / norm,
        "a long gradient is multiplied by the limit; divide by its length": gradient * (limit if long else 1),
        "a long gradient is divided by the limit; take limit / length": gradient / (limit if long else 1),
        "the length is the sum of sizes; it is the root of the sum of squares": by(gradient.abs().sum()),
        "the length is the largest value; it is the root of the sum of squares": by(gradient.abs().max()),
        "the length lacks its root: that is the sum of squares": by(norm**2),
        "the length is the root of the mean square; add the squares": by(gradient.square().mean().sqrt()),
    }
    if not length:  # a mistake that divides by 0 as well is known by the other inputs
        mistakes = {said: wrong for said, wrong in mistakes.items() if wrong.isfinite().all()} | {
            "0 / 0 for a gradient of zeros, which is not a number: shorten it only where it is longer than "
            "the limit": gradient / norm
        }
    return Case((gradient, limit), _clipped(gradient, limit), mistakes)


def _votes(train_images: Tensor, train_labels: Tensor, images: Tensor, k: int, classes: int) -> Tensor:
    nearest = torch.cdist(images.flatten(1), train_images.flatten(1)).topk(k, largest=False).indices
    return F.one_hot(train_labels[nearest], classes).float().mean(dim=1)


def _weighted(distances: Tensor, labels: Tensor, k: int, classes: int) -> Tensor:
    near, nearest = distances.topk(k, largest=False)
    weights = (1 / near) / (1 / near).sum(1, keepdim=True)
    return (weights[..., None] * F.one_hot(labels[nearest], classes)).sum(1)


@function_check(
    "(B, classes)",
    'chapter 8, exercise "The vote of the neighbours"',
    _votes,
    [(30, 9, 3, 3), (40, 1, 6, 5), (25, 8, 1, 4)],
    gradients=False,
)
def votes(count: int, batch: int, k: int, classes: int) -> Case:
    """Check a function that lets the k nearest training images vote on the class of each image.

    It is called as ``(train_images, train_labels, images, k, classes)``: (N, C, H, W), (N,), (B, C, H, W) and
    two integers; the result is (B, classes), the share of the k votes that each class gets.
    """
    train_images, images = torch.randn(count, 2, 3, 4), 1.5 * torch.randn(batch, 2, 3, 4)
    train_labels = torch.randint(classes - (batch == 1), (count,))  # once, nothing is of the last class
    flat, seen = images.flatten(1), train_images.flatten(1)
    distances = torch.cdist(flat, seen)

    def shares(distances: Tensor, k: int = k, first: int = 0) -> Tensor:
        nearest = distances.argsort(dim=1)[:, first : first + k]
        return F.one_hot(train_labels[nearest], classes).float().mean(dim=1)

    right = _votes(train_images, train_labels, images, k, classes)
    cosines, signed = F.cosine_similarity(flat[:, None], seen, dim=2), (flat[:, None] - seen).sum(-1)
    by_sum, by_largest = (torch.cdist(flat, seen, p) for p in (1, torch.inf))
    known = int(train_labels.max()) + 1
    mistakes = {
        "these are the k farthest images; topk takes the largest unless largest=False": shares(-distances),
        "the votes are counted; divide by k": k * right,
        "the votes are divided by the number of classes; divide by k": k * right / classes,
        "all votes go to the winner; give each class its share": F.one_hot(right.argmax(1), classes).float(),
        "only the nearest image votes; k of them do": shares(distances, 1),
        "one image too few votes": shares(distances, max(k - 1, 1)),
        "one image too many votes": shares(distances, k + 1),
        "the nearest image is left out, as if it were the image itself": shares(distances, first=1),
        "the distance is a sum of absolute differences; add up their squares": shares(by_sum),
        "the distance is the largest difference of a pixel; add up their squares": shares(by_largest),
        "those with the largest dot product vote; these need not be the nearest": shares(-flat @ seen.T),
        "the images at the smallest angle vote, which need not be the nearest": shares(-cosines),
        "the images with the smallest dot product vote; take distances": shares(flat @ seen.T),
        "the differences are added up with their signs; square them first": shares(signed),
        "all training images vote": shares(distances, count),
        "the classes are counted by the labels; one may have no image": right[:, :known],
        "this is the class with most votes; return the share of each": right.argmax(1).float(),
        "a nearer image has more to say; votes are equal": _weighted(distances, train_labels, k, classes),
    }
    return Case((train_images, train_labels, images, k, classes), right, mistakes)
