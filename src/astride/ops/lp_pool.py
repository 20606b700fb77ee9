"""Lp pooling, L2 first of all."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array, dtype_name
from ._run import as_array, make_plan, run


def lp_pool(
    x: Array,
    *,
    p: float = 2.0,
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
    """The p-norm of each window, over one to three spatial axes; p > 0, and infinity for the greatest magnitude.

    Shapes    x (N, C, *size) -> y (N, C, *out), or (N, *size, C) with layout="channels_last"
    Numbers   float16, bfloat16 (summed in float32), float32, float64; within a few eps * taps of y. No power overflows
              or vanishes where y itself does not, except by rules="pytorch", which forms the powers as PyTorch does
    Edges     taps outside add nothing; signs, partial windows and negative sums are the rules'
    Gradient  dy * (x/y)^(p-1), with the sign of x in the absolute form; 0 where y is 0, or by zero_window="formula" the
              0/0 = NaN of the formula; x and y are saved
    Raises    ArgumentError: p not above 0; a kernel, stride, padding or option the rules refuse; an integer x
              ArrayError: dtype, rank or `out` that does not fit; `out` overlapping x
              UnsupportedError: the rules have no Lp pooling, or the named backend declines
    Source    rules/<framework>.py names framework, version and file; tests/golden confirms
    Example
    >>> import numpy as np, astride
    >>> x = np.array([[[3, 4, -6, 8]]], dtype="float32")
    >>> astride.lp_pool(x, kernel=2).tolist()
    [[[5.0, 10.0]]]
    """
    x = as_array(x, "x")
    plan = make_plan(
        "lp_pool",
        rules,
        x.shape,
        dtype_name(x.dtype),
        given={"x": x},
        p=p,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        layout=layout,
        **options,
    )
    return run(plan, x, out=out, backend=backend, rules=rules)[0]
