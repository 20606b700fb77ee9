"""LMDB and LevelDB: order, jumps, what is no database; and the records in them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride.data import Transformer, load_mean
from astride.data.databases import LMDB, MOST_STEPS, LevelDB
from astride.data.records import RecordSource
from astride.errors import ArgumentError, ArrayError, BackendUnavailable, ModelFileError

from .databases import Datum, Memory, encoded, raw, write_leveldb, write_lmdb

RANDOM = np.random.RandomState(8)
IMAGES = RANDOM.randint(0, 256, (7, 3, 4, 5)).astype(np.uint8)
RECORDS = [raw(image, label) for label, image in enumerate(IMAGES)]

KINDS = [(write_lmdb, LMDB), (write_leveldb, LevelDB)]


@pytest.mark.parametrize(("write", "kind"), KINDS)
def test_records_come_in_the_order_of_their_keys(write: Any, kind: Any, tmp_path: Path) -> None:
    database = kind(write(tmp_path / "db", RECORDS))
    assert len(database) == 7
    assert [database[i] for i in range(7)] == RECORDS
    assert database[3] == RECORDS[3] and database[0] == RECORDS[0] and database[6] == RECORDS[6]
    for place in (-1, 7):
        with pytest.raises(IndexError):
            database[place]


@pytest.mark.parametrize(("write", "kind"), KINDS)
def test_a_long_jump_goes_by_keys(write: Any, kind: Any, tmp_path: Path) -> None:
    many = [f"{i}".encode() for i in range(MOST_STEPS + 50)]
    database = kind(write(tmp_path / "db", many))
    assert database[MOST_STEPS + 40] == many[MOST_STEPS + 40]
    assert database._keys is not None
    assert [database[i] for i in (5, 700, 4)] == [many[5], many[700], many[4]]


def test_two_readers_of_one_lmdb(tmp_path: Path) -> None:
    path = write_lmdb(tmp_path / "db", RECORDS)
    first, second = LMDB(path), LMDB(str(path) + "/.")
    assert first[2] == second[2] == RECORDS[2]
    assert first[3] == second[3] == RECORDS[3]


@pytest.mark.parametrize(("write", "kind"), KINDS)
def test_nothing_is_written(write: Any, kind: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "db", RECORDS)
    if kind is LMDB:
        before = {p.name: p.read_bytes() for p in path.iterdir()}
        assert LMDB(path)[0] == RECORDS[0]
        assert {p.name: p.read_bytes() for p in path.iterdir()} == before


@pytest.mark.parametrize("kind", [LMDB, LevelDB])
def test_what_is_no_database(kind: Any, tmp_path: Path) -> None:
    pytest.importorskip("lmdb" if kind is LMDB else "plyvel")
    with pytest.raises(ModelFileError, match="there is no such"):
        kind(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="there is no such"):
        kind(tmp_path)
    (tmp_path / ("data.mdb" if kind is LMDB else "CURRENT")).write_bytes(b"nonsense" * 4096)
    with pytest.raises(ModelFileError, match="that can be read"):
        kind(tmp_path)


def test_an_lmdb_that_is_cut_off(tmp_path: Path) -> None:
    path = write_lmdb(tmp_path / "db", [bytes(20_000)] * 10)
    data = (path / "data.mdb").read_bytes()
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "data.mdb").write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelFileError, match="cut off"):
        LMDB(tmp_path / "cut")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(BackendUnavailable, match=r"astride\[data\]"):
        LMDB(tmp_path)


# Records


def test_batches_go_round() -> None:
    source = RecordSource(Memory(RECORDS))
    assert source.shapes() == ((3, 4, 5), ())
    images, labels = source.batch(5)
    assert images.dtype == np.float32
    np.testing.assert_array_equal(images, IMAGES[:5])
    assert labels.tolist() == [0, 1, 2, 3, 4] and source.batch(4)[1].tolist() == [5, 6, 0, 1]
    source.reset(6)
    assert source.batch(2)[1].tolist() == [6, 0]


def test_a_record_may_be_floats_or_an_image_file() -> None:
    floats = RANDOM.normal(size=(2, 3, 3)).astype(np.float32)
    np.testing.assert_array_equal(RecordSource(Memory([raw(floats, 1)])).batch(1)[0][0], floats)
    np.testing.assert_array_equal(RecordSource(Memory([encoded(IMAGES[0], 4)])).batch(1)[0][0], IMAGES[0])
    grey = RANDOM.randint(0, 256, (1, 4, 5)).astype(np.uint8)
    native, three = (RecordSource(Memory([encoded(grey, 4)]), color=c).batch(1)[0][0] for c in (None, True))
    np.testing.assert_array_equal(native, grey)
    np.testing.assert_array_equal(three, np.repeat(grey, 3, axis=0))
    assert RecordSource(Memory([encoded(IMAGES[0], 4)]), color=False).shapes() == ((1, 4, 5), ())


def test_images_are_prepared() -> None:
    source = RecordSource(Memory(RECORDS), transform=Transformer(mean=load_mean([1, 2, 3]), crop=(2, 2), scale=0.5))
    means = np.array([1, 2, 3]).reshape(3, 1, 1)
    np.testing.assert_array_equal(source.batch(1)[0][0], (IMAGES[0, :, 1:3, 1:3] - means) / 2)


def test_chance_follows_from_the_seed_and_the_place() -> None:
    def drawn(seed: int, position: int) -> np.ndarray:
        source = RecordSource(Memory(RECORDS), transform=Transformer(crop=(2, 2), mirror=True, random=True), shuffle=True)
        source.reseed(seed)
        source.batch(3)
        source.reset(position)
        return source.batch(9)[0]

    np.testing.assert_array_equal(drawn(1, 4), drawn(1, 4))
    assert (drawn(1, 4) != drawn(2, 4)).any()
    np.testing.assert_array_equal(drawn(1, 4)[3:], drawn(1, 7)[:6])


def test_each_epoch_has_an_order_of_its_own() -> None:
    source = RecordSource(Memory(RECORDS), shuffle=True)
    epochs = [source.batch(7)[1].tolist() for _ in range(4)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_some_records_are_skipped() -> None:
    source = RecordSource(Memory(RECORDS), rand_skip=5)
    firsts = set()
    for seed in range(40):
        source.reseed(seed)
        source.reset()
        firsts.add(int(source.batch(1)[1][0]))
    assert firsts == {0, 1, 2, 3, 4}
    with pytest.raises(ArgumentError, match="not enough samples"):
        short = RecordSource(Memory(RECORDS[:1]), rand_skip=1000)
        short.reseed(3)
        short.batch(1)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (b"\xff\xff\xff", "no Datum"),
        (raw(IMAGES[0], 1).replace(b"\x10\x04", b"\x10\x05", 1), "another number of values"),
        (raw(IMAGES[0], 1)[:4], "no Datum|another number"),
        (b"", "another number of values"),
    ],
)
def test_broken_records(record: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        RecordSource(Memory([RECORDS[0], record])).batch(2)
    assert caught.value.given["record"] == 1


def test_an_encoded_record_that_is_no_image() -> None:
    whole = Datum.FromString(encoded(IMAGES[0], 1)).data
    for data in (whole[: len(whole) // 2], b"GIF89a", b""):
        broken = Datum(data=data, encoded=True).SerializeToString()
        with pytest.raises(ModelFileError, match="no image that can be read"):
            RecordSource(Memory([broken])).batch(1)


def test_sizes_that_differ_and_no_records() -> None:
    with pytest.raises(ArrayError, match="different sizes"):
        RecordSource(Memory([RECORDS[0], raw(IMAGES[0][:, :2], 1)])).batch(2)
    with pytest.raises(ArgumentError, match="there are no samples"):
        RecordSource(Memory([])).shapes()
