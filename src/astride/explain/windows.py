"""Windows along one axis as plain data: which positions each one touches, and what it finds there.

A position counts in the input, negative before it. A tap outside the input is `padding` where the rules pad and `overhang`
where a window reaches past the padding too; `reads` is the pixel it takes its value from, None where it takes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from ..backends.reference._divisors import divisor_of
from ..backends.reference.fractional_pool import starts
from ..plan import Axis, ConvPlan, ExplicitAxis, FractionalPlan, Plan, PoolPlan, StridedAxis, UnfoldPlan, UnpoolPlan
from ..plan.base import axis_names
from ..plan.kinds import Direction, Divisor, Edge, Reduce
from .operators import unpooled_axes

MOST = 512
"""Windows of one axis that are kept; of more, the first and the last."""
MOST_TAPS = 2**17
"""Taps of all of them together: of large windows fewer are kept, of larger ones none."""


class Place(StrEnum):
    """Where a tap lies."""

    PIXEL = "pixel"
    GAP = "gap"  # between the pixels of a stretched (input-dilated) input
    PADDING = "padding"
    OVERHANG = "overhang"  # past the padding: what rounding up leaves


@dataclass(frozen=True, slots=True)
class Tap:
    """One tap: its position, where that is, and the pixel whose value it gets."""

    position: int
    place: Place
    reads: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """One window. `divisor` is what an average divides by along this axis."""

    index: int
    taps: tuple[Tap, ...]
    divisor: int | None = None

    @property
    def pixels(self) -> tuple[int, ...]:
        """The pixels inside the input that it reads."""
        return tuple(tap.position for tap in self.taps if tap.place is Place.PIXEL)


@dataclass(frozen=True, slots=True)
class AxisView:
    """One axis under one rule. `unread` are ranges of pixels that no window touches.

    Where windows are written (transposed convolution, fold, unpooling) they are the places that each input writes to.
    """

    name: str
    size: int
    out: int
    pad_lo: int
    pad_hi: int
    formula: str
    windows: tuple[Window, ...]
    left_out: int
    unread: tuple[tuple[int, int], ...]

    @property
    def first(self) -> int:
        """The lowest position that is input, padding or touched."""
        touched = [window.taps[0].position for window in self.windows if window.taps]
        return min([0, -max(self.pad_lo, 0), *touched])

    @property
    def last(self) -> int:
        """The highest position that is input, padding or touched."""
        touched = [window.taps[-1].position for window in self.windows if window.taps]
        return max([self.size - 1, self.size - 1 + max(self.pad_hi, 0), *touched])


def axis_views(plan: Plan, formulas: tuple[str, ...], arguments: Mapping[str, Any]) -> tuple[AxisView, ...]:
    """Every axis of a windowed plan; none where nothing says how large the windows were (unpooling)."""
    axes = axes_of(plan, arguments)
    views = zip(axes, axis_names(len(axes)), formulas, strict=True) if axes else ()
    return tuple(_view(plan, a, axis, name, text) for a, (axis, name, text) in enumerate(views))


def axes_of(plan: Plan, arguments: Mapping[str, Any]) -> tuple[Axis, ...]:
    """The axes of the plan; fractional ones for one sample, those of unpooling as the pooling before had them."""
    if isinstance(plan, UnpoolPlan):
        return unpooled_axes(plan, arguments)
    if isinstance(plan, FractionalPlan):
        samples = np.full((1, 1, len(plan.size)), arguments.get("samples", 0.5), plan.dtype)
        found = [first[0, 0].tolist() for first in starts(plan, samples)]
        ends = [tuple(begin + k for begin in firsts) for firsts, k in zip(found, plan.kernel, strict=True)]
        return tuple(ExplicitAxis(n, tuple(firsts), end) for n, firsts, end in zip(plan.size, found, ends, strict=True))
    axes: tuple[Axis, ...] = getattr(plan, "axes", ())
    return axes


def edge_of(plan: Plan | None) -> Edge:
    """What a tap outside reads."""
    edge: Edge = getattr(plan, "edge", Edge.SKIP)
    return edge


def _view(plan: Plan, a: int, axis: Axis, name: str, formula: str) -> AxisView:
    lo, hi = _pads(axis)
    indices = _kept(axis)
    alone = _averaged_alone(plan, a)
    windows = tuple(Window(i, _taps(axis, i, edge_of(plan)), None if alone is None else divisor_of(alone, (i,))) for i in indices)
    return AxisView(name, axis.stretched, axis.out, lo, hi, formula, windows, axis.out - len(indices), _unread(axis))


def _unread(axis: Axis) -> tuple[tuple[int, int], ...]:
    """The pixels that no window touches, as ranges (first, last)."""
    if isinstance(axis, StridedAxis) and axis.dilation == axis.input_dilation == 1 and axis.stride <= axis.kernel and axis.out:
        # Windows that leave nothing out between them: only what lies before the first and behind the last can be left.
        first, last = axis.start(0), axis.start(axis.out - 1) + axis.kernel - 1
        ends = ((0, min(first, axis.size) - 1), (max(last + 1, 0), axis.size - 1))
        return tuple((a, b) for a, b in ends if a <= b)
    touched = np.zeros(axis.size, bool)
    if isinstance(axis, StridedAxis):
        starts = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo
        for j in range(axis.kernel):
            positions = starts + j * axis.dilation
            inside = (positions >= 0) & (positions < axis.stretched) & (positions % axis.input_dilation == 0)
            touched[positions[inside] // axis.input_dilation] = True
    else:
        for start, end in zip(axis.starts, axis.ends, strict=True):
            touched[start:end] = True
    bounds = np.flatnonzero(np.diff(np.concatenate([[True], touched, [True]])))
    return tuple((int(a), int(b) - 1) for a, b in bounds.reshape(-1, 2))


def _kept(axis: Axis) -> list[int]:
    half = min(MOST, MOST_TAPS // max(axis.kernel, 1)) // 2
    return list(range(axis.out)) if axis.out <= 2 * half else [*range(half), *range(axis.out - half, axis.out)]


def _pads(axis: Axis) -> tuple[int, int]:
    return (axis.pad_lo, axis.pad_hi) if isinstance(axis, StridedAxis) else (0, 0)


def _stretch(axis: Axis) -> int:
    return axis.input_dilation if isinstance(axis, StridedAxis) else 1


def _taps(axis: Axis, window: int, edge: Edge) -> tuple[Tap, ...]:
    return tuple(Tap(p, place := _place(axis, p), _reads(axis, p, place, edge)) for p in axis.taps(window))


def _place(axis: Axis, position: int) -> Place:
    lo, hi = _pads(axis)
    if 0 <= position < axis.stretched:
        return Place.PIXEL if position % _stretch(axis) == 0 else Place.GAP
    return Place.PADDING if -lo <= position < axis.stretched + hi else Place.OVERHANG


def _reads(axis: Axis, position: int, place: Place, edge: Edge) -> int | None:
    if place is Place.PIXEL:
        return position // _stretch(axis)
    size = axis.size
    if place is Place.GAP or size == 0:
        return None
    if edge is Edge.CLAMP:
        return min(max(position, 0), size - 1)
    if edge is Edge.WRAP:
        return position % size
    if edge is Edge.MIRROR_EDGE:
        turned = position % (2 * size)
        return min(turned, 2 * size - 1 - turned)
    if edge is Edge.MIRROR:
        period = max(2 * (size - 1), 1)
        turned = position % period
        return min(turned, period - turned)
    return None


def _averaged_alone(plan: Plan, a: int) -> PoolPlan | None:
    """The plan of an average with this axis only, whose divisors are this axis's part; None where one number serves all."""
    if not isinstance(plan, PoolPlan) or plan.reduce is not Reduce.AVERAGE or plan.divisor is Divisor.OVERRIDE:
        return None
    pad = None if plan.divisor_pad is None else (plan.divisor_pad[a],)
    return replace(plan, axes=(plan.axes[a],), divisor_pad=pad)


def written(plan: Plan | None) -> str | None:
    """What writes, where windows are written rather than read: a pixel, a column or a value; None where they are read."""
    if isinstance(plan, ConvPlan | UnfoldPlan) and plan.direction is Direction.TRANSPOSED:
        return "pixel" if isinstance(plan, ConvPlan) else "column"
    return "value" if isinstance(plan, UnpoolPlan) else None


def is_transposed(plan: Plan | None) -> bool:
    """Whether windows are written rather than read."""
    return written(plan) is not None


def described(plan: Plan | None) -> str:
    """What the windows of a plan are, in words."""
    who = written(plan)
    if who is None:
        return "pixels each window reads"
    return "output pixels each value may be put at" if who == "value" else f"output pixels that each input {who} adds to"
