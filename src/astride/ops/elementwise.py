"""Element by element: rectifiers, products and sums."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.dense import ElementwisePlan, Function
from ._run import as_array, run


def elementwise(
    x: Any,
    z: Any = None,
    *,
    function: str = "relu",
    slope: float = 0.0,
    scale: float = 1.0,
    z_scale: float = 1.0,
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """One function of each element of x, or of x and z: `relu`, `multiply` or `add`.

    relu      max(x, 0) + slope * min(x, 0)
    multiply  scale * x * z: a dropout mask, a gate
    add       scale * x + z_scale * z

    Shapes    x and, for multiply and add, z (any, equal) → y (the same); nothing is broadcast
    Numbers   float32, float64 → the same; each product and sum rounded once, a scale of 1 not at all
    Edges     NaN stays NaN; otherwise as floating point has it: 0 * inf and inf - inf are NaN
    Gradient  relu: dy where x > 0, slope * dy elsewhere, at 0 as well; one byte an element is kept, so x may be overwritten.
              multiply: scale * z * dy and scale * x * dy; both are kept, not copied. add: scale * dy and z_scale * dy
    Raises    ArgumentError: no such function, or a dtype other than float32 and float64
              ArrayError: z missing, one too many, or of another shape or dtype than x
    Source    Caffe, src/caffe/layers/relu_layer.cpp, dropout_layer.cpp, split_layer.cpp; golden layers/relu and relu_leaky
    Example
    >>> import numpy as np, astride
    >>> astride.elementwise(np.float32([-2, 0, 3]), slope=0.5)
    array([-1.,  0.,  3.], dtype=float32)
    >>> astride.elementwise(np.float32([1, 2]), np.float32([10, 20]), function="add", z_scale=-1.0)
    array([ -9., -18.], dtype=float32)
    """
    x = as_array(x, "x")
    if function not in list(Function):
        raise ArgumentError(
            "there is no such function",
            given={"function": function},
            required=f"one of {', '.join(Function)}",
            operator="elementwise",
        )
    plan = ElementwisePlan(
        dtype=x.dtype.name, function=Function(function), slope=float(slope), scale=float(scale), z_scale=float(z_scale)
    )
    return run(plan, x, None if z is None else as_array(z, "z"), out=out, backend=backend)[0]
