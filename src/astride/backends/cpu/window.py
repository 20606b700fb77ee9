"""The walk over one window's taps, and the layout of the geometry block that pooling kernels read.

A kernel of this backend is `void name(ptr geometry, ptr a, ptr b, ptr c, ptr d, i64 begin, i64 end)`: see driver.ll.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .contraction import prefetch
from .extremes import Count, Extreme, Matching, Scan
from .gradients import Gradient
from .ir import Function, Value
from .ir_types import vector
from .sums import Sum, Total
from .tables import COVER, WINDOW

LINE = 64
"""Bytes of a line of the cache."""

Spec = Extreme | Sum | Matching
State = Scan | Total | Count

CHANNELS, SIZE, OUT, KERNEL, DILATION, FIRST_FREE = 0, 1, 4, 7, 10, 13
"""Fields of the geometry: channels, then three numbers each, one an axis; what lies behind belongs to the kernel."""


def kernel_function(name: str, *, private: bool = False) -> Function:
    """A function that the driver can call."""
    return Function(name, private=private, geometry="ptr", a="ptr", b="ptr", c="ptr", d="ptr", begin="i64", end="i64")


def fields(f: Function, start: int) -> list[Value]:
    """Three fields: depth, height, width."""
    return [f.field(f.geometry, start + axis) for axis in range(3)]


def new_state(f: Function, spec: Spec, lanes: int) -> State:
    """The registers of one group of windows."""
    if isinstance(spec, Matching):
        return Count(f, spec, lanes)
    return Scan(f, spec, lanes) if isinstance(spec, Extreme) else Total(f, spec, lanes)


def begin(f: Function, state: State, first: Value, number: Value, place: Value) -> None:
    """Begin a window whose first tap inside the input is `first`, of that number; `place` counts windows from y's start."""
    if isinstance(state, Count):
        spec = state.spec
        state.against(spec.number.load(f, f.at(f.d, place * spec.number.bytes), state.lanes))
    elif isinstance(state, Total) and state.spec.scaled:
        state.against(f.load(vector(state.lanes, "double"), f.at(f.d, place * 8)))
    state.start(first, number)


@dataclass(frozen=True, slots=True)
class Window:
    """One axis's part of one window, read from the table of windows."""

    pixel: Value
    count: Value
    number: Value
    divisor: Value

    @classmethod
    def read(cls, f: Function, table: Value, window: Value) -> Window:
        row = f.at(table, window * (8 * WINDOW))
        return cls(*[f.load("i64", f.at(row, 8 * k)) for k in range(WINDOW)])


@dataclass(frozen=True, slots=True)
class Cover:
    """One axis's part of a window that has a pixel as a tap, read from the table of covers."""

    window: Value
    number: Value
    share: Value

    @classmethod
    def read(cls, f: Function, entries: Value, index: Value) -> Cover:
        row = f.at(entries, index * (8 * COVER))
        return cls(*[f.load("i64", f.at(row, 8 * k)) for k in range(COVER)])

    @staticmethod
    def range(f: Function, first: Value, pixel: Value) -> tuple[Value, Value]:
        """The entries of one pixel: from, to."""
        place = f.at(first, pixel * 8)
        return f.load("i64", place), f.load("i64", f.at(place, 8))


def walk(
    f: Function,
    axes: Sequence[Window],
    kernel: Sequence[Value],
    steps: Sequence[Value],
    base: Value,
    visit: Callable[[Value, Value], None],
) -> None:
    """Call `visit(pointer, number)` for each tap inside the input, row-major: `base` is the first tap's place, `steps` the
    bytes from a tap to the next along each axis, `number` the tap's place in the whole window."""
    width = axes[2]

    def line(start: Value, number: Value) -> None:
        first = number + width.number
        with f.loop(0, width.count) as k:
            visit(f.at(start, k * steps[2]), first + k)

    rows(f, axes, kernel, steps, base, line)


def rows(
    f: Function,
    axes: Sequence[Window],
    kernel: Sequence[Value],
    steps: Sequence[Value],
    base: Value,
    visit: Callable[[Value, Value], None],
    whole: tuple[int, int] | None = None,
) -> None:
    """Call `visit(pointer, number of the row's first tap)` for each row of taps inside the input, over depth and height.

    `whole` is how many layers and rows there are where all of them are known to be inside: they are written out.
    """
    if whole is not None:
        for a in range(whole[0]):
            above = f.at(base, steps[0] * a) if a else base
            for b in range(whole[1]):
                visit(f.at(above, steps[1] * b) if b else above, kernel[2] * (a * whole[1] + b))
        return
    depth, height = axes[0], axes[1]
    with f.loop(0, depth.count) as i:
        plane, layer = f.at(base, i * steps[0]), (depth.number + i) * kernel[1]
        with f.loop(0, height.count) as j:
            visit(f.at(plane, j * steps[1]), (layer + height.number + j) * kernel[2])


def blocks(f: Function, lanes: int, start: Value, end: Value, block: Callable[[Value, int], None]) -> None:
    """`block(position, lanes)` for start to end in whole vectors, the last one overlapping; one by one where there are fewer."""
    with f.when((end - start) >= lanes, likely=True) as few:
        last = end - lanes
        with f.loop(start, last, lanes) as i:
            block(i, lanes)
        block(last, lanes)
        with few.otherwise(), f.loop(start, end) as i:
            block(i, 1)


def bring(f: Function, pointer: Value, count: Value, *, write: bool = False) -> None:
    """Ask for `count` bytes of memory, which may be anywhere, before they are needed."""
    with f.loop(0, count, LINE) as at:
        prefetch(f, f.at(pointer, at), write=write)


def first_number(f: Function, axes: Sequence[Window], kernel: Sequence[Value]) -> Value:
    """The place in the whole window of its first tap inside the input."""
    depth, height, width = axes
    return (depth.number * kernel[1] + height.number) * kernel[2] + width.number


@dataclass(frozen=True, slots=True)
class Place:
    """Where one window's results go: y, and offsets where they are saved."""

    y: Value
    offsets: Value

    def moved(self, f: Function, spec: Spec, outputs: Value) -> Place:
        """The place `outputs` windows further."""
        return Place(f.at(self.y, outputs * spec.number.bytes), f.at(self.offsets, outputs * max(spec.offsets, 1)))


def finish(f: Function, spec: Spec, state: State, axes: Sequence[Window], kernel: Sequence[Value], place: Place) -> None:
    """Store what the window gives."""
    if isinstance(state, Scan):
        spec.number.store(f, state.result(), place.y)
        if spec.offsets:
            f.store(state.offset(first_number(f, axes, kernel)), place.offsets)
        return
    if isinstance(state, Count):
        spec.number.store(f, state.count.get(), place.y)
        return
    inside = axes[0].count * axes[1].count * axes[2].count
    value = state.result(_divisor(f, axes), kernel[0] * kernel[1] * kernel[2], inside)
    f.store(spec.number.narrow(f, value), place.y)


def finish_empty(f: Function, spec: Spec, state: State, axes: Sequence[Window], place: Place) -> None:
    """Store what a window without a tap inside the input gives."""
    if isinstance(state, Scan):
        spec.number.store(f, state.empty(), place.y)
        if spec.offsets:
            f.store(state.no_offset(), place.offsets)
        return
    if isinstance(state, Count):
        spec.number.store(f, f.value(vector(state.lanes, spec.number.computed), 0), place.y)
        return
    spec.number.store(f, state.empty(_divisor(f, axes)), place.y)


def _divisor(f: Function, axes: Sequence[Window]) -> Value:
    return axes[0].divisor * axes[1].divisor * axes[2].divisor * f.field(f.geometry, FIRST_FREE)


def saved_part(f: Function, spec: Gradient, place: Value, count: int) -> Value | None:
    """What forward saved for `count` windows from number `place` on, as gradients compare or divide it: offsets, or y."""
    if spec.kind == "offsets":
        offsets = f.load(vector(count, f"i{8 * spec.offsets}"), f.at(f.c, place * spec.offsets))
        return offsets.widened(spec.index)
    if spec.kind in ("norm", "match"):
        return spec.wide(f, spec.number.load(f, f.at(f.c, place * spec.number.bytes), count))
    return None
