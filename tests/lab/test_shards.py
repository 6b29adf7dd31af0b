"""Photos in shards: tar files with an index, training from them, and shards that are damaged."""

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
import webdataset
from PIL import Image
from stopping import Stop

from vit_from_scratch import InputError, VisionTransformer, ViTConfig
from vit_from_scratch.data import Augmentation, DataConfig, open_dataset
from vit_from_scratch.training import TrainConfig
from vit_lab.runs import train
from vit_lab.runs.fingerprints import data_fingerprint
from vit_lab.shards import open_shards

CROPS = Augmentation(flip=True, crop=(0.5, 1.0))


@pytest.fixture
def photos(tmp_path, save_photo):
    """Photos in all three parts: names in Unicode, with dots and spaces."""
    root = tmp_path / "photos"
    for part, count in (("train", 8), ("val", 2), ("test", 3)):
        for label, name in enumerate(("Käfer", "猫")):
            for number in range(count):
                seed = 1000 * count + 100 * label + number
                save_photo(root / part / name / f"{number}.x y.png", (20 + number, 24), seed)
    return root


@pytest.fixture
def packed(photos, tmp_path):
    """A shard for each class of each part, as `tar --sort=name` writes it."""
    (tmp_path / "packed").mkdir()
    for folder in sorted(photos.glob("*/*")):
        number = len(list((tmp_path / "packed").glob(f"{folder.parent.name}-*")))
        with tarfile.open(tmp_path / "packed" / f"{folder.parent.name}-{number:03d}.tar", "w") as tar:
            tar.add(folder, folder.name, filter=None)
    return tmp_path / "packed"


def opened(kind, path, **options):
    return open_dataset(DataConfig(f"{kind}:{path}", image_size=16, **options))


@pytest.mark.parametrize("validation", [None, 4])
def test_packed_and_unpacked_photos_are_the_same(photos, packed, validation):
    loose = opened("folder", photos, validation_size=validation)
    dense = opened("shards", packed, validation_size=validation)
    assert dense.class_names == loose.class_names == ("Käfer", "猫")
    assert torch.equal(dense.train, loose.train)
    assert torch.equal(dense.validation, loose.validation)
    for part in ("train", "test"):
        ours, theirs = getattr(dense.source, part), getattr(loose.source, part)
        assert list(ours.labels) == list(theirs.labels)
        of = {photo.read(): label for photo, label in zip(ours.files, ours.labels, strict=True)}
        assert of == {
            Path(file).read_bytes(): label for file, label in zip(theirs.files, theirs.labels, strict=True)
        }


def test_a_part_is_a_whole_word_of_a_shards_name(packed):
    def sizes():
        source = opened("shards", packed).source
        return len(source.train.files), len(source.test.files)

    expected = sizes()
    for shard in packed.glob("train-*.tar"):
        shard.rename(packed / shard.name.replace("train", "latest_trainval"))
    assert sizes() == expected


@pytest.mark.parametrize(("val", "test"), [("dev", "test"), ("dev", "eval"), ("val", "eval"), ("dev", "")])
def test_dev_is_validation_and_eval_is_the_test(packed, val, test):
    """Without a test part both names of validation are that."""

    def parts():
        data = opened("shards", packed)
        files = ([photo.read() for photo in part.files] for part in (data.source.train, data.source.test))
        return data.size_of("validation"), *files

    for shard in [] if test else packed.glob("test-*.tar"):
        shard.unlink()
    expected = parts()
    for old, new in (("val", val), ("test", test)):
        for shard in packed.glob(f"{old}-*.tar"):
            shard.rename(packed / shard.name.replace(old, new))
    assert parts() == expected


def trained(data, out=None, callbacks=()):
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig(16, 8, dim=8, depth=1, heads=1, mlp_dim=16, num_classes=2))
    config = TrainConfig(epochs=3, batch_size=4, warmup_steps=2, augmentation=CROPS, workers=0, threads=1)
    train(model, data, config, out, callbacks)
    return torch.cat([weight.flatten() for weight in model.state_dict().values()])


def test_a_run_from_shards_is_that_from_the_folder(photos, packed):
    assert torch.equal(trained(opened("shards", packed)), trained(opened("folder", photos)))


def test_workers_give_the_same_batches(packed, monkeypatch):
    monkeypatch.setattr("vit_from_scratch.data.streaming.LIMIT", 0)  # shards are read in every epoch
    data = opened("shards", packed, validation_size=2)
    one, two = (list(data.training_batches(5, CROPS, seed=3, workers=count)) for count in (0, 2))
    assert all(map(torch.equal, (t for batch in one for t in batch), (t for batch in two for t in batch)))


def test_a_stopped_run_goes_on_to_the_same_bits(packed, tmp_path, monkeypatch):
    monkeypatch.setattr("vit_from_scratch.data.streaming.LIMIT", 0)
    expected = trained(opened("shards", packed))
    with pytest.raises(KeyboardInterrupt):
        trained(opened("shards", packed), tmp_path / "run", [Stop(2)])
    assert torch.equal(trained(opened("shards", packed), tmp_path / "run"), expected)


def counting(monkeypatch):
    """Note which tar files are read through."""
    read, original = [], tarfile.open
    monkeypatch.setattr(tarfile, "open", lambda path, mode: read.append(path) or original(path, mode))
    return read


@pytest.mark.parametrize("content", [None, b"", b"no index", b"PK\x03\x04 cut"])
def test_shards_are_read_through_once_and_again_when_the_index_is_damaged(packed, monkeypatch, content):
    read, index = counting(monkeypatch), packed / "index.npz"
    first = data_fingerprint(opened("shards", packed))
    assert len(read) == 6
    if content is not None:
        index.write_bytes(content)
    assert data_fingerprint(opened("shards", packed)) == first
    assert len(read) == (6 if content is None else 12)


def test_an_index_of_other_shards_is_made_anew(packed):
    opened("shards", packed)
    with np.load(packed / "index.npz") as index:
        kept = dict(index)
    whole = kept["rows"].copy()
    kept["rows"]["shard"] += 6
    np.savez(packed / "index.npz", **kept)
    opened("shards", packed)
    with np.load(packed / "index.npz") as index:
        assert (index["rows"] == whole).all()


def test_the_index_is_in_the_cache_where_the_shards_cannot_be_written_to(packed, tmp_path, monkeypatch):
    def refused(path, mode="r", *arguments, **options):
        if "x" in mode and path.parent == packed:
            raise PermissionError(13, "Permission denied")
        return plain(path, mode, *arguments, **options)

    read, plain = counting(monkeypatch), Path.open
    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr("vit_lab.shards.download_folder", lambda kind: tmp_path / "cache")
    for _ in range(2):
        opened("shards", packed)
    assert len(read) == 6
    assert len([*(tmp_path / "cache" / "shards").iterdir()]) == 1


def test_without_a_home_folder_shards_open_and_their_index_is_beside_them(packed, monkeypatch):
    def unknown(kind):
        raise InputError("the home folder is unknown here")

    monkeypatch.setattr("vit_lab.shards.download_folder", unknown)
    opened("shards", packed)
    assert (packed / "index.npz").is_file()


def test_a_shard_that_was_exchanged_is_read_again_and_told_apart(packed):
    before = data_fingerprint(opened("shards", packed))
    samples = [("猫/1.jpg", jpeg(1)), ("猫/2.jpg", jpeg(2))]
    write_tar(packed / "train-001.tar", samples)
    assert opened("shards", packed, validation_size=0).training_size == 10
    assert data_fingerprint(opened("shards", packed)) != before


def test_a_shard_that_is_changed_while_it_is_in_use_is_noticed(packed):
    source = open_shards(packed)
    photo = source.train.files[3]
    content = bytearray(photo.shard.read_bytes())
    content[photo.offset + 9] ^= 1
    photo.shard.write_bytes(content)
    with pytest.raises(InputError, match=r"tar \(at byte [\d,]+\) is not what it was"):
        source.train[3]
    photo.shard.unlink()
    with pytest.raises(InputError, match=r"cannot be read .*Put the shard back"):
        source.train[3]


def test_no_shards_are_refused(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=r"no shards at .*expected tar files for training"):
            opened("shards", place)
    assert not list(tmp_path.iterdir()), "no index of nothing, and no folder for it"


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


def test_classes_in_files_very_long_names_and_other_members(tmp_path):
    number = 0
    for part, count in (("train", 3), ("val", 1)):
        for shard in range(count):
            samples = []
            for _ in range(6):
                key = f"{'lang' * 40}/日本-{number:03d}"
                samples += [(f"{key}.json", b"{}"), (f"{key}.input.JPG", jpeg(number))]
                samples += [(f"{key}.cls", str(9 + number % 2).encode() + b"\n")]
                number += 1
            write_tar(tmp_path / "foreign" / f"flowers-{part}-{shard:04d}.tar", samples)
    data = opened("shards", tmp_path, validation_size=4)
    assert data.class_names == ("9", "10")
    assert (data.training_size, data.size_of("validation"), data.size_of("test")) == (14, 4, 6)
    assert [photo.read() for photo in data.source.train.files] == [jpeg(number) for number in range(18)]
    assert [photo.read() for photo in data.source.test.files] == [jpeg(number) for number in range(18, 24)]
    assert data.source.test.labels == [0, 1] * 3


def test_shards_that_webdataset_writes_open(tmp_path):
    with webdataset.ShardWriter(str(tmp_path / "%06d.tar"), maxcount=8, verbose=0) as sink:
        for number in range(20):
            sink.write({"__key__": f"sample{number:03d}", "jpg": jpeg(number), "cls": number % 2})
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
        (lambda s, p: write_tar(p, [*s[:1], *s[2:]]), r"no class for 000: expected the photo in a"),
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
            "photos of too few classes",
        ),
    ],
)
def test_damaged_tars_are_one_sentence(tmp_path, change, message):
    samples = [
        file for n in range(6) for file in ((f"{n:03d}.jpg", jpeg(n)), (f"{n:03d}.cls", b"%d" % (n % 2)))
    ]
    change(samples, tmp_path / "train.tar")
    with pytest.raises(InputError, match=message) as refused:
        open_shards(tmp_path)
    assert "\n" not in str(refused.value)
