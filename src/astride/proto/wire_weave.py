"""The opposite of `wire_cut`: a message without blob numbers and the arrays, woven into the bytes of one file.

The bytes come in protobuf's own order, so a file Caffe wrote is written back the same, byte for byte; the arrays
are not copied but handed on as the chunks they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astride.proto.blobs import BlobArray
from astride.proto.schema import Schema
from astride.proto.wire_fields import LENGTH, encode_varint, fields

Chunks = list[bytes | memoryview]


def weave(skeleton: bytes, message_name: str, blobs: Iterator[BlobArray], schema: Schema) -> tuple[Chunks, int]:
    """Chunks of bytes and their total length. `skeleton` has one BlobProto, without numbers, for each of `blobs`."""
    if message_name == "BlobProto":
        return _blob(skeleton, next(blobs))
    view = memoryview(skeleton)
    carriers = schema.blob_carriers.get(message_name, {})
    chunks: Chunks = []
    size = copied = 0
    for item in fields(view, 0, len(view)):
        if item.number in carriers:
            inner, length = weave(bytes(view[item.body : item.stop]), carriers[item.number].type, blobs, schema)
            head = bytes(view[copied : item.at]) + encode_varint(item.number << 3 | LENGTH) + encode_varint(length)
            chunks += [head, *inner]
            size += len(head) + length
            copied = item.stop
    tail = bytes(view[copied:])
    return [*chunks, tail], size + len(tail)


def _blob(skeleton: bytes, blob: BlobArray) -> tuple[Chunks, int]:
    view = memoryview(skeleton)
    before = next((item.at for item in fields(view, 0, len(view)) if item.number > 6), len(view))
    double = blob.data.dtype.itemsize == 8
    arrays: Chunks = []
    for number, array in ((8, blob.data), (9, blob.diff)) if double else ((5, blob.data), (6, blob.diff)):
        if array is not None and array.size:
            arrays += _packed(number, array)
    head, tail = bytes(view[:before]), bytes(view[before:])
    chunks: Chunks = [head, tail, *arrays] if double else [head, *arrays, tail]
    return chunks, sum(len(chunk) for chunk in chunks)


def _packed(number: int, array: NDArray[Any]) -> Chunks:
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    numbers = little.reshape(-1).view(np.uint8).data
    return [encode_varint(number << 3 | LENGTH) + encode_varint(len(numbers)), numbers]
