"""Global pooling."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array, dtype_name
from ..errors import ArgumentError, ArrayError, AstrideError
from ._run import as_array, make_plan, run

OPERATORS = {"max": "max_pool", "min": "min_pool", "average": "avg_pool", "lp": "lp_pool"}


def global_pool(
    x: Array,
    *,
    reduce: str = "average",
    layout: str = "channels_first",
    rules: str = "explicit",
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """The mean, greatest or least tap or p-norm of a whole plane: that pooling with the plane as its kernel.

    Shapes    x (N, C, *size) -> y (N, C, 1, ...), or (N, 1, ..., C) with layout="channels_last"
    Numbers   those of max_pool, min_pool, avg_pool and lp_pool, whose plans and kernels these are
    Edges     no padding; NaN, ties and start values are the rules'; further options are those of the rules' own pooling
    Gradient  as that pooling's: equal shares, or to the winner, or (x/y)^(p-1)
    Raises    ArgumentError: no such reduction; an option the rules do not have or refuse
              ArrayError: x without spatial axes; dtype or `out` that does not fit
              UnsupportedError: the rules have no such pooling, or the named backend declines
    Source    the rules' own pooling; where a framework has global pooling under a name of its own (Caffe's
              global_pooling, ONNX's GlobalMaxPool), it computes the same
    Example
    >>> import numpy as np, astride
    >>> astride.global_pool(np.arange(12.0).reshape(1, 2, 2, 3)).ravel().tolist()
    [2.5, 8.5]
    """
    x = as_array(x, "x")
    if reduce not in OPERATORS:
        raise ArgumentError(
            "reduce has no such value",
            given={"reduce": reduce},
            required=f"one of {', '.join(map(repr, OPERATORS))}",
            operator="global_pool",
            rules=rules,
        )
    if x.ndim < 3:
        raise ArrayError(
            "x has no spatial axes",
            given={"x": x},
            required=f"x.ndim >= 3: {x.ndim}",
            operator="global_pool",
            hint="x (N, C, *size)",
        )
    sizes = x.shape[1:-1] if layout == "channels_last" or layout.endswith("C") else x.shape[2:]
    try:
        plan = make_plan(
            OPERATORS[reduce],
            rules,
            x.shape,
            dtype_name(x.dtype),
            given={"x": x},
            kernel=sizes,
            stride=(1,) * len(sizes),
            layout=layout,
            **options,
        )
    except AstrideError as error:
        error.operator = "global_pool"
        raise
    if any(axis.out != 1 for axis in plan.axes):
        raise ArgumentError(
            "the window is not the whole plane",
            given={"x": x, "padding": options.get("padding")},
            required=f"one window: {tuple(axis.out for axis in plan.axes)}",
            operator="global_pool",
            rules=rules,
            hint='padding="valid"',
        )
    return run(plan, x, out=out, backend=backend, rules=rules)[0]
