"""Right and wrong answers to the pieces of chapter 5."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from bank_encoder import Block, Encoder, in_training, run, with_dropout, without_grad
from bank_patches import Embedding
from bank_tokens import Sequence
from einops import rearrange
from torch import nn
from variations import then, with_forward, with_start

from vit_classroom import checks
from vit_from_scratch import model
from vit_from_scratch.model.cost import forward_flops
from vit_from_scratch.pretrained import load_pretrained


class ViT(nn.Module):
    def __init__(self, image_size, patch_size, channels, dim, depth, heads, mlp_dim, num_classes):
        super().__init__()
        self.patch_embedding = Embedding(patch_size, channels, dim)
        self.tokens = Sequence((image_size // patch_size) ** 2, dim)
        self.encoder = Encoder(dim, depth, heads, mlp_dim)
        self.head = nn.Linear(dim, num_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images):
        return self.head(self.encoder(self.tokens(self.patch_embedding(images)))[:, 0])


class ViTOfThePackagesPieces(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        config = model.ViTConfig(**fields)
        self.patch_embedding = model.PatchEmbedding(fields["patch_size"], fields["channels"], fields["dim"])
        self.tokens, self.encoder = model.TokenSequence(config), model.Encoder(config)


class ViTThatNormsOnlyTheClassToken(ViT):
    def forward(self, images):
        z = self.tokens(self.patch_embedding(images))
        for block in self.encoder.blocks:
            z = block(z)
        return F.linear(self.encoder.norm(z[:, 0]), self.head.weight, self.head.bias)


def vit(forward):
    return with_forward(ViT, forward)


def encoded(self, images):
    return self.encoder(self.tokens(self.patch_embedding(images)))


def through(self, images, blocks, norm_each=False):
    z = self.tokens(self.patch_embedding(images))
    for one in blocks:
        z = self.encoder.norm(one(z)) if norm_each else one(z)
    return z


def logits_of(self, z):
    return self.head(self.encoder.norm(z)[:, 0])


def vit_then(change):
    return vit(lambda self, images: change(ViT.forward(self, images)))


class OneBlockManyTimes(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        one = Block(fields["dim"], fields["heads"], fields["mlp_dim"])
        self.encoder.blocks = nn.ModuleList([one] * fields["depth"])


class ViTWithASecondNorm(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        self.norm = nn.LayerNorm(fields["dim"], eps=1e-6)


class BlocksInAList(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        blocks = [Block(fields["dim"], fields["heads"], fields["mlp_dim"]) for _ in range(fields["depth"])]
        del self.encoder.blocks
        self.encoder.blocks = blocks


class EncoderOfOne(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        self.encoder = Encoder(fields["dim"], 1, fields["heads"], fields["mlp_dim"])


def all_eps(eps):
    def change(module):
        for layer in module.modules():
            if isinstance(layer, nn.LayerNorm):
                layer.eps = eps

    return with_start(ViT, change)


def repaired(position, order):
    return torch.cat([position[:, :1], position[:, 1:][:, order]], dim=1)


def repaired_by_rows(position, order):
    return position[:, torch.cat([torch.zeros(1, dtype=torch.long), order + 1])]


def repaired_in_a_loop(position, order):
    table = position.clone()
    for place, patch in enumerate(order.tolist()):
        table[0, place + 1] = position[0, patch + 1]
    return table


def repaired_by_gathering(position, order):
    rows = F.pad(order + 1, (1, 0))
    return position.gather(1, rows[None, :, None].expand_as(position))


def repaired_in_place(position, order):
    position[:, 1:] = position[:, 1:][:, order]
    return position


def scattered(position, order):
    table = position.clone()
    table[:, order + 1] = position[:, 1:]
    return table


def prints_the_operations(*sizes):
    print(operations_by_formula(*sizes))


def operations_by_formula(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    patches = (image_size // patch_size) ** 2
    tokens = patches + 1
    block = tokens * dim * (4 * dim + 2 * mlp_dim + 2 * tokens)
    return 2 * (patches * patch_size**2 * channels * dim + depth * block + dim * num_classes)


def operations_of_products(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    def product(rows, inner, columns):
        return 2.0 * rows * inner * columns

    tokens = 1 + (image_size // patch_size) ** 2
    total = product(tokens - 1, channels * patch_size * patch_size, dim) + product(1, dim, num_classes)
    for _ in range(depth):
        total += 3 * product(tokens, dim, dim) + product(tokens, dim, tokens) + product(tokens, tokens, dim)
        total += product(tokens, dim, dim) + product(tokens, dim, mlp_dim) + product(tokens, mlp_dim, dim)
    return total


def operations_of_tensors(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    patches = torch.tensor(image_size // patch_size) ** 2
    tokens = patches + 1
    shapes = torch.tensor([3 * dim * dim, dim * dim, dim * mlp_dim, dim * mlp_dim])
    block = (tokens * shapes).sum() + 2 * dim * tokens**2
    return 2 * (patches * dim * channels * patch_size**2 + depth * block + dim * num_classes)


def operations(change):
    """Return a count that is off by `change` of N, T, P P C, D, L, M and K, in multiply-adds."""

    def predicted(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
        sizes = (image_size, patch_size, channels, dim, depth, mlp_dim, num_classes)
        n = (image_size // patch_size) ** 2
        off = change(n, n + 1, patch_size**2 * channels, dim, depth, mlp_dim, num_classes)
        return operations_by_formula(*sizes) + 2 * off

    return predicted


def without_class_token(n, t, values, dim, depth, mlp_dim, num_classes):
    return depth * dim * ((n - t) * (4 * dim + 2 * mlp_dim) + 2 * (n * n - t * t))


def with_a_fixed_mlp(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    return operations_by_formula(image_size, patch_size, channels, dim, depth, 4 * dim, num_classes)


def of_one_side(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    patches = image_size // patch_size
    block = (patches + 1) * dim * (4 * dim + 2 * mlp_dim + 2 * (patches + 1))
    return 2 * (patches * patch_size**2 * channels * dim + depth * block + dim * num_classes)


def operations_of_the_package(image_size, patch_size, channels, dim, depth, mlp_dim, num_classes):
    sizes = dict(zip(("channels", "dim", "depth", "mlp_dim"), (channels, dim, depth, mlp_dim), strict=True))
    return forward_flops(model.ViTConfig(image_size, patch_size, num_classes=num_classes, heads=1, **sizes))


class MeanViT(ViT):
    def forward(self, images):
        return self.head(encoded(self, images)[:, 1:].mean(dim=1))


class MeanOfAnswers(ViT):
    def forward(self, images):
        return self.head(encoded(self, images))[:, 1:].mean(dim=1)


class MeanBySubtraction(ViT):
    def forward(self, images):
        z = encoded(self, images)
        return self.head((z.sum(1) - z[:, 0]) / (z.shape[1] - 1))


class MeanByPooling(ViT):
    def forward(self, images):
        grid = rearrange(encoded(self, images)[:, 1:], "b (gh gw) d -> b d gh gw", gh=4)
        return self.head(F.adaptive_avg_pool2d(grid, 1).flatten(1))


def before_the_norm(self, images):
    z = self.tokens(self.patch_embedding(images))
    return run(self.encoder.blocks, z)


class MeanWithoutClassToken(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        del self.tokens.class_token

    def forward(self, images):
        z = self.patch_embedding(images) + self.tokens.position[:, 1:]
        return self.head(self.encoder(z).mean(1))


class OneNameOff(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        for one in self.encoder.blocks:
            one.norm1 = one.attention_norm
            del one.attention_norm


class ClassesFirst(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        self.head = nn.Linear(fields["num_classes"], fields["dim"])


class HeadsAndDepthSwapped(ViT):
    def __init__(self, **fields):
        super().__init__(**fields)
        self.encoder = Encoder(fields["dim"], fields["depth"], fields["depth"], fields["mlp_dim"])


class ViTByModules(ViT):
    def forward(self, images):
        first = nn.Sequential(self.patch_embedding, self.tokens, self.encoder)(images).unbind(1)[0]
        return first @ self.head.weight.T + self.head.bias


RIGHT = {
    checks.trained_weights: (
        ViT,
        ViTOfThePackagesPieces,
        ViTThatNormsOnlyTheClassToken,
        with_dropout(ViT, 0.01),
    ),
    checks.vision_transformer: (ViTByModules, ViT, ViTOfThePackagesPieces, ViTThatNormsOnlyTheClassToken),
    checks.repaired: (repaired, repaired_by_rows, repaired_in_a_loop, repaired_by_gathering),
    checks.predicted_operations: (
        operations_by_formula,
        operations_of_products,
        operations_of_tensors,
        then(operations_by_formula, np.int64),
    ),
    checks.mean_vit: (MeanViT, MeanOfAnswers, MeanBySubtraction, MeanByPooling),
}

WRONG = {
    checks.trained_weights: [
        (
            OneNameOff,
            r"missing +encoder.blocks.0.attention_norm.weight \(192,\).* and 10 more like these.*"
            r"unexpected encoder.blocks.0.norm1.weight",
        ),
        (ClassesFirst, r"head.weight has shape \(192, 200\), expected \(200, 192\)"),
        (EncoderOfOne, r"missing +encoder.blocks.1.*and \d+ more like these"),
        (BlocksInAList, "use nn.ModuleList"),
        (in_training(ViT, lambda self, x: self.head(encoded(self, x).mean(1))), "not while it trains"),
        (
            vit(lambda self, x: self.head(encoded(self, x).mean(1))),
            "mean of all tokens.*the photo of the cat",
        ),
        (vit(lambda self, x: logits_of(self, through(self, x, []))), "blocks are not called"),
        (lambda image_size, patch_size: None, "cannot be called as VisionTransformer\\(image_size=64"),
        (lambda **fields: load_pretrained("tiny-imagenet"), "the package's own"),
    ],
    checks.mean_vit: [
        (in_training(MeanViT, ViT.forward), "while it trains it gives something else"),
        (
            vit(lambda self, x: MeanViT.forward(self, x).squeeze()),
            "wrong where axis 0 of images has length 1",
        ),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 1:].mean(0))), "expected"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 1:].sum(1) / 17)), "of them agree"),
        (vit(lambda self, x: MeanViT.forward(self, x[:1]).expand(len(x), -1)), "right only where axis 0"),
        (ViT, "the head reads the class token"),
        (vit(lambda self, x: self.head(encoded(self, x).mean(1))), "the class token is in the mean"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, :-1].mean(1))), "leaves the last patch out"),
        (
            vit(lambda self, x: self.head(self.encoder.norm(before_the_norm(self, x)[:, 1:].mean(1)))),
            "taken before the final norm; the norm comes first",
        ),
        (
            vit(lambda self, x: self.head(self.encoder.norm(before_the_norm(self, x).mean(1)))),
            "mean of all tokens is taken before the final norm",
        ),
        (vit(lambda self, x: self.head(before_the_norm(self, x)[:, 1:].mean(1))), "final norm is missing"),
        (
            vit(lambda self, x: self.head(self.encoder.norm(encoded(self, x)[:, 1:].mean(1)))),
            "final norm is applied twice",
        ),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 1:].sum(1))), "reads the sum"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 1:].amax(1))), "reads the largest value"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 1:])), "the head reads every patch"),
        (vit(lambda self, x: encoded(self, x)[:, 1:].mean(1)), "the head is not called"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 1:].mean(-1))), "stopped with RuntimeError"),
        (vit(lambda self, x: MeanViT.forward(self, x).softmax(-1)), "a softmax follows"),
        (MeanWithoutClassToken, r"missing +tokens.class_token"),
    ],
    checks.predicted_operations: [
        (then(operations_by_formula, lambda x: 10 * x), "it is 10 times as large"),
        (lambda *sizes: operations_by_formula(*sizes[:-1], sizes[-1] // 0), "it divides by 0"),
        (operations(without_class_token), "class token is missing: T = N"),
        (with_a_fixed_mlp, "the MLP is taken to be 4 D wide"),
        (of_one_side, "image_size / patch_size is taken for the number of patches"),
        (
            operations(lambda n, t, v, d, depth, m, k: 2 * t * t * (1 - d) * depth),
            r"cost T\^2 here; each costs T\^2 D",
        ),
        (
            operations(lambda n, t, v, d, depth, m, k: (n * d + depth * t * (5 * d + m) + k) / 2),
            "biases are counted",
        ),
        (then(operations_by_formula, lambda x: x // 2), "a multiply-add counts once"),
        (then(operations_by_formula, lambda x: 2 * x), "here they count twice"),
        (operations(lambda n, t, v, d, depth, m, k: v * d), "class token is cut and embedded"),
        (operations(lambda n, t, v, d, depth, m, k: -2 * t * t * d * depth), "both products with the T x T"),
        (
            operations(lambda n, t, v, d, depth, m, k: -t * t * d * depth),
            "one of the two products with the T x T",
        ),
        (operations(lambda n, t, v, d, depth, m, k: -2 * t * d * d * depth), "are one product with D x D"),
        (operations(lambda n, t, v, d, depth, m, k: -t * d * d * depth), "the output projection"),
        (operations(lambda n, t, v, d, depth, m, k: -t * d * m * depth), "the MLP has one product here"),
        (operations(lambda n, t, v, d, depth, m, k: (t - 1) * d * k), "the head reads every token"),
        (operations(lambda n, t, v, d, depth, m, k: -d * k), "the head is missing"),
        (operations(lambda n, t, v, d, depth, m, k: -n * v * d), "the patch embedding is missing"),
        (
            operations(lambda n, t, v, d, depth, m, k: (1 - depth) * t * d * (4 * d + 2 * m + 2 * t)),
            "one block only",
        ),
        (operations(lambda n, t, v, d, depth, m, k: 1), r"it returned [\d,]+: expected [\d,]+"),
        (operations_of_the_package, "the package's own"),
        (lambda *sizes: 10**400, "1 of 1 values are infinite"),
        (lambda *sizes: -(10**400), "1 of 1 values are infinite"),
        (then(operations_by_formula, lambda x: x / 3), "it is 3 times too small"),
        (then(operations_by_formula, str), "it returned str"),
        (prints_the_operations, "it prints its result and returns None"),
        (lambda image_size: 3, "cannot be called as predicted_operations"),
        (12, "it got a int"),
    ],
    checks.repaired: [
        (lambda position, order: repaired(position, order.argsort()), "the wrong way round"),
        (scattered, "the wrong way round"),
        (lambda position, order: position[:, order], "is moved with the others, and the last row is lost"),
        (
            lambda position, order: torch.cat([position[:, order], position[:, -1:]], 1),
            "is moved with the others, and the last row stays",
        ),
        (
            lambda position, order: torch.cat([position[:, :1], position[:, order]], 1),
            r"place j takes row order\[j\] of the whole table",
        ),
        (lambda position, order: position[:, order + 1], "class token's row is missing"),
        (
            lambda position, order: torch.cat([position[:, order + 1], position[:, :1]], 1),
            "class token's row stands last",
        ),
        (lambda position, order: F.pad(position[:, order + 1], (0, 0, 1, 0)), "class token's row is 0"),
        (lambda position, order: position, "the table is unchanged"),
        (lambda position, order: repaired(position, order.sort().values), "the table is unchanged"),
        (lambda position, order: repaired(position, order.flip(0)), "the order is read from its end"),
        (lambda position, order: repaired(position, order)[0], "its values are right: reshape them"),
        (repaired_in_place, "changes its input"),
        (lambda position, order: position[order], "a place is not there.*stopped with IndexError"),
        (lambda position: position, r"cannot be called as repaired\(position, order\)"),
    ],
    checks.vision_transformer: [
        (in_training(ViT, lambda self, x: ViT.forward(self, x) / 2), "while it trains it gives something"),
        (with_dropout(ViT), "while it trains it gives something else"),
        (ViTWithASecondNorm, "unexpected norm.weight.*there is encoder.norm already"),
        (
            vit(lambda self, x: self.head(self.encoder.norm(encoded(self, x))[:, 0])),
            "the encoder's own is that of equation 4 already",
        ),
        (
            vit(lambda self, x: self.head(self.encoder(self.patch_embedding(x))[:, 0])),
            "`tokens` is not called",
        ),
        (
            vit(lambda self, x: self.head(self.tokens(self.patch_embedding(x))[:, 0])),
            "`encoder` is not called",
        ),
        (HeadsAndDepthSwapped, "of them agree"),
        (vit_then(torch.squeeze), "wrong where axis 0 of images has length 1"),
        (vit_then(lambda x: x[:1].expand_as(x)), "along axis 0 only 1 of 2 are right"),
        (vit_then(lambda x: x.mT), "its axes stand in another order"),
        (vit_then(lambda x: x / x.shape[-1] ** 0.5), "all are 0.4472 times as large"),
        (
            vit_then(lambda x: x - x.amax(-1, keepdim=True)),
            "something is added that changes along axis 0 alone",
        ),
        (vit(lambda self, x: ViT.forward(self, x.flip(1))), "colours of the images are turned round"),
        (vit(lambda self, x: self.head(self.encode(x)[:, 0])), "not made in __init__.*AttributeError"),
        (vit(lambda self, x: self.head(encoded(self, x)[0])), "expected"),
        (vit_then(lambda x: x.softmax(-1).log()), "log-softmax"),
        (vit(lambda self, x: self.head(encoded(self, x).mean(1))), "mean of all tokens"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 1:].mean(1))), "mean of the patches"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, -1])), "the last token"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 1])), "the first patch"),
        (vit(lambda self, x: self.head(encoded(self, x).sum(1))), "the sum of all tokens"),
        (vit(lambda self, x: self.head(encoded(self, x).amax(1))), "the largest value"),
        (vit(lambda self, x: self.head(encoded(self, x))), "reads every token"),
        (vit(lambda self, x: encoded(self, x)[:, 0]), "the head is not called"),
        (vit(lambda self, x: self.head(through(self, x, self.encoder.blocks)[:, 0])), "final LayerNorm"),
        (
            vit(lambda self, x: logits_of(self, through(self, x, self.encoder.blocks[:1]))),
            "only the first block",
        ),
        (
            vit(lambda self, x: logits_of(self, through(self, x, self.encoder.blocks[:-1]))),
            "last block is left out",
        ),
        (
            vit(lambda self, x: logits_of(self, through(self, x, [self.encoder.blocks[0]] * 3))),
            "one and the same block",
        ),
        (vit(lambda self, x: logits_of(self, through(self, x, reversed(self.encoder.blocks)))), "in reverse"),
        (vit(lambda self, x: logits_of(self, through(self, x, []))), "blocks are not called"),
        (
            vit(lambda self, x: self.head(through(self, x, self.encoder.blocks, norm_each=True)[:, 0])),
            "follows every block",
        ),
        (vit_then(lambda x: x.softmax(-1)), "a softmax follows the head"),
        (vit_then(lambda x: x.log_softmax(-1)), "a log-softmax follows"),
        (vit_then(torch.sigmoid), "a sigmoid follows the head"),
        (vit_then(torch.relu), "a ReLU follows the head"),
        (vit_then(lambda x: x.argmax(-1)), r"returned torch.int64|returned shape"),
        (vit_then(torch.Tensor.detach), "no gradient can flow back"),
        (vit_then(lambda x: x * math.nan), "values are NaN"),
        (vit(lambda self, x: self.head(encoded(self, x)[:, 0].tanh())), "a tanh comes before the head"),
        (vit(lambda self, x: ViT.forward(self, x.div_(255))), "changes its input"),
        (
            vit(
                lambda self, x: (
                    logits_of(self, through(self, x, self.encoder.blocks) + 0 * self.tokens.position).detach()
                    + 0 * self.head.bias.sum()
                )
            ),
            "receives no gradient|gradient of",
        ),
        (without_grad(ViT), "no gradient can flow back"),
        (all_eps(1e-5), "eps of LayerNorm is 1e-5"),
        (OneBlockManyTimes, r"one and the same parameter: `\[layer\] \* L`"),
        (BlocksInAList, "use nn.ModuleList"),
        (EncoderOfOne, r"missing +encoder.blocks.1"),
        (
            with_start(ViT, lambda m: nn.init.xavier_uniform_(m.head.weight)),
            "head.weight does not begin at 0",
        ),
        (lambda image_size, patch_size: None, "cannot be called as"),
        (lambda **fields: model.VisionTransformer(model.ViTConfig(**fields)), "the package's own"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
