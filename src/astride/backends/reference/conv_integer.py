"""Convolution of quantised numbers: convolution's own rungs on the numbers less their zero points, in float64.

A sum of 2^37 products of eight bits is exact there; what is beyond int32 wraps around, as an accumulator of that type does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import UnsupportedError
from ...plan import ConvPlan
from ...plan.integer import IntegerConvPlan
from ..protocol import Array, Arrays, Kernel, Saved
from . import conv
from ._windows import as_channels_first


def as_convolution(plan: IntegerConvPlan) -> ConvPlan:
    """The same windows over float64."""
    return ConvPlan(
        dtype="float64",
        axes=plan.axes,
        in_channels=plan.in_channels,
        out_channels=plan.out_channels,
        layout=plan.layout,
        groups=plan.groups,
        accumulate="float64",
    )


def centred(array: Array, zero_point: Array | None) -> Array:
    """Less the zero point, one for all or one per slice of the first axis."""
    if zero_point is None:
        return array.astype(np.float64)
    return array.astype(np.float64) - _along_first(zero_point, array.ndim).astype(np.float64)


def requantised(plan: IntegerConvPlan, total: Array, scales: Sequence[Array | None], zero_point: Array | None) -> Array:
    """int32 sums (N, O, *out) scaled, rounded, moved and clipped."""
    x_scale, w_scale, y_scale = scales
    assert x_scale is not None and w_scale is not None and y_scale is not None
    scale = x_scale.reshape(-1) * w_scale.reshape(-1) / y_scale.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.rint(total.astype(np.float32) * scale.reshape(-1, *[1] * len(plan.axes)).astype(np.float32))
    limits = np.iinfo(plan.y_dtype)
    moved = rounded.astype(np.float64) + (0 if zero_point is None else float(zero_point.reshape(-1)[0]))
    return np.clip(moved, limits.min, limits.max).astype(plan.y_dtype)


def kernel(rung: Kernel) -> Kernel:
    """A rung of convolution, on quantised numbers."""

    def forward(plan: IntegerConvPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
        x, w, x_zero, w_zero, b, *scales, y_zero = arrays
        assert x is not None and w is not None
        sums = np.empty(out.shape, np.float64)
        rung.forward(as_convolution(plan), centred(x, x_zero), centred(w, w_zero), out=sums, save=False)
        total = as_channels_first(sums, plan.layout).astype(np.int64)
        if b is not None:
            total += b.reshape(-1, *[1] * len(plan.axes))
        wrapped = total.astype(np.int32)
        view = as_channels_first(out, plan.layout)
        view[...] = requantised(plan, wrapped, scales, y_zero) if plan.quantised else wrapped
        return out, Saved(tuple(None if a is None else a.shape for a in arrays)) if save else None

    return Kernel(rung.name, forward, backward, _declines(rung))


def backward(plan: IntegerConvPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Rounding has no slope. Raises UnsupportedError."""
    raise UnsupportedError("integers have no gradient", operator=plan.op, hint="astride.conv on floating numbers")


def _declines(rung: Kernel) -> Callable[[IntegerConvPlan], str | None]:
    return lambda plan: rung.declines(as_convolution(plan))


def _along_first(values: Array, rank: int) -> Array:
    return values.reshape(()) if values.size == 1 else values.reshape(-1, *[1] * (rank - 1))


KERNELS = tuple(kernel(rung) for rung in conv.KERNELS)
