"""The rungs of convolution and of the transposed operator: which relation is the value, and which are its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...plan import ConvPlan
from ...plan.kinds import Edge
from ..protocol import Array, Arrays, Backward, Forward, Kernel, Saved, Twice, accepts_all
from . import _correlation as matrix
from . import _correlation_loops as loops
from ._correlation import Link, link
from ._windows import as_channels_first

Relation = Callable[[Link, Array, Array, Array], None]
Weights = Callable[[Link, Array, Array], Array]


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to compute the three relations."""

    name: str
    gather: Relation
    scatter: Relation
    weights: Weights
    declines: Callable[[ConvPlan], str | None] = accepts_all


def textbook_only(plan: ConvPlan) -> str | None:
    """Why loops3 and loops4 decline a plan: they show the windows of textbooks."""
    if plan.edge is not Edge.SKIP:
        return f"textbook loops have no {plan.edge} edge"
    if plan.flip or plan.batch_groups > 1 or any(axis.input_dilation > 1 for axis in plan.axes):
        return "textbook loops have an unflipped kernel, one batch group and an undilated input"
    return None


RUNGS = (
    Rung("im2col", matrix.gather_im2col, matrix.scatter_im2col, matrix.weights_im2col),
    Rung("loops2", matrix.gather_loops2, matrix.scatter_loops2, matrix.weights_loops2),
    Rung("loops3", loops.gather_loops3, loops.scatter_loops3, loops.weights_loops3, textbook_only),
    Rung("loops4", loops.gather_loops4, loops.scatter_loops4, loops.weights_loops4, textbook_only),
)
"""im2col computes through BLAS, whose order of summation may depend on the machine and the thread count."""


def kernel(rung: Rung, *, transposed: bool) -> Kernel:
    """The rung as a kernel: forward gathers (transposed scatters), dx does the other, dw is `weights`."""
    value, back = (rung.scatter, rung.gather) if transposed else (rung.gather, rung.scatter)

    def forward(
        plan: ConvPlan, x: Array, w: Array, b: Array | None = None, *, out: Array, save: bool
    ) -> tuple[Array, Saved | None]:
        lk = link(plan)
        view = as_channels_first(out, plan.layout)
        y = view if view.dtype == plan.accumulate else np.empty(view.shape, plan.accumulate)
        value(lk, _batches_as_channels(plan, _wide(plan, as_channels_first(x, plan.layout))), _wide(plan, w), y)
        if b is not None:
            y += _wide(plan, b).reshape(-1, *[1] * len(plan.axes))
        if y is not view:
            view[...] = y
        if not save:
            return out, None
        return out, Saved(shapes=(x.shape, w.shape, None if b is None else b.shape), x=x, w=w)

    def backward(plan: ConvPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
        if plan.whole:
            raise UnsupportedError("integers have no gradient", operator=plan.op, hint="x.astype('float32')")
        assert saved.x is not None and saved.w is not None and saved.shapes[0] is not None
        lk, met = link(plan), np.conj if plan.conjugate else np.asarray
        g = _wide(plan, as_channels_first(dy, plan.layout))
        dx = dw = db = None
        if want[0]:
            dx = np.empty(saved.shapes[0], saved.x.dtype)
            view = as_channels_first(dx, plan.layout)
            folded = plan.batch_groups > 1 or view.dtype != plan.accumulate
            total = np.empty(_batches_as_channels(plan, view).shape, plan.accumulate) if folded else view
            back(lk, g, met(_wide(plan, saved.w)), total)
            if folded:
                view[...] = _channels_as_batches(plan, total)
        if want[1]:
            x = met(_batches_as_channels(plan, _wide(plan, as_channels_first(saved.x, plan.layout))))
            result = rung.weights(lk, g, x) if transposed else rung.weights(lk, x, g)
            dw = np.ascontiguousarray(result, saved.w.dtype)
        if len(want) > 2 and want[2]:
            db = g.sum(axis=(0, *range(2, g.ndim))).astype(saved.x.dtype, copy=False)
        return (dx, dw, db)

    return Kernel(rung.name, forward, backward, rung.declines, twice_of(forward, backward))


def twice_of(forward: Forward, backward: Backward) -> Twice:
    """Double backward of what is linear in x and in w, out of its own two directions.

    <gx, dx> + <gw, dw> + <gb, db> = <dy, y(gx, w) + y(x, gw) + gb>, whose gradients are again dx and dw, of the other pair.
    """

    def twice(plan: ConvPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
        gx, gw, gb = (*cotangents, None, None)[:3]
        if plan.conjugate:
            raise UnsupportedError("conjugate gradients have no double backward", operator=plan.op)
        assert saved.x is not None and saved.w is not None
        total = np.zeros(dy.shape, np.result_type(np.dtype(plan.accumulate), dy.dtype))
        for x, w in ((gx, saved.w), (saved.x, gw)):
            if x is not None and w is not None:
                total += forward(plan, x, w, None, out=np.empty(dy.shape, dy.dtype), save=False)[0]
        if gb is not None:
            view = as_channels_first(total, plan.layout)
            view += gb.reshape(-1, *[1] * len(plan.axes))
        dx = dw = None
        if want[0] and gw is not None:
            dx = backward(plan, dy, replace(saved, w=gw), want=(True, False, False))[0]
        if want[1] and gx is not None:
            dw = backward(plan, dy, replace(saved, x=gx), want=(False, True, False))[1]
        return total.astype(dy.dtype, copy=False), (dx, dw, None)

    return twice


def _wide(plan: ConvPlan, array: Array) -> Array:
    """In the dtype sums are formed in; first in y's where that is another than x's, which rounds half types."""
    if plan.y_dtype:
        array = array.astype(np.dtype(plan.y_dtype), copy=False)
    return array.astype(np.dtype(plan.accumulate), copy=False)


def _batches_as_channels(plan: ConvPlan, x: Array) -> Array:
    """(B*N, C, ...) as (N, B*C, ...): batch groups are channel groups of a smaller batch."""
    if plan.batch_groups == 1:
        return x
    split: Any = x.reshape(plan.batch_groups, x.shape[0] // plan.batch_groups, *x.shape[1:])
    return np.asarray(split.swapaxes(0, 1).reshape(split.shape[1], plan.batch_groups * x.shape[1], *x.shape[2:]))


def _channels_as_batches(plan: ConvPlan, x: Array) -> Array:
    """The inverse of _batches_as_channels."""
    if plan.batch_groups == 1:
        return x
    split: Any = x.reshape(x.shape[0], plan.batch_groups, x.shape[1] // plan.batch_groups, *x.shape[2:])
    return np.asarray(split.swapaxes(0, 1).reshape(plan.batch_groups * x.shape[0], split.shape[2], *x.shape[2:]))
