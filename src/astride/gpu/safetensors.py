"""Arrays with a description in one file, in the safetensors format: a table of contents in JSON, then bytes. Nothing is executed.

Source: https://github.com/huggingface/safetensors, "Format": 8 bytes (length of the header, little-endian), the header, the data.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..proto.files import atomic_write

NAMES = {"F32": "float32", "F16": "float16", "I32": "int32", "U32": "uint32", "F64": "float64", "I64": "int64", "U8": "uint8"}
"""Dtypes as the format names them."""
HEADER_MAX = 16 << 20
FILE_MAX = 4 << 30


def write(path: str | os.PathLike[str], arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Write a file atomically. Raises ArgumentError: a dtype that the format does not have here."""
    codes = {name: code for code, name in NAMES.items()}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    chunks: list[bytes] = []
    at = 0
    for name, array in arrays.items():
        if array.dtype.name not in codes or name == "__metadata__":
            raise ArgumentError("the array cannot be saved", given={name: array}, required=f"dtype one of {', '.join(codes)}")
        data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        header[name] = {"dtype": codes[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, at + len(data)]}
        chunks.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    atomic_write(path, [struct.pack("<Q", len(text)), text, *chunks])


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays and the metadata of a file. Raises ArgumentError: it is not one, or says what cannot be."""
    try:
        size = Path(path).stat().st_size
        if not 8 <= size <= FILE_MAX:
            raise ValueError(f"a file of {size} bytes")
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(HEADER_MAX, size - 8):
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=once)
            return _contents(header, file.read(), size - 8 - length)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, struct.error) as error:
        raise ArgumentError("this is no safetensors file", given={"path": str(path)}, because=str(error)) from error


def _contents(header: Any, data: bytes, size: int) -> tuple[dict[str, Array], dict[str, str]]:
    """Arrays cut from the data, which they must fill exactly, one behind the other. Raises ValueError, KeyError, TypeError."""
    if not isinstance(header, dict) or len(data) != size:
        raise ValueError("the header is no table, or the file ends early")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("metadata that is no table of strings")
    arrays, at = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: tuple(item[1]["data_offsets"])):
        dtype, shape = np.dtype(NAMES[entry["dtype"]]), entry["shape"]
        begin, end = entry["data_offsets"]
        if not isinstance(shape, list) or len(shape) > 8 or not all(type(n) is int and n >= 0 for n in (*shape, begin, end)):
            raise ValueError(f"{name[:40]!r} has no shape")
        if begin != at or end - begin != math.prod(shape) * dtype.itemsize or end > size:
            raise ValueError(f"the bytes of {name[:40]!r} are not those of its shape")
        arrays[name] = np.frombuffer(data[begin:end], dtype.newbyteorder("<")).astype(dtype).reshape(shape)
        at = end
    if at != size:
        raise ValueError(f"{size - at} bytes that belong to no array")
    return arrays, metadata


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table in which no name stands twice."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name stands twice")
    return table
