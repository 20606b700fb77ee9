"""Extremes whose windows lie one pixel apart and are as many as pixels: all planes are one row of numbers.

A window's number in memory is then that of the pixel it lies on, and tap t of window p is pixel p + s, where s is the same
for all p. Forward, a table says which taps of which windows lie in the image: bits, a vector's at a time, for as many
planes as fill whole vectors. Taps come in row-major order, so zeros of both signs do not matter; planes with a NaN are
scanned again window by window.

Backward needs no table: windows pick no tap outside their image, so what pixel p finds in window p - s is its own, and a
window of another row or plane never has p as the tap it picked. Only the array's ends need care.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...plan.kinds import Tie
from .extremes import Extreme
from .gradients import Gradient
from .ir import Function, Value, module
from .ir_types import BITS, vector
from .line import TABLES, Exactly, Line
from .machine import Machine
from .window import DILATION, KERNEL, SIZE, Place, Window, blocks, fields, kernel_function

TOTAL, WIDTH, PLANE = range(3)
"""Fields backward: numbers of the array, and pixels of a row and of a layer of rows."""

UNIT = 1 << 13
"""Numbers of one unit backward."""

MOST_TAPS = 15
"""Taps up to which asking every window for every tap is faster than the other ways."""

MOST_MASKS = 1 << 12
"""Masks of the table forward: what the first cache has room for."""

PER_UNIT, BLOCKS, HEAD = 1, 2, 3
"""Forward, numbers before the masks in the table: planes in all, planes of one unit, vectors of one unit."""

Numbers = NDArray[np.int64]

@dataclass(frozen=True, slots=True)
class Flat:
    """The window over depth, height and width."""

    kernel: tuple[int, ...]
    dilation: tuple[int, ...]
    pad: tuple[int, ...]

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    def steps(self, axis: int) -> list[int]:
        """Pixels from a window's own pixel to each of its taps, along one axis."""
        return [k * self.dilation[axis] - self.pad[axis] for k in range(self.kernel[axis])]


def takes(spec: Gradient | Extreme, machine: Machine) -> bool:
    """Whether this way is written for the extreme, or for its gradient."""
    if isinstance(spec, Extreme):
        number = spec.number
        plain = not spec.offsets and not spec.magnitude and spec.tie is not Tie.LAST
        return plain and machine.vector_bytes >= 64 and number.stored == number.computed and BITS[number.stored] >= 32
    plain = spec.kind == "offsets" and spec.offsets == 1 and not spec.reads_x
    return plain and spec.number.stored == spec.accumulate and machine.lanes(spec.accumulate) >= 4


def masks(window: Flat, sizes: Sequence[int], planes: int, lanes: int) -> Numbers | None:
    """The table that forward reads; None where it would be large, or planes are too few for a unit."""
    pixels = math.prod(sizes)
    per_unit = lanes // math.gcd(pixels, lanes)
    if planes < per_unit or pixels * per_unit // lanes * window.taps > MOST_MASKS:
        return None
    places = np.meshgrid(*[np.arange(n) for n in sizes], indexing="ij")
    steps = np.meshgrid(*[np.array(window.steps(axis)) for axis in range(3)], indexing="ij")
    inside = np.ones((pixels, window.taps), bool)
    for size, place, step in zip(sizes, places, steps, strict=True):
        at = place.ravel()[:, None] + step.ravel()
        inside &= (at >= 0) & (at < size)
    bits = np.tile(inside, (per_unit, 1)).reshape(-1, lanes, window.taps).transpose(0, 2, 1)
    words = (bits.astype(np.uint16) << np.arange(lanes, dtype=np.uint16)).sum(-1).astype(np.uint16).ravel()
    words = np.pad(words, (0, -len(words) % 4))
    return np.concatenate([np.array([planes, per_unit, len(bits)], np.int64), words.view(np.int64)])


def forward(spec: Extreme, window: Flat, machine: Machine) -> str:
    """The module of `forward`: a is x, b is y; units are as many planes as fill whole vectors."""
    f, number, n = kernel_function("forward"), spec.number, machine.lanes(spec.number.computed)
    size_, kernel, dilation = (fields(f, start) for start in (SIZE, KERNEL, DILATION))
    tables = [f.at(f.geometry, f.field(f.geometry, TABLES + k)) for k in range(4)]
    steps = [dilation[0] * size_[1] * size_[2] * number.bytes, dilation[1] * size_[2] * number.bytes, dilation[2] * number.bytes]
    row = Exactly(f, spec, kernel, steps, tables[2], size_[2], 1, machine)
    planes, per_unit, vectors = (f.field(tables[3], k) for k in range(HEAD))
    starts = [(size_[1] * d + h) * size_[2] * number.bytes for d in window.steps(0) for h in window.steps(1)]
    kind, pixels, worst = vector(n, number.stored), size_[0] * size_[1] * size_[2], spec.worst(spec.start)
    with f.loop(f.begin, f.end) as unit:
        first = f.smaller(unit * per_unit, planes - per_unit)
        x, y = (f.at(array, first * pixels * number.bytes) for array in (f.a, f.b))
        clean = f.variable(vector(n, "i1"), True)
        with f.loop(0, vectors) as block:
            here, bits = f.at(x, block * (n * number.bytes)), f.at(tables[3], block * (2 * window.taps) + HEAD * 8)
            best, tap = f.value(kind, worst), 0
            for start in starts:
                line = f.at(here, start)
                for step in window.steps(2):
                    some = f.load("i16", f.at(bits, 2 * tap)).to(f"i{n}").bits(vector(n, "i1"))
                    value = f.load(kind, f.at(line, step * number.bytes), mask=some, other=worst)
                    best = f.select(spec.beats(value, best), value, best)
                    tap += 1
            f.store(best, f.at(y, block * (n * number.bytes)))
            if number.floating:
                own = f.load(kind, here)
                clean.set(clean.get() & own.compare("ord", own))
        if number.floating:
            with f.when(f.any(~clean.get()), likely=False):
                _exactly(f, spec, row, size_, tables, first, per_unit)
    return module(f)


def _exactly(
    f: Function, spec: Extreme, row: Exactly, size_: list[Value], tables: list[Value], first: Value, planes: Value
) -> None:
    """All windows of some planes, each by itself."""
    with f.loop(first, first + planes) as plane, f.loop(0, size_[0]) as i, f.loop(0, size_[1]) as j:
        depth, height = Window.read(f, tables[0], i), Window.read(f, tables[1], j)
        x = f.at(f.a, ((plane * size_[0] + depth.pixel) * size_[1] + height.pixel) * size_[2] * spec.number.bytes)
        place = ((plane * size_[0] + i) * size_[1] + j) * size_[2]
        line = Line(depth, height, x, place, Place(f.b, f.c).moved(f, spec, place))
        row.exactly(line, f.value("i64", 0), size_[2])


def backward(spec: Gradient, window: Flat, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy, c the offsets; units are UNIT numbers of dx."""
    f, bytes_, n = kernel_function("backward"), spec.number.bytes, machine.lanes(spec.accumulate)
    total, width, plane = (f.field(f.geometry, k) for k in (TOTAL, WIDTH, PLANE))
    starts = [f.value("i64", 0) + plane * d + width * h for d in window.steps(0) for h in window.steps(1)]
    along = window.steps(2)
    first, last = starts[0] + along[0], starts[-1] + along[-1]

    def whole(p: Value, lanes: int) -> None:
        kind = vector(lanes, spec.accumulate)
        found = f.value(kind, 0)
        for row, start in enumerate(starts):
            dy, offsets = f.at(f.b, (p - start) * bytes_), f.at(f.c, p - start)
            for k, step in enumerate(along):
                number = f.load(vector(lanes, "i8"), f.at(offsets, -step))
                here = number.eq(row * len(along) + k)
                found = f.select(here, found + f.load(kind, f.at(dy, -step * bytes_)), found)
        f.store(found, f.at(f.a, p * bytes_))

    with f.loop(f.begin, f.end) as unit:
        begin = unit * UNIT
        end = f.smaller(begin + UNIT, total)
        low = f.smaller(f.larger(begin, last), end)
        high = f.larger(f.smaller(end, total + first), low)
        with f.loop(begin, low) as p:
            _with_care(f, spec, p, total, starts, along)
        blocks(f, n, low, high, whole)
        with f.loop(high, end) as p:
            _with_care(f, spec, p, total, starts, along)
    return module(f)


def _with_care(f: Function, spec: Gradient, p: Value, total: Value, starts: list[Value], along: list[int]) -> None:
    """One pixel near an end of the array, where windows may be missing."""
    bytes_, found = spec.number.bytes, f.variable(spec.accumulate, 0)
    for row, start in enumerate(starts):
        for k, step in enumerate(along):
            q = p - start - step
            with f.when((q >= 0) & (q < total)), f.when(f.load("i8", f.at(f.c, q)).eq(row * len(along) + k)):
                found.set(found.get() + f.load(spec.accumulate, f.at(f.b, q * bytes_)))
    f.store(found.get(), f.at(f.a, p * bytes_))
