"""Batch normalization: mean 0 and variance 1 for each channel."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..plan.norms import BatchNormPlan
from ._run import as_array, run
from .softmax import canonical_axis


def batch_norm(
    x: Any,
    mean: Any = None,
    variance: Any = None,
    *,
    axis: int = 1,
    eps: float = 1e-5,
    through: bool = True,
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """(x - mean) / sqrt(variance + eps) for each place of `axis`, by given statistics or those of all other axes.

    Shapes    x (any), mean and variance (x.shape[axis],), both or none → y like x
    Numbers   float32, float64 → the same; statistics summed in float64. The variance is divided by the count
    Edges     one value for each place gives 0; a NaN makes its whole place NaN. Given a variance below -eps: NaN
    Gradient  given statistics: dy / s, and theirs; s is the square root. Own ones: (dy - m(dy) - y * m(dy * y)) / s,
              where m is the mean over the other axes; through=False takes them for constants. x is kept, not copied
    Raises    ArgumentError: no such axis, eps below 0, a dtype other than float32 and float64
              ArrayError: mean or variance does not fit, or one of them is missing
    Source    Caffe, src/caffe/layers/batch_norm_layer.cpp; goldens layers/bn_*
    Example
    >>> import numpy as np, astride
    >>> astride.batch_norm(np.float64([[1, 10], [3, 10]]), eps=0.0001).round(3).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    x = as_array(x, "x")
    plan = BatchNormPlan(dtype=x.dtype.name, axis=canonical_axis(axis, x.ndim, "batch_norm"), eps=float(eps), through=through)
    given = (None if mean is None else as_array(mean, "mean"), None if variance is None else as_array(variance, "variance"))
    return run(plan, x, *given, out=out, backend=backend)[0]
