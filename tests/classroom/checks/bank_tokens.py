"""Right and wrong answers to the pieces of chapter 2."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from variations import with_forward, with_start

from vit_classroom import checks


class Sequence(nn.Module):
    def __init__(self, num_patches, dim):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, num_patches + 1, dim))

    def forward(self, embeddings):
        first = self.class_token.expand(len(embeddings), -1, -1)
        return torch.cat([first, embeddings], dim=1) + self.position


class SequenceInParts(Sequence):
    def __init__(self, num_patches, dim):
        super().__init__(num_patches, dim)
        nn.init.trunc_normal_(self.position, std=0.02)

    def forward(self, embeddings):
        first = (self.class_token + self.position[:, :1]).repeat(len(embeddings), 1, 1)
        return torch.cat([first, embeddings + self.position[:, 1:]], dim=1)


class SequenceByPadding(Sequence):
    def forward(self, embeddings):
        padded = F.pad(embeddings, (0, 0, 1, 0))
        marked = F.pad(self.class_token, (0, 0, 0, embeddings.shape[1]))
        return padded + marked + self.position


def sequence(forward):
    return with_forward(Sequence, forward)


def first_of(self, embeddings):
    return self.class_token.expand(len(embeddings), -1, -1)


class SequenceOfBuffers(Sequence):
    def __init__(self, num_patches, dim):
        nn.Module.__init__(self)
        self.register_buffer("class_token", torch.zeros(1, 1, dim))
        self.register_buffer("position", 0.02 * torch.randn(1, num_patches + 1, dim))


class SequenceOfFixedSize(Sequence):
    def __init__(self, num_patches, dim):
        super().__init__(36, 64)


class SequenceOfPlainTensors(Sequence):
    def __init__(self, num_patches, dim):
        nn.Module.__init__(self)
        self.class_token = torch.zeros(1, 1, dim)
        self.position = 0.02 * torch.randn(1, num_patches + 1, dim)


class SequenceOfNPositions(nn.Module):
    def __init__(self, num_patches, dim):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, num_patches, dim))


def repeat_one_row(module):
    with torch.no_grad():
        module.position.copy_(module.position[:, :1].expand_as(module.position).clone())


class GridPosition(nn.Module):
    def __init__(self, rows, columns, dim):
        super().__init__()
        self.row = nn.Parameter(0.02 * torch.randn(rows, dim))
        self.column = nn.Parameter(0.02 * torch.randn(columns, dim))

    def forward(self):
        return (self.row[:, None] + self.column[None]).flatten(0, 1)[None]


class GridMadeInInit(GridPosition):
    def __init__(self, rows, columns, dim):
        super().__init__(rows, columns, dim)
        self.table = super().forward()

    def forward(self):
        return self.table


class GridPositionByRepeating(GridPosition):
    def __init__(self, rows, columns, dim):
        super().__init__(rows, columns, dim)
        for table in (self.row, self.column):
            nn.init.trunc_normal_(table, std=0.02)

    def forward(self):
        rows, columns = len(self.row), len(self.column)
        return (self.row.repeat_interleave(columns, dim=0) + self.column.repeat(rows, 1)).unsqueeze(0)


class GridPositionInLoops(GridPosition):
    def forward(self):
        return torch.stack([row + column for row in self.row for column in self.column])[None]


class GridPositionByIndex(GridPosition):
    def forward(self):
        places = torch.arange(len(self.row) * len(self.column))
        width = len(self.column)
        return F.embedding(places // width, self.row)[None] + F.embedding(places % width, self.column)[None]


def grid(forward):
    return with_forward(GridPosition, forward)


class GridOfFullTables(GridPosition):
    def __init__(self, rows, columns, dim):
        nn.Module.__init__(self)
        self.position = nn.Parameter(0.02 * torch.randn(1, rows * columns, dim))


class GridOfPlainTensors(GridPosition):
    def __init__(self, rows, columns, dim):
        nn.Module.__init__(self)
        self.row, self.column = 0.02 * torch.randn(rows, dim), 0.02 * torch.randn(columns, dim)


def joined(self):
    rows, columns = len(self.row), len(self.column)
    both = [self.row[:, None].expand(-1, columns, -1), self.column.expand(rows, -1, -1)]
    return torch.cat(both, dim=-1).flatten(0, 1)[None]


def read_places(tokens, position):
    return (tokens @ position.T).argmax(dim=-1)


def read_places_by_einsum(tokens, position):
    return torch.einsum("bnd,md->bnm", tokens, position).max(dim=-1).indices


def read_places_in_loops(tokens, position):
    return torch.tensor([[int((position @ token).argmax()) for token in image] for image in tokens])


def read_places_by_layer(tokens, position):
    return F.linear(tokens, position).topk(1).indices.squeeze(-1).to(torch.int32)


class SequenceThatDrops(Sequence):
    def __init__(self, num_patches, dim):
        super().__init__(num_patches, dim)
        self.dropout = nn.Dropout(0.1)

    def forward(self, embeddings):
        return self.dropout(super().forward(embeddings))


class SequenceThatDropsPatches(Sequence):
    def forward(self, embeddings):
        return super().forward(F.dropout(embeddings, 0.1, self.training))


class SequenceThatShufflesInTraining(Sequence):
    def forward(self, embeddings):
        return super().forward(
            embeddings[:, torch.randperm(embeddings.shape[1])] if self.training else embeddings
        )


class SequenceByIndex(Sequence):
    def forward(self, embeddings):
        z = embeddings.new_empty(len(embeddings), embeddings.shape[1] + 1, embeddings.shape[2])
        z[:, 0], z[:, 1:] = self.class_token[:, 0], embeddings
        return torch.add(z, self.position)


RIGHT = {
    checks.token_sequence: (SequenceByIndex, Sequence, SequenceInParts, SequenceByPadding),
    checks.grid_position: (GridPosition, GridPositionByRepeating, GridPositionInLoops, GridPositionByIndex),
    checks.read_places: (
        read_places,
        read_places_by_einsum,
        read_places_in_loops,
        read_places_by_layer,
    ),
}

WRONG = {
    checks.grid_position: [
        (
            grid(lambda self: GridPosition.forward(self) + F.dropout(self.row[0], 0.5, self.training)),
            "values are not|tr",
        ),
        (grid(lambda self: GridPosition.forward(self).flip(1)), "axis 1 is turned round"),
        (grid(lambda self: GridPosition.forward(self).mT), "in another order"),
        (
            grid(lambda self: F.layer_norm(GridPosition.forward(self), self.row.shape[-1:])),
            "of them agree",
        ),
        (grid(lambda self: (self.column[:, None] + self.row).flatten(0, 1)[None]), "column by column"),
        (
            grid(lambda self: (self.row[:, None] + 0 * self.column).flatten(0, 1)[None]),
            "only their row's vector",
        ),
        (grid(lambda self: (0 * self.row[:, None] + self.column).flatten(0, 1)[None]), "only their column's"),
        (grid(joined), "joined side by side"),
        (grid(lambda self: (self.row[:, None] * self.column).flatten(0, 1)[None]), "are multiplied"),
        (grid(lambda self: (self.row[:, None] + self.column).flatten(0, 1)[None] / 2), "are averaged"),
        (grid(lambda self: self.row[:, None] + self.column), "its values are right: reshape them"),
        (grid(lambda self: (self.row[:, None] + self.column)[None]), "its values are right: reshape them"),
        (
            grid(lambda self: (self.row[:, None] + self.column).flatten(0, 1)),
            "its values are right: reshape them",
        ),
        (grid(lambda self: (self.row + self.column).flatten()[None]), "stopped with RuntimeError"),
        (GridMadeInInit, "new values of row and column change nothing.* add the two in forward"),
        (GridOfFullTables, r"missing +row \(12, 256\)(.|\n)*unexpected position"),
        (GridOfPlainTensors, "row is a plain tensor"),
        (with_start(GridPosition, lambda m: nn.init.zeros_(m.row)), "row begins as nothing but zeros"),
        (
            with_start(GridPosition, lambda m: nn.init.normal_(m.column)),
            "column begins with a standard deviation",
        ),
        (
            grid(lambda self: (self.row.data[:, None] + self.column).flatten(0, 1)[None]),
            "row receives no gradient",
        ),
    ],
    checks.read_places: [
        (
            lambda tokens, position: F.cosine_similarity(tokens[:, :, None], position, dim=-1).argmax(-1),
            "the largest cosine decides",
        ),
        (
            lambda tokens, position: (tokens[:, :, None] - position).norm(dim=-1).argmin(-1),
            "the nearest position vector decides",
        ),
        (lambda tokens, position: (tokens @ tokens.mT).argmax(-1), "tokens are compared with each other"),
        (
            lambda tokens, position: (position @ position.T).argmax(-1).repeat(len(tokens), 1),
            "position vectors are compared with each other",
        ),
        (lambda tokens, position: (tokens @ position.T).argmin(-1), "the smallest dot product decides"),
        (lambda tokens, position: read_places(tokens, position) + 1, "counted from 1"),
        (lambda tokens, position: (tokens @ position.T).argmax(1), "for each place a token is found"),
        (lambda tokens, position: (position @ tokens.mT).argmax(-1), "for each place a token is found"),
        (
            lambda tokens, position: torch.arange(len(position)).repeat(len(tokens), 1),
            "gets the place where it stands",
        ),
        (
            lambda tokens, position: (tokens @ position.T).mean(0).argmax(-1).repeat(len(tokens), 1),
            "the images are averaged",
        ),
        (
            lambda tokens, position: read_places(tokens[:1], position).repeat(len(tokens), 1),
            "all images get the places of the first",
        ),
        (
            lambda tokens, position: read_places(tokens, position).float(),
            r"torch.float32: expected whole num",
        ),
        (lambda tokens, position: read_places(tokens, position)[0], r"returned shape \(20,\)"),
        (lambda tokens, position: (tokens @ position.T).amax(-1), "these are the largest dot products"),
        (lambda tokens, position: tokens @ position.T, "these are all dot products"),
        (lambda tokens, position: (tokens @ position.T).softmax(-1), "the weights of a softmax"),
        (lambda tokens, position: (tokens @ position.T).max(-1), "it returned a max of 2"),
        (lambda tokens, position: (tokens @ position).argmax(-1), "shapes do not fit there"),
    ],
    checks.token_sequence: [
        (SequenceOfFixedSize, r"position has shape \(1, 37, 64\), expected \(1, 21, 32\)"),
        (SequenceThatDrops, "while it trains it gives something else"),
        (SequenceThatDropsPatches, "while it trains it gives something else"),
        (SequenceThatShufflesInTraining, "while it trains it gives something else"),
        (
            sequence(lambda self, x: F.layer_norm(Sequence.forward(self, x), x.shape[-1:])),
            "a LayerNorm follows",
        ),
        (
            sequence(lambda self, x: torch.cat([first_of(self, x), 8 * x], 1) + self.position),
            r"multiplied by sqrt\(D\)",
        ),
        (
            sequence(
                lambda self, x: (
                    F.pad(self.class_token, (0, 0, 0, x.shape[1], 0, len(x) - 1))
                    + F.pad(x, (0, 0, 1, 0))
                    + self.position
                )
            ),
            "only the first image gets the class token",
        ),
        (
            sequence(lambda self, x: torch.cat([first_of(self, x), x + self.class_token], 1) + self.position),
            "added again",
        ),
        (
            sequence(lambda self, x: torch.cat([x.mean(1, keepdim=True), x], 1) + self.position),
            "the mean of the patches; it is",
        ),
        (
            sequence(lambda self, x: Sequence.forward(self, x).squeeze(0)),
            "wrong where axis 0 of embeddings has length 1",
        ),
        (
            sequence(lambda self, x: Sequence.forward(self, x)[:, 1:]),
            "the first of axis 1 is missing|no class tok",
        ),
        (sequence(lambda self, x: Sequence.forward(self, x).flip(1)), "axis 1 is turned round"),
        (sequence(lambda self, x: Sequence.forward(self, x).half().float()), "more than rounding"),
        (
            sequence(lambda self, x: torch.cat([x, first_of(self, x)], 1) + self.position),
            "class token stands last",
        ),
        (sequence(lambda self, x: torch.cat([first_of(self, x), x], 1)), "positions are not added"),
        (
            sequence(lambda self, x: torch.cat([first_of(self, x), x + self.position[:, 1:]], 1)),
            "class token gets no position",
        ),
        (
            sequence(lambda self, x: torch.cat([first_of(self, x), x + self.position[:, :-1]], 1)),
            "positions from 0, class token none",
        ),
        (sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) * self.position), "are multiplied"),
        (sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) - self.position), "are taken away"),
        (sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) + 2 * self.position), "added twice"),
        (
            sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) + self.position.roll(1, 1)),
            "position of the one before",
        ),
        (
            sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) + self.position[:, :1]),
            "the same position, the first",
        ),
        (sequence(lambda self, x: x + self.position[:, 1:]), "no class token in the result"),
        (sequence(lambda self, x: x + self.class_token + self.position[:, 1:]), "is added to the patches"),
        (
            sequence(lambda self, x: torch.cat([torch.zeros_like(x[:, :1]), x], 1) + self.position),
            "is not the parameter",
        ),
        (
            sequence(lambda self, x: torch.cat([self.class_token, x], 1) + self.position),
            "stopped with RuntimeError",
        ),
        (
            sequence(lambda self, x: torch.cat([first_of(self, x), x], 1) + self.position.detach()),
            "position receives no gradient",
        ),
        (
            sequence(lambda self, x: torch.cat([first_of(self, x).data, x], 1) + self.position),
            "class_token receives no gradient",
        ),
        (sequence(lambda self, x: Sequence.forward(self, x).detach()), "no gradient can flow back"),
        (sequence(lambda self, x: Sequence.forward(self, x.mul_(2))), "changes its input"),
        (sequence(lambda self, x: Sequence.forward(self, x) * math.nan), "values are NaN"),
        (SequenceOfBuffers, "class_token is a buffer"),
        (SequenceOfPlainTensors, "class_token is a plain tensor: wrap it in nn.Parameter"),
        (SequenceOfNPositions, r"position has shape \(1, 36, 64\), expected \(1, 37, 64\)"),
        (with_start(Sequence, lambda m: m.position.requires_grad_(False)), "position is frozen"),
        (
            with_start(Sequence, lambda m: nn.init.uniform_(m.position, -0.0346, 0.0346)),
            "uniform: expected normal numbers",
        ),
        (with_start(Sequence, lambda m: nn.init.normal_(m.position)), r"a standard deviation of (1|0\.9)"),
        (with_start(Sequence, lambda m: nn.init.zeros_(m.position)), "nothing but zeros"),
        (with_start(Sequence, lambda m: nn.init.normal_(m.position, 0.01, 0.02)), "begins around"),
        (with_start(Sequence, repeat_one_row), "values that repeat|deviation"),
        (
            with_start(Sequence, lambda m: nn.init.normal_(m.class_token, std=0.02)),
            "class_token does not begin at 0",
        ),
    ],
}
"""Each wrong answer, and a pattern of what is said about it."""
