"""The greatest along an axis: a stable ascending sort read backwards, so that of equals the last comes first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import UnsupportedError
from ...plan.reduce import ArgmaxPlan
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: ArgmaxPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Places or values; the places are kept."""
    x = arrays[0]
    assert x is not None
    size = x.shape[plan.axis]
    if plan.top_k == 1:
        places = size - 1 - np.argmax(np.flip(x, plan.axis), axis=plan.axis, keepdims=True)
    else:
        order = np.flip(np.argsort(x, axis=plan.axis, kind="stable"), plan.axis)
        places = np.take(order, np.arange(plan.top_k), axis=plan.axis)
    out[...] = np.take_along_axis(x, places, axis=plan.axis) if plan.values else places
    return out, Saved((x.shape,), extra={"places": places}) if save else None


def backward(plan: ArgmaxPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Each value's gradient to the place it came from; places themselves have none."""
    if not want[0]:
        return (None,)
    if not plan.values:
        raise UnsupportedError("the place of a maximum has no gradient", hint="values=True")
    shape = saved.shapes[0]
    assert shape is not None
    dx = np.zeros(shape, dy.dtype)
    np.put_along_axis(dx, saved.extra["places"], dy, axis=plan.axis)
    return (dx,)


KERNELS = (Kernel("numpy", forward, backward),)
