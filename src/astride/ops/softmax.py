"""Softmax along one axis."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.dense import SoftmaxPlan
from ._run import as_array, run


def softmax(x: Any, *, axis: int = 1, out: Array | None = None, backend: str | None = None) -> Array:
    """exp(x - max) / sum of exp(x - max), along one axis.

    Shapes    x (any) → y (the same); negative axes count from the back
    Numbers   float32, float64 → the same; the maximum is subtracted first, so nothing overflows
    Edges     a NaN or +inf makes its whole line NaN; a line of -inf only as well
    Gradient  (dy - sum(dy * y)) * y; y is kept, not copied
    Raises    ArgumentError: no such axis, or a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/softmax_layer.cpp; golden layers/softmax and softmax_axis2
    Example
    >>> import numpy as np, astride
    >>> astride.softmax(np.float32([[0, 0, 0, 0]]))
    array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """
    x = as_array(x, "x")
    return run(SoftmaxPlan(dtype=x.dtype.name, axis=canonical_axis(axis, x.ndim, "softmax")), x, out=out, backend=backend)[0]


def canonical_axis(axis: int, ndim: int, operator: str) -> int:
    """The axis counted from the front. Raises ArgumentError where there is none."""
    if not -ndim <= axis < ndim:
        raise ArgumentError(
            "there is no such axis",
            given={"axis": axis},
            required=f"-{ndim} <= axis < {ndim}: {axis}",
            hint="axis=-1",
            operator=operator,
        )
    return axis % ndim
