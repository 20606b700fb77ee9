"""Windows as columns, tap by tap: the matrix that turns a convolution into one product, and the adjoint that sums it back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan.unfold import UnfoldPlan
from ..protocol import Array, Arrays, Kernel, Saved
from ._windows import PixelGradient, as_channels_first, extension, taps


def spread(plan: UnfoldPlan, x: Array, columns: Array) -> None:
    """Every tap's pixels into its row; both arrays in the plan's layout."""
    grown = extension(plan.axes, plan.edge)
    pixels, rows = grown.grow(as_channels_first(x, plan.layout), 0), as_channels_first(columns, plan.layout)
    rows[...] = 0
    for tap in taps(grown.axes):
        tap.put(rows[:, tap.offset :: plan.taps], tap.read(pixels))


def gathered(plan: UnfoldPlan, columns: Array, shape: tuple[int, ...]) -> Array:
    """The adjoint of `spread`, an array of `shape`: every pixel the sum of the taps that read it."""
    grown = extension(plan.axes, plan.edge)
    pixels = PixelGradient(shape, columns.dtype, plan.layout, grown, plan.accumulate)
    rows = as_channels_first(columns, plan.layout)
    for tap in taps(grown.axes):
        tap.add(pixels.total, tap.of(rows[:, tap.offset :: plan.taps]))
    return pixels.finish()


def forward(plan: UnfoldPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Only x's shape is kept."""
    x = arrays[0]
    assert x is not None
    spread(plan, x, out)
    return out, Saved((x.shape,)) if save else None


def backward(plan: UnfoldPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Every pixel gets the sum of the taps that read it."""
    shape = saved.shapes[0]
    assert shape is not None
    return (gathered(plan, dy, shape) if want[0] else None,)


def twice(plan: UnfoldPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """The operator is linear, so dy's own gradient is the operator of the cotangent."""
    assert cotangents[0] is not None
    gradient = np.empty(dy.shape, dy.dtype)
    spread(plan, cotangents[0], gradient)
    return gradient, (None,)


KERNELS = (Kernel("taps", forward, backward, twice=twice),)
