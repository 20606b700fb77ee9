"""chainer.functions' pooling, unpooling and convolution on NumPy arrays, by Chainer 7.8.1's rules.

Names, order and defaults are Chainer's; arrays are (N, C, *size). The functions in `_nd` take one to three axes, those with
a rank in their name that one. Each function's numbers, edges and errors are those of the operator it names, under
rules="chainer".
"""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv
from ..ops.conv_transpose import conv_transpose
from ..ops.max_pool import max_pool
from ._chainer_unpooling import of_rank, unpooling_1d, unpooling_2d, unpooling_3d, unpooling_nd, upsampling_2d

__all__ = [
    "average_pooling_1d",
    "average_pooling_2d",
    "average_pooling_3d",
    "average_pooling_nd",
    "convolution_1d",
    "convolution_2d",
    "convolution_3d",
    "convolution_nd",
    "deconvolution_1d",
    "deconvolution_2d",
    "deconvolution_3d",
    "deconvolution_nd",
    "max_pooling_1d",
    "max_pooling_2d",
    "max_pooling_3d",
    "max_pooling_nd",
    "unpooling_1d",
    "unpooling_2d",
    "unpooling_3d",
    "unpooling_nd",
    "upsampling_2d",
]


def max_pooling_nd(
    x: Array, ksize: Any, stride: Any = None, pad: Any = 0, cover_all: bool = True, return_indices: bool = False
) -> Any:
    """Max pooling over (N, C, *size); indices are places inside the window. See astride.max_pool."""
    return max_pool(
        x, kernel=ksize, stride=stride, padding=pad, cover_all=cover_all, return_indices=return_indices, rules="chainer"
    )


def max_pooling_1d(
    x: Array, ksize: Any, stride: Any = None, pad: Any = 0, cover_all: bool = True, return_indices: bool = False
) -> Any:
    """max_pooling_nd over (N, C, L)."""
    return max_pooling_nd(of_rank(x, 1), ksize, stride, pad, cover_all, return_indices)


def max_pooling_2d(
    x: Array, ksize: Any, stride: Any = None, pad: Any = 0, cover_all: bool = True, return_indices: bool = False
) -> Any:
    """max_pooling_nd over (N, C, H, W)."""
    return max_pooling_nd(of_rank(x, 2), ksize, stride, pad, cover_all, return_indices)


def max_pooling_3d(
    x: Array, ksize: Any, stride: Any = None, pad: Any = 0, cover_all: bool = True, return_indices: bool = False
) -> Any:
    """max_pooling_nd over (N, C, D, H, W)."""
    return max_pooling_nd(of_rank(x, 3), ksize, stride, pad, cover_all, return_indices)


def average_pooling_nd(x: Array, ksize: Any, stride: Any = None, pad: Any = 0, pad_value: int | None = 0) -> Array:
    """Average pooling over (N, C, *size): padding counted, or with `pad_value` None not. See astride.avg_pool."""
    return avg_pool(x, kernel=ksize, stride=stride, padding=pad, pad_value=pad_value, rules="chainer")


def average_pooling_1d(x: Array, ksize: Any, stride: Any = None, pad: Any = 0, pad_value: int | None = 0) -> Array:
    """average_pooling_nd over (N, C, L)."""
    return average_pooling_nd(of_rank(x, 1), ksize, stride, pad, pad_value)


def average_pooling_2d(x: Array, ksize: Any, stride: Any = None, pad: Any = 0) -> Array:
    """average_pooling_nd over (N, C, H, W); this one has no `pad_value`."""
    return average_pooling_nd(of_rank(x, 2), ksize, stride, pad)


def average_pooling_3d(x: Array, ksize: Any, stride: Any = None, pad: Any = 0, pad_value: int | None = 0) -> Array:
    """average_pooling_nd over (N, C, D, H, W)."""
    return average_pooling_nd(of_rank(x, 3), ksize, stride, pad, pad_value)


def convolution_nd(
    x: Array,
    W: Array,
    b: Array | None = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Array:
    """Convolution over (N, C, *size), W (O, C/groups, *ksize). See astride.conv."""
    return conv(x, W, b, stride=stride, padding=pad, dilation=dilate, groups=groups, cover_all=cover_all, rules="chainer")


def convolution_1d(
    x: Array,
    W: Array,
    b: Array | None = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Array:
    """convolution_nd over (N, C, L)."""
    return convolution_nd(of_rank(x, 1), W, b, stride, pad, cover_all, dilate, groups)


def convolution_2d(
    x: Array,
    W: Array,
    b: Array | None = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    *,
    dilate: Any = 1,
    groups: int = 1,
) -> Array:
    """convolution_nd over (N, C, H, W); dilate and groups are keywords here."""
    return convolution_nd(of_rank(x, 2), W, b, stride, pad, cover_all, dilate, groups)


def convolution_3d(
    x: Array,
    W: Array,
    b: Array | None = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Array:
    """convolution_nd over (N, C, D, H, W)."""
    return convolution_nd(of_rank(x, 3), W, b, stride, pad, cover_all, dilate, groups)


def deconvolution_nd(
    x: Array,
    W: Array,
    b: Array | None = None,
    stride: Any = 1,
    pad: Any = 0,
    outsize: Any = None,
    dilate: Any = 1,
    groups: int = 1,
) -> Array:
    """Transposed convolution over (N, C, *size), W (C, O/groups, *ksize). See astride.conv_transpose."""
    return conv_transpose(
        x, W, b, stride=stride, padding=pad, dilation=dilate, groups=groups, output_size=outsize, rules="chainer"
    )


def deconvolution_1d(
    x: Array,
    W: Array,
    b: Array | None = None,
    stride: Any = 1,
    pad: Any = 0,
    outsize: Any = None,
    dilate: Any = 1,
    groups: int = 1,
) -> Array:
    """deconvolution_nd over (N, C, L)."""
    return deconvolution_nd(of_rank(x, 1), W, b, stride, pad, outsize, dilate, groups)


def deconvolution_2d(
    x: Array,
    W: Array,
    b: Array | None = None,
    stride: Any = 1,
    pad: Any = 0,
    outsize: Any = None,
    *,
    dilate: Any = 1,
    groups: int = 1,
) -> Array:
    """deconvolution_nd over (N, C, H, W); dilate and groups are keywords here."""
    return deconvolution_nd(of_rank(x, 2), W, b, stride, pad, outsize, dilate, groups)


def deconvolution_3d(
    x: Array,
    W: Array,
    b: Array | None = None,
    stride: Any = 1,
    pad: Any = 0,
    outsize: Any = None,
    dilate: Any = 1,
    groups: int = 1,
) -> Array:
    """deconvolution_nd over (N, C, D, H, W)."""
    return deconvolution_nd(of_rank(x, 3), W, b, stride, pad, outsize, dilate, groups)
