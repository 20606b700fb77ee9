"""Pooling where the channels come first, as many planes at a time as a few vectors have lanes.

A unit is a band of rows of one bundle of planes. What the band reads is transposed in registers into a buffer, where the
planes lie side by side in every pixel; there the kernels for channels last compute, to which the planes are channels; what
they give is transposed back. So every rule, whatever the width of a plane, is one step an instruction.

The last bundle overlaps the one before where the planes are no multiple of a bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import pool_last, pool_last_quick
from .conv_layout import transposed
from .extremes import Extreme
from .gradients import Gradient
from .ir import Function, Value, module
from .ir_types import BITS, vector
from .machine import Machine
from .pool_last_quick import Whole
from .sums import Sum
from .window import CHANNELS, FIRST_FREE, OUT, SIZE, Spec, bring, fields, kernel_function

Numbers = NDArray[np.int64]

TABLE = FIRST_FREE + 4
"""Field of the table of bands forward; backward three more tables come before it."""

PLANES, BANDS, PARTS, ROWS = 0, 1, 2, 6
"""The table: planes in all, bands of each bundle, where four parts of the buffer begin, then ROWS_OF numbers a band."""

ROWS_OF = 4
"""Of a band: the rows it computes, from and to, and those it reads."""

ROOM = 320 << 10
"""Bytes of the buffer, which lies in the frame: less than the second cache has."""

LINE = 64
"""Bytes that parts of the buffer are aligned to."""

BUNDLES = 8
"""Bundles there should be before one takes more than one vector of planes: enough for several threads."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How planes are bundled and cut: planes of one bundle, and the table that the kernel reads."""

    bundle: int
    units: int
    table: Numbers


def lanes_of(spec: Spec | Gradient, machine: Machine) -> int | None:
    """Planes of one vector; None where this way is not written."""
    if not isinstance(spec, Extreme | Sum | Gradient) or (isinstance(spec, Sum) and spec.scaled):
        return None
    lanes = pool_last.width(spec, machine)
    return lanes if 4 <= lanes <= 16 else None


def cut(
    planes: int, lanes: int, rows: Numbers, made: Sequence[int], read: Sequence[int], room: int = ROOM
) -> Cut | None:
    """Bundle and cut so many planes; None where the buffer has no room.

    `rows` (n, 2) are the rows that each row of the result reads, from and to. `made` and `read` are the bytes that one plane's
    row has in the two parts of the buffer that belong to the result's rows, and in the two that belong to those it reads.
    """
    for vectors in (4, 2, 1):
        bundle = vectors * lanes
        if not len(rows) or planes < bundle or (vectors > 1 and planes < BUNDLES * bundle):
            continue
        for bands in range(1, 2 if vectors > 1 else len(rows) + 1):
            height = -(-len(rows) // bands)
            begins = np.arange(0, len(rows), height, dtype=np.int64)
            ends = np.minimum(begins + height, len(rows))
            reads = np.array([_reach(rows[begin:end]) for begin, end in zip(begins, ends, strict=True)], np.int64)
            most = int((reads[:, 1] - reads[:, 0]).max())
            sizes = [height * n * bundle for n in made] + [most * n * bundle for n in read]
            places = np.cumsum([0, *(-(-n // LINE) * LINE for n in sizes)])
            if places[-1] <= room:
                head = np.array([planes, len(begins), *places[:-1]], np.int64)
                table = np.concatenate([head, np.column_stack([begins, ends, reads]).ravel()])
                return Cut(bundle, len(begins) * -(-planes // bundle), table)
    return None


def _reach(rows: Numbers) -> tuple[int, int]:
    some = rows[rows[:, 0] < rows[:, 1]]
    return (int(some[:, 0].min()), int(some[:, 1].max())) if len(some) else (0, 0)


def forward(spec: Spec, whole: Whole | None, machine: Machine) -> str:
    """The module of `forward`: a is x, b is y, c the offsets; units are (bundle, band)."""
    f, rows = kernel_function("forward"), pool_last.forward_rows("rows", spec, machine, private=True)
    if whole is not None:
        rows = pool_last_quick.forward_rows("rows", spec, whole, machine, private=True)
    number, bundles = spec.number, Bundles(f, TABLE, pool_last.width(spec, machine))
    size, out = (fields(f, start) for start in (SIZE, OUT))
    with f.loop(f.begin, f.end) as unit:
        band = bundles.band(unit)
        x = Part(number.stored, f.a, bundles.part(2), size, band.reads)
        y = Part(number.stored, f.b, bundles.part(0), out, band.rows)
        parts = [y]
        if spec.offsets:
            parts.append(Part(f"i{8 * spec.offsets}", f.c, bundles.part(1), out, band.rows))
        bundles.collect(band, x)
        given = [bundles.shifted(part) for part in (x, *parts)]
        f.call("void", "rows", f.geometry, *given, *[f.d] * (4 - len(given)), *band.rows)
        for part in parts:
            bundles.spread(band, part)
    return module(f, rows)


def backward(spec: Gradient, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy, c the offsets or y, d is x; units are (bundle, band)."""
    f, rows = kernel_function("backward"), pool_last.backward_rows("rows", spec, machine, private=True)
    number, bundles = spec.number, Bundles(f, TABLE + 3, pool_last.width(spec, machine))
    size, out = (fields(f, start) for start in (SIZE, OUT))
    with f.loop(f.begin, f.end) as unit:
        band = bundles.band(unit)
        dx = Part(number.stored, f.a, bundles.part(0), size, band.rows)
        dy = Part(number.stored, f.b, bundles.part(2), out, band.reads)
        other = Part(f"i{8 * spec.offsets}" if spec.offsets else number.stored, f.c, bundles.part(3), out, band.reads)
        x = Part(number.stored, f.d, bundles.part(1), size, band.rows)
        read = [dy] + [other] * (spec.kind != "share") + [x] * spec.reads_x
        for part in read:
            bundles.collect(band, part)
        given = [bundles.shifted(part) if part is dx or part in read else part.memory for part in (dx, dy, other, x)]
        f.call("void", "rows", f.geometry, *given, *band.rows)
        bundles.spread(band, dx)
    return module(f, rows)


@dataclass(frozen=True, slots=True)
class Band:
    """One unit: its first plane, the rows it computes and those it reads."""

    plane: Value
    rows: tuple[Value, Value]
    reads: tuple[Value, Value]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of all planes of one array, of type `kind`, and their place in the buffer."""

    kind: str
    memory: Value
    buffer: Value
    size: list[Value]
    rows: tuple[Value, Value]

    @property
    def bytes(self) -> int:
        return BITS[self.kind] // 8


Block = Callable[[Value, Value, Value, Value], None]
One = Callable[[Value, Value], None]
"""Code that moves a square of numbers, or one: of the places in memory and in the buffer, and a plane's and a pixel's bytes."""


class Bundles:
    """The code that brings bands of planes into the buffer and back."""

    def __init__(self, f: Function, table: int, lanes: int) -> None:
        self.f, self.lanes = f, lanes
        self.table = f.at(f.geometry, f.field(f.geometry, table))
        self.bundle = f.field(f.geometry, CHANNELS)
        self.buffer = f.scratch("i8", ROOM, 64)

    def part(self, number: int) -> Value:
        """Where a part of the buffer begins."""
        return self.f.at(self.buffer, self.f.field(self.table, PARTS + number))

    def band(self, unit: Value) -> Band:
        """What a unit is about."""
        f = self.f
        bands = f.field(self.table, BANDS)
        plane = f.smaller(unit // bands * self.bundle, f.field(self.table, PLANES) - self.bundle)
        row = f.at(self.table, (unit % bands * ROWS_OF + ROWS) * 8)
        numbers = [f.load("i64", f.at(row, 8 * k)) for k in range(ROWS_OF)]
        return Band(plane, (numbers[0], numbers[1]), (numbers[2], numbers[3]))

    def shifted(self, part: Part) -> Value:
        """Where the array would begin if all of its rows were in the buffer."""
        before = part.rows[0] * part.size[2] * self.bundle * part.bytes
        return self.f.at(part.buffer, -before)

    def collect(self, band: Band, part: Part) -> None:
        """A band's planes into the buffer."""
        f = self.f

        def block(memory: Value, buffer: Value, stride: Value, pixel: Value) -> None:
            rows = [f.load(vector(self.lanes, part.kind), f.at(memory, stride * i)) for i in range(self.lanes)]
            for i, values in enumerate(transposed(f, rows)):
                f.store(values, f.at(buffer, pixel * i))

        self._walk(band, part, block, lambda memory, buffer: f.store(f.load(part.kind, memory), buffer))
        with f.when(f.field(self.table, BANDS).eq(1)):
            whole = part.size[0] * part.size[1] * part.size[2] * self.bundle * part.bytes
            plane = band.plane * (part.size[0] * part.size[1] * part.size[2]) * part.bytes
            bring(f, f.at(part.memory, plane + whole), whole)

    def spread(self, band: Band, part: Part) -> None:
        """A band's planes from the buffer to where they belong."""
        f = self.f

        def block(memory: Value, buffer: Value, stride: Value, pixel: Value) -> None:
            rows = [f.load(vector(self.lanes, part.kind), f.at(buffer, pixel * i)) for i in range(self.lanes)]
            for i, values in enumerate(transposed(f, rows)):
                f.store(values, f.at(memory, stride * i))

        self._walk(band, part, block, lambda memory, buffer: f.store(f.load(part.kind, buffer), memory))

    def _walk(self, band: Band, part: Part, block: Block, one: One) -> None:
        """`block` for squares of planes and pixels, the last ones overlapping, or `one` by one where there are too few."""
        f, lanes, bytes_ = self.f, self.lanes, part.bytes
        pixels = part.size[0] * part.size[1] * part.size[2]
        first, count = part.rows[0] * part.size[2], (part.rows[1] - part.rows[0]) * part.size[2]
        stride, pixel = pixels * bytes_, self.bundle * bytes_
        with f.loop(0, self.bundle, lanes) as plane:
            memory = f.at(part.memory, ((band.plane + plane) * pixels + first) * bytes_)
            buffer = f.at(part.buffer, plane * bytes_)
            with f.when(count >= lanes, likely=True) as few:
                with f.loop(0, count, lanes) as start:
                    at = f.smaller(start, count - lanes)
                    block(f.at(memory, at * bytes_), f.at(buffer, at * pixel), stride, pixel)
                with few.otherwise(), f.loop(0, count) as at, f.loop(0, lanes) as i:
                    one(f.at(memory, i * stride + at * bytes_), f.at(buffer, at * pixel + i * bytes_))
