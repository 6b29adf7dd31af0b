from dataclasses import replace
from itertools import chain

import pytest
import torch

from vit_from_scratch.data import Augmentation, DataConfig, open_dataset
from vit_from_scratch.data.sharing import WHOLE, Share

EVERYTHING = Augmentation(flip=True, shift=1, rotation=10, scale=0.1, crop=(0.5, 1.0), erase=0.3)


def joined(parts) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Batch by batch, the parts of all processes one after another."""
    return [tuple(map(torch.cat, zip(*batch, strict=True))) for batch in zip(*parts, strict=True)]


def same(batches, others) -> bool:
    pairs = list(zip(batches, others, strict=True))
    return len(pairs) > 0 and all(
        torch.equal(one, other) for pair in pairs for one, other in zip(*pair, strict=True)
    )


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("batch_size", [12, 60])  # 60: fewer images than that, so one uneven batch
def test_the_parts_of_a_batch_are_the_batch_of_one_process(few_digits, count, batch_size):
    whole = few_digits.training_batches(batch_size, EVERYTHING, 7)
    parts = [
        few_digits.shared(Share(rank, count)).training_batches(batch_size, EVERYTHING, 7)
        for rank in range(count)
    ]
    assert same(whole, joined(parts))


@pytest.mark.parametrize("streamed", [True, False])
def test_photos_are_shared_likewise(tmp_path, streamed):
    from PIL import Image

    for number in range(22):
        place = tmp_path / "train" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        noise = torch.randint(256, (12, 8 + 4 * (not streamed or number % 2), 3), dtype=torch.uint8)
        Image.fromarray(noise.numpy()).save(place / f"{number}.png")
    data = open_dataset(DataConfig(f"folder:{tmp_path}", image_size=12, validation_size=5))
    assert data.uniform is not streamed
    some = replace(EVERYTHING, erase=0.2, shift=2)
    parts = [data.shared(Share(rank, 2)) for rank in range(2)]
    assert same(
        data.training_batches(6, some, 3, workers=0),
        joined([part.training_batches(6, some, 3, workers=0) for part in parts]),
    )
    for split in ("validation", "test"):
        images = [torch.cat([batch for batch, _ in p.batches(split, 2, workers=0)]) for p in (data, *parts)]
        assert torch.equal(torch.cat(images[1:]), images[0])


@pytest.mark.parametrize("length", [4, 5, 9, 10, 11, 501, 1000])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("batch_size", [1, 5, 500])
def test_a_pass_sees_each_image_once_in_as_many_batches_everywhere(length, count, batch_size):
    passes = [Share(rank, count).passes(length, batch_size) for rank in range(count)]
    seen = [list(range(length))[batch] for batches in passes for batch in batches]
    assert list(chain(*seen)) == list(range(length))
    assert all(0 < len(batch) <= max(batch_size, min(count, 2)) for batch in seen)
    assert len({len(batches) for batches in passes}) == 1


def test_one_process_has_everything(few_digits):
    assert WHOLE.passes(0, 5) == []
    assert [len(labels) for _, labels in few_digits.batches("test", 15)] == [15, 5]
