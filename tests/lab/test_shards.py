"""Training from shards: the order of an epoch, resuming, and shards that are damaged or not ours."""

import io
import json
import pickle
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image
from vit_from_scratch.data.reading_order import reading_order
from vit_lab.large_data.shard_checks import check_shards
from vit_lab.large_data.tars import index_tars, open_shards, with_checksums

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data import Augmentation, DataConfig, open_dataset
from vit_from_scratch.training import Callback, TrainConfig, train
from vit_lab.large_data.packing import pack
from vit_lab.runs.fingerprints import data_fingerprint

CROPS = Augmentation(flip=True, crop=(0.5, 1.0))


@pytest.fixture
def photos(tmp_path, save_photo):
    """Twelve training and four test photos, of several sizes and random pixels."""
    for part, count in (("train", 6), ("test", 2)):
        for label, name in enumerate(("a", "b")):
            for number in range(count):
                path = tmp_path / "photos" / part / name / f"{number}.png"
                save_photo(path, (20 + number, 24), seed=10 * label + number)
    return tmp_path / "photos"


@pytest.fixture
def packed(photos, tmp_path):
    pack(photos, tmp_path / "packed", 0.01)
    return tmp_path / "packed"


def opened(kind, path, **options):
    return open_dataset(DataConfig(f"{kind}:{path}", image_size=16, **options))


def trained(data, out=None, callbacks=(), workers=0):
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(16, 8, dim=8, depth=1, heads=1, mlp_dim=16, num_classes=2))
    config = TrainConfig(
        epochs=3, batch_size=4, warmup_steps=2, augmentation=CROPS, workers=workers, threads=1
    )
    train(model, data, config, out, callbacks)
    return torch.cat([weight.flatten() for weight in model.state_dict().values()])


def test_a_run_from_shards_is_that_from_the_folder(photos, packed):
    assert torch.equal(trained(opened("shards", packed)), trained(opened("folder", photos)))


def unkept(monkeypatch):
    """Let no decoded photo stay in memory, so that shards are read in every epoch, a block for each photo."""
    monkeypatch.setattr("vit_from_scratch.data.streaming.LIMIT", 0)
    monkeypatch.setattr("vit_from_scratch.data.decoded.LIMIT", 0)
    monkeypatch.setattr("vit_from_scratch.data.photo_sources.BLOCK", 2048)
    monkeypatch.setattr("vit_from_scratch.data.reading_order.AT_ONCE", 3)


def test_workers_give_the_same_batches_and_every_photo_comes_once(packed, monkeypatch):
    unkept(monkeypatch)
    data = opened("shards", packed, validation_size=2)
    assert int(data.source.blocks.max()) > 6
    epochs = [list(data.training_batches(5, CROPS, seed=3, workers=n)) for n in (0, 1, 2)]
    for other in epochs[1:]:
        for (one, first), (two, second) in zip(epochs[0], other, strict=True):
            assert torch.equal(one, two)
            assert torch.equal(first, second)
    for seed in range(3):
        order = reading_order(data.train, seed, data.source.blocks)
        assert sorted(order.tolist()) == data.train.tolist()
        batch = order[:5]
        shares = [batch.tensor_split(3)[rank] for rank in range(3)]  # as processes share a batch
        assert torch.equal(torch.cat(shares), batch)


def test_an_epoch_keeps_to_few_blocks_at_a_time_and_changes_from_epoch_to_epoch(monkeypatch):
    monkeypatch.setattr("vit_from_scratch.data.reading_order.AT_ONCE", 4)
    blocks = torch.arange(2000) // 50  # 40 blocks
    numbers = torch.arange(2000)
    orders = [reading_order(numbers, seed, blocks) for seed in range(2)]
    assert not torch.equal(*orders)
    assert torch.equal(reading_order(numbers, 0, blocks), orders[0])
    for order in orders:
        assert torch.equal(order.sort().values, numbers)
        windows = order.view(10, 200)
        met = [set(blocks[window].tolist()) for window in windows]
        assert [len(some) for some in met] == [4] * 10
        assert len(set.union(*met)) == 40
        jumps = (windows[0].diff() == 1).sum()
        assert jumps < 10, "within a window the photos are shuffled"
    assert {frozenset(blocks[w].tolist()) for w in orders[0].view(10, 200)} != {
        frozenset(blocks[w].tolist()) for w in orders[1].view(10, 200)
    }


def test_few_blocks_are_read_in_the_order_of_a_folder():
    numbers = torch.tensor([5, 3, 9, 1])
    one_window = reading_order(numbers, 7, torch.arange(10))
    assert torch.equal(one_window, reading_order(numbers, 7))
    assert torch.equal(one_window, numbers[torch.randperm(4, generator=torch.Generator().manual_seed(7))])


class Stop(Callback):
    def on_epoch(self, state):
        if state.epoch == 2:
            raise KeyboardInterrupt


def test_a_stopped_run_goes_on_to_the_same_bits(packed, tmp_path, monkeypatch):
    unkept(monkeypatch)
    expected = trained(opened("shards", packed))
    with pytest.raises(KeyboardInterrupt):
        trained(opened("shards", packed), tmp_path / "run", [Stop()])
    assert torch.equal(trained(opened("shards", packed), tmp_path / "run"), expected)


def test_shards_go_to_another_process_without_their_open_files(packed):
    data = opened("shards", packed)
    first = data.source.train.files[0].read()
    copy = pickle.loads(pickle.dumps(data.source.train))
    assert copy.files[0].read() == first


def test_the_fingerprint_tells_shards_apart_wherever_they_lie(photos, packed, tmp_path):
    before = data_fingerprint(opened("shards", packed))
    moved = packed.rename(tmp_path / "elsewhere")
    assert data_fingerprint(opened("shards", moved)) == before
    pack(photos, tmp_path / "other", 0.01, seed=1)
    assert data_fingerprint(opened("shards", tmp_path / "other")) != before


def remove(packed):
    (packed / "train-000001.tar").unlink()


def cut(packed):
    path = packed / "train-000001.tar"
    path.write_bytes(path.read_bytes()[:-1024])


def exchange(packed):
    path = packed / "train-000001.tar"
    path.write_bytes(b"\x07" * path.stat().st_size)


def newer(packed):
    path = packed / "index.json"
    path.write_text(path.read_text().replace("vit-shards-1", "vit-shards-9"))


def no_json(packed):
    (packed / "index.json").write_text("{")


def other_count(packed):
    index = json.loads((packed / "index.json").read_text())
    index["counts"]["train"] -= 1
    (packed / "index.json").write_text(json.dumps(index))


def other_table(packed):
    table = np.load(packed / "photos.npy")
    table["offset"][0] += 512
    np.save(packed / "photos.npy", table)


def no_table(packed):
    (packed / "photos.npy").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove, r"train-000001\.tar cannot be read \(No such file.*expected all \d+ shards"),
        (cut, r"train-000001\.tar has [\d,]+ bytes: expected [\d,]+, as index\.json says"),
        (exchange, r"train-000001\.tar is damaged or another file than when index\.json was written"),
        (newer, r"index\.json is of the version 'vit-shards-9': expected 'vit-shards-1'"),
        (no_json, r"index\.json is damaged"),
        (other_count, r"index\.json is damaged"),
        (other_table, r"photos\.npy is damaged"),
        (no_table, r"photos\.npy cannot be read"),
    ],
)
def test_damaged_shards_are_one_error_before_training(packed, damage, message):
    damage(packed)
    with pytest.raises(InputError, match=message) as refused:
        opened("shards", packed)
    assert "\n" not in str(refused.value)


def test_a_changed_byte_is_found_by_the_checksum_and_a_damaged_photo_by_its_reader(packed):
    index = open_shards(packed)
    assert len(list(check_shards(index))) == len(index.shards)
    photo = index.photos("train")[3]
    shard, offset, size, _ = index.table[3].tolist()
    path = packed / index.shards[shard].name
    content = bytearray(path.read_bytes())
    content[offset : offset + size] = bytes(size)
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{path.name} is damaged: its checksum differs"):
        list(check_shards(open_shards(packed)))
    with pytest.raises(InputError, match=rf"{path.name} \(train/a/3\.png\) is no picture") as refused:
        opened("shards", packed).source.train[3]
    assert str(photo) in str(refused.value)


def test_no_shards_are_refused(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=r"no shards at "):
            opened("shards", place)


def jpeg(number):
    file = io.BytesIO()
    pixels = np.random.default_rng(number).integers(256, size=(20, 20, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def write_tar(path, samples, form=tarfile.PAX_FORMAT):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as tar:
        for name, content in samples:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture
def foreign(tmp_path):
    """Shards as others make them: names in Unicode and very long ones, other files, endings with a dot."""
    number = 0
    for part, count in (("train", 3), ("val", 1)):
        for shard in range(count):
            samples = []
            for _ in range(6):
                key = f"{'lang' * 40}/日本-{number:03d}"
                samples += [(f"{key}.json", b"{}"), (f"{key}.input.JPG", jpeg(number))]
                samples += [(f"{key}.cls", str(number % 2).encode() + b"\n")]
                number += 1
            write_tar(tmp_path / "foreign" / f"flowers-{part}-{shard:04d}.tar", samples)
    return tmp_path / "foreign"


def test_shards_of_others_open(foreign):
    data = opened("shards", foreign, validation_size=4)
    assert data.class_names == ("0", "1")
    assert (data.training_size, data.size_of("validation"), data.size_of("test")) == (14, 4, 6)
    for number in (0, 17):
        assert data.source.train.files[number].read() == jpeg(number)
    assert [photo.read() for photo in data.source.test.files] == [jpeg(number) for number in range(18, 24)]
    assert data.source.test.labels.tolist() == [0, 1] * 3
    images, _ = next(data.training_batches(4, CROPS, 0))
    assert images.shape == (4, 3, 16, 16)


def test_shards_that_webdataset_writes_open(tmp_path):
    webdataset = pytest.importorskip("webdataset")
    with webdataset.ShardWriter(str(tmp_path / "%06d.tar"), maxcount=8, verbose=0) as sink:
        for number in range(20):
            sink.write({"__key__": f"sample{number:03d}", "jpg": jpeg(number), "cls": number % 2})
    index = open_shards(tmp_path)
    assert len(index.shards) == 3
    assert index.drawn
    assert index.counts == (16, 0, 4)
    every = [*index.photos("train", "validation"), *index.photos("test")]
    labels = dict(zip((photo.read() for photo in every), index.table["label"].tolist(), strict=True))
    assert labels == {jpeg(number): number % 2 for number in range(20)}


def test_an_index_of_shards_of_others_changes_nothing_but_the_time_to_open_them(foreign, monkeypatch):
    before = opened("shards", foreign)
    with_checksums(index_tars(foreign)).write()
    monkeypatch.setattr("vit_lab.large_data.tars.read_tar", lambda path: pytest.fail("read again"))
    after = opened("shards", foreign)
    assert data_fingerprint(after) == data_fingerprint(before)
    assert torch.equal(after.validation, before.validation)
    assert str(after.source.train.files[0]).endswith("/日本-000.input.JPG)")
    assert len(list(check_shards(open_shards(foreign)))) == 4


def damaged_head(samples, path):
    write_tar(path, samples, tarfile.USTAR_FORMAT)
    content = bytearray(path.read_bytes())
    place = content.find(b"001.cls")
    content[place : place + 4] = b"\xff" * 4
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, p: write_tar(p, s[1:]), r"has no photo for the key 000"),
        (lambda s, p: write_tar(p, [*s[:1], *s[2:]]), r"has no class \(\.cls\) for the key 000"),
        (lambda s, p: write_tar(p, [(s[0]), ("000.png", b""), *s[1:]]), r"has two photos of the key 000"),
        (lambda s, p: write_tar(p, [s[0], ("000.cls", b"cat"), *s[2:]]), r"has the class 'cat' for the key"),
        (damaged_head, r"is damaged or cut short at byte [\d,]+"),
        (lambda s, p: p.write_bytes(write_tar(p, s).read_bytes()[:3000]), r"is no whole tar file|cut short"),
        (lambda s, p: p.write_bytes(write_tar(p, s).read_bytes()[:-10240]), r"tar file|cut short"),
        (lambda s, p: p.write_bytes(b"no tar file" * 1000), r"is no whole tar file"),
        (lambda s, p: write_tar(p, [(n, b"0" if n.endswith("cls") else c) for n, c in s]), "has 1 classes"),
    ],
)
def test_damaged_tars_of_others_are_one_sentence(tmp_path, change, message):
    samples = [
        file for n in range(6) for file in ((f"{n:03d}.jpg", jpeg(n)), (f"{n:03d}.cls", b"%d" % (n % 2)))
    ]
    change(samples, tmp_path / "train.tar")
    with pytest.raises(InputError, match=message) as refused:
        open_shards(tmp_path)
    assert "\n" not in str(refused.value)
