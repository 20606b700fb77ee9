"""Mean and variance normalization of each image, or of each of its channels."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..plan.norms import MvnPlan
from ._run import as_array, run
from .softmax import canonical_axis


def mvn(
    x: Any,
    *,
    axis: int = 2,
    normalize_variance: bool = True,
    eps: float = 1e-9,
    exact: bool = True,
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """(x - mean) / (standard deviation + eps) over everything from `axis` on; axis 2 is each channel, axis 1 each image.

    Shapes    x (any) → y (the same)
    Numbers   float32, float64 → the same; means summed in float64. The variance is divided by the count
    Edges     eps is added to the root, not under it. What is constant gives 0; NaN where eps is 0 too
    Gradient  (dy - m(dy) - y * m(dy * y) * (deviation + eps) / deviation) / (deviation + eps), m the mean over those axes;
              with exact=False, as Caffe has it, without the quotient, which is right where eps is 0. x is kept, not copied
    Raises    ArgumentError: no such axis, eps below 0, a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/mvn_layer.cpp; goldens layers/mvn, mvn_eps (whose gradient is Caffe's)
    Example
    >>> import numpy as np, astride
    >>> astride.mvn(np.float64([[1, 3, 1, 3]]), axis=1).round(6).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """
    x = as_array(x, "x")
    first = axis if axis == x.ndim else canonical_axis(axis, x.ndim, "mvn")
    plan = MvnPlan(dtype=x.dtype.name, axis=first, normalize_variance=normalize_variance, eps=float(eps), exact=exact)
    return run(plan, x, out=out, backend=backend)[0]
