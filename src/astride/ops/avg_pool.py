"""Average pooling."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array, dtype_name
from ._run import as_array, make_plan, run


def avg_pool(
    x: Array,
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """The mean of each window, over one to three spatial axes, divided as a framework divides.

    Shapes    x (N, C, *size) -> y (N, C, *out), or (N, *size, C) with layout="channels_last"
    Numbers   float16, bfloat16 (summed in float32), float32, float64; within taps * eps * sum |x| / |divisor|
    Edges     the divisor at edges and for windows of padding alone is the rules': docs/ops/avg_pool.md has the table
    Gradient  dy / divisor to each real tap; nothing is saved
    Raises    ArgumentError: a kernel, stride, padding or option the rules refuse; an integer x; rules nobody knows
              ArrayError: dtype, rank or `out` that does not fit; `out` overlapping x
              UnsupportedError: the rules have no average pooling, or the named backend declines
    Source    rules/<framework>.py names framework, version and file; tests/golden confirms
    Example
    >>> import numpy as np, astride
    >>> x = np.ones((1, 1, 6))
    >>> astride.avg_pool(x, kernel=3, stride=2, padding=1, rules="caffe").round(3).tolist()
    [[[0.667, 1.0, 1.0, 0.5]]]
    """
    x = as_array(x, "x")
    plan = make_plan(
        "avg_pool",
        rules,
        x.shape,
        dtype_name(x.dtype),
        given={"x": x},
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        layout=layout,
        **options,
    )
    return run(plan, x, out=out, backend=backend, rules=rules)[0]
