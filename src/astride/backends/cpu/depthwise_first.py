"""Depthwise convolution where the channels come first: every plane has its own window, lanes are columns of y.

A unit is some rows of one plane of y. Rows whose windows lie inside along the height are taken several at a time: a row of x
is loaded once a tap for all that have it, the weights are the same in every lane. Others are taken one by one. Columns go by
blocks of a vector, the last one beginning early enough to be full; in blocks that have a tap outside, its lanes are masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import StridedAxis
from ..epilogue import Epilogue
from ..protocol import Array
from .cache import functions
from .contraction import fused, mask_below, mask_inside
from .conv_gather import UNITS
from .conv_pack import first_sums
from .conv_relation import Relation, strides
from .cuts import bounds_of
from .depthwise_last import depths
from .edges import taps_inside
from .ending import bits, finisher, given, opened, spilled, stored
from .ir import Function, Value, Variable, module
from .ir_types import BITS, vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

CHANNELS, DEPTHS, X_PLANE, Y_PLANE, W_PLANE, X_DEPTH, W_DEPTH, X_ROW, Y_ROW, WIDTH, COLUMNS, START, PARTS, BLOCKS, HOW = range(15)
TABLES = 15
"""Fields: channels; depths of y; bytes of a plane in x and y, of a channel's weights, and from tap to tap along the depth; bytes
of a row of x and of y; columns of x and of y; the pixel of tap 0 of column 0; parts that the rows of a plane are taken in;
blocks of columns; what is done with sums. Then tables: depths, groups of rows, the first groups of all parts
and the end of the last, blocks."""

GROUP = 5
"""Numbers of a group of rows: how many they are, the byte of the first tap inside in x, how many taps there are (where it is one
row), the byte of that tap in w, and the byte of the row in y."""

BLOCK = 2
"""Numbers of a block: its first column, and whether it has lanes or taps outside."""

MOST_TAPS = 64
"""Taps of a window, over height and width, that are written out."""

ROWS = (4, 2)
"""How many rows are taken at a time."""

TAKEN = 1 << 15
"""Products that a thread takes at once, at least."""


@dataclass(frozen=True, slots=True)
class Planar:
    """All that the code depends on: taps, strides and dilations along height and width, and whether weights are turned."""

    kind: str
    taps: tuple[int, int]
    stride: tuple[int, int]
    step: tuple[int, int]
    flip: bool

    @property
    def bytes(self) -> int:
        return BITS[self.kind] // 8


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, the units of one plane and how many a thread takes."""

    address: int
    geometry: Geometry
    units: int
    taken: int


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int) -> bool:
    """Whether windows are ones that are written out, and rows long enough to fill half a vector."""
    if not relation.depthwise or any(axis.input_dilation > 1 for axis in relation.axes):
        return False
    high, wide = _two(relation)
    return high.kernel * wide.kernel <= MOST_TAPS and wide.stride <= 2 and 2 * wide.out >= relation.spec.lanes(machine())


def compute(
    relation: Relation,
    x: Array,
    w: Array,
    b: Array | None,
    y: Array,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """y (N, channels, *out) from x (N, channels, *size) and w (channels, 1, *kernel), all contiguous and of one dtype."""
    if not y.size:
        return
    how = bits(epilogue, residual)
    found = schedule(relation, len(x), how)
    bias = first_sums(relation, b)
    begin, memory = given(how, bias, epilogue, residual, y)
    places = (address_of(x), address_of(w), begin, address_of(y))
    run(found.address, found.geometry.address, *places, found.units * len(x) * relation.outputs, found.taken)
    del memory


def _two(relation: Relation) -> tuple[StridedAxis, StridedAxis]:
    """Height and width."""
    return relation.volume[1:]


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, how: int = 0) -> Schedule:
    """How a relation is computed over so many images; `how` is what is done with sums."""
    axes = relation.volume
    high, wide = axes[1:]
    spec = Planar(
        relation.spec.kind,
        (high.kernel, wide.kernel),
        (high.stride, wide.stride),
        (high.dilation, wide.dilation),
        relation.flip,
    )
    (address,) = functions("depthwise_first", spec, lambda: planar(spec, machine()), ("planar",))
    size, lanes = spec.bytes, relation.spec.lanes(machine())
    x_steps, y_steps = strides([a.size for a in axes], size), strides([a.out for a in axes], size)
    w_steps = strides([a.kernel for a in axes], size)
    w_depth = -w_steps[1] if spec.flip else w_steps[1]
    groups = groups_of(high, x_steps[2], -w_steps[2] if spec.flip else w_steps[2], y_steps[2])
    parts = max(min(-(-UNITS // max(images * relation.outputs * axes[0].out, 1)), len(groups)), 1)
    bounds = bounds_of(len(groups), parts)
    deep = depths(axes[0], x_steps[1], w_depth, w_steps[0] - size if spec.flip else 0)
    fields = [relation.outputs, axes[0].out, x_steps[0], y_steps[1], w_steps[0], taps_inside(axes[0]).step * x_steps[1], w_depth]
    blocks = _blocks(wide, lanes)
    fields += [x_steps[2], y_steps[2], wide.size, wide.out, -wide.pad_lo, parts, len(blocks), how]
    taken = max(TAKEN // max(high.out * wide.out * relation.taps // parts, 1), 1)
    return Schedule(address, Geometry(fields, [deep, groups, bounds, blocks]), axes[0].out * parts, taken)


def groups_of(axis: StridedAxis, x_step: int, w_step: int, y_step: int) -> NDArray[np.int64]:
    """The table of groups of rows."""
    taps = taps_inside(axis)
    pixel, number, count = (part.tolist() for part in (taps.pixel, taps.number, taps.count))
    found, row = [], 0
    while row < axis.out:
        whole = row
        while whole < min(row + ROWS[0], axis.out) and count[whole] == axis.kernel:
            whole += 1
        rows = next((rows for rows in ROWS if whole - row >= rows), 1)
        there = count[row] > 0
        found.append([rows, pixel[row] * x_step if there else 0, count[row], number[row] * w_step if there else 0, row * y_step])
        row += rows
    return np.array(found, np.int64).reshape(-1, GROUP)


def _blocks(axis: StridedAxis, lanes: int) -> NDArray[np.int64]:
    """The table of blocks. One that is not masked may read as many pixels as its vectors have, used or not."""
    first = np.array([min(at, max(axis.out - lanes, 0)) for at in range(0, axis.out, lanes)], np.int64)
    start = first * axis.stride - axis.pad_lo
    end = start + (axis.kernel - 1) * axis.dilation + lanes * axis.stride
    return np.stack([first, (start < 0) | (end > axis.size) | (axis.out < lanes)], 1).astype(np.int64)


def planar(spec: Planar, machine: Machine) -> str:
    """The module of `planar`: a is x, b the weights, c the bias as `given`, d is y; units are (image, channel, depth, part)."""
    f, rows = kernel_function("planar"), Rows(spec, machine)
    get = [f.field(f.geometry, k) for k in range(TABLES)]
    deep, groups, bounds, blocks = (f.at(f.geometry, f.field(f.geometry, TABLES + k)) for k in range(4))
    begin, numbers = opened(f, get[HOW], f.c)
    with f.loop(f.begin, f.end) as unit:
        slice_, part = unit // get[PARTS], f.at(bounds, unit % get[PARTS] * 8)
        plane, depth = slice_ // get[DEPTHS], f.at(deep, slice_ % get[DEPTHS] * 24)
        channel = plane % get[CHANNELS]
        x = f.at(f.a, plane * get[X_PLANE] + f.load("i64", depth))
        w = f.at(f.b, channel * get[W_PLANE] + f.load("i64", f.at(depth, 16)))
        y, bias = f.at(f.d, slice_ * get[Y_PLANE]), f.load(spec.kind, f.at(begin, channel * spec.bytes))
        taps = f.load("i64", f.at(depth, 8))
        with f.loop(f.load("i64", part), f.load("i64", f.at(part, 8))) as number:
            group = f.at(groups, number * (8 * GROUP))
            count, x_at, high, w_at, y_at = (f.load("i64", f.at(group, 8 * k)) for k in range(GROUP))
            places = (f.at(x, x_at), f.at(w, w_at), f.at(y, y_at))
            with f.loop(0, get[BLOCKS]) as k:
                block = f.at(blocks, k * (8 * BLOCK))
                sent = (*places, bias, numbers, f.geometry, f.load("i64", block), taps, high)
                with f.when(f.load("i64", f.at(block, 8)).eq(0), likely=True) as edge:
                    rows.call(f, count, sent, masked=False)
                    with edge.otherwise():
                        rows.call(f, count, sent, masked=True)
    return module(f, *rows.functions)


class Rows:
    """The functions of one module that compute one block of columns in one or several rows."""

    def __init__(self, spec: Planar, machine: Machine) -> None:
        self.spec, self.lanes = spec, max(machine.lanes(spec.kind), 2)
        self.kind = vector(self.lanes, spec.kind)
        self.functions = [finisher(self.kind)]

    def call(self, f: Function, count: Value, given: tuple[Value, ...], *, masked: bool) -> None:
        """Compute as many rows as a group has."""
        for rows in (*ROWS, 1):
            name = f"rows_{rows}{'_masked' if masked else ''}"
            self.functions.append(self._rows(name, rows, masked))
            with f.when(count.eq(rows)):
                f.call("void", name, *given)

    def _rows(self, name: str, rows: int, masked: bool) -> Function:
        """x, w and y are at the first row; `bias` begins sums, `column` is the first one, `deep` and `high` count taps: only a
        single row has fewer than the window along the height."""
        arguments = {"bias": self.spec.kind, "numbers": "ptr", "geometry": "ptr", "column": "i64", "deep": "i64", "high": "i64"}
        f, spec = Function(name, private=True, x="ptr", w="ptr", y="ptr", **arguments), self.spec
        width, x_row = f.field(f.geometry, WIDTH), f.field(f.geometry, X_ROW)
        first = f.column * spec.stride[1] + f.field(f.geometry, START)
        columns = Columns(f, spec, self.lanes, first, width) if masked else Columns(f, spec, self.lanes, first, None)
        mask = mask_below(f, self.lanes, f.field(f.geometry, COLUMNS) - f.column) if masked else None
        sums = [f.variable(self.kind, f.splat(f.bias, self.lanes)) for _ in range(rows)]
        with f.loop(0, f.deep) as z:
            x, w = f.at(f.x, z * f.field(f.geometry, X_DEPTH)), f.at(f.w, z * f.field(f.geometry, W_DEPTH))
            if rows == 1:
                with f.loop(0, f.high) as tap:
                    w_row = f.at(w, tap * (spec.bytes * spec.taps[1] * (-1 if spec.flip else 1)))
                    self._row(f, columns, f.at(x, tap * (x_row * spec.step[0])), [(sums[0], w_row)])
            else:
                self._written_out(f, columns, x, x_row, w, sums)

        def place(m: int) -> Value:
            return f.at(f.at(f.y, f.field(f.geometry, Y_ROW) * m), f.column * spec.bytes)

        def places() -> Value:
            return spilled(f, [place(m) for m in range(rows)])

        how, rest = f.field(f.geometry, HOW), f.field(f.geometry, COLUMNS) - f.column
        with stored(f, how, f.numbers, sums, places, 1, rest):
            for m, total in enumerate(sums):
                f.store(total.get(), place(m), mask=mask)
        return f

    def _written_out(self, f: Function, columns: Columns, x: Value, x_row: Value, w: Value, sums: list[Variable]) -> None:
        """Rows of x one after the other, with all pairs of a row of y and a tap that they belong to."""
        spec = self.spec
        w_row = spec.bytes * spec.taps[1] * (-1 if spec.flip else 1)
        users: dict[int, list[tuple[Variable, Value]]] = {}
        for m, total in enumerate(sums):
            for tap in range(spec.taps[0]):
                users.setdefault(m * spec.stride[0] + tap * spec.step[0], []).append((total, f.at(w, tap * w_row)))
        for place in sorted(users):
            self._row(f, columns, f.at(x, x_row * place), users[place])

    def _row(self, f: Function, columns: Columns, x: Value, taken: list[tuple[Variable, Value]]) -> None:
        """Add the taps of one row of x to sums, each with the weights of its own tap along the height."""
        spec = self.spec
        for tap in range(spec.taps[1]):
            value, inside = columns.tap(x, tap)
            for total, w in taken:
                weight = f.load(spec.kind, f.at(w, tap * spec.bytes * (-1 if spec.flip else 1)))
                added = fused(f, value, f.splat(weight, self.lanes), total.get())
                total.set(added if inside is None else f.select(inside, added, total.get()))


class Columns:
    """What the windows of a block of columns have as one of their taps: vectors of every pixel or of every second one."""

    def __init__(self, f: Function, spec: Planar, lanes: int, first: Value, width: Value | None) -> None:
        """`first` is the pixel of tap 0 of the first column; with a width, pixels outside of it are masked."""
        self.f, self.spec, self.lanes, self.first, self.width = f, spec, lanes, first, width
        self.masks = [None if width is None else self._inside(tap * spec.step[1], spec.stride[1]) for tap in range(spec.taps[1])]

    def _inside(self, offset: int, stride: int) -> Value:
        """Whether the pixels at an offset from the first, `stride` apart, are inside the row."""
        assert self.width is not None
        return mask_inside(self.f, self.lanes, self.first + offset, self.width, stride)

    def tap(self, row: Value, tap: int) -> tuple[Value, Value | None]:
        """The pixels of a tap, and which are inside where not all are."""
        f, spec, offset = self.f, self.spec, tap * self.spec.step[1]
        kind = vector(self.lanes, spec.kind)

        def pixels(more: int, mask: Value | None) -> Value:
            return f.load(kind, f.at(row, (self.first + (offset + more)) * spec.bytes), mask=mask)

        mask = self.masks[tap]
        if spec.stride[1] == 1:
            return pixels(0, mask), mask
        parts = [pixels(k, None if mask is None else self._inside(offset + k, 1)) for k in (0, self.lanes)]
        return f.shuffle(parts[0], parts[1], range(0, 2 * self.lanes, 2)), mask
