"""The gradient of depthwise weights where the channels come first: lanes are columns of dy, read where they lie.

A unit is one channel of some images. Every tap has one vector of sums in a register, which grows through all rows of a plane;
rows of dy whose windows lie inside along the height are taken several at a time: a row of x is loaded once for all of them.
After about PIECE terms sums are added to totals, whose lanes are added up when the unit ends. In blocks of columns that have a
tap outside, or fewer columns than lanes, lanes are masked.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import Shape, StridedAxis
from ..protocol import Array
from . import depthwise_sums
from .cache import functions
from .contraction import fused, mask_below
from .conv_relation import Relation, strides
from .cuts import bounds_of
from .depthwise_first import GROUP, ROWS, TAKEN, Columns, Planar, groups_of
from .depthwise_sums import Schedule, Sums, sets_of
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function

FIELDS = ("channels", "x_plane", "y_plane", "x_row", "width", "columns", "start", "groups", "blocks")
"""Fields: channels; bytes of a plane of x and of dy, and of a row of x; columns of x and of dy; the pixel of tap 0 of column 0;
groups of rows; blocks of columns. Then tables: where sets of images begin, groups, and blocks: first column, whether masked."""

BLOCK = 2
"""Numbers of a block."""

FREE = 6
"""Registers that are left for numbers of x and dy."""

FILLED = 0.7
"""Lanes that hold columns, at least: else moving channels into lanes was measured faster, as where rows are one vector long."""


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
    return depthwise_sums.weights_gradient(schedule, relation, a, b, shape)


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
    sets = sets_of(relation, images)
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
    sums = Sums(f, kind, taps)
    plane = Plane(f, spec, lanes, sums)

    def add(number: Value) -> None:
        plane.add(f.at(f.a, number * get["x_plane"]), f.at(f.b, number * get["y_plane"]), get, groups, blocks)

    sums.units(get["channels"], bounds, add)
    return module(f)


class Plane:
    """Writes how the numbers of one plane are added to sums."""

    def __init__(self, f: Function, spec: Planar, lanes: int, sums: Sums) -> None:
        self.f, self.spec, self.lanes, self.sums = f, spec, lanes, sums
        self.kind = vector(lanes, spec.kind)

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
                self.sums.grown(rows, ROWS[0])
        self.sums.cut()

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
                total = self.sums.taps[k * wide + tap]
                added = fused(f, value, number, total.get())
                total.set(added if inside is None else f.select(inside, added, total.get()))
