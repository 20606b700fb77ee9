"""Small databases as convert_imageset writes them: keys of eight digits, Datum records."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from astride.proto import Schema

Datum = Schema.bvlc().message("Datum")


def raw(image: np.ndarray, label: int) -> bytes:
    """Bytes, or floats, (C, H, W)."""
    c, h, w = image.shape
    message = Datum(channels=c, height=h, width=w, label=label)
    if image.dtype == np.uint8:
        message.data = image.tobytes()
    else:
        message.float_data.extend(image.reshape(-1).tolist())
    return bytes(message.SerializeToString())


def encoded(image: np.ndarray, label: int) -> bytes:
    """A PNG of bytes (C, H, W), blue first."""
    from PIL import Image

    file = io.BytesIO()
    pixels = image[0] if len(image) == 1 else image[::-1].transpose(1, 2, 0)
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    return bytes(Datum(data=file.getvalue(), encoded=True, label=label).SerializeToString())


def keyed(records: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    return [(f"{i:08d}_img".encode(), record) for i, record in enumerate(records)]


def write_lmdb(path: Path, records: Sequence[bytes]) -> Path:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(path), map_size=1 << 26) as environment, environment.begin(write=True) as transaction:
        # in any order: it is read in that of its keys
        for key, value in reversed(keyed(records)):
            transaction.put(key, value)
    return path


def write_leveldb(path: Path, records: Sequence[bytes]) -> Path:
    plyvel = pytest.importorskip("plyvel")
    database = plyvel.DB(str(path), create_if_missing=True)
    for key, value in reversed(keyed(records)):
        database.put(key, value)
    database.close()
    return path


class Memory:
    """A database of a list."""

    path = Path("memory")

    def __init__(self, records: list[bytes]) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, place: int) -> bytes:
        return self.records[place]
