"""Which taps have a pixel. Where a plan reads outside the input, the input is grown by what its edge mode shows there and
the gradient folded back; where pixels are stretched, most taps meet none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import Axis, ExplicitAxis, PoolPlan, Shape, StridedAxis
from ...plan.kinds import Edge, Layout
from ...settings import refuse_beyond_memory
from .. import memory
from ..protocol import Array, Arrays, Saved, no_offset

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Taps:
    """The taps inside the input of every window of an axis: the first one's pixel and number in the window, and how many.

    From one to the next it is `step` pixels and `skip` numbers: between stretched pixels lie places that no tap reads.
    """

    pixel: Places
    number: Places
    count: Places
    step: int
    skip: int


def taps_inside(axis: Axis) -> Taps:
    """Where the taps of an axis are."""
    if isinstance(axis, ExplicitAxis):
        starts, ends = np.array(axis.starts, np.int64), np.array(axis.ends, np.int64)
        return Taps(starts, np.zeros(axis.out, np.int64), ends - starts, 1, 1)
    start = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo
    common = math.gcd(axis.dilation, axis.input_dilation)
    step, skip = axis.dilation // common, axis.input_dilation // common
    # Of the places start + k dilation those that are multiples of the input's dilation: none, or every skip-th k.
    reached = start % common == 0
    residue = -(start // common) * pow(step, -1, skip) % skip if skip > 1 else np.zeros_like(start)
    before = np.maximum(-(start // axis.dilation), 0)
    number = before + (residue - before) % skip
    end = np.minimum(-((start - axis.stretched) // axis.dilation), axis.kernel)
    count = np.where(reached, np.maximum(-((number - end) // skip), 0), 0)
    pixel = np.where(reached, (start + number * axis.dilation) // axis.input_dilation, 0)
    return Taps(pixel, number, count, step, skip)


@lru_cache(maxsize=512)
def axes_read(plan: PoolPlan) -> tuple[Axis, ...]:
    """The axes as kernels see them: those of the grown input where the plan has an edge mode."""
    if plan.edge is Edge.SKIP:
        return plan.axes
    grown = []
    for axis in plan.axes:
        assert isinstance(axis, StridedAxis)
        low, high = _margins(axis)
        grown.append(replace(axis, size=axis.size + low + high, pad_lo=axis.pad_lo - low, pad_hi=min(axis.pad_hi - high, 0)))
    return tuple(grown)


def grown_shape(plan: PoolPlan, shape: Shape) -> Shape:
    """The shape of the grown input."""
    first = 1 if plan.layout is Layout.CHANNELS_LAST else 2
    axes = axes_read(plan)
    return (*shape[:first], *(axis.size for axis in axes), *shape[first + len(axes) :])


def grow(plan: PoolPlan, x: Array) -> Array:
    """x with what its edge mode shows outside; itself where that is nothing. Raises ArgumentError: more than memory holds."""
    if plan.edge is Edge.SKIP:
        return x
    first = 1 if plan.layout is Layout.CHANNELS_LAST else 2
    shape = grown_shape(plan, x.shape)
    refuse_beyond_memory("the input with its padding", shape, x.dtype.name, x.dtype.itemsize, "less padding or a smaller kernel")
    for a, source in enumerate(_sources(plan)):
        if not x.shape[first + a]:  # no pixel to show anywhere
            x = np.zeros((*x.shape[: first + a], len(source), *x.shape[first + a + 1 :]), x.dtype)
        else:
            x = np.take(x, np.maximum(source, 0), axis=first + a)
        if plan.edge is Edge.CONSTANT:
            outside: Any = (slice(None),) * (first + a)
            x[(*outside, source < 0)] = plan.edge_value
    return memory.contiguous(x)


def fold(plan: PoolPlan, grown: Array) -> Array:
    """The gradient of the input from that of the grown one: pixels shown more than once get the sum."""
    if plan.edge is Edge.SKIP:
        return grown
    first = 1 if plan.layout is Layout.CHANNELS_LAST else 2
    for a, (axis, source) in enumerate(zip(plan.axes, _sources(plan), strict=True)):
        shape = (*grown.shape[: first + a], axis.size, *grown.shape[first + a + 1 :])
        if not axis.size:
            grown = np.zeros(shape, grown.dtype)
            continue
        order = np.argsort(source, kind="stable")
        order = order[source[order] >= 0]
        starts = np.searchsorted(source[order], np.arange(axis.size))
        with np.errstate(all="ignore"):  # infinities of both signs
            grown = np.add.reduceat(np.take(grown, order, axis=first + a), starts, axis=first + a, dtype=grown.dtype)
    return memory.contiguous(grown)


@lru_cache(maxsize=512)
def _in_float32(plan: PoolPlan) -> PoolPlan:
    return replace(plan, dtype="float32")


def in_float32(plan: PoolPlan, dy: Array, saved: Saved, backward: Callable[..., Arrays]) -> Arrays:
    """The gradient of a 16-bit plan, so that pixels shown more than once are summed before they are rounded."""
    x, y = (None if a is None else a.astype(np.float32) for a in (saved.x, saved.y))
    dx = backward(_in_float32(plan), dy.astype(np.float32), replace(saved, x=x, y=y), want=(True,))[0]
    assert dx is not None
    with np.errstate(all="ignore"):
        return (dx.astype(dy.dtype), None)


def apart(plan: PoolPlan, offsets: Array) -> Array:
    """Offsets (N, C, *out) in whole windows, from those in windows without the taps that lie between stretched pixels."""
    if not any(isinstance(axis, StridedAxis) and axis.input_dilation > 1 for axis in plan.axes):
        return offsets
    taps = [taps_inside(axis) for axis in plan.axes]
    none = offsets == no_offset(offsets.dtype)
    rest, step = np.where(none, 0, offsets).astype(np.int64), 1
    found = np.zeros(offsets.shape, np.int64)
    for a in reversed(range(len(taps))):
        axis, t = plan.axes[a], taps[a]
        rest, nth = np.divmod(rest, max(-(-axis.kernel // t.skip), 1))
        number = t.number if t.skip > 1 else np.zeros_like(t.number)
        found += (number.reshape([-1 if b == a else 1 for b in range(len(taps))]) + nth * t.skip) * step
        step *= axis.kernel
    return np.where(none, offsets, found.astype(offsets.dtype))


def _margins(axis: StridedAxis) -> tuple[int, int]:
    """Pixels that windows read before the input and behind it."""
    behind = axis.start(axis.out - 1) + axis.reach - axis.size if axis.out else 0
    return max(axis.pad_lo, 0), max(behind, 0)


@lru_cache(maxsize=512)
def _sources(plan: PoolPlan) -> tuple[Places, ...]:
    """For each axis the pixel shown at every position of the grown input; -1 for the constant."""
    found = []
    for axis in plan.axes:
        assert isinstance(axis, StridedAxis)
        low, high = _margins(axis)
        length = (axis.size + low + high,)
        refuse_beyond_memory("the input with its padding", length, "int64", 8, "less padding or a smaller kernel")
        found.append(_shown(np.arange(-low, axis.size + high, dtype=np.int64), axis.size, plan.edge))
    return tuple(found)


def _shown(position: Places, size: int, edge: Edge) -> Places:
    """The pixel that an edge mode shows at a position."""
    if edge is Edge.CONSTANT:
        return np.where((position >= 0) & (position < size), position, -1)
    if not size:
        return position * 0
    if edge is Edge.CLAMP:
        return np.clip(position, 0, size - 1)
    if edge is Edge.WRAP:
        return position % size
    # A mirror is there and back again: with the edge pixel once (a period of 2 size - 2) or twice (2 size).
    twice = edge is Edge.MIRROR_EDGE
    period = 2 * size if twice else max(2 * size - 2, 1)
    forth = position % period
    return np.minimum(forth, period - twice - forth)
