"""The greatest along an axis."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..plan.reduce import ArgmaxPlan
from ._run import as_array, run
from .softmax import canonical_axis


def argmax(
    x: Any, *, axis: int = 1, top_k: int = 1, values: bool = False, out: Array | None = None, backend: str | None = None
) -> Array:
    """The places of the `top_k` greatest along an axis, the greatest first; or their `values`.

    Shapes    x (any) → y, with top_k in place of the axis's size
    Numbers   float32, float64 → int64, values in x's dtype; exact
    Edges     of equals the one with the highest index comes first (NumPy: the lowest); NaN counts as the greatest
    Gradient  of values: dy to the places they came from, which are kept; places have none
    Raises    ArgumentError: no such axis, top_k below 1, a dtype other than float32 and float64
              ArrayError: top_k greater than the axis; UnsupportedError: a gradient of places is asked for
    Source    Caffe, src/caffe/layers/argmax_layer.cpp, which sorts pairs (value, index); golden layers/argmax*
    Example
    >>> import numpy as np, astride
    >>> astride.argmax(np.float32([[3, 7, 7]]), top_k=2).tolist()
    [[2, 1]]
    """
    x = as_array(x, "x")
    plan = ArgmaxPlan(dtype=x.dtype.name, axis=canonical_axis(axis, x.ndim, "argmax"), top_k=int(top_k), values=bool(values))
    return run(plan, x, out=out, backend=backend)[0]
