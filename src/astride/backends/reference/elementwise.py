"""Element by element: one NumPy expression a function.

ReLU keeps one byte an element (where x > 0), so that its input may be overwritten by its output, as Caffe's nets do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan.dense import ElementwisePlan, Function
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: ElementwisePlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """A result of x's shape; z takes part where the function has two arguments."""
    x, z = (*arrays, None)[:2]
    assert x is not None
    shapes = (x.shape, None if z is None else z.shape)
    if plan.function is Function.RELU:
        np.maximum(x, 0, out=out)
        if plan.slope:
            out += x.dtype.type(plan.slope) * np.minimum(x, 0)
        return out, Saved(shapes, extra={"positive": x > 0}) if save else None
    assert z is not None
    if plan.function is Function.MULTIPLY:
        np.multiply(x, z, out=out)
        if plan.scale != 1:
            out *= x.dtype.type(plan.scale)
        return out, Saved(shapes, x=x, extra={"z": z}) if save else None
    np.add(_times(x, plan.scale), _times(z, plan.z_scale), out=out)
    return out, Saved(shapes) if save else None


def backward(plan: ElementwisePlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """ReLU passes dy where x > 0 and slope * dy elsewhere, at 0 as well; products pass dy times the other factor."""
    if plan.function is Function.RELU:
        positive = saved.extra["positive"]
        dx = np.where(positive, dy, dy.dtype.type(plan.slope) * dy) if plan.slope else np.asarray(dy * positive)
        return (dx if want[0] else None), None
    if plan.function is Function.MULTIPLY:
        scaled = _times(dy, plan.scale)
        assert saved.x is not None
        factors = (saved.extra["z"], saved.x)
        return tuple(np.asarray(scaled * f) if w else None for f, w in zip(factors, want, strict=True))
    return (np.array(_times(dy, plan.scale)) if want[0] else None), (np.array(_times(dy, plan.z_scale)) if want[1] else None)


def _times(x: Array, scale: float) -> Array:
    return x if scale == 1 else x * x.dtype.type(scale)


KERNELS = (Kernel("numpy", forward, backward),)
