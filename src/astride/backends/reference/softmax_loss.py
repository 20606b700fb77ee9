"""The negative log-likelihood of a softmax, in one step: its gradient needs no logarithm and cannot overflow.

x is read as (outer, classes, inner) and the labels as (outer, inner). The sum is formed in float64. A matrix `gain`
says for each label how much the logarithm of every class's probability counts; the plain loss is that of the identity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import ArrayError
from ...plan.dense import Normalization, SoftmaxLossPlan
from ..protocol import Array, Arrays, Kernel, Saved
from .softmax import probabilities


def forward(plan: SoftmaxLossPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """The loss; with `save`, `extra` holds the probabilities, of x's shape."""
    x, labels, gain = (*arrays, None)[:3]
    assert x is not None and labels is not None
    p = probabilities(x, plan.axis, np.empty(x.shape, x.dtype))
    rows = _rows(p, plan.axis)
    places, counted = _places(plan, labels, rows.shape)
    if gain is None:
        terms = _logs(plan, np.take_along_axis(rows, places[:, None, :], axis=1)[:, 0, :])
    else:
        terms = np.einsum("oic,oci->oi", gain[places], _logs(plan, rows))
    divisor = _divisor(plan, rows.shape, counted)
    out[...] = -terms[counted].sum() / divisor
    extra = {"p": p, "places": places, "counted": counted, "divisor": divisor, "gain": gain}
    shapes = (x.shape, labels.shape, None if gain is None else gain.shape)
    return out, Saved(shapes, extra=extra) if save else None


def backward(plan: SoftmaxLossPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """(p - [class == label]) * dy / divisor, and 0 at ignored places. Labels have no gradient.

    With a gain, (p * sum of the label's row - the label's row) * dy / divisor: the plain one where the row is one 1.
    """
    scale = (dy / saved.extra["divisor"]).astype(dy.dtype)
    dx = _scores_gradient(plan, scale, saved) if want[0] else None
    return dx, None, _gain_gradient(plan, scale, saved) if want[2] else None


def _scores_gradient(plan: SoftmaxLossPlan, scale: Array, saved: Saved) -> Array:
    places, counted, gain = (saved.extra[name] for name in ("places", "counted", "gain"))
    dx: Array = saved.extra["p"].copy()
    rows = _rows(dx, plan.axis)
    if gain is None:
        at = np.take_along_axis(rows, places[:, None, :], axis=1)
        np.put_along_axis(rows, places[:, None, :], at - 1, axis=1)
    else:
        rows *= gain.sum(axis=1)[places][:, None, :]
        rows -= np.moveaxis(gain[places], -1, 1)
    rows *= scale
    np.copyto(rows, 0, where=~counted[:, None, :])
    return dx


def _gain_gradient(plan: SoftmaxLossPlan, scale: Array, saved: Saved) -> Array:
    """Each label's row gathers -log p of its places."""
    places, counted, gain = (saved.extra[name] for name in ("places", "counted", "gain"))
    logs = np.moveaxis(_logs(plan, _rows(saved.extra["p"], plan.axis)), 1, -1)
    total = np.zeros(gain.shape)
    np.subtract.at(total, places[counted], logs[counted])
    return (total * scale).astype(gain.dtype)


def _logs(plan: SoftmaxLossPlan, p: Array) -> Array:
    return np.asarray(np.log(np.maximum(p, p.dtype.type(plan.floor)), dtype=np.float64))


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
