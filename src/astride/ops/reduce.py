"""Totals over everything behind an axis."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.reduce import ReducePlan, Total
from ._run import as_array, run
from .softmax import canonical_axis


def reduce(
    x: Any, *, total: str = "sum", axis: int = 0, coeff: float = 1.0, out: Array | None = None, backend: str | None = None
) -> Array:
    """coeff times the `sum`, `mean`, `asum` (of |x|) or `sumsq` (of x^2) of everything from `axis` on.

    Shapes    x (*lead, *rest) → y (*lead), the axes before `axis`; axis 0 gives one number
    Numbers   float32, float64 → the same; summed in pairs in that dtype, then multiplied once, by coeff / count for a mean
    Edges     nothing sums to 0, and its mean is NaN; a NaN reaches its whole row
    Gradient  coeff * dy times 1, 1 / count, sign(x) (0 at 0), or 2 x; asum and sumsq keep x, not copied
    Raises    ArgumentError: no such total or axis, a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/reduction_layer.cpp; golden layers/reduction_*
    Example
    >>> import numpy as np, astride
    >>> astride.reduce(np.float32([[1, -2], [3, 4]]), total="asum", axis=1).tolist()
    [3.0, 7.0]
    """
    x = as_array(x, "x")
    if total not in list(Total):
        raise ArgumentError(
            "there is no such total", given={"total": total}, required=f"one of {', '.join(Total)}", operator="reduce"
        )
    where = canonical_axis(axis, x.ndim, "reduce") if x.ndim else 0
    plan = ReducePlan(dtype=x.dtype.name, total=Total(total), axis=where, coeff=float(coeff))
    return run(plan, x, out=out, backend=backend)[0]
