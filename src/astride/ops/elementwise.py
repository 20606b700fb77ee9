"""Element by element: rectifiers, products and sums."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..plan.dense import ElementwisePlan, Function
from ._run import as_array, run


def relu(x: Any, *, slope: float = 0.0, out: Array | None = None, backend: str | None = None) -> Array:
    """max(x, 0) + slope * min(x, 0).

    Shapes    x (any) → y (the same)
    Numbers   float32, float64 → the same; exact for slope 0
    Edges     NaN stays NaN
    Gradient  dy where x > 0, slope * dy elsewhere, at 0 as well; one byte an element is kept, so x may be overwritten
    Raises    ArgumentError: a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/relu_layer.cpp; golden layers/relu and relu_leaky

    Example
        >>> import numpy as np, astride
        >>> astride.relu(np.float32([-2, 0, 3]), slope=0.5)
        array([-1.,  0.,  3.], dtype=float32)
    """
    x = as_array(x, "x")
    return run(ElementwisePlan(dtype=x.dtype.name, function=Function.RELU, slope=float(slope)), x, out=out, backend=backend)[0]


def multiply(x: Any, z: Any, *, scale: float = 1.0, out: Array | None = None, backend: str | None = None) -> Array:
    """scale * x * z.

    Shapes    x, z (any, equal) → y (the same); nothing is broadcast
    Numbers   float32, float64 → the same; x * z first, then the scale
    Edges     as floating point has them: 0 * inf is NaN
    Gradient  scale * z * dy to x and scale * x * dy to z; both are kept, not copied
    Raises    ArrayError: shapes or dtypes differ; ArgumentError: a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/dropout_layer.cpp

    Example
        >>> import numpy as np, astride
        >>> astride.multiply(np.float32([1, 2]), np.float32([0, 1]), scale=2.0)
        array([0., 4.], dtype=float32)
    """
    x, z = as_array(x, "x"), as_array(z, "z")
    plan = ElementwisePlan(dtype=x.dtype.name, function=Function.MULTIPLY, scale=float(scale))
    return run(plan, x, z, out=out, backend=backend)[0]


def add(
    x: Any, z: Any, *, scale: float = 1.0, z_scale: float = 1.0, out: Array | None = None, backend: str | None = None
) -> Array:
    """scale * x + z_scale * z.

    Shapes    x, z (any, equal) → y (the same); nothing is broadcast
    Numbers   float32, float64 → the same; one rounding for each product and one for the sum
    Edges     as floating point has them: inf - inf is NaN
    Gradient  scale * dy to x and z_scale * dy to z; nothing is kept
    Raises    ArrayError: shapes or dtypes differ; ArgumentError: a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/split_layer.cpp (its backward pass)

    Example
        >>> import numpy as np, astride
        >>> astride.add(np.float32([1, 2]), np.float32([10, 20]), z_scale=-1.0)
        array([ -9., -18.], dtype=float32)
    """
    x, z = as_array(x, "x"), as_array(z, "z")
    plan = ElementwisePlan(dtype=x.dtype.name, function=Function.ADD, scale=float(scale), z_scale=float(z_scale))
    return run(plan, x, z, out=out, backend=backend)[0]
