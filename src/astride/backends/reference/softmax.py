"""Softmax along one axis, shifted by the maximum so that no exponential overflows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan.dense import SoftmaxPlan
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: SoftmaxPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Exponentials of x - max over their sum."""
    x = arrays[0]
    assert x is not None
    probabilities(x, plan.axis, out)
    return out, Saved((x.shape,), y=out) if save else None


def backward(plan: SoftmaxPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The gradient (dy - sum(dy * y)) * y."""
    if not want[0]:
        return (None,)
    assert saved.y is not None
    return ((dy - (dy * saved.y).sum(axis=plan.axis, keepdims=True)) * saved.y,)


def probabilities(x: Array, axis: int, out: Array) -> Array:
    """The softmax itself, for the loss as well. An empty axis gives an empty result."""
    if x.size:
        np.subtract(x, x.max(axis=axis, keepdims=True), out=out)
        np.exp(out, out=out)
        out /= out.sum(axis=axis, keepdims=True)
    return out


KERNELS = (Kernel("numpy", forward, backward),)
