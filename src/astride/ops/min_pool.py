"""Min pooling."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from .max_pool import extreme


def min_pool(
    x: Array,
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    return_indices: bool = False,
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Any:
    """The least tap of each window, over one to three spatial axes: an operator of its own, not a negated maximum.

    Shapes    x (N, C, *size) -> y (N, C, *out), or (N, *size, C) with layout="channels_last"; indices as max_pool's
    Numbers   float16, bfloat16, float32, float64, bool and integers (the lowest included), where the rules have them; exact
    Edges     as max_pool with the order reversed: padding never lowers a result, an empty window gives +inf (Caffe: +FLT_MAX)
    Gradient  to the least tap, or to all that tie, by the rules; one byte saved per output for kernels up to 255 taps
    Raises    ArgumentError: a kernel, stride, padding or option the rules refuse; rules nobody knows
              ArrayError: dtype, rank or `out` that does not fit; `out` overlapping x
              UnsupportedError: the rules have no min pooling (few frameworks do), or the named backend declines
    Source    rules/<framework>.py; where the framework has no minimum, its maximum's rule mirrored, and the rule says so
    Example
    >>> import numpy as np, astride
    >>> x = np.array([[[3, 1, 2, 5]]], dtype="uint8")
    >>> astride.min_pool(x, kernel=2).tolist()
    [[[1, 2]]]
    """
    return extreme("min_pool", x, kernel, stride, padding, dilation, layout, rules, return_indices, out, backend, options)
