"""The pooling and convolution of NumPy courses: whole windows only, and the gradient idiom named.

`gradient` is "mask" (x == max: every tie gets the whole gradient), "share" (that mask over its sum) or "argmax".
"""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..ops import avg_pool as _avg_pool
from ..ops import conv as _conv
from ..ops import conv_transpose as _conv_transpose
from ..ops import max_pool as _max_pool
from ..ops import min_pool as _min_pool

__all__ = ["conv", "conv_transpose", "max_pool", "mean_pool", "min_pool"]


def max_pool(x: Array, kernel: Any, stride: Any = None, *, gradient: str = "mask", layout: str = "channels_first") -> Array:
    """`x[window].max()` for every window. See astride.max_pool."""
    y: Array = _max_pool.max_pool(x, kernel=kernel, stride=stride, gradient=gradient, layout=layout, rules="numpy_loops")
    return y


def min_pool(x: Array, kernel: Any, stride: Any = None, *, gradient: str = "mask", layout: str = "channels_first") -> Array:
    """`x[window].min()` for every window. See astride.min_pool."""
    y: Array = _min_pool.min_pool(x, kernel=kernel, stride=stride, gradient=gradient, layout=layout, rules="numpy_loops")
    return y


def mean_pool(x: Array, kernel: Any, stride: Any = None, *, layout: str = "channels_first") -> Array:
    """`x[window].mean()` for every window. See astride.avg_pool."""
    return _avg_pool.avg_pool(x, kernel=kernel, stride=stride, layout=layout, rules="numpy_loops")


def conv(x: Array, w: Array, b: Array | None = None, stride: Any = 1, pad: Any = 0, *, layout: str = "channels_first") -> Array:
    """`(x_padded[window] * w[f]).sum() + b[f]` for every window and filter; w (F, C, HH, WW). See astride.conv."""
    return _conv.conv(x, w, b, stride=stride, padding=pad, layout=layout, rules="numpy_loops")


def conv_transpose(
    x: Array, w: Array, b: Array | None = None, stride: Any = 1, pad: Any = 0, *, layout: str = "channels_first"
) -> Array:
    """`y[window] += x[place] * w` for every place; w (C, F, HH, WW). See astride.conv_transpose."""
    return _conv_transpose.conv_transpose(x, w, b, stride=stride, padding=pad, layout=layout, rules="numpy_loops")
