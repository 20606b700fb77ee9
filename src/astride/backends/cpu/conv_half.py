"""Convolution of float16 and bfloat16 without whole arrays widened: some images, or bands of one, at a time.

A part is as much as stays in the cache: its pixels are widened to float32, convolved as any others, and rounded into y. No sum
depends on where parts end, for a window's taps are added up in the window's order: a band's numbers are those of the whole.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ...plan import StridedAxis
from ..protocol import Array, dtype_name
from .cache import functions
from .conv_relation import Relation
from .edges import taps_inside
from .ir import module
from .machine import Machine, machine
from .numbers import NUMBERS, Number, lacks
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

NUMBERS_AT_ONCE = 1 << 19
"""Numbers of x and y that a part has, about: two megabytes."""

MOST = 2 * NUMBERS_AT_ONCE
"""Numbers of the memory that is kept for x and for y."""

BAND = 12
"""Windows that bands begin at multiples of: tiles of every size begin there as well."""

RUN, X_ROW, Y_ROW, CHUNKS, CHUNK = range(5)
"""Fields of a conversion: numbers of a row; bytes from one to the next in x and in y; chunks of a row, and numbers of one."""

TAKEN = 1 << 13
"""Numbers that a thread converts at once."""


@dataclass(frozen=True, slots=True)
class Part:
    """Images from, to; the axis that bands are along, pixels and windows of it from, to; and what is to be computed of them."""

    relation: Relation
    axis: int
    images: tuple[int, int]
    pixels: tuple[int, int]
    windows: tuple[int, int]


def takes(x: Array, y: Array) -> bool:
    """Whether x is narrow, and large enough for parts, and y can be written part by part."""
    narrow = x.dtype.itemsize == 2 and lacks(dtype_name(x.dtype)) is None
    return narrow and x.size + y.size > NUMBERS_AT_ONCE and y.flags.c_contiguous and x.dtype == y.dtype


def axis_of(relation: Relation) -> int:
    """The axis that bands are along: the first that has more than one pixel or window."""
    return next((k for k, axis in enumerate(relation.axes) if axis.size > 1 or axis.out > 1), 0)


def parts(relation: Relation, images: int, bands: tuple[Part, ...]) -> Iterator[Part]:
    """Those of a call. `bands` are those of one image, where there are several; otherwise images are taken together."""
    if len(bands) > 1:
        for image in range(images):
            for band in bands:
                yield replace(band, images=(image, image + 1))
        return
    number, each = axis_of(relation), _numbers(relation)
    axis = relation.axes[number]
    step = max(NUMBERS_AT_ONCE // max(each, 1), 1)
    for first in range(0, images, step):
        yield Part(relation, number, (first, min(first + step, images)), (0, axis.size), (0, axis.out))


def _numbers(relation: Relation) -> int:
    """Numbers of one image of x and of y."""
    x, y = relation.pixels
    return relation.inputs * x + relation.outputs * y


@lru_cache(maxsize=512)
def bands_of(relation: Relation) -> tuple[Part, ...]:
    """One image in bands; none if it is small."""
    number = axis_of(relation)
    axis, count = relation.axes[number], -(-_numbers(relation) // NUMBERS_AT_ONCE)
    step = -(-axis.out // max(count, 1) // BAND) * BAND if count > 1 else axis.out
    if step >= axis.out or not axis.size:
        return ()
    taps, found = taps_inside(axis), []
    first, last = taps.pixel, taps.pixel + (taps.count - 1) * taps.step + 1
    for start in range(0, axis.out, step):
        end = min(start + step, axis.out)
        there = np.flatnonzero(taps.count[start:end]) + start
        if not len(there):
            return ()
        low, high = int(first[there].min()), int(last[there].max())
        axes = list(relation.axes)
        axes[number] = _band(axis, (low, high), (start, end))
        found.append(Part(replace(relation, axes=tuple(axes)), number, (0, 1), (low, high), (start, end)))
    return tuple(found)


def _band(axis: StridedAxis, pixels: tuple[int, int], windows: tuple[int, int]) -> StridedAxis:
    """The windows from, to of an axis, over the pixels from, to."""
    (low, high), (start, end) = pixels, windows
    stretched = (high - low - 1) * axis.input_dilation + 1
    before = low * axis.input_dilation - axis.start(start)
    behind = (end - start - 1) * axis.stride + axis.reach - stretched - before
    return replace(axis, size=high - low, out=end - start, pad_lo=before, pad_hi=behind)


def widened(x: Array, part: Part, first: bool) -> Array:
    """The pixels of a part in float32; x is contiguous."""
    return _converted(x, _room("x", _shape(x, part, part.pixels, first)), part, part.pixels, first, False)


def empty(y: Array, part: Part, first: bool) -> Array:
    """Room for a part's results."""
    return _room("y", _shape(y, part, part.windows, first))


def rounded(found: Array, y: Array, part: Part, first: bool) -> None:
    """A part's results into contiguous y."""
    _converted(y, found, part, part.windows, first, True)


_rooms = threading.local()


def _room(name: str, shape: tuple[int, ...]) -> Array:
    """Memory of this thread for a part, which the next part uses again; fresh memory for an image that is not cut."""
    size = math.prod(shape)
    if size > MOST:
        return np.empty(shape, np.float32)
    room: Array | None = getattr(_rooms, name, None)
    if room is None:
        room = np.empty(MOST, np.float32)
        setattr(_rooms, name, room)
    return room[:size].reshape(shape)


def _shape(array: Array, part: Part, span: tuple[int, int], first: bool) -> tuple[int, ...]:
    at = part.axis + (2 if first else 1)
    return (part.images[1] - part.images[0], *array.shape[1:at], span[1] - span[0], *array.shape[at + 1 :])


def _converted(narrow: Array, wide: Array, part: Part, span: tuple[int, int], first: bool, back: bool) -> Array:
    """Between a part of a narrow array and one of its own, which is given back."""
    at = part.axis + (2 if first else 1)
    inner, size = math.prod(narrow.shape[at + 1 :]), narrow.shape[at]
    rows, length = math.prod(wide.shape[:at]), (span[1] - span[0]) * inner
    begin = part.images[0] * math.prod(narrow.shape[1:]) + span[0] * inner
    address, geometry, chunks = _schedule(dtype_name(narrow.dtype), length, size * inner, back)
    there, here = address_of(narrow) + begin * narrow.itemsize, address_of(wide)
    source, target = (here, there) if back else (there, here)
    if rows * length:
        run(address, geometry.address, source, target, 0, 0, rows * chunks, max(TAKEN // max(length // chunks, 1), 1))
    return wide


@lru_cache(maxsize=1024)
def _schedule(dtype: str, length: int, step: int, back: bool) -> tuple[int, Geometry, int]:
    """A conversion's address, its geometry and the chunks of a row: `step` numbers lie between rows of the narrow array."""
    source, target = ("float32", dtype) if back else (dtype, "float32")
    (address,) = functions(
        "conv_half", (source, target), lambda: converter(NUMBERS[source], NUMBERS[target], machine()), ("convert",)
    )
    chunks = max(length // TAKEN, 1)
    narrow, wide = step * 2, length * 4
    rows = (wide, narrow) if back else (narrow, wide)
    return address, Geometry([length, *rows, chunks, -(-length // chunks)], []), chunks


def converter(source: Number, target: Number, machine: Machine) -> str:
    """The module of `convert`: rows of a into rows of b; units are (row, chunk)."""
    f, lanes = kernel_function("convert"), machine.lanes("float")
    length, x_row, y_row, chunks, chunk = (f.field(f.geometry, k) for k in range(5))
    with f.loop(f.begin, f.end) as unit:
        row, first = unit // chunks, unit % chunks * chunk
        last = f.smaller(first + chunk, length)
        x, y = f.at(f.a, row * x_row), f.at(f.b, row * y_row)
        whole = first + (last - first) // lanes * lanes
        for begin, end, count in ((first, whole, lanes), (whole, last, 1)):
            with f.loop(begin, end, count) as at:
                value = source.load(f, f.at(x, at * source.bytes), count)
                target.store(f, value, f.at(y, at * target.bytes))
    return module(f)
