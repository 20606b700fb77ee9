"""Transposed convolution."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array, dtype_name
from ._run import as_array, make_plan, run


def conv_transpose(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    groups: int = 1,
    layout: str = "channels_first",
    rules: str = "explicit",
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """The adjoint of a convolution, over one to three spatial axes: y[i*s + j*d - p] += x[i] w[j], then + b.

    Shapes    x (N, I, *size), w (I, O/groups, *kernel), b (O,) -> y (N, O, *out), out = (n-1)*s + (k-1)*d + 1 - pads
              + output padding; channels last: x, y (N, *size, C)
    Numbers   float16, bfloat16 (summed in float32), float32, float64; within terms * eps * sum |x w|. Complex numbers and
              integers as conv
    Edges     what falls outside the output is dropped; pixels no kernel reaches hold the bias
    Gradient  dx by the convolution, dw = sum of x times the windows of dy, db = sum of dy; x and w are saved
    Raises    ArgumentError: channels not divisible by groups; an empty output; what the rules refuse
              ArrayError: mixed dtypes (nothing is promoted); ranks, b or `out` that do not fit; `out` overlapping an input
              UnsupportedError: the rules have no transposed convolution, or the named backend declines
    Source    rules/<framework>.py names framework, version and file; tests/golden confirms; backend="reference:flip"
              computes it by the flip identity instead
    Example
    >>> import numpy as np, astride
    >>> x = np.array([[[1.0, 2.0]]]); w = np.array([[[1.0, 10.0, 100.0]]])
    >>> astride.conv_transpose(x, w, stride=2).tolist()
    [[[1.0, 10.0, 102.0, 20.0, 200.0]]]
    """
    x, w = as_array(x, "x", also_complex=True), as_array(w, "w", also_complex=True)
    b = None if b is None else as_array(b, "b", also_complex=True)
    given = {"x": x, "w": w} | ({} if b is None else {"b": b})
    plan = make_plan(
        "conv_transpose",
        rules,
        x.shape,
        w.shape,
        dtype_name(x.dtype),
        given=given,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        **options,
    )
    return run(plan, x, w, b, out=out, backend=backend, rules=rules)[0]
