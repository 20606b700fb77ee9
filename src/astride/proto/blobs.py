"""Blobs as arrays: what a BlobProto's bytes hold, checked against its shape."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astride.errors import ArgumentError
from astride.proto.limits import MAX_AXES
from astride.proto.schema import Message, Schema

LEGACY_DIMENSIONS = ("num", "channels", "height", "width")

# BlobProto's four arrays: field number -> (name, dtype).
PAYLOADS: dict[int, tuple[str, np.dtype[Any]]] = {
    5: ("data", np.dtype("<f4")),
    6: ("diff", np.dtype("<f4")),
    8: ("double_data", np.dtype("<f8")),
    9: ("double_diff", np.dtype("<f8")),
}

# NVCaffe's: the same as raw bytes, and what the bytes are.
RAW: dict[int, str] = {12: "raw_data", 13: "raw_diff"}
RAW_TYPES: dict[int, str] = {10: "raw_data", 11: "raw_diff"}
_RAW_DTYPES: dict[int, np.dtype[Any]] = {0: np.dtype("<f8"), 1: np.dtype("<f4"), 2: np.dtype("<f2")}


@dataclass(frozen=True, slots=True, eq=False)
class BlobArray:
    """One blob. `data` and `diff` are read-only views into the file, float32 or float64, and may be unaligned.

    `legacy` says that the file gives the four dimensions the old way, which lets Caffe take (1, 1, 1, N) for (N,).
    """

    shape: tuple[int, ...]
    data: NDArray[Any]
    diff: NDArray[Any] | None = None
    legacy: bool = False

    @staticmethod
    def of(array: NDArray[Any], diff: NDArray[Any] | None = None) -> BlobArray:
        """A blob to be written."""
        for name, value in (("array", array), ("diff", diff)):
            if value is not None and (value.dtype.kind != "f" or value.dtype.itemsize not in (4, 8)):
                raise ArgumentError("a blob holds float32 or float64", given={name: value}, hint=f"{name}.astype(numpy.float32)")
        if diff is not None and (diff.shape != array.shape or diff.dtype != array.dtype):
            raise ArgumentError("a blob's diff has the shape and type of its data", given={"array": array, "diff": diff})
        return BlobArray(tuple(array.shape), array, diff)


ABSENT = BlobArray((0,), np.empty(0, "<f4"))
"""In the place of a parameter that the file has with another layer, which owns it: HDF5 only."""


class BlobFault(Exception):
    """A blob whose parts disagree. Caught by the reader, which knows the layer."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


Pieces = dict[int, list[NDArray[Any]]]
"""The arrays of one blob by field number, each in the pieces in which the file has it."""


@dataclass(slots=True)
class Raw:
    """NVCaffe's raw bytes of one blob, and their types, by the names raw_data and raw_diff."""

    data: dict[str, NDArray[np.uint8]] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)

    def array(self, name: str) -> NDArray[Any] | None:
        """The numbers, half precision as float32; None where there are none."""
        bytes_ = self.data.get(name)
        if bytes_ is None:
            return None
        dtype = _RAW_DTYPES.get(self.types.get(name, -1))
        if dtype is None:
            given = f"type {self.types[name]}" if name in self.types else "no type"
            raise BlobFault(f"{name} has {given}", "NVCaffe computes with DOUBLE (0), FLOAT (1) and FLOAT16 (2)")
        if bytes_.size % dtype.itemsize:
            raise BlobFault(f"{name} is {bytes_.size} bytes long, no multiple of {dtype.itemsize}")
        numbers = np.frombuffer(bytes_, dtype)
        return numbers.astype(np.float32) if dtype.itemsize == 2 else numbers


def blob_array(rest: bytes, pieces: Pieces, schema: Schema, raw: Raw | None = None) -> BlobArray:
    """Put together what the reader cut out of one BlobProto. `rest` is the message without its arrays."""
    from google.protobuf.message import DecodeError

    try:
        message = schema.message("BlobProto").FromString(rest)
    except DecodeError as error:
        raise BlobFault("protobuf cannot read the shape of this blob", "download or copy the file again") from error
    arrays = {PAYLOADS[number][0]: _joined(number, parts) for number, parts in pieces.items()}
    double = arrays.get("double_data")
    data = double if double is not None and double.size else arrays.get("data", np.empty(0, "<f4"))
    wide = arrays.get("double_diff")
    diff = wide if wide is not None and wide.size else arrays.get("diff")
    if raw is not None and raw.data:
        unpacked = raw.array("raw_data")
        data = unpacked if unpacked is not None and not data.size else data
        diff = raw.array("raw_diff") if diff is None or not diff.size else diff
        for array in (data, diff):
            if array is not None:
                array.flags.writeable = False
    shape = blob_shape(message, data.size)
    count = math.prod(shape)
    for name, array in (("data", data), ("diff", diff)):
        if array is not None and array.size != count and not (name == "diff" and array.size == 0):
            raise BlobFault(f"the shape {shape} has {count} elements, its {name} {array.size}")
    diff = None if diff is None or diff.size != count else diff.reshape(shape)
    return BlobArray(shape, data.reshape(shape), diff, _is_legacy(message))


def declare(message: Message, blob: BlobArray) -> None:
    """Write a blob's shape, not its numbers, into an empty BlobProto."""
    if blob.legacy:
        for name, size in zip(LEGACY_DIMENSIONS, blob.shape, strict=True):
            setattr(message, name, size)
    else:
        message.shape.dim.extend(blob.shape)


def blob_shape(message: Message, size: int) -> tuple[int, ...]:
    """The shape a BlobProto declares. As in Caffe the four old dimensions count, if any is set, before `shape`."""
    if _is_legacy(message):
        shape = tuple(int(getattr(message, name)) for name in LEGACY_DIMENSIONS)
    elif message.HasField("shape"):
        if len(message.shape.dim) > MAX_AXES:
            raise BlobFault(f"a shape of {len(message.shape.dim)} axes; Caffe allows {MAX_AXES}")
        shape = tuple(message.shape.dim)
    elif size <= 1:
        shape = () if size else (0,)
    else:
        raise BlobFault(f"{size} numbers without a shape")
    if any(dimension < 0 for dimension in shape):
        raise BlobFault(f"the shape {shape} has a negative dimension")
    return shape


def is_shaped(message: Message) -> bool:
    """Whether a BlobProto says its shape, in either way."""
    return message.HasField("shape") or _is_legacy(message)


def _is_legacy(message: Message) -> bool:
    return any(message.HasField(name) for name in LEGACY_DIMENSIONS)


def _joined(number: int, parts: list[NDArray[Any]]) -> NDArray[Any]:
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, PAYLOADS[number][1])
    joined.flags.writeable = False
    return joined
