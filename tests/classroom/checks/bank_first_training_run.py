"""Right and wrong answers to the pieces of chapter 8."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from variations import right_with_options

from vit_classroom import checks
from vit_from_scratch import training


def entropy_by_indexing(logits, labels):
    return -logits.log_softmax(1)[torch.arange(len(labels)), labels].mean()


def entropy_by_gather(logits, labels):
    largest = logits.max(1, keepdim=True).values
    shifted = logits - largest
    return (shifted.exp().sum(1).log() - shifted.gather(1, labels[:, None])[:, 0]).mean()


def entropy_in_loops(logits, labels):
    total = 0
    for row, label in zip(logits, labels, strict=True):
        total = total + row.logsumexp(0) - row[label]
    return total / len(labels)


def entropy_with_one_maximum(logits, labels):
    shifted = logits - logits.max()
    return (shifted.exp().sum(1).log() - of_labels(shifted, labels)).mean()


def entropy_of_all_with_one_maximum(logits, labels):
    shifted = logits - logits.max()
    logs = shifted - shifted.exp().sum(1, keepdim=True).log()
    return -(logs * F.one_hot(labels, logits.shape[1])).sum(1).mean()


def of_labels(values, labels):
    return values.gather(1, labels[:, None])[:, 0]


def smoothed_by_target(logits, labels, smoothing):
    classes = logits.shape[1]
    target = (1 - smoothing) * F.one_hot(labels, classes) + smoothing / classes
    return -(target * logits.log_softmax(dim=1)).sum(dim=1).mean()


def smoothed_in_two_parts(logits, labels, smoothing):
    logs = logits.log_softmax(dim=1)
    return -(1 - smoothing) * of_labels(logs, labels).mean() - smoothing * logs.mean()


def smoothed_by_torch(logits, labels, smoothing):
    target = torch.full_like(logits, smoothing / logits.shape[1])
    target[torch.arange(len(labels)), labels] += 1 - smoothing
    return F.cross_entropy(logits, target)


def smoothed_sum(target, logits):
    return -(target * logits.log_softmax(1)).sum(1).mean()


def smoothed_with(target):
    def function(logits, labels, smoothing):
        hot = F.one_hot(labels, logits.shape[1])
        return -(target(hot, smoothing, logits.shape[1]) * logits.log_softmax(1)).sum(1).mean()

    return function


def schedule_by_where(steps, total, warmup):
    progress = (steps - warmup) / (total - warmup)
    return torch.where(steps < warmup, (steps + 1) / max(warmup, 1), (1 + (math.pi * progress).cos()) / 2)


def schedule_in_a_loop(steps, total, warmup):
    factors = []
    for step in steps.tolist():
        if step < warmup:
            factors.append((step + 1) / warmup)
        else:
            factors.append(math.cos(math.pi / 2 * (step - warmup) / (total - warmup)) ** 2)
    return torch.tensor(factors)


def schedule_by_masks(steps, total, warmup):
    factors = torch.empty_like(steps)
    rising = steps < warmup
    factors[rising] = (steps[rising] + 1) / max(warmup, 1)
    factors[~rising] = 0.5 + 0.5 * torch.cos((steps[~rising] - warmup) * torch.pi / (total - warmup))
    return factors


def schedule_with(rise=None, fall=None, until=lambda step, warmup: step < warmup):
    def function(steps, total, warmup):
        found = []
        for step in steps.tolist():
            progress = (step - warmup) / (total - warmup)
            if until(step, warmup):
                found.append(rise(step, total, warmup) if rise else (step + 1) / max(warmup, 1))
            elif fall:
                found.append(fall(progress, step, total, warmup))
            else:
                found.append(0.5 * (1 + math.cos(math.pi * progress)))
        return torch.tensor(found)

    return function


def half_wave(progress):
    return 0.5 * (1 + math.cos(math.pi * progress))


def schedule_by_the_packages(steps, total, warmup):
    return torch.tensor([training.schedule_factor(int(step), total, warmup) for step in steps])


def adamw_by_formula(weight, gradients, rate, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    m, s = torch.zeros_like(weight), torch.zeros_like(weight)
    for step, gradient in enumerate(gradients, start=1):
        m = beta1 * m + (1 - beta1) * gradient
        s = beta2 * s + (1 - beta2) * gradient**2
        m_hat, s_hat = m / (1 - beta1**step), s / (1 - beta2**step)
        weight = (1 - rate * decay) * weight - rate * m_hat / (s_hat.sqrt() + eps)
    return weight


@torch.no_grad()
def adamw_in_place(weight, gradients, rate, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    weight, m, s = weight.clone(), torch.zeros_like(weight), torch.zeros_like(weight)
    share1 = share2 = 1.0
    for gradient in gradients:
        share1, share2 = beta1 * share1, beta2 * share2
        m.lerp_(gradient, 1 - beta1)
        s.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        weight.mul_(1 - rate * decay)
        weight.addcdiv_(m, (s / (1 - share2)).sqrt().add_(eps), value=-rate / (1 - share1))
    return weight


def adamw_by_weighted_sums(weight, gradients, rate, decay, beta1=0.9, beta2=0.999, eps=1e-8):
    """The two means written out, with a weight for each gradient that came so far."""
    for last in range(1, len(gradients) + 1):
        age = torch.arange(last - 1, -1, -1.0, dtype=torch.float64)
        first, second = beta1**age, beta2**age
        seen = gradients[:last].double()
        m = (first[:, None] * seen).sum(0) / first.sum()
        s = (second[:, None] * seen**2).sum(0) / second.sum()
        weight = weight - rate * decay * weight - rate * (m / (s.sqrt() + eps)).float()
    return weight


def by_optimiser(optimiser):
    def function(weight, gradients, rate, decay, beta1=0.9, beta2=0.999, eps=1e-8):
        moved = nn.Parameter(weight.clone())
        more = {"betas": (beta1, beta2), "eps": eps} if optimiser is torch.optim.AdamW else {}
        steps = optimiser([moved], lr=rate, weight_decay=decay, **more)
        for gradient in gradients:
            moved.grad = gradient
            steps.step()
        return moved.detach()

    return function


def adamw_with(change_means=None, move=None, square=lambda g: g**2, first=1, share=0.1, carries=False):
    """The loop of AdamW with another correction, or another step."""

    def corrected(m, s, step):
        return m / (1 - 0.9**step), s / (1 - 0.999**step)

    def usual(weight, m_hat, s_hat, rate, decay):
        return (1 - rate * decay) * weight - rate * m_hat / (s_hat.sqrt() + 1e-8)

    def function(weight, gradients, rate, decay):
        m, s = torch.zeros_like(weight), torch.zeros_like(weight)
        for step, gradient in enumerate(gradients, start=first):
            m = 0.9 * m + share * gradient
            s = 0.999 * s + 0.001 * square(gradient)
            m_hat, s_hat = (change_means or corrected)(m, s, step)
            m, s = (m_hat, s_hat) if carries else (m, s)
            weight = (move or usual)(weight, m_hat, s_hat, rate, decay)
        return weight

    return function


def adamw_that_forgets(weight, gradients, rate, decay):
    for gradient in gradients:
        weight = adamw_by_formula(weight, gradient[None], rate, decay)
    return weight


def adamw_on_the_callers_weight(weight, gradients, rate, decay):
    return weight.copy_(adamw_by_formula(weight, gradients, rate, decay))


def late_decay(weight, m, s, rate, decay):
    return (1 - rate * decay) * (weight - rate * m / (s.sqrt() + 1e-8))


def clipped_by_minimum(gradient, limit):
    return gradient * min(1.0, limit / max(gradient.norm().item(), 1e-12))


def clipped_by_case(gradient, limit):
    length = (gradient**2).sum().sqrt()
    if length > limit:
        return gradient / length * limit
    return gradient


def clipped_by_torch(gradient, limit):
    held = nn.Parameter(torch.zeros_like(gradient))
    held.grad = gradient.clone()
    nn.utils.clip_grad_norm_([held], limit)
    return held.grad


def clipped_by_renorm(gradient, limit):
    return torch.renorm(gradient[None], p=2, dim=0, maxnorm=limit)[0]


def clipped_with(length):
    return lambda gradient, limit: gradient * (limit / length(gradient)).clamp(max=1.0)


def only_long(change):
    return lambda gradient, limit: change(gradient, limit) if gradient.norm() > limit else gradient


def votes_by_cdist(train_images, train_labels, images, k, classes):
    distances = torch.cdist(images.flatten(1), train_images.flatten(1))
    nearest = distances.topk(k, largest=False).indices
    return F.one_hot(train_labels[nearest], classes).float().mean(dim=1)


def votes_in_loops(train_images, train_labels, images, k, classes):
    rows = []
    for image in images:
        distances = ((train_images - image) ** 2).sum(dim=(1, 2, 3))
        labels = train_labels[distances.argsort()[:k]]
        rows.append(torch.bincount(labels, minlength=classes) / k)
    return torch.stack(rows)


def votes_by_products(train_images, train_labels, images, k, classes):
    x, y = images.flatten(1), train_images.flatten(1)
    closeness = 2 * x @ y.T - (y * y).sum(1)
    near = torch.zeros_like(closeness).scatter_(1, closeness.topk(k).indices, 1 / k)
    return near @ torch.eye(classes)[train_labels]


def votes_with(distance, choose=lambda order, k: order[:, :k], count=None):
    def function(train_images, train_labels, images, k, classes):
        order = distance(images.flatten(1), train_images.flatten(1)).argsort(dim=1)
        shares = F.one_hot(train_labels[choose(order, k)], classes).float()
        return count(shares, k, classes) if count else shares.mean(1)

    return function


def cosine(x, y):
    return F.normalize(x, dim=1) @ F.normalize(y, dim=1).T


def schedule_of_all(steps, total, warmup):
    return schedule_by_where(torch.arange(float(total)), total, warmup)


def schedule_in_order(steps, total, warmup):
    """Fills in the warm-up as if the steps came one after the other."""
    factors = torch.empty_like(steps)
    rising = steps < warmup
    factors[rising] = torch.linspace(0, 1, warmup + 1)[1:] if warmup else factors[rising]
    factors[~rising] = 0.5 + 0.5 * torch.cos((steps[~rising] - warmup) * torch.pi / (total - warmup))
    return factors


def votes_of_labels(train_images, train_labels, images, k, classes):
    return votes_by_cdist(train_images, train_labels, images, k, int(train_labels.max()) + 1)


def votes_by_weight(train_images, train_labels, images, k, classes):
    near = torch.cdist(images.flatten(1), train_images.flatten(1)).topk(k, largest=False)
    hot = F.one_hot(train_labels[near.indices], classes)
    return (hot / near.values[..., None]).sum(1) / (1 / near.values).sum(1, keepdim=True)


def entropy_by_two_parts(logits, labels):
    return (torch.logsumexp(logits, 1) - (logits * F.one_hot(labels, logits.shape[1])).sum(1)).mean()


RIGHT = {
    checks.cross_entropy: (
        entropy_by_two_parts,
        entropy_by_indexing,
        entropy_by_gather,
        entropy_in_loops,
        F.cross_entropy,
        lambda x, y: F.cross_entropy(x.double(), y),
    ),
    checks.smoothed_cross_entropy: (smoothed_by_target, smoothed_in_two_parts, smoothed_by_torch),
    checks.schedule: (schedule_by_where, schedule_in_a_loop, schedule_by_masks),
    checks.adamw: (adamw_by_formula, adamw_in_place, adamw_by_weighted_sums, by_optimiser(torch.optim.AdamW)),
    checks.clipped: (clipped_by_minimum, clipped_by_case, clipped_by_torch, clipped_by_renorm),
    checks.votes: (votes_by_cdist, votes_in_loops, votes_by_products),
}

WRONG_STEPS = [
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, 0.01), "of them agree"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay, eps=1e-6), "of them agree"),
    (by_optimiser(torch.optim.Adam), "Adam with L2"),
    (by_optimiser(torch.optim.SGD), "like SGD"),
    (
        adamw_with(move=lambda w, m, s, rate, decay: (1 - decay) * w - rate * m / (s.sqrt() + 1e-8)),
        "not multiplied by the rate",
    ),
    (adamw_with(move=lambda w, m, s, rate, decay: w - rate * m / (s.sqrt() + 1e-8)), "there is no decay"),
    (
        adamw_with(move=lambda w, m, s, rate, decay: (1 + rate * decay) * w - rate * m / (s.sqrt() + 1e-8)),
        "grows with the decay",
    ),
    (adamw_with(move=late_decay), "the decay comes after the step"),
    (adamw_with(lambda m, s, step: (m, s)), "the means are not corrected"),
    (adamw_with(lambda m, s, step: (m, s / (1 - 0.999**step))), "m is not corrected"),
    (adamw_with(lambda m, s, step: (m / (1 - 0.9**step), s)), "s is not corrected"),
    (adamw_with(lambda m, s, step: (m / 0.1, s / 0.001)), "always that of step 1"),
    (adamw_with(carries=True), "go on into the next step"),
    (
        lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay, 0.999, 0.9),
        "betas have changed places",
    ),
    (
        adamw_with(move=lambda w, m, s, rate, decay: (1 - rate * decay) * w - rate * m / (s + 1e-8).sqrt()),
        "eps stands under the root",
    ),
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay, eps=0.0), "eps is left out"),
    (
        adamw_with(move=lambda w, m, s, rate, decay: (1 - rate * decay) * w - rate * m / (s + 1e-8)),
        "the root is missing",
    ),
    (adamw_with(share=1.0), "added to m whole"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay, beta1=0.0), "m is left out"),
    (adamw_that_forgets, "begin anew at each step"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g[:1], rate, decay), "only the first gradient"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g[-1:], rate, decay), "only the last gradient"),
    (lambda w, g, rate, decay: adamw_by_formula(w, -g, rate, decay), "climbs along the gradient"),
    (lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay) - w, "sum of the steps"),
    (lambda w, g, rate, decay: w - rate * g.sum(0), "as in SGD"),
    (adamw_with(first=0), "counted from 0"),
    (adamw_on_the_callers_weight, "changes its input"),
]
"""Of AdamW, with the usual betas and eps."""

WRONG = {
    checks.adamw: [
        (
            lambda w, g, rate, decay, *_: adamw_by_formula(w, g, rate, decay),
            "eps are always 0.9, 0.999 and 1e-8",
        ),
        (
            lambda w, g, rate, decay, b1=0.9, b2=0.999, _=None: adamw_by_formula(w, g, rate, decay, b1, b2),
            "eps is always 1e-08; take what is handed in",
        ),
        (
            lambda w, g, rate, decay, b1=0.9, b2=0.99, eps=1e-8: adamw_by_formula(
                w, g, rate, decay, b1, b2, eps
            ),
            "differ by more than rounding",
        ),
        (
            lambda w, g, rate, decay, b2=0.999, b1=0.9, eps=1e-8: adamw_by_formula(
                w, g, rate, decay, b1, b2, eps
            ),
            "betas have changed places",
        ),
        (
            lambda w, g, rate, decay: adamw_by_formula(w, g, rate, decay),
            r"cannot be called as adamw\(.*, eps\)",
        ),
        *[(right_with_options(wrong, adamw_by_formula, 4), said) for wrong, said in WRONG_STEPS],
    ],
    checks.clipped: [
        (lambda g, limit: F.normalize(g, dim=0) * limit, "is made longer"),
        (lambda g, limit: g * min(1.0, 1.0 / max(g.norm().item(), 1e-12)), "length 1|right only where"),
        (
            lambda g, limit: g / g.norm() * g.norm().clamp(max=limit),
            r"clipped: 0 / 0 for a gradient of zeros",
        ),
        (lambda g, limit: g.clamp(-limit, limit), "each value is cut off"),
        (lambda g, limit: g * limit / g.norm(), "shorter than the limit is made longer"),
        (lambda g, limit: g / g.norm(), "the result has length 1;"),
        (only_long(lambda g, limit: g / g.norm()), "the result has length 1;"),
        (only_long(lambda g, limit: g * limit), "multiplied by the limit"),
        (only_long(lambda g, limit: g / limit), "divided by the limit"),
        (clipped_with(lambda g: g.abs().sum()), "sum of sizes"),
        (clipped_with(lambda g: g.abs().max()), "the largest value"),
        (clipped_with(lambda g: (g**2).sum()), "lacks its root"),
        (clipped_with(lambda g: (g**2).mean().sqrt()), "root of the mean square"),
        (only_long(lambda g, limit: torch.zeros_like(g)), "all is 0"),
        (lambda g, limit: g, "an input comes back as it was"),
    ],
    checks.cross_entropy: [
        *[
            (lambda x, y, e=e: -of_labels((x.softmax(1) + e).log(), y).mean(), "which caps a loss")
            for e in (1e-12, 1e-9, 1e-7)
        ],
        (lambda x, y: -of_labels(x.softmax(1).clamp(min=1e-8).log(), y).mean(), "which caps a loss"),
        (lambda x, y: F.cross_entropy(x.clamp(-50, 50), y), "right only|it returned|values"),
        (lambda x, y: -of_labels(x.softmax(1).log(), y).mean(), "cross_entropy: large logits end in an inf"),
        (entropy_with_one_maximum, "infinite loss; each row needs its own maximum"),
        (entropy_of_all_with_one_maximum, "in NaN; each row needs its own maximum"),
        (lambda x, y: -x.log_softmax(1)[:, y].mean(), "take one from each row"),
        (lambda x, y: -(x.log_softmax(1) * F.one_hot(y)).sum(1).mean(), "shapes do not fit there"),
        (lambda x, y: F.nll_loss(x.softmax(1), y), "the logarithm is missing"),
        (lambda x, y: -of_labels(x.log_softmax(1), y).sum(), "the losses are added"),
        (lambda x, y: -of_labels(x.log_softmax(1), y), "no mean over the batch"),
        (lambda x, y: -(x.log_softmax(1) * F.one_hot(y, x.shape[1])).mean(), "over all B x K values"),
        (lambda x, y: of_labels(x.log_softmax(1), y).mean(), "the sign is turned"),
        (lambda x, y: F.cross_entropy(x.softmax(1), y), "through a softmax twice"),
        (lambda x, y: -of_labels(x.softmax(1), y).mean(), "minus the mean probability is left"),
        (lambda x, y: -of_labels(x.softmax(1), y).mean().log(), "take the mean of logarithms"),
        (lambda x, y: -of_labels(x, y).mean(), "the softmax is missing"),
        (lambda x, y: -of_labels(x.log_softmax(0), y).mean(), "softmax runs over the batch"),
        (lambda x, y: -of_labels(x.log_softmax(1), y).mean() / math.log(2), "base 2"),
        (lambda x, y: -of_labels(x.log_softmax(1), y).mean() / math.log(10), "base 10"),
        (
            lambda x, y: -of_labels((x.exp() / x.exp().sum(1, keepdim=True)).log(), y).mean(),
            "end in no number",
        ),
        (lambda x, y: -(x.softmax(1).log() * F.one_hot(y, x.shape[1])).sum(1).mean(), "end in no number"),
        (lambda x, y: (x.exp().sum(1).log() - of_labels(x, y)).mean(), "infinite loss"),
        (
            lambda x, y: F.binary_cross_entropy_with_logits(x, F.one_hot(y, x.shape[1]).float()),
            "a sigmoid of its own",
        ),
        (lambda x, y: -x.log_softmax(1).sum(1).mean(), "only the right class counts"),
        (lambda x, y: -(x.softmax(1) * x.log_softmax(1)).sum(1).mean(), "entropy of the model's answer"),
        (lambda x, y: -of_labels(x.log_softmax(1), y).mean().detach(), "no gradient can flow back"),
        (lambda x, y: (x.argmax(1) == y).float().mean(), "it returned .*: expected"),
    ],
    checks.schedule: [
        (schedule_of_all, "those of all steps from 0 on"),
        (
            lambda steps, total, warmup: schedule_of_all(steps, total, warmup)[: len(steps)],
            "those of the first steps",
        ),
        (schedule_in_order, "shapes do not fit there.*RuntimeError"),
        (lambda steps, total, warmup: schedule_by_where(steps, total, 5), "right only where.*warmup is 5"),
        (
            lambda steps, total, warmup: schedule_by_where(steps, len(steps), warmup),
            "total - warmup|right|values",
        ),
        (schedule_with(lambda step, total, warmup: step / warmup), "wastes a step"),
        (schedule_with(lambda step, total, warmup: step / (warmup - 1)), "reaches 1 in its last step"),
        (schedule_with(until=lambda step, warmup: step <= warmup), "one step too long"),
        (
            schedule_with(
                lambda step, total, warmup: half_wave(step / total), lambda p, s, n, w: half_wave(s / n)
            ),
            "no warm-up",
        ),
        (schedule_with(lambda step, total, warmup: 1.0), "it climbs"),
        (schedule_with(fall=lambda p, s, n, w: half_wave(s / n)), "counts from step 0"),
        (schedule_with(fall=lambda p, s, n, w: half_wave((s - w) / n)), "stretched over `total` steps"),
        (
            schedule_with(
                lambda s, n, w: (s + 1) / w * half_wave(s / n), lambda p, s, n, w: half_wave(s / n)
            ),
            "one follows the other",
        ),
        (schedule_with(fall=lambda p, s, n, w: math.cos(math.pi * p)), "falls to -1"),
        (schedule_with(fall=lambda p, s, n, w: 1 + math.cos(math.pi * p)), "begins at 2"),
        (schedule_with(fall=lambda p, s, n, w: math.cos(math.pi * p / 2)), "a quarter of a wave"),
        (schedule_with(fall=lambda p, s, n, w: 1 - p), "the fall is linear"),
        (schedule_with(fall=lambda p, s, n, w: 1.0), "stays at 1"),
        (schedule_with(fall=lambda p, s, n, w: half_wave((s - w) / (n - w - 1))), "0 in the last step"),
        (schedule_with(fall=lambda p, s, n, w: 1 - half_wave(p)), "the cosine rises"),
        (schedule_with(fall=lambda p, s, n, w: 0.5 * (1 + math.cos(180 * p))), "take radians"),
        (
            lambda steps, total, warmup: schedule_in_a_loop(steps, total, warmup).tolist(),
            "it returned a list",
        ),
        (
            lambda steps, total, warmup: torch.tensor(
                [min((s + 1) / warmup, half_wave((s - warmup) / (total - warmup))) for s in steps.tolist()]
            ),
            "ZeroDivisionError",
        ),
        (schedule_by_the_packages, "the package's own"),
    ],
    checks.smoothed_cross_entropy: [
        (
            lambda x, y, s: (
                -(((1 - s) * F.one_hot(y, x.shape[1]) + s / x.shape[1]) * x.softmax(1).log()).sum(1).mean()
            ),
            "infinite loss|no number",
        ),
        (
            lambda x, y, s: (
                (1 - s) * (x.exp().sum(1).log() - of_labels(x, y)).mean()
                + s * (x.exp().sum(1).log() - x.mean(1)).mean()
            ),
            "infinite loss|no number",
        ),
        (lambda x, y, s: (1 - s) * F.cross_entropy(x, y), "the wrong classes get nothing"),
        (
            lambda x, y, s: smoothed_sum((1 - s) * F.one_hot(y) + s / x.shape[1], x),
            "shapes do not fit there.*and no label of the highest class",
        ),
        (
            smoothed_with(lambda hot, s, k: torch.where(hot > 0, 1 - s, s / k)),
            "it gets smoothing / K as well",
        ),
        (lambda x, y, s: F.cross_entropy(x, y, label_smoothing=0.1), "is always 0.1"),
        (smoothed_with(lambda hot, s, k: (1 - s) * hot + s / (k - 1) * (1 - hot)), "for wrong classes"),
        (smoothed_with(lambda hot, s, k: hot), "labels are not smoothed"),
        (smoothed_with(lambda hot, s, k: (1 - s) * hot + s), "the whole smoothing"),
        (smoothed_with(lambda hot, s, k: hot + s / k), "keeps its full 1"),
        (smoothed_with(lambda hot, s, k: (1 - s) * hot), "the wrong classes get nothing"),
        (smoothed_with(lambda hot, s, k: s * hot + (1 - s) / k), "have changed places"),
        (smoothed_with(lambda hot, s, k: 0.9 * hot + 0.1 / k), "always 0.1"),
        (lambda x, y, s: len(x) * smoothed_by_target(x, y, s), "the losses are added"),
        (lambda x, y, s: smoothed_by_target(x, y, s) / x.shape[1], "over all B x K values"),
        (lambda x, y, s: -smoothed_by_target(x, y, s), "the sign is turned"),
        (
            lambda x, y, s: F.kl_div(
                x.log_softmax(1),
                (1 - s) * F.one_hot(y, x.shape[1]).float() + s / x.shape[1],
                reduction="batchmean",
            ),
            "which can reach 0",
        ),
        (
            lambda x, y, s: F.cross_entropy(x, y, label_smoothing=s).item(),
            "it returned float: expected a tensor",
        ),
    ],
    checks.votes: [
        (votes_of_labels, "the classes are counted by the labels"),
        (votes_by_weight, "votes are equal"),
        (lambda *given: votes_by_cdist(*given).squeeze(0), "wrong where axis 0 of images has length 1"),
        (lambda *given: votes_by_cdist(*given[:3], 3, given[4]), "right only where.*k is 3"),
        (votes_with(lambda x, y: -torch.cdist(x, y)), "the k farthest images"),
        (votes_with(torch.cdist, count=lambda shares, k, classes: shares.sum(1)), "divide by k"),
        (
            votes_with(torch.cdist, count=lambda shares, k, classes: shares.sum(1) / classes),
            "number of classes",
        ),
        (
            votes_with(
                torch.cdist,
                count=lambda shares, k, classes: F.one_hot(shares.sum(1).argmax(1), classes).float(),
            ),
            "all votes go to the winner",
        ),
        (votes_with(torch.cdist, lambda order, k: order[:, :1]), "only the nearest image votes"),
        (votes_with(torch.cdist, lambda order, k: order[:, : k - 1] if k > 1 else order[:, :1]), "too few"),
        (votes_with(torch.cdist, lambda order, k: order[:, : k + 1]), "one image too many"),
        (votes_with(torch.cdist, lambda order, k: order[:, 1 : k + 1]), "the nearest image is left out"),
        (votes_with(lambda x, y: torch.cdist(x, y, p=1)), "sum of absolute differences"),
        (votes_with(lambda x, y: torch.cdist(x, y, p=float("inf"))), "largest difference of a pixel"),
        (votes_with(lambda x, y: -x @ y.T), "largest dot product"),
        (votes_with(lambda x, y: x @ y.T), "smallest dot product"),
        (votes_with(lambda x, y: -cosine(x, y)), "smallest angle"),
        (votes_with(lambda x, y: (x[:, None] - y).sum(-1)), "with their signs"),
        (votes_with(torch.cdist, lambda order, k: order), "all training images vote"),
        (
            lambda train_images, train_labels, images, k, classes: votes_by_cdist(
                train_images, train_labels, images, k, classes
            ).argmax(1),
            "the class with most votes",
        ),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
