"""The gradient of depthwise weights where the channels come first: lanes are columns of dy, read where they lie.

A unit is one channel of some images. Every tap has one vector of sums in a register, which grows through all rows of a plane;
rows of dy whose windows lie inside along the height are taken several at a time: a row of x is loaded once for all of them.
After about PIECE terms sums are added to totals, whose lanes are added up when the unit ends. In blocks of columns that have a
tap outside, or fewer columns than lanes, lanes are masked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import Shape, StridedAxis
from ..protocol import Array
from .cache import functions
from .contraction import PIECE, fused, mask_below
from .conv_relation import Relation, strides
from .cuts import bounds_of
from .depthwise_first import GROUP, ROWS, TAKEN, Columns, Planar, groups_of
from .ir import Function, Value, module
from .ir_types import size, vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

FIELDS = ("channels", "x_plane", "y_plane", "x_row", "width", "columns", "start", "groups", "blocks")
"""Fields: channels; bytes of a plane of x and of dy, and of a row of x; columns of x and of dy; the pixel of tap 0 of column 0;
groups of rows; blocks of columns. Then tables: where sets of images begin, groups, and blocks: first column, whether masked."""

BLOCK = 2
"""Numbers of a block."""

FREE = 6
"""Registers that are left for numbers of x and dy."""

FILLED = 0.7
"""Lanes that hold columns, at least: else moving channels into lanes was measured faster, as where rows are one vector long."""

UNITS = 32
"""Units of a call, about, if there are images enough."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, sets of images, and how many units a thread takes."""

    address: int
    geometry: Geometry
    sets: int
    taken: int


@lru_cache(maxsize=512)
def takes(relation: Relation) -> bool:
    """Whether windows are flat, and all their taps have a register."""
    if not relation.depthwise or len(relation.axes) > 2 or any(axis.input_dilation > 1 for axis in relation.axes):
        return False
    return 0 < relation.taps <= machine().registers - FREE and relation.axes[-1].stride <= 2


def better(relation: Relation) -> bool:
    """Whether columns fill lanes of several vectors."""
    out, lanes = relation.axes[-1].out, relation.spec.lanes(machine())
    return out > lanes and out >= FILLED * -(-out // lanes) * lanes


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape) -> Array:
    """w[j] = sum_i a[i*s - p + j*d] b[i], of this shape, from contiguous a (N, channels, *size) and b (N, channels, *out)."""
    if not (a.size and b.size and math.prod(shape)):
        return np.zeros(shape, a.dtype)
    found = schedule(relation, len(a))
    sums = np.empty((found.sets, relation.outputs, relation.taps), a.dtype)
    units = found.sets * relation.outputs
    run(found.address, found.geometry.address, address_of(a), address_of(b), 0, address_of(sums), units, found.taken)
    dw = sums.sum(0) if found.sets > 1 else sums[0]
    return np.ascontiguousarray(dw[:, ::-1] if relation.flip else dw).reshape(shape)


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int) -> Schedule:
    """How the gradient is computed over so many images."""
    _, high, wide = relation.volume
    spec = Planar(
        relation.spec.kind, (high.kernel, wide.kernel), (high.stride, wide.stride), (high.dilation, wide.dilation), flip=False
    )
    (address,) = functions("depthwise_weights_first", spec, lambda: correlate(spec, machine()), ("correlate",))
    x_steps, y_steps = (strides(sizes, spec.bytes) for sizes in ([high.size, wide.size], [high.out, wide.out]))
    groups, blocks = groups_of(high, x_steps[2], 1, y_steps[2]), _blocks(wide, relation.spec.lanes(machine()))
    sets = max(min(images, UNITS // relation.outputs), 1)
    bounds = bounds_of(images, sets)
    fields = [relation.outputs, x_steps[1], y_steps[1], x_steps[2], wide.size, wide.out, -wide.pad_lo, len(groups), len(blocks)]
    products = images * high.out * wide.out * relation.taps // sets
    return Schedule(address, Geometry(fields, [bounds, groups, blocks]), sets, max(TAKEN // max(products, 1), 1))


def _blocks(axis: StridedAxis, lanes: int) -> NDArray[np.int64]:
    """The table of blocks."""
    first = np.arange(0, axis.out, lanes, dtype=np.int64)
    start = first * axis.stride - axis.pad_lo
    end = start + (axis.kernel - 1) * axis.dilation + lanes * axis.stride
    return np.stack([first, (start < 0) | (end > axis.size) | (first + lanes > axis.out)], 1).astype(np.int64)


def correlate(spec: Planar, machine: Machine) -> str:
    """The module of `correlate`: a and b are the arrays, d the sums of every unit; units are (set of images, channel)."""
    f, lanes = kernel_function("correlate"), max(machine.lanes(spec.kind), 2)
    kind, taps = vector(lanes, spec.kind), spec.taps[0] * spec.taps[1]
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    bounds, groups, blocks = (f.at(f.geometry, f.field(f.geometry, len(FIELDS) + k)) for k in range(3))
    totals = f.scratch(kind, taps)
    plane = Plane(f, spec, lanes, totals)
    with f.loop(f.begin, f.end) as unit:
        set_, channel = f.at(bounds, unit // get["channels"] * 8), unit % get["channels"]
        for tap in range(taps):
            f.store(f.value(kind, 0), f.at(totals, tap * size(kind)))
        with f.loop(f.load("i64", set_), f.load("i64", f.at(set_, 8))) as image:
            number = image * get["channels"] + channel
            plane.add(f.at(f.a, number * get["x_plane"]), f.at(f.b, number * get["y_plane"]), get, groups, blocks)
        for tap in range(taps):
            total = added_up(f, f.load(kind, f.at(totals, tap * size(kind))), lanes)
            f.store(total, f.at(f.d, (unit * taps + tap) * spec.bytes))
    return module(f)


def added_up(f: Function, value: Value, lanes: int) -> Value:
    """The sum of all lanes, halves added until one is left."""
    while lanes > 1:
        lanes //= 2
        value = f.shuffle(value, value, range(lanes)) + f.shuffle(value, value, range(lanes, 2 * lanes))
    return value


class Plane:
    """Writes how the numbers of one plane are added to totals in memory."""

    def __init__(self, f: Function, spec: Planar, lanes: int, totals: Value) -> None:
        self.f, self.spec, self.lanes, self.totals = f, spec, lanes, totals
        self.kind = vector(lanes, spec.kind)
        self.sums = [f.variable(self.kind, 0) for _ in range(spec.taps[0] * spec.taps[1])]
        self.terms = f.variable("i64", 0)

    def add(self, x: Value, y: Value, get: dict[str, Value], groups: Value, blocks: Value) -> None:
        """Add one plane; sums are zero before and after."""
        f = self.f
        with f.loop(0, get["groups"]) as number:
            group = f.at(groups, number * (8 * GROUP))
            rows, x_at, high, tap, y_at = (f.load("i64", f.at(group, 8 * k)) for k in range(GROUP))
            with f.loop(0, get["blocks"]) as k:
                block = f.at(blocks, k * (8 * BLOCK))
                column, masked = (f.load("i64", f.at(block, 8 * n)) for n in range(2))
                places = (f.at(x, x_at), f.at(y, y_at + column * self.spec.bytes), column, tap, high)
                for count in (*ROWS, 1):
                    with f.when(rows.eq(count)), f.when(masked.eq(0), likely=True) as edge:
                        self._rows(count, get, places, masked=False)
                        with edge.otherwise():
                            self._rows(count, get, places, masked=True)
                self.terms.set(self.terms.get() + rows)
                with f.when(self.terms.get() > (PIECE - ROWS[0]), likely=False):
                    self._cut()
        self._cut()

    def _cut(self) -> None:
        """Add sums to totals, and begin them anew."""
        f = self.f
        for k, total in enumerate(self.sums):
            place = f.at(self.totals, k * size(self.kind))
            f.store(f.load(self.kind, place) + total.get(), place)
            total.set(0)
        self.terms.set(0)

    def _rows(self, rows: int, get: dict[str, Value], places: tuple[Value, ...], *, masked: bool) -> None:
        """Add a block of columns of some rows of dy. A single row has `high` taps along the height inside, from `tap` on."""
        f, spec, (x, y, column, tap, high) = self.f, self.spec, places
        first, x_row = column * spec.stride[1] + get["start"], get["x_row"]
        columns = Columns(f, spec, self.lanes, first, get["width"] if masked else None)
        mask = mask_below(f, self.lanes, get["columns"] - column) if masked else None
        y_row = get["columns"] * spec.bytes
        numbers = [f.load(self.kind, f.at(y, y_row * m), mask=mask) for m in range(rows)]
        if rows == 1:
            for k in range(spec.taps[0]):
                nth = f.value("i64", k) - tap
                with f.when(nth.below(high)):
                    self._row(columns, f.at(x, nth * (x_row * spec.step[0])), [(numbers[0], k)], mask)
            return
        users: dict[int, list[tuple[Value, int]]] = {}
        for m, number in enumerate(numbers):
            for k in range(spec.taps[0]):
                users.setdefault(m * spec.stride[0] + k * spec.step[0], []).append((number, k))
        for place in sorted(users):
            self._row(columns, f.at(x, x_row * place), users[place], mask)

    def _row(self, columns: Columns, x: Value, taken: list[tuple[Value, int]], mask: Value | None) -> None:
        """Add what one row of x has for rows of dy, each with its own tap along the height."""
        f, wide = self.f, self.spec.taps[1]
        for tap in range(wide):
            value, inside = columns.tap(x, tap)
            if inside is not None and mask is not None:
                inside = inside & mask
            for number, k in taken:
                total = self.sums[k * wide + tap]
                added = fused(f, value, number, total.get())
                total.set(added if inside is None else f.select(inside, added, total.get()))
