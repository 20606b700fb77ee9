"""Matrix products with the rows of x."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArrayError
from ..plan.dense import MatmulPlan
from ._run import as_array, run


def matmul(
    x: Any, w: Any, b: Any = None, *, transposed: bool = False, out: Array | None = None, backend: str | None = None
) -> Array:
    """Each row of x times the matrix w, plus b.

    Shapes    x (*lead, K), w (K, N), or (N, K) where transposed, b (N,) → y (*lead, N)
    Numbers   float32, float64 → the same; summed by BLAS in that dtype, so the order of a sum is BLAS's
    Edges     K = 0 gives b; a NaN anywhere in a row reaches the whole row of y
    Gradient  dx = dy wᵀ, dw = xᵀ dy, db = sum of dy over the rows; x and w are kept, not copied
    Raises    ArrayError: w is no matrix, dtypes differ, or the shapes do not fit
              ArgumentError: a dtype other than float32 and float64
    Source    linear algebra; Caffe's InnerProduct and PyTorch's linear store w as (N, K)
    Example
    >>> import numpy as np, astride
    >>> astride.matmul(np.float32([[1, 2]]), np.float32([[1, 0, 1], [0, 1, 1]]))
    array([[1., 2., 3.]], dtype=float32)
    """
    x, w = as_array(x, "x"), as_array(w, "w")
    if w.ndim != 2:
        raise ArrayError("w is not a matrix", given={"w": w}, required=f"w.ndim == 2: {w.ndim}", operator="matmul")
    inner, columns = w.shape[::-1] if transposed else w.shape
    plan = MatmulPlan(dtype=x.dtype.name, inner=inner, columns=columns, transposed=transposed)
    return run(plan, x, w, None if b is None else as_array(b, "b"), out=out, backend=backend)[0]
