"""Convolution."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array, dtype_name
from ._run import as_array, make_plan, run


def conv(
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
    """Cross-correlation of an image with a kernel, over one to three spatial axes: y[i] = sum_j x[i*s - p + j*d] w[j] + b.

    Shapes    x (N, I, *size), w (O, I/groups, *kernel), b (O,) -> y (N, O, *out); channels last: x, y (N, *size, C)
    Numbers   float16, bfloat16 (summed in float32), float32, float64; within terms * eps * sum |x w|. The im2col rung
              sums in the order of the BLAS that NumPy uses. By rules="jax" and "pytorch" complex numbers too, and integers
              in their own type, which wraps around: exact
    Edges     taps outside the input are skipped, not multiplied: padding next to an infinite weight adds nothing
    Gradient  dx by the transposed convolution, dw = sum of dy times the windows, db = sum of dy; x and w are saved. Of
              complex numbers PyTorch takes the conjugates of w and x there, JAX does not; integers have none
    Raises    ArgumentError: channels not divisible by groups; a kernel larger than the padded input; what the rules refuse
              ArrayError: mixed dtypes (nothing is promoted); ranks, b or `out` that do not fit; `out` overlapping an input
              UnsupportedError: the rules have no convolution, or the named backend declines
    Source    rules/<framework>.py names framework, version and file; tests/golden confirms
    Example
    >>> import numpy as np, astride
    >>> x = np.arange(1.0, 6.0).reshape(1, 1, 5); w = np.array([[[1.0, 10.0, 100.0]]])
    >>> astride.conv(x, w, padding=1).tolist()
    [[[210.0, 321.0, 432.0, 543.0, 54.0]]]
    """
    x, w = as_array(x, "x", also_complex=True), as_array(w, "w", also_complex=True)
    b = None if b is None else as_array(b, "b", also_complex=True)
    given = {"x": x, "w": w} | ({} if b is None else {"b": b})
    plan = make_plan(
        "conv",
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
