"""A smaller array along some axes of a larger one: scales, biases, slopes."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..plan.norms import Along, BroadcastPlan
from ._run import as_array, choice, run
from .softmax import canonical_axis


def broadcast(
    x: Any,
    z: Any,
    b: Any = None,
    *,
    function: str = "multiply",
    axis: int = 1,
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """x with z along the axes from `axis` on, z repeated over all others.

    multiply  x * z, + b where given: a scale for each channel, and a bias
    add       x + z: a bias
    prelu     max(x, 0) + z * min(x, 0): a slope for each channel, or one for all where z has no axes

    Shapes    x (*lead, *middle, *trail), z and b (*middle,), lead of `axis` axes → y like x
    Numbers   float32, float64 → the same; each step rounded once
    Edges     as floating point has it: 0 * inf is NaN; NaN stays NaN
    Gradient  dx: z * dy; dy; dy where x > 0, else z * dy. dz: x * dy; dy; min(x, 0) * dy, db: dy, all three summed over
              lead and trail in pairs. multiply and prelu keep x and z, not copied; add keeps nothing
    Raises    ArgumentError: no such function or axis, a dtype other than float32 and float64
              ArrayError: z does not fit x from that axis on, b is not like z, or there is one for add or prelu
    Source    Caffe, src/caffe/layers/scale_layer.cpp, bias_layer.cpp, prelu_layer.cpp; goldens layers/scale_*, bias, prelu*
    Example
    >>> import numpy as np, astride
    >>> astride.broadcast(np.float32([[1, 2], [3, 4]]), np.float32([10, 100]), np.float32([1, 0])).tolist()
    [[11.0, 200.0], [31.0, 400.0]]
    """
    x, z = as_array(x, "x"), as_array(z, "z")
    plan = BroadcastPlan(
        dtype=x.dtype.name,
        function=choice(Along, function, "function", "broadcast"),
        axis=0 if axis == x.ndim == z.ndim == 0 else canonical_axis(axis, x.ndim, "broadcast"),
    )
    return run(plan, x, z, None if b is None else as_array(b, "b"), out=out, backend=backend)[0]
