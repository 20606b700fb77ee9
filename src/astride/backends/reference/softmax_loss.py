"""The negative log-likelihood of a softmax, in one step: its gradient needs no logarithm and cannot overflow.

x is read as (outer, classes, inner) and the labels as (outer, inner). The sum is formed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import ArrayError
from ...plan.dense import Normalization, SoftmaxLossPlan
from ..protocol import Array, Arrays, Kernel, Saved
from .softmax import probabilities

SMALLEST = float(np.finfo(np.float32).tiny)
"""C's FLT_MIN: Caffe takes the logarithm of nothing smaller, in double precision too."""


def forward(plan: SoftmaxLossPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """The loss; with `save`, `extra` holds the probabilities, of x's shape."""
    x, labels = arrays
    assert x is not None and labels is not None
    p = probabilities(x, plan.axis, np.empty(x.shape, x.dtype))
    rows = _rows(p, plan.axis)
    places, counted = _places(plan, labels, rows.shape)
    picked = np.take_along_axis(rows, places[:, None, :], axis=1)[:, 0, :]
    terms = -np.log(np.maximum(picked, SMALLEST), dtype=np.float64)
    divisor = _divisor(plan, rows.shape, counted)
    out[...] = (terms * counted).sum() / divisor
    extra = {"p": p, "places": places, "counted": counted, "divisor": divisor}
    return out, Saved((x.shape, labels.shape), extra=extra) if save else None


def backward(plan: SoftmaxLossPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """(p - [class == label]) * dy / divisor, and 0 at ignored places. Labels have no gradient."""
    if not want[0]:
        return None, None
    places, counted = saved.extra["places"], saved.extra["counted"]
    dx = saved.extra["p"].copy()
    rows = _rows(dx, plan.axis)
    at = np.take_along_axis(rows, places[:, None, :], axis=1)
    np.put_along_axis(rows, places[:, None, :], at - 1, axis=1)
    rows *= counted[:, None, :] * (dy / saved.extra["divisor"]).astype(dx.dtype)
    return dx, None


def _rows(x: Array, axis: int) -> Array:
    return x.reshape(math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))


def _places(plan: SoftmaxLossPlan, labels: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Labels as (outer, inner) with ignored ones moved to class 0, and where they count. A label out of range is an error."""
    outer, classes, inner = shape
    grid = labels.reshape(outer, inner).astype(np.int64)
    counted = np.ones(grid.shape, bool) if plan.ignore_label is None else grid != plan.ignore_label
    bad = counted & ((grid < 0) | (grid >= classes))
    if bad.any():
        raise ArrayError(
            "a label names no class",
            given={"label": int(grid[bad][0])},
            required=f"0 <= label < {classes}, the size of x's axis {plan.axis}",
            hint=f"ignore_label={int(grid[bad][0])} skips it",
        )
    return np.where(counted, grid, 0), counted


def _divisor(plan: SoftmaxLossPlan, shape: tuple[int, ...], counted: Array) -> float:
    """Never below one: a batch in which every label is ignored has loss 0, not NaN."""
    count = {
        Normalization.FULL: counted.size,
        Normalization.VALID: int(counted.sum()),
        Normalization.BATCH_SIZE: shape[0],
        Normalization.NONE: 1,
    }[plan.normalization]
    return float(max(count, 1))


KERNELS = (Kernel("numpy", forward, backward),)
