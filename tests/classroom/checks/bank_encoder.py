"""Right and wrong answers to the pieces of chapter 4."""

import math

import torch
import torch.nn.functional as F
from bank_attention import Attention, heads_of, joined, scores
from torch import nn
from variations import with_forward, with_start

from vit_classroom import checks
from vit_from_scratch import model


class Mlp(nn.Module):
    def __init__(self, dim, mlp_dim):
        super().__init__()
        self.hidden, self.output = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)

    def forward(self, tokens):
        return self.output(F.gelu(self.hidden(tokens)))


class MlpWithoutSizes(Mlp):
    def __init__(self, dim, mlp_dim):
        super().__init__(dim, mlp_dim)
        self.hidden = nn.LazyLinear(mlp_dim)


class MlpByFormula(Mlp):
    def forward(self, tokens):
        x = self.hidden(tokens)
        return self.output(x * (1 + torch.erf(x / math.sqrt(2))) / 2)


class MlpByErrorFunction(Mlp):
    def forward(self, tokens):
        x = F.linear(tokens, self.hidden.weight, self.hidden.bias)
        return torch.addmm(
            self.output.bias, (x * torch.special.ndtr(x)).flatten(0, 1), self.output.weight.T
        ).view_as(tokens)


class MlpWithDropout(Mlp):
    def __init__(self, dim, mlp_dim):
        super().__init__(dim, mlp_dim)
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(0.5)

    def forward(self, tokens):
        return self.dropout(self.output(self.dropout(self.gelu(self.hidden(tokens)))))


class Block(nn.Module):
    def __init__(self, dim, heads, mlp_dim):
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim, eps=1e-6)
        self.attention = Attention(dim, heads)
        self.mlp_norm = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = Mlp(dim, mlp_dim)

    def forward(self, z):
        z = z + self.attention(self.attention_norm(z))
        return z + self.mlp(self.mlp_norm(z))


class BlockThatReturnsAPair(Block):
    def __init__(self, dim, heads, mlp_dim):
        super().__init__(dim, heads, mlp_dim)
        self.attention, self.mlp = model.MultiHeadSelfAttention(dim, heads), model.Mlp(dim, mlp_dim)

    def forward(self, z):
        attended, weights = self.attention(self.attention_norm(z))
        middle = z + attended
        return middle + self.mlp(self.mlp_norm(middle)), weights


class BlockOfThePackagesPieces(BlockThatReturnsAPair):
    def forward(self, z):
        return super().forward(z)[0]


class BlockWithNormsByHand(Block):
    @staticmethod
    def normalised(layer, z):
        centred = z - z.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt() * layer.weight + layer.bias

    def forward(self, z):
        middle = self.attention(self.normalised(self.attention_norm, z)) + z
        return self.mlp(self.normalised(self.mlp_norm, middle)) + middle


class Encoder(nn.Module):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim, heads, mlp_dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, z):
        for block in self.blocks:
            z = block(z)
        return self.norm(z)


def mlp_with(function):
    return with_forward(Mlp, lambda self, x: self.output(function(self.hidden(x))))


class MlpUnderTwoNames(Mlp):
    def __init__(self, dim, mlp_dim):
        super().__init__(dim, mlp_dim)
        self.net = nn.Sequential(self.hidden, nn.GELU(), self.output)

    def forward(self, tokens):
        return self.net(tokens)


class MlpOfOtherNames(nn.Module):
    def __init__(self, dim, mlp_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)


def in_training(base, forward):
    """Return a class of layers that computes something else while it trains."""
    return with_forward(base, lambda self, x: (forward if self.training else base.forward)(self, x))


def with_dropout(base, share=0.1):
    """Return a class of layers that drops some of what it returns while it trains."""
    return with_forward(base, lambda self, x: F.dropout(base.forward(self, x), share, self.training))


def clamps_its_input(self, x):
    x.clamp_(-1, 1)
    return Mlp.forward(self, x)


def without_grad(base):
    def forward(self, x):
        with torch.no_grad():
            return base.forward(self, x)

    return with_forward(base, forward)


def block(forward):
    return with_forward(Block, forward)


def post_norm(self, z):
    z = self.attention_norm(z + self.attention(z))
    return self.mlp_norm(z + self.mlp(z))


def norm_after_the_layer(self, z):
    z = z + self.attention_norm(self.attention(z))
    return z + self.mlp_norm(self.mlp(z))


def from_the_normalised(self, z):
    z = self.attention_norm(z)
    z = z + self.attention(z)
    z = self.mlp_norm(z)
    return z + self.mlp(z)


def attention_from_the_normalised(self, z):
    z = self.attention_norm(z)
    z = z + self.attention(z)
    return z + self.mlp(self.mlp_norm(z))


def mlp_from_the_normalised(self, z):
    z = z + self.attention(self.attention_norm(z))
    z = self.mlp_norm(z)
    return z + self.mlp(z)


def mlp_adds_the_input(self, z):
    middle = z + self.attention(self.attention_norm(z))
    return z + self.mlp(self.mlp_norm(middle))


def in_turn(*layers):
    """A block that adds these layers in turn, each of the stream that one of its norms has normalised."""

    def forward(self, z):
        for layer, norm in layers:
            z = z + getattr(self, layer)(getattr(self, norm)(z))
        return z

    return block(forward)


ATTENTION, FEED = ("attention", "attention_norm"), ("mlp", "mlp_norm")


def picks_image_0(self, z):
    z = z + self.attention(self.attention_norm(z))[0]
    return z + self.mlp(self.mlp_norm(z))


def parallel(self, z):
    return z + self.attention(self.attention_norm(z)) + self.mlp(self.mlp_norm(z))


def adds_in_place(self, z):
    z += self.attention(self.attention_norm(z))
    z += self.mlp(self.mlp_norm(z))
    return z


def forgets_dropout_in_evaluation(self, z):
    z = z + self.attention(self.attention_norm(z))
    return z + F.dropout(self.mlp(self.mlp_norm(z)), 0.3)


def changes_its_weights(self, z):
    with torch.no_grad():
        self.mlp_norm.weight.mul_(1.0001)
    return Block.forward(self, z)


def block_with_eps(eps, *norms):
    def change(module):
        for norm in norms or ("attention_norm", "mlp_norm"):
            module.get_submodule(norm).eps = eps

    return with_start(Block, change)


class BlockWithOneNorm(Block):
    def __init__(self, dim, heads, mlp_dim):
        super().__init__(dim, heads, mlp_dim)
        self.mlp_norm = self.attention_norm


class EncoderAsSequence(nn.Module):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(dim, heads, mlp_dim) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim, eps=1e-6)

    def forward(self, z):
        return self.norm(self.blocks(z))


class EncoderOfBlocksThatReturnPairs(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, depth, heads, mlp_dim)
        self.blocks = nn.ModuleList([BlockThatReturnsAPair(dim, heads, mlp_dim) for _ in range(depth)])

    def forward(self, z):
        for block in self.blocks:
            z, _ = block(z)
        return self.norm(z)


class EncoderWithNormByHand(Encoder):
    def forward(self, z):
        for layer in range(len(self.blocks)):
            z = self.blocks[layer](z)
        variance, mean = torch.var_mean(z, dim=-1, keepdim=True, correction=0)
        return torch.addcmul(self.norm.bias, (z - mean) * torch.rsqrt(variance + 1e-6), self.norm.weight)


def encoder(forward):
    return with_forward(Encoder, forward)


def run(blocks, z):
    for block in blocks:
        z = block(z)
    return z


def every_block_reads_z0(self, z):
    for block in self.blocks:
        out = block(z)
    return self.norm(out)


def norm_after_each(self, z):
    for block in self.blocks:
        z = self.norm(block(z))
    return z


def adds_again(self, z):
    for block in self.blocks:
        z = z + block(z)
    return self.norm(z)


def returns_inside_the_loop(self, z):
    for block in self.blocks:
        z = block(z)
        return self.norm(z)


class EncoderOfAPythonList(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        nn.Module.__init__(self)
        self.blocks = [Block(dim, heads, mlp_dim) for _ in range(depth)]
        self.norm = nn.LayerNorm(dim, eps=1e-6)


class EncoderOfOneBlock(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, depth, heads, mlp_dim)
        self.blocks = nn.ModuleList([Block(dim, heads, mlp_dim)] * depth)


class EncoderOfAnotherDepth(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, heads, depth, mlp_dim)


class EncoderWithoutNorm(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, depth, heads, mlp_dim)
        del self.norm

    def forward(self, z):
        return run(self.blocks, z)


def default_eps(module):
    module.norm.eps = 1e-5


def default_eps_everywhere(module):
    for layer in module.modules():
        if isinstance(layer, nn.LayerNorm):
            layer.eps = 1e-5


def package_sizes(dim, depth, heads, mlp_dim):
    return model.ViTConfig(4, 2, dim=dim, depth=depth, heads=heads, mlp_dim=mlp_dim)


def norm_by_moments(x, weight, bias, eps):
    mean, square = x.mean(-1, keepdim=True), (x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True)
    return (x - mean) / (square + eps).sqrt() * weight + bias


def norm_by_var_mean(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def norm_by_sums(x, weight, bias, eps):
    width = x.shape[-1]
    centred = x - (x.sum(-1) / width).unsqueeze(-1)
    variance = torch.einsum("...d,...d->...", centred, centred) / width
    return weight * (centred / (variance + eps).pow(0.5)[..., None]) + bias


def norm_of_torch(x, weight, bias, eps):
    layer = nn.LayerNorm(x.shape[-1], eps=eps, elementwise_affine=False)
    return layer(x) * weight + bias


def norm(change):
    def layer_norm(x, weight, bias, eps):
        centred = x - x.mean(-1, keepdim=True)
        return change(x, centred, centred.square().mean(-1, keepdim=True), eps) * weight + bias

    return layer_norm


def norm_over(*axes):
    def layer_norm(x, weight, bias, eps):
        centred = x - x.mean(axes, keepdim=True)
        return centred / (centred.square().mean(axes, keepdim=True) + eps).sqrt() * weight + bias

    return layer_norm


class DroppingBlock(Block):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(dim, heads, mlp_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, z):
        z = z + self.dropout(self.attention(self.attention_norm(z)))
        hidden = self.dropout(F.gelu(self.mlp.hidden(self.mlp_norm(z))))
        return z + self.dropout(self.mlp.output(hidden))


class DroppingMlp(Mlp):
    def __init__(self, dim, mlp_dim, dropout):
        super().__init__(dim, mlp_dim)
        self.drop_hidden, self.drop_output = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, tokens):
        return self.drop_output(self.output(self.drop_hidden(F.gelu(self.hidden(tokens)))))


class BlockWithADroppingMlp(Block):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(dim, heads, mlp_dim)
        self.mlp, self.after = DroppingMlp(dim, mlp_dim, dropout), nn.Dropout(dropout)

    def forward(self, z):
        z = z + self.after(self.attention(self.attention_norm(z)))
        return z + self.mlp(self.mlp_norm(z))


class BlockThatDropsByFunction(DroppingBlock):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(dim, heads, mlp_dim, 0.0)
        self.share = dropout

    def forward(self, z):
        def drop(x):
            return F.dropout(x, self.share, training=self.training)

        z = z + drop(self.attention(self.attention_norm(z)))
        return z + drop(self.mlp.output(drop(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class BlockWithMasks(BlockThatDropsByFunction):
    def dropped(self, x):
        if not self.training:
            return x
        return x * (torch.rand_like(x) >= self.share) / (1 - self.share)

    def forward(self, z):
        z = z + self.dropped(self.attention(self.attention_norm(z)))
        return z + self.dropped(self.mlp.output(self.dropped(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class BlockOfThePackage(model.Block):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(model.ViTConfig(4, 2, dim=dim, heads=heads, mlp_dim=mlp_dim, dropout=dropout))


class DropsByNoDefault(DroppingBlock):
    def __init__(self, dim, heads, mlp_dim, dropout):
        super().__init__(dim, heads, mlp_dim, dropout)


def dropping(attended=True, hidden=True, output=True, share=lambda p: p):
    class Dropping(DroppingBlock):
        def __init__(self, dim, heads, mlp_dim, dropout=0.1):
            super().__init__(dim, heads, mlp_dim, share(dropout))

        def forward(self, z):
            a = self.attention(self.attention_norm(z))
            z = z + (self.dropout(a) if attended else a)
            h = F.gelu(self.mlp.hidden(self.mlp_norm(z)))
            o = self.mlp.output(self.dropout(h) if hidden else h)
            return z + (self.dropout(o) if output else o)

    return Dropping


class DropsTheStream(DroppingBlock):
    def forward(self, z):
        z = self.dropout(z + self.attention(self.attention_norm(z)))
        return self.dropout(z + self.mlp(self.mlp_norm(z)))


class DropsTheNormalised(DroppingBlock):
    def forward(self, z):
        z = z + self.attention(self.dropout(self.attention_norm(z)))
        return z + self.mlp(self.dropout(self.mlp_norm(z)))


class DropsBeforeTheAttention(DroppingBlock):
    def forward(self, z):
        z = z + self.dropout(self.attention(self.dropout(self.attention_norm(z))))
        return z + self.dropout(self.mlp.output(self.dropout(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class DropsWhatAttentionReads(DroppingBlock):
    def forward(self, z):
        z = z + self.attention(self.dropout(self.attention_norm(z)))
        return z + self.dropout(self.mlp.output(self.dropout(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class DropsByItself(DroppingBlock):
    def forward(self, z):
        def drop(x):
            return F.dropout(x, training=self.training)

        z = z + drop(self.attention(self.attention_norm(z)))
        return z + drop(self.mlp.output(drop(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class DropsWeights(DroppingBlock):
    def forward(self, z):
        q, k, v = heads_of(self.attention, self.attention_norm(z))
        weights = self.dropout(scores(q, k).softmax(-1))
        z = z + self.dropout(joined(self.attention, weights @ v))
        return z + self.dropout(self.mlp.output(self.dropout(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class DropsForEver(DroppingBlock):
    def forward(self, z):
        return z + F.dropout(self.mlp(self.mlp_norm(z + self.attention(self.attention_norm(z)))), 0.5)


class DropsByPostNorm(DroppingBlock):
    def forward(self, z):
        z = self.attention_norm(z + self.dropout(self.attention(z)))
        return self.mlp_norm(z + self.dropout(self.mlp(z)))


def norm_with_eps(eps):
    return lambda x, weight, bias, _: norm_by_moments(x, weight, bias, eps)


class BlockOfThreeHeads(Block):
    def __init__(self, dim, heads, mlp_dim):
        super().__init__(dim, 4 if dim % 3 else 3, mlp_dim)


class EncoderOfTwoHeads(Encoder):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__(dim, depth, 2, mlp_dim)


class EncoderThatCountsThree(Encoder):
    def forward(self, z):
        for layer in range(min(3, len(self.blocks))):
            z = self.blocks[layer](z)
        return self.norm(z) if len(self.blocks) > 2 else z


def drop_here(before_gelu=False, scaled=True, masks=lambda x: x.shape, again=False):
    """A block with a dropout of the reader's own in the three places."""

    class Dropping(BlockWithMasks):
        def dropped(self, x, old=None):
            if not self.training:
                return x
            self.mask = (torch.rand(masks(x)) >= self.share) if old is None else old
            return x * self.mask / ((1 - self.share) if scaled else 1)

        def forward(self, z):
            z = z + self.dropped(self.attention(self.attention_norm(z)))
            mask = getattr(self, "mask", None) if again else None
            hidden = self.mlp.hidden(self.mlp_norm(z))
            hidden = F.gelu(self.dropped(hidden)) if before_gelu else self.dropped(F.gelu(hidden))
            return z + self.dropped(self.mlp.output(hidden), mask)

    return Dropping


class DropsHiddenTokens(BlockWithMasks):
    def forward(self, z):
        z = z + self.dropped(self.attention(self.attention_norm(z)))
        hidden = F.gelu(self.mlp.hidden(self.mlp_norm(z)))
        tokens = F.dropout(torch.ones_like(hidden[..., :1]), self.share, self.training)
        return z + self.dropped(self.mlp.output(hidden * tokens))


class DropsTwice(BlockThatDropsByFunction):
    def forward(self, z):
        def drop(x):
            return F.dropout(F.dropout(x, self.share, self.training), self.share, self.training)

        z = z + drop(self.attention(self.attention_norm(z)))
        return z + drop(self.mlp.output(drop(F.gelu(self.mlp.hidden(self.mlp_norm(z))))))


class BlockWithThreeLayersOfDropout(Block):
    def __init__(self, dim, heads, mlp_dim, dropout=0.1):
        super().__init__(dim, heads, mlp_dim)
        self.drop = nn.ModuleList(nn.Dropout(dropout) for _ in range(3))

    def forward(self, z):
        middle = z + self.drop[0](self.attention(self.attention_norm(z)))
        hidden = self.drop[1](nn.functional.gelu(self.mlp.hidden(self.mlp_norm(middle))))
        return torch.add(middle, self.drop[2](self.mlp.output(hidden)))


class BlockByBernoulli(BlockWithMasks):
    def dropped(self, x):
        return x * torch.full_like(x, 1 - self.share).bernoulli() / (1 - self.share) if self.training else x


RIGHT = {
    checks.mlp: (Mlp, MlpByFormula, MlpByErrorFunction),
    checks.block: (Block, BlockOfThePackagesPieces, BlockWithNormsByHand),
    checks.encoder: (Encoder, EncoderAsSequence, EncoderOfBlocksThatReturnPairs, EncoderWithNormByHand),
    checks.layer_norm: (norm_by_moments, norm_by_var_mean, norm_by_sums, norm_of_torch),
    checks.block_with_dropout: (
        BlockWithThreeLayersOfDropout,
        BlockByBernoulli,
        DroppingBlock,
        BlockWithADroppingMlp,
        BlockThatDropsByFunction,
        BlockWithMasks,
    ),
}

WRONG = {
    checks.block: [
        (BlockOfThreeHeads, "an argument is not used"),
        (
            block(lambda self, z: Block.forward(self, z).squeeze()),
            "wrong where axis 0 of tokens has length 1",
        ),
        (block(lambda self, z: Block.forward(self, z)[:, 1:]), "the first of axis 1 is missing"),
        (block(lambda self, z: Block.forward(self, z) / 2), "all are 0.5 times as large"),
        (
            block(lambda self, z: Block.forward(self, z[:1]).expand_as(z)),
            "right only where axis 0 of tokens has len",
        ),
        (block(lambda self, z: Block.forward(self, z.flip(1))), "axis 1 is turned round|every one is there"),
        (block(lambda self, z: z + self.dropout(self.attention(z))), "not made in __init__.*AttributeError"),
        (
            block(lambda self, z: z + self.attention(self.attention_norm(z))[0]),
            "of them agree",
        ),
        (block(picks_image_0), "the attention returns for image 0 is added to every image"),
        (BlockThatReturnsAPair, "it returned a tuple of 2"),
        (block(lambda self, z: (Block.forward(self, z), None)), "it returned a tuple of 2"),
        (with_dropout(Block), "while it trains it gives something else"),
        (block(post_norm), "post-norm"),
        (block(norm_after_the_layer), "after the layers, before the additions"),
        (block(from_the_normalised), "both residuals start from the normalised"),
        (block(attention_from_the_normalised), "attention's residual begins with"),
        (block(mlp_from_the_normalised), "residual around the MLP starts from"),
        (block(mlp_adds_the_input), "MLP's residual adds the block's input"),
        (in_turn(("attention", "mlp_norm"), ("mlp", "attention_norm")), "norms have changed places"),
        (in_turn(ATTENTION, ("mlp", "attention_norm")), "attention's norm is used for the MLP"),
        (in_turn(("attention", "mlp_norm"), FEED), "MLP's norm is used for the attention"),
        (in_turn(FEED, ATTENTION), "MLP comes before the attention"),
        (block(parallel), "MLP reads the block's input"),
        (in_turn(ATTENTION, ATTENTION, FEED), "attention is called twice"),
        (block(lambda self, z: self.mlp_norm(Block.forward(self, z))), "a further norm follows"),
        (block(lambda self, z: z + self.attention(self.attention_norm(z))), "the MLP is missing"),
        (block(lambda self, z: z + self.mlp(self.mlp_norm(z))), "the attention is missing"),
        (
            block(lambda self, z: self.mlp(self.mlp_norm(z + self.attention(self.attention_norm(z))))),
            "residual around the MLP is missing",
        ),
        (
            block(
                lambda self, z: (
                    self.attention(self.attention_norm(z))
                    + self.mlp(self.mlp_norm(self.attention(self.attention_norm(z))))
                )
            ),
            "residual around the attention is missing",
        ),
        (
            block(lambda self, z: self.mlp(self.mlp_norm(self.attention(self.attention_norm(z))))),
            "both residuals are missing",
        ),
        (
            block(lambda self, z: z + self.attention(z) + self.mlp(self.mlp_norm(z + self.attention(z)))),
            "attention_norm is declared and never called",
        ),
        (
            block(
                lambda self, z: (
                    z
                    + self.attention(self.attention_norm(z))
                    + self.mlp(z + self.attention(self.attention_norm(z)))
                )
            ),
            "mlp_norm is declared and never called",
        ),
        (
            block(lambda self, z: z + self.attention(z) + self.mlp(z + self.attention(z))),
            "both norms are declared and never called",
        ),
        (block_with_eps(1e-5), "eps of LayerNorm is 1e-5"),
        (block_with_eps(1e-12), "eps of LayerNorm is 1e-12"),
        (block_with_eps(1e-5, "attention_norm"), "eps of attention_norm is 1e-5"),
        (block_with_eps(1e-5, "mlp_norm"), "eps of mlp_norm is 1e-5"),
        (block(adds_in_place), "changes its input"),
        (block(forgets_dropout_in_evaluation), "two calls in evaluation differ"),
        (block(changes_its_weights), "changes its own weights|two calls"),
        (without_grad(Block), "no gradient can flow back"),
        (block(lambda self, z: Block.forward(self, z) * math.nan), "values are NaN"),
        (block(lambda self, z: [Block.forward(self, z)]), "returned a list of 1"),
        (block(lambda self, z: Block.forward(self, z).numpy()), "NumPy|RuntimeError"),
        (BlockWithOneNorm, "one and the same parameter"),
    ],
    checks.block_with_dropout: [
        (
            in_training(DroppingBlock, lambda self, z: z),
            "not while it trains.* an input comes back as it was",
        ),
        (in_training(DroppingBlock, parallel), "not while it trains.* the MLP reads the block's input"),
        (
            in_training(DroppingBlock, lambda self, z: DroppingBlock.forward(self, z)[:, 1:]),
            r"not while it trains.* shape \(2, 4, 12\): expected \(2, 5, 12\)",
        ),
        (
            in_training(DroppingBlock, lambda self, z: F.dropout(z) / 0),
            "not while it trains.* values are NaN",
        ),
        (DropsByItself, "[45][0-9]% of the attention's results are dropped.*`dropout` is not used"),
        (dropping(share=lambda p: 1 - p), "the share that is dropped, `dropout` and not 1 - dropout"),
        (DropsWhatAttentionReads, r"what the attention reads is dropped.*Tried with z of shape \(2, 5, 12\)"),
        (with_forward(DroppingBlock, lambda self, z: (DroppingBlock.forward(self, z), None)), "a tuple of 2"),
        (drop_here(before_gelu=True), "stands before the GELU"),
        (drop_here(scaled=False), "stays as it is; divide it by 1 - dropout"),
        (drop_here(masks=lambda x: x[..., :1].shape), "whole tokens are dropped"),
        (drop_here(masks=lambda x: x[:1].shape), "lose the same values"),
        (drop_here(masks=lambda x: x[:, :1].shape), "lose the same values"),
        (drop_here(again=True), "one mask is used twice"),
        (DropsHiddenTokens, "after the GELU whole tokens"),
        (DropsTwice, "does the argument arrive"),
        (dropping(share=lambda p: p / 2 if p < 0.9 else p), "does the argument arrive"),
        (dropping(share=lambda p: 1 - p if p < 0.9 else p), "7[3-7]% of the attention's results go"),
        (dropping(share=lambda p: 0.1), "`dropout` is not used"),
        (
            dropping(share=lambda p: 0.5 if p == 0.1 else p),
            "where it is not handed in dropout is 0.1; here 5",
        ),
        (dropping(share=lambda p: 0.0 if p == 0.1 else p), "where it is not handed in .* here 0% of the"),
        (
            DropsByNoDefault,
            r"cannot be called as BlockWithDropout\(dim, heads, mlp_dim\): dropout has a default",
        ),
        (dropping(attended=False), "the attention's result is not dropped"),
        (dropping(output=False), "the MLP's result is not dropped"),
        (dropping(hidden=False), "the values after the GELU are not dropped"),
        (dropping(hidden=False, output=False), "nothing is dropped in the MLP"),
        (dropping(attended=False, output=False), "the attention's result is not dropped, and the MLP's"),
        (dropping(False, False, False), "nothing is dropped in training"),
        (dropping(share=lambda p: min(p, 0.1) if p < 0.9 else p), "does the argument arrive"),
        (BlockOfThePackage, "the package's own"),
        (DropsTheStream, "the stream itself is dropped"),
        (DropsTheNormalised, "the normalised tokens are dropped"),
        (DropsBeforeTheAttention, "dropped before the attention's result is there"),
        (DropsWeights, "dropped before the attention's result is there"),
        (DropsForEver, "two calls in evaluation differ|the values are not"),
        (DropsByPostNorm, "norms come after the additions"),
        (Block, "cannot be called as BlockWithDropout"),
    ],
    checks.encoder: [
        (EncoderOfTwoHeads, "an argument is not used"),
        (EncoderThatCountsThree, "last norm is missing"),
        (
            encoder(lambda self, z: self.norm(run(self.blocks, z)).squeeze()),
            "wrong where axis 0 of tokens has length 1",
        ),
        (encoder(lambda self, z: [run(self.blocks, z)]), "returned a list of 1"),
        (
            encoder(lambda self, z: self.norm(run(self.blocks, z.clone().add_(0)))[:, 1:]),
            "first of axis 1 is mis",
        ),
        (encoder(lambda self, z: self.norm(run(self.layers, z))), "not made in __init__"),
        (
            encoder(lambda self, z: self.norm(sum(block(z) for block in self.blocks))),
            "the results are added",
        ),
        (encoder(lambda self, z: run(self.blocks, z)), "last norm is missing, or never called"),
        (encoder(norm_after_each), "the last norm follows every block; it comes once"),
        (encoder(lambda self, z: self.norm(norm_after_each(self, z))), "and once more the last of them"),
        (encoder(lambda self, z: run(self.blocks, self.norm(z))), "norm comes before the blocks; it belongs"),
        (encoder(lambda self, z: self.norm(run(self.blocks, self.norm(z)))), "before the blocks as well"),
        (encoder(returns_inside_the_loop), "only the first block is called"),
        (encoder(lambda self, z: self.norm(run(self.blocks[:-1], z))), "the last block is left out"),
        (encoder(lambda self, z: self.norm(run(self.blocks[1:], z))), "the first block is left out"),
        (
            encoder(lambda self, z: self.norm(run([self.blocks[0]] * 3, z))),
            "one and the same block is called L",
        ),
        (encoder(lambda self, z: self.norm(run(reversed(self.blocks), z))), "called in reverse"),
        (encoder(lambda self, z: self.norm(z)), "the blocks are not called"),
        (encoder(every_block_reads_z0), "every block reads z_0"),
        (encoder(adds_again), "residual is added by the encoder as well"),
        (encoder(lambda self, z: self.norm(z + run(self.blocks, z))), "input is added at the end"),
        (encoder(lambda self, z: z + self.norm(run(self.blocks, z))), "input is added after the norm"),
        (encoder(lambda self, z: self.norm(run(self.blocks, z))[:, 0]), "returns the class token alone"),
        (encoder(lambda self, z: self.norm(run(self.blocks, z)).mean(1)), "returns the mean of the tokens"),
        (encoder(lambda self, z: self.norm(run(self.blocks, z)).detach()), "no gradient can flow back"),
        (with_start(Encoder, default_eps), "Encoder: the eps of the last norm is 1e-5"),
        (with_start(Encoder, default_eps_everywhere), "in all norms the eps of LayerNorm is 1e-5"),
        (EncoderOfAPythonList, "use nn.ModuleList"),
        (EncoderOfOneBlock, "are one and the same parameter"),
        (EncoderOfAnotherDepth, "it has other parameters"),
        (with_dropout(Encoder), "while it trains it gives something else"),
        (in_training(Encoder, lambda self, z: z), "while it trains it gives something else"),
        (EncoderWithoutNorm, r"missing +norm.weight \(12,\)"),
        (lambda d, depth, h, m: model.Encoder(package_sizes(d, depth, h, m)), "the package's own"),
    ],
    checks.layer_norm: [
        (norm_with_eps(1e-6), "layer_norm: eps is always 1e-06; take the one"),
        (norm_with_eps(1e-5), "eps is always 1e-05; take the one"),
        (lambda x, w, b, eps: F.layer_norm(x, x.shape[-1:], w, b), "eps is always 1e-05; take the one"),
        (norm_with_eps(1e-12), "eps is always 1e-12; take the one"),
        (norm(lambda x, c, v, eps: c / v.clamp(min=eps).sqrt()), "eps is a floor"),
        (norm(lambda x, c, v, eps: c / (v.sqrt() + eps**0.5)), "taken of eps as well"),
        (norm(lambda x, c, v, eps: c / (c.abs().mean(-1, keepdim=True) + eps)), "averaged by size"),
        (norm(lambda x, c, v, eps: F.normalize(c, dim=-1)), "scaled to length 1"),
        (norm_over(1), "over axis 1, which is another"),
        (norm_over(-2, -1), "over the last two axes"),
        (norm(lambda x, c, v, eps: c / v.sqrt() + eps), "eps is added to the quotient"),
        (norm(lambda x, c, v, eps: x - (x - c) / (v + eps).sqrt()), "the mean alone is divided"),
        (lambda x, w, b, eps: norm_by_moments(x, w + b, 0, eps), "the sum of weight and bias multiplies"),
        (lambda x, w, b, eps: norm_by_moments(x * w + b, 1, 0, eps), "come before the norm"),
        (lambda x, w, b, eps: norm_by_moments(x, w, b, eps).clamp(-1, 1), "of them agree"),
        (lambda x, w, b, eps: norm_by_moments(x, w, b, eps).T, "expected"),
        (norm(lambda x, c, v, eps: c / (x.var(-1, keepdim=True) + eps).sqrt()), "divides by D - 1; take"),
        (
            norm(lambda x, c, v, eps: c / (x.std(-1, keepdim=True) + eps)),
            "outside the root, and the variance",
        ),
        (norm(lambda x, c, v, eps: c / (v.sqrt() + eps)), "eps stands outside of the root; it belongs"),
        (norm(lambda x, c, v, eps: c / v.sqrt()), "eps is missing"),
        (norm(lambda x, c, v, eps: c / (v + eps)), "the root is missing"),
        (norm(lambda x, c, v, eps: x / (x.square().mean(-1, keepdim=True) + eps).sqrt()), "RMSNorm"),
        (norm(lambda x, c, v, eps: c), "nothing divides"),
        (
            norm(lambda x, c, v, eps: x / (v + eps).sqrt()),
            "mean is not taken off before the standard deviation",
        ),
        (norm_over(0), "over the first axis"),
        (norm_over(-2), "over the tokens"),
        (lambda x, w, b, eps: norm_over(*range(x.ndim))(x, w, b, eps), "over all values"),
        (lambda x, w, b, eps: norm_by_sums(x, 1, 0, eps), "weight and bias are not used"),
        (lambda x, w, b, eps: norm_by_sums(x, w, 0, eps), "the bias is not added"),
        (lambda x, w, b, eps: norm_by_sums(x, 1, b, eps), "the weight is not used"),
        (lambda x, w, b, eps: norm_by_sums(x, b, w, eps), "weight and bias have changed places"),
        (lambda x, w, b, eps: (norm_by_sums(x, 1, 0, eps) + b) * w, "before the weight multiplies"),
        (lambda x, w, b, eps: norm_by_sums(x, 1 + w, b, eps), "added to 1"),
        (lambda x, w, b, eps: norm_by_sums(x.detach(), w, b, eps), "input 1 receives no gradient"),
        (
            lambda x, w, b, eps: norm_by_sums(x - x.mean(-1, keepdim=True).data, w, b, 0),
            "eps is missing|gradient",
        ),
    ],
    checks.mlp: [
        (mlp_with(F.softplus), "softplus"),
        (mlp_with(F.relu6), "ReLU"),
        (mlp_with(lambda x: F.gelu(x) + x), "of them agree"),
        (mlp_with(F.hardtanh), "of them agree"),
        (
            with_forward(Mlp, lambda self, x: self.hidden(self.output(x))),
            "shapes do not fit there.*RuntimeError",
        ),
        (with_forward(Mlp, lambda self, x: Mlp.forward(self, x).mean(1)), "the mean over axis 1"),
        (mlp_with(torch.relu), "ReLU"),
        (mlp_with(lambda x: F.gelu(x, approximate="tanh")), "tanh approximation"),
        (mlp_with(lambda x: x * (1.702 * x).sigmoid()), "1.702 x"),
        (mlp_with(F.silu), "SiLU"),
        (mlp_with(torch.tanh), "is a tanh"),
        (mlp_with(torch.sigmoid), "is a sigmoid"),
        (mlp_with(F.leaky_relu), "leaky ReLU"),
        (mlp_with(F.elu), "ELU"),
        (mlp_with(lambda x: x.softmax(-1)), "is a softmax"),
        (mlp_with(lambda x: x), "no non-linearity"),
        (mlp_with(lambda x: F.gelu(F.gelu(x))), "applied twice"),
        (mlp_with(lambda x: F.gelu(x.detach())), "receives no gradient"),
        (mlp_with(lambda x: F.dropout(F.gelu(x), 0.1)), "two calls in evaluation differ"),
        (with_forward(Mlp, lambda self, x: F.gelu(Mlp.forward(self, x))), "follows the second layer"),
        (with_forward(Mlp, lambda self, x: F.gelu(self.output(self.hidden(x)))), "stands at the end"),
        (with_forward(Mlp, lambda self, x: self.output(self.hidden(F.gelu(x)))), "before the first layer"),
        (with_forward(Mlp, lambda self, x: x + Mlp.forward(self, x)), "the input is added"),
        (
            with_forward(Mlp, lambda self, x: Mlp.forward(self, F.layer_norm(x, x.shape[-1:]))),
            "a norm comes first",
        ),
        (with_forward(Mlp, lambda self, x: self.hidden(x)), r"shape \(2, 5, 10\): expected \(2, 5, 6\)"),
        (with_forward(Mlp, clamps_its_input), "changes its input"),
        (without_grad(Mlp), "no gradient can flow back"),
        (with_start(Mlp, lambda m: nn.init.zeros_(m.output.weight)), "output.weight begins as nothing"),
        (MlpWithDropout, "while it trains it gives something else.* Mlp has none"),
        (in_training(Mlp, lambda self, x: self.dropout(x)), "not made in __init__.* in training"),
        (MlpWithoutSizes, "has no shape yet|cannot be read"),
        (MlpUnderTwoNames, r"net.0 and hidden are one layer under two names.*Tried with dim 6, mlp_dim 10"),
        (MlpOfOtherNames, r"missing +hidden.weight(.|\n)*unexpected fc1.weight"),
        (lambda dim, mlp_dim: Mlp(dim, 2 * mlp_dim), r"hidden.weight has shape \(20, 6\)"),
        (lambda dim, mlp_dim: "no module", "expected a subclass of nn.Module"),
        (model.Mlp, "the package's own"),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
