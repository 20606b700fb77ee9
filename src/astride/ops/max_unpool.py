"""Max unpooling."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array, dtype_name
from ._run import as_array, make_plan, run


def max_unpool(
    x: Array,
    indices: Array,
    *,
    kernel: Any = None,
    stride: Any = None,
    padding: Any = None,
    output_size: Any = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """Every value written to the place its index names, zeros elsewhere: the way back from max pooling.

    Shapes    x (N, C, *size), indices like x -> y (N, C, *out), or channels last; out is (n-1)*stride + kernel - pads,
              or output_size
    Numbers   float16, bfloat16, float32, float64 and integers; exact; indices of any integer dtype
    Edges     two values with one index: the last in row-major order stays. -1 and other indices outside raise
    Gradient  dy read at the same places
    Raises    ArgumentError: no output size, or one the rules refuse
              ArrayError: an index outside the output (naming it); dtypes, ranks or `out` that do not fit
              UnsupportedError: the rules have no unpooling, or the named backend declines
    Source    PyTorch 2.13, aten/src/ATen/native/MaxUnpooling.cpp; rules/<framework>.py
    Example
    >>> import numpy as np, astride
    >>> x = np.array([[[5.0, 7.0]]]); indices = np.array([[[1, 2]]])
    >>> astride.max_unpool(x, indices, kernel=2).tolist()
    [[[0.0, 5.0, 7.0, 0.0]]]
    """
    x, indices = as_array(x, "x"), as_array(indices, "indices")
    plan = make_plan(
        "max_unpool",
        rules,
        x.shape,
        dtype_name(x.dtype),
        given={"x": x, "indices": indices},
        kernel=kernel,
        stride=stride,
        padding=padding,
        output_size=output_size,
        layout=layout,
        **options,
    )
    return run(plan, x, indices, out=out, backend=backend, rules=rules)[0]
