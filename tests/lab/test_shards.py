"""Photos in shards: packing, the index, training from them, and shards that are damaged or not ours."""

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
import webdataset
from PIL import Image

import vit_lab  # noqa: F401  # brings "shards:"
from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data import Augmentation, DataConfig, open_dataset
from vit_from_scratch.data.reading import reading_order
from vit_from_scratch.training import Callback, TrainConfig
from vit_lab.large_data.packing import pack
from vit_lab.large_data.shards import open_shards, write_index
from vit_lab.runs import train
from vit_lab.runs.fingerprints import data_fingerprint

CROPS = Augmentation(flip=True, crop=(0.5, 1.0))

SMALL = 0.008
"""MB in a shard, so that a few photos fill several."""


@pytest.fixture
def photos(tmp_path, save_photo):
    """Photos in all three parts: names in Unicode, with dots and spaces, and two of the same stem."""
    root = tmp_path / "photos"
    for part, count in (("train", 6), ("val", 2), ("test", 3)):
        for label, name in enumerate(("Käfer", "猫")):
            for number in range(count):
                seed = 1000 * count + 100 * label + number
                save_photo(root / part / name / f"{number}.x y.png", (20 + number, 24), seed)
    save_photo(root / "train" / "猫" / "same.JPG", (21, 20), seed=7)
    save_photo(root / "train" / "猫" / "same.png", (22, 20), seed=8)
    save_photo(root / "train" / "猫" / "deeper" / "é.jpeg", (23, 20), seed=9)
    return root


@pytest.fixture
def packed(photos, tmp_path):
    pack(photos, tmp_path / "packed", SMALL)
    return tmp_path / "packed"


def opened(kind, path, **options):
    return open_dataset(DataConfig(f"{kind}:{path}", image_size=16, **options))


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("parts", [True, False], ids=["three parts", "no parts"])
@pytest.mark.parametrize("validation", [None, 4])
def test_packed_and_unpacked_photos_are_the_same(photos, tmp_path, parts, validation):
    root = photos if parts else (photos / "train").rename(tmp_path / "alone")
    pack(root, tmp_path / "packed", SMALL)
    loose = opened("folder", root, validation_size=validation)
    dense = opened("shards", tmp_path / "packed", validation_size=validation)
    assert dense.class_names == loose.class_names == ("Käfer", "猫")
    assert torch.equal(dense.train, loose.train)
    assert torch.equal(dense.validation, loose.validation)
    assert bool(dense.source.note) is bool(loose.source.note) is not parts
    for ours, theirs in ((dense.source.train, loose.source.train), (dense.source.test, loose.source.test)):
        assert ours.labels == theirs.labels
        assert [photo.read() for photo in ours.files] == [Path(file).read_bytes() for file in theirs.files]
        assert all(ours[number][0].tobytes() == theirs[number][0].tobytes() for number in range(len(ours)))


def test_webdataset_reads_what_we_pack(photos, packed):
    loose = opened("folder", photos).source.train
    expected = {
        (Path(file).read_bytes(), label) for file, label in zip(loose.files, loose.labels, strict=True)
    }
    tars = [str(path) for path in sorted(packed.glob("[tv][ra]*.tar"))]  # train and validation
    seen = []
    for sample in webdataset.WebDataset(tars, shardshuffle=False):
        (picture,) = [ending for ending in sample if ending in ("jpg", "jpeg", "png")]
        seen.append((sample[picture], int(sample["cls"])))
    assert len(seen) == len(expected) == 19
    assert set(seen) == expected


def test_training_photos_are_shuffled_the_others_keep_their_order_and_shards_their_size(
    photos, packed, tmp_path
):
    def order(part):
        return [name for tar in sorted(packed.glob(f"{part}-*.tar")) for name in tarfile.open(tar).getnames()]

    assert order("train") != sorted(order("train"))
    assert [name[:9] for name in order("test")] == sorted(name[:9] for name in order("test"))
    pack(photos, tmp_path / "again", SMALL)
    assert files_of(tmp_path / "again") == files_of(packed)
    tars = sorted(packed.glob("*.tar"))
    assert len(tars) > 3
    for tar in tars:
        with tarfile.open(tar) as members:
            used = sum(512 + -(-member.size // 512) * 512 for member in members)
        assert used <= SMALL * 10**6


def test_a_packing_that_stops_leaves_nothing_and_what_is_there_is_left_alone(
    photos, packed, tmp_path, monkeypatch
):
    before = files_of(packed)
    with pytest.raises(InputError, match=r"packed is there already: expected a new or empty folder"):
        pack(photos, packed, SMALL)
    with pytest.raises(InputError, match=r"is inside .*expected another place"):
        pack(photos, photos / "packed")
    (tmp_path / "new.part").mkdir()
    (tmp_path / "new.part" / "mine").write_text("mine")
    with pytest.raises(InputError, match=r"new\.part is there already, from a packing"):
        pack(photos, tmp_path / "new")
    assert files_of(packed) == before
    assert os.listdir(tmp_path / "new.part") == ["mine"]

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("vit_lab.large_data.packing.write_index", stop)
    with pytest.raises(KeyboardInterrupt):
        pack(photos, tmp_path / "stopped")
    assert sorted(os.listdir(tmp_path)) == ["new.part", "packed", "photos"]


@pytest.mark.parametrize("content", [b"no picture", None], ids=["foreign", "cut short"])
def test_a_damaged_photo_is_named_or_left_out(photos, tmp_path, content):
    broken = photos / "train" / "猫" / "same.JPG"
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) * 3 // 4] if content is None else content)
    with pytest.raises(InputError, match=r"same\.JPG .*With --skip-damaged it is left out"):
        pack(photos, tmp_path / "packed", SMALL)
    (left_out,) = pack(photos, tmp_path / "packed", SMALL, skip_damaged=True)
    assert str(broken) in str(left_out)
    assert len(open_shards(tmp_path / "packed").train) == 18


def trained(data, out=None, callbacks=()):
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(16, 8, dim=8, depth=1, heads=1, mlp_dim=16, num_classes=2))
    config = TrainConfig(epochs=3, batch_size=4, warmup_steps=2, augmentation=CROPS, workers=0, threads=1)
    train(model, data, config, out, callbacks)
    return torch.cat([weight.flatten() for weight in model.state_dict().values()])


def test_a_run_from_shards_is_that_from_the_folder(photos, packed):
    assert torch.equal(trained(opened("shards", packed)), trained(opened("folder", photos)))


def unkept(monkeypatch):
    """Let no decoded photo stay in memory, so that shards are read in every epoch, a block for each photo."""
    monkeypatch.setattr("vit_from_scratch.data.reading.LIMIT", 0)
    monkeypatch.setattr("vit_lab.large_data.shards.BLOCK", 2048)
    monkeypatch.setattr("vit_from_scratch.data.reading.AT_ONCE", 3)


def test_workers_give_the_same_batches_and_every_photo_comes_once(packed, monkeypatch):
    unkept(monkeypatch)
    data = opened("shards", packed, validation_size=2)
    assert max(data.source.blocks) > 6
    one, two = (list(data.training_batches(5, CROPS, seed=3, workers=count)) for count in (0, 2))
    assert all(map(torch.equal, (t for batch in one for t in batch), (t for batch in two for t in batch)))
    for seed in range(3):
        order = reading_order(data.train, seed, data.source.blocks)
        assert sorted(order.tolist()) == data.train.tolist()


def test_an_epoch_keeps_to_few_blocks_at_a_time_and_changes_from_epoch_to_epoch(monkeypatch):
    monkeypatch.setattr("vit_from_scratch.data.reading.AT_ONCE", 4)
    blocks, numbers = torch.arange(2000) // 50, torch.arange(2000)  # 40 blocks
    orders = [reading_order(numbers, seed, blocks.tolist()) for seed in range(2)]
    assert not torch.equal(*orders)
    assert torch.equal(reading_order(numbers, 0, blocks.tolist()), orders[0])
    windows = [[frozenset(blocks[window].tolist()) for window in order.view(10, 200)] for order in orders]
    for order, met in zip(orders, windows, strict=True):
        assert torch.equal(order.sort().values, numbers)
        assert [len(some) for some in met] == [4] * 10
        assert len(frozenset.union(*met)) == 40
        assert (order[:200].diff() == 1).sum() < 10, "within a window the photos are shuffled"
    assert set(windows[0]) != set(windows[1])


def test_few_blocks_are_read_in_the_order_of_a_folder():
    numbers = torch.tensor([5, 3, 9, 1])
    assert torch.equal(reading_order(numbers, 7, range(10)), reading_order(numbers, 7))


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


def test_the_fingerprint_tells_other_photos_of_equal_names_and_sizes_apart(tmp_path, save_photo):
    found = []
    for place, seed in (("a", 0), ("b", 50), ("c", 0)):
        for number in range(8):
            save_photo(tmp_path / place / "photos" / "xy"[number % 2] / f"{number}.bmp", seed=seed + number)
        pack(tmp_path / place / "photos", tmp_path / place / "packed")
        found.append(data_fingerprint(opened("shards", tmp_path / place / "packed")))
    assert found[0] == found[2] != found[1]


def remove(packed):
    (packed / "train-000001.tar").unlink()


def cut(packed):
    path = packed / "train-000001.tar"
    path.write_bytes(path.read_bytes()[:-1024])


def pipe(packed):
    remove(packed)
    os.mkfifo(packed / "train-000001.tar")


def index_of(content):
    return lambda packed: (packed / "index.npz").write_bytes(content)


def other_rows(change):
    def damage(packed):
        with np.load(packed / "index.npz") as index:
            values = dict(index)
        change(values)
        np.savez(packed / "index.npz", **values)

    return damage


DAMAGED = r"index\.npz is damaged"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove, r"train-000001\.tar is missing or damaged: expected all \d+ shards"),
        (cut, r"train-000001\.tar is missing or damaged: .* this one with [\d,]+ bytes"),
        (pipe, r"train-000001\.tar is missing or damaged"),
        (index_of(b""), DAMAGED),
        (index_of(b"no index"), DAMAGED),
        (other_rows(lambda v: v.pop("rows")), DAMAGED),
        (other_rows(lambda v: v.update(rows=np.arange(3))), DAMAGED),
        (other_rows(lambda v: v.update(counts=v["counts"] + 1)), DAMAGED),
        (other_rows(lambda v: v.update(counts=np.array("a"))), DAMAGED),
        (other_rows(lambda v: v["rows"]["offset"].fill(2**40)), DAMAGED),
        (other_rows(lambda v: v["rows"]["shard"].fill(99)), DAMAGED),
        (other_rows(lambda v: v.update(classes=np.array(["one"]))), DAMAGED),
    ],
)
def test_damaged_shards_are_one_error_before_training(packed, damage, message):
    damage(packed)
    with pytest.raises(InputError, match=message) as refused:
        opened("shards", packed)
    assert "\n" not in str(refused.value)


def test_a_shard_that_is_changed_while_it_is_in_use_is_noticed(packed):
    source = open_shards(packed)
    photo = source.train.files[3]
    content = bytearray(photo.shard.read_bytes())
    content[photo.offset + 9] ^= 1
    photo.shard.write_bytes(content)
    with pytest.raises(InputError, match=r"tar \(at byte [\d,]+\) is damaged, or the shard is another one"):
        source.train[3]


def test_no_shards_are_refused(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=r"no shards at .*vit pack --index"):
            opened("shards", place)
        with pytest.raises(InputError, match=r"no shards at .*expected tar files for training"):
            write_index(place)


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


def test_shards_of_others_open_once_they_have_an_index(tmp_path):
    """Names in Unicode and very long ones, other files, endings with a dot, folders."""
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
    write_index(tmp_path)
    data = opened("shards", tmp_path, validation_size=4)
    assert data.class_names == ("0", "1")
    assert (data.training_size, data.size_of("validation"), data.size_of("test")) == (14, 4, 6)
    for number in (0, 17):
        assert data.source.train.files[number].read() == jpeg(number)
    assert [photo.read() for photo in data.source.test.files] == [jpeg(number) for number in range(18, 24)]
    assert data.source.test.labels == [0, 1] * 3


def test_shards_that_webdataset_writes_open(tmp_path):
    with webdataset.ShardWriter(str(tmp_path / "%06d.tar"), maxcount=8, verbose=0) as sink:
        for number in range(20):
            sink.write({"__key__": f"sample{number:03d}", "jpg": jpeg(number), "cls": number % 2})
    write_index(tmp_path)
    source = open_shards(tmp_path)
    assert (len(source.train), source.validation, len(source.test)) == (16, 0, 4)
    assert "has no test part: 4 of its 20 photos" in source.note
    files, labels = ([*getattr(source.train, n), *getattr(source.test, n)] for n in ("files", "labels"))
    found = dict(zip((photo.read() for photo in files), labels, strict=True))
    assert found == {jpeg(number): number % 2 for number in range(20)}


def edited(samples, path, old, new):
    """Write a tar file, and put other bytes over some of it."""
    write_tar(path, samples, tarfile.USTAR_FORMAT)
    content = bytearray(path.read_bytes())
    place = content.find(old)
    content[place : place + len(new)] = new
    path.write_bytes(content)


def negative_size(samples, path, kind=b"0"):
    """A member of -512 bytes, after which a reader would meet it again, for ever."""
    write_tar(path, samples)
    head = tarfile.TarInfo("000.jpg").tobuf(tarfile.GNU_FORMAT)
    head = bytearray(head[:124] + b"\xff" * 10 + b"\xfe\x00" + head[136:])
    head[156:157], head[148:156] = kind, b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    path.write_bytes(bytes(head) + path.read_bytes())


def endless_pax(samples, path):
    write_tar(path, samples)
    body = b"9" * 400 + b" path=x\n"
    head = tarfile.TarInfo("pax")
    head.type, head.size = tarfile.XHDTYPE, len(body)
    path.write_bytes(head.tobuf() + body.ljust(512, b"\0") + path.read_bytes())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, p: write_tar(p, s[1:]), r"has 0 photos and 1 classes for the key 000"),
        (lambda s, p: write_tar(p, [*s[:1], *s[2:]]), r"has 1 photos and 0 classes for the key 000"),
        (lambda s, p: write_tar(p, [s[0], ("000.png", b""), *s[1:]]), r"has 2 photos and 1 classes"),
        (
            lambda s, p: write_tar(p, [s[0], ("000.cls", b"cat"), *s[2:]]),
            r"expected one photo, KEY\.jpg, and one",
        ),
        (lambda s, p: edited(s, p, b"001.cls", b"\xff" * 4), r"is damaged or cut short at byte [\d,]+"),
        (lambda s, p: p.write_bytes(write_tar(p, s).read_bytes()[:3000]), r"is not a whole tar file"),
        (lambda s, p: p.write_bytes(write_tar(p, s).read_bytes()[:-10240]), r"is not a whole tar file"),
        (lambda s, p: p.write_bytes(b"no tar file" * 1000), r"is not a whole tar file"),
        (negative_size, r"is not a whole tar file"),
        (lambda s, p: negative_size(s, p, b"L"), r"is not a whole tar file"),
        (endless_pax, r"is not a whole tar file"),
        (lambda s, p: os.mkfifo(p), r"train\.tar cannot be read \(it is not a file\)"),
        (
            lambda s, p: write_tar(p, [(n, b"0" if n.endswith("cls") else c) for n, c in s]),
            "photos of one class",
        ),
    ],
)
def test_damaged_tars_of_others_are_one_sentence(tmp_path, change, message):
    samples = [
        file for n in range(6) for file in ((f"{n:03d}.jpg", jpeg(n)), (f"{n:03d}.cls", b"%d" % (n % 2)))
    ]
    change(samples, tmp_path / "train.tar")
    with pytest.raises(InputError, match=message) as refused:
        write_index(tmp_path)
    assert "\n" not in str(refused.value)
