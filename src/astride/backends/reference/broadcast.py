"""A smaller array along some axes of a larger one: its gradients are sums over all the other axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan import Shape
from ...plan.norms import Along, BroadcastPlan
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: BroadcastPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """One pass a step. Nothing is kept for a sum."""
    x, z, b = (*arrays, None, None)[:3]
    assert x is not None and z is not None
    wide = _spread(z, x.ndim, plan.axis)
    with np.errstate(all="ignore"):
        if plan.function is Along.ADD:
            np.add(x, wide, out=out)
        elif plan.function is Along.PRELU:
            np.minimum(x, 0, out=out)
            out *= wide
            out += np.maximum(x, 0)
        else:
            np.multiply(x, wide, out=out)
            if b is not None:
                out += _spread(b, x.ndim, plan.axis)
    if not save:
        return out, None
    shapes = (x.shape, z.shape, None if b is None else b.shape)
    return out, Saved(shapes) if plan.function is Along.ADD else Saved(shapes, x=x, extra={"z": z})


def backward(plan: BroadcastPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The slope at x for x; for z and b dy times what they are multiplied by, summed over the axes they are repeated on."""
    z_shape = saved.shapes[1]
    assert z_shape is not None
    if plan.function is Along.ADD:
        return (dy.copy() if want[0] else None), (_gather(dy, z_shape, plan.axis) if want[1] else None), None
    x = saved.x
    assert x is not None
    z = _spread(saved.extra["z"], x.ndim, plan.axis)
    with np.errstate(all="ignore"):
        if plan.function is Along.PRELU:
            return _prelu_gradients(plan, dy, x, z, want, z_shape)
        dx = np.asarray(dy * z) if want[0] else None
        dz = _gather(dy * x, z_shape, plan.axis) if want[1] else None
    return dx, dz, (_gather(dy, z_shape, plan.axis) if want[2] else None)


def _prelu_gradients(plan: BroadcastPlan, dy: Array, x: Array, z: Array, want: Sequence[bool], z_shape: Shape) -> Arrays:
    dx = dz = None
    if want[0]:
        # sums of masked terms: choosing element by element costs several times as much where signs alternate
        positive = x > 0
        dx = np.asarray(z * ~positive)
        dx += positive
        dx *= dy
    if want[1]:
        negative = np.asarray(np.minimum(x, 0))
        negative *= dy
        dz = _gather(negative, z_shape, plan.axis)
    return dx, dz, None


def _spread(z: Array, ndim: int, axis: int) -> Array:
    """A view with as many axes of size 1 behind its own as NumPy's broadcasting needs."""
    return z.reshape(z.shape + (1,) * (ndim - axis - z.ndim))


def _gather(values: Array, shape: Shape, axis: int) -> Array:
    kept = range(axis, axis + len(shape))
    return np.asarray(values.sum(axis=tuple(i for i in range(values.ndim) if i not in kept)))


KERNELS = (Kernel("numpy", forward, backward),)
