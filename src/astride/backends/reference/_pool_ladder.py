"""The lower rungs of every pooling operator: the same loops, around the operator's arithmetic of one window.

    loops4   for each image, row, column, channel: one window as Python numbers
    loops3   for each row, column, channel: one window of all images at once
    loops2   for each row, column: one window of all images and channels at once

The top rung (im2col) is the operator's own: no loop over positions is left, only one over the taps of the kernel.
"Row and column" stand for every spatial axis, one to three. loops4 and loops3 walk channels-last arrays as textbooks do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...plan import PoolPlan, StridedAxis
from ...plan.kinds import Edge
from ..protocol import Array, Arrays, Kernel, Saved, Twice, no_offset, offset_dtype
from ._windows import EVERY, PixelGradient, Place, as_channels_first, as_channels_last, extension, places


@dataclass(frozen=True, slots=True)
class OneWindow:
    """An operator's arithmetic of one window, twice: on Python numbers and on rows (..., taps).

    numbers(plan, values, place, uniform)                 -> (value, position or -1)
    numbers_gradient(plan, values, place, y, position, dy) -> one number per tap
    rows, rows_gradient                                    the same on arrays
    empty(plan, dtype, place)                              -> the value of a window with no tap inside the input
    keeps(plan)                                            -> which of "offsets", "x", "y" backward needs
    unread(plan, saved, dx)                                sets the gradient of pixels no window reads, where it is not 0
    """

    numbers: Callable[..., tuple[Any, int]]
    numbers_gradient: Callable[..., list[Any]]
    rows: Callable[..., tuple[Array, Array | None]]
    rows_gradient: Callable[..., Array]
    empty: Callable[[PoolPlan, np.dtype[Any], Place], Any]
    keeps: Callable[[PoolPlan], frozenset[str]]
    unread: Callable[[PoolPlan, Saved, Array], None] = lambda plan, saved, dx: None


def kernels(
    one: OneWindow, forward_im2col: Callable[..., Any], backward_im2col: Callable[..., Any], twice: Twice | None = None
) -> tuple[Kernel, ...]:
    """The ladder of one operator, fastest rung first."""

    def forward_loops(step: Callable[..., None]) -> Callable[..., tuple[Array, Saved | None]]:
        def forward(
            plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool
        ) -> tuple[Array, Saved | None]:
            offsets = new_offsets(plan, out) if save and "offsets" in one.keeps(plan) else None
            step(one, plan, x, uniform, out, offsets)
            return out, saved_record(one.keeps(plan), x, uniform, out, offsets) if save else None

        return forward

    def backward_loops(step: Callable[..., None]) -> Callable[..., Arrays]:
        def backward(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
            if not want[0]:
                return (None, None)
            shape = saved.shapes[0]
            assert shape is not None
            gradient = PixelGradient(shape, dy.dtype, plan.layout, extension(plan.axes, plan.edge), plan.accumulate)
            step(one, plan, dy, saved, gradient.total)
            one.unread(plan, saved, gradient.total)
            return (gradient.finish(), None)

        return backward

    return (
        Kernel("im2col", forward_im2col, backward_im2col, twice=twice),
        Kernel("loops2", forward_loops(_forward_loops2), backward_loops(_backward_loops2), twice=twice),
        Kernel("loops3", forward_loops(_forward_loops3), backward_loops(_backward_loops3), textbook_only, twice),
        Kernel("loops4", forward_loops(_forward_loops4), backward_loops(_backward_loops4), textbook_only, twice),
    )


def textbook_only(plan: PoolPlan) -> str | None:
    """Why loops3 and loops4 decline a plan: they show the windows of textbooks."""
    if plan.edge is not Edge.SKIP:
        return f"textbook loops have no {plan.edge} edge"
    if not all(isinstance(axis, StridedAxis) and axis.input_dilation == 1 for axis in plan.axes):
        return "textbook loops have strided windows over an undilated input"
    return None


def new_offsets(plan: PoolPlan, out: Array) -> Array:
    """Room for one in-window offset per output, (N, C, *out), all of them "no tap"."""
    dtype = offset_dtype(plan.taps)
    return np.full(as_channels_first(out, plan.layout).shape, no_offset(dtype), dtype)


def saved_record(keeps: frozenset[str], x: Array, uniform: Array | None, y: Array, offsets: Array | None) -> Saved:
    """What forward keeps: only the parts the operator named. Offsets are (N, C, *out) in either layout."""
    return Saved(
        shapes=(x.shape, None if uniform is None else uniform.shape),
        offsets=offsets,
        x=x if "x" in keeps else None,
        y=y if "y" in keeps else None,
    )


def _forward_loops2(one: OneWindow, plan: PoolPlan, x: Array, uniform: Array | None, out: Array, offsets: Array | None) -> None:
    grown = extension(plan.axes, plan.edge)
    xv = grown.grow(as_channels_first(x, plan.layout), plan.edge_value)
    yv = as_channels_first(out, plan.layout)
    uv = None if uniform is None else as_channels_first(uniform, plan.layout)
    for place in places(grown.axes):
        here = (..., *place.window)
        if not len(place.offsets):
            yv[here] = one.empty(plan, x.dtype, place)
            continue
        window = xv[(EVERY, EVERY, *place.pixels)]
        value, position = one.rows(plan, window, place, None if uv is None else uv[here])
        yv[here] = value
        if offsets is not None and position is not None:
            offsets[here] = np.where(position < 0, no_offset(offsets.dtype), place.offsets[position])


def _backward_loops2(one: OneWindow, plan: PoolPlan, dy: Array, saved: Saved, dx: Array) -> None:
    grown = extension(plan.axes, plan.edge)
    xv = None if saved.x is None else grown.grow(as_channels_first(saved.x, plan.layout), plan.edge_value)
    yv = None if saved.y is None else as_channels_first(saved.y, plan.layout)
    dyv = as_channels_first(dy, plan.layout)
    for place in places(grown.axes):
        if not len(place.offsets):
            continue
        here, pixels = (..., *place.window), (EVERY, EVERY, *place.pixels)
        window = None if xv is None else xv[pixels]
        position = None if saved.offsets is None else _positions(saved.offsets[here], place)
        dx[pixels] += one.rows_gradient(plan, window, place, None if yv is None else yv[here], position, dyv[here])


def _forward_loops3(one: OneWindow, plan: PoolPlan, x: Array, uniform: Array | None, out: Array, offsets: Array | None) -> None:
    xv, yv = as_channels_last(x, plan.layout), as_channels_last(out, plan.layout)
    uv = None if uniform is None else as_channels_last(uniform, plan.layout)
    for place in places(plan.axes):
        for c in range(xv.shape[-1]):
            here = (EVERY, *place.window, c)
            if not len(place.offsets):
                yv[here] = one.empty(plan, x.dtype, place)
                continue
            window = xv[(EVERY, *place.pixels, c)]
            value, position = one.rows(plan, window, place, None if uv is None else uv[here])
            yv[here] = value
            if offsets is not None and position is not None:
                offsets[(EVERY, c, *place.window)] = np.where(position < 0, no_offset(offsets.dtype), place.offsets[position])


def _backward_loops3(one: OneWindow, plan: PoolPlan, dy: Array, saved: Saved, dx: Array) -> None:
    xv = None if saved.x is None else as_channels_last(saved.x, plan.layout)
    yv = None if saved.y is None else as_channels_last(saved.y, plan.layout)
    dyv = as_channels_last(dy, plan.layout)
    for place in places(plan.axes):
        if not len(place.offsets):
            continue
        for c in range(dyv.shape[-1]):
            here = (EVERY, *place.window, c)
            window = None if xv is None else xv[(EVERY, *place.pixels, c)]
            position = None if saved.offsets is None else _positions(saved.offsets[(EVERY, c, *place.window)], place)
            gradient = one.rows_gradient(plan, window, place, None if yv is None else yv[here], position, dyv[here])
            dx[(EVERY, c, *place.pixels)] += gradient


def _forward_loops4(one: OneWindow, plan: PoolPlan, x: Array, uniform: Array | None, out: Array, offsets: Array | None) -> None:
    xv, yv = as_channels_last(x, plan.layout), as_channels_last(out, plan.layout)
    uv = None if uniform is None else as_channels_last(uniform, plan.layout)
    for n in range(xv.shape[0]):
        for place in places(plan.axes):
            for c in range(xv.shape[-1]):
                here = (n, *place.window, c)
                if not len(place.offsets):
                    yv[here] = one.empty(plan, x.dtype, place)
                    continue
                values = xv[(n, *place.pixels, c)].tolist()
                yv[here], position = one.numbers(plan, values, place, None if uv is None else uv[here], x.dtype)
                if offsets is not None and position >= 0:
                    offsets[(n, c, *place.window)] = place.offsets[position]


def _backward_loops4(one: OneWindow, plan: PoolPlan, dy: Array, saved: Saved, dx: Array) -> None:
    xv = None if saved.x is None else as_channels_last(saved.x, plan.layout)
    yv = None if saved.y is None else as_channels_last(saved.y, plan.layout)
    dyv, dxv = as_channels_last(dy, plan.layout), np.moveaxis(dx, 1, -1)
    for n in range(dyv.shape[0]):
        for place in places(plan.axes):
            if not len(place.offsets):
                continue
            for c in range(dyv.shape[-1]):
                here = (n, *place.window, c)
                values = None if xv is None else xv[(n, *place.pixels, c)].tolist()
                position = -1
                if saved.offsets is not None:
                    position = int(_positions(saved.offsets[(n, c, *place.window)], place))
                y = None if yv is None else float(yv[here])
                gradient = one.numbers_gradient(plan, values, place, y, position, float(dyv[here]))
                for tap, share in enumerate(gradient):
                    dxv[(n, *(pixel[tap] for pixel in place.pixels), c)] += share


def _positions(offsets: Array, place: Place) -> Array:
    """In-window offsets as positions among the place's taps; -1 where no tap was picked."""
    position = np.searchsorted(place.offsets, offsets)
    found = position < len(place.offsets)
    return np.where(found & (place.offsets[np.minimum(position, len(place.offsets) - 1)] == offsets), position, -1)
