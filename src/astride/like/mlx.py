"""MLX's pooling layers and convolutions on channels-last NumPy arrays, by MLX 0.32's rules.

The pooling functions take the arguments of mlx.nn.MaxPool1d and its like; convolutions are mlx.core's, weights (out, *kernel,
in / groups), transposed ones too. `stream` is not offered. Each function's numbers and errors are those of the operator it
names, under rules="mlx".
"""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv
from ..ops.conv_transpose import conv_transpose
from ..ops.max_pool import max_pool
from ._views import filters_between, moved, shaped

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_general",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


def max_pool1d(x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """mlx.nn.MaxPool1d on (N, L, C). See astride.max_pool."""
    return _pool(max_pool, 1, x, kernel_size, stride, padding)


def max_pool2d(x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """mlx.nn.MaxPool2d on (N, H, W, C). See astride.max_pool."""
    return _pool(max_pool, 2, x, kernel_size, stride, padding)


def max_pool3d(x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """mlx.nn.MaxPool3d on (N, D, H, W, C). See astride.max_pool."""
    return _pool(max_pool, 3, x, kernel_size, stride, padding)


def avg_pool1d(x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """mlx.nn.AvgPool1d on (N, L, C). See astride.avg_pool."""
    return _pool(avg_pool, 1, x, kernel_size, stride, padding)


def avg_pool2d(x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """mlx.nn.AvgPool2d on (N, H, W, C). See astride.avg_pool."""
    return _pool(avg_pool, 2, x, kernel_size, stride, padding)


def avg_pool3d(x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """mlx.nn.AvgPool3d on (N, D, H, W, C). See astride.avg_pool."""
    return _pool(avg_pool, 3, x, kernel_size, stride, padding)


def conv1d(input: Array, weight: Array, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Array:
    """Convolution over (N, L, C). See astride.conv."""
    return _convolve(1, input, weight, stride, padding, dilation, groups)


def conv2d(input: Array, weight: Array, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Array:
    """Convolution over (N, H, W, C). See astride.conv."""
    return _convolve(2, input, weight, stride, padding, dilation, groups)


def conv3d(input: Array, weight: Array, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Array:
    """Convolution over (N, D, H, W, C). See astride.conv."""
    return _convolve(3, input, weight, stride, padding, dilation, groups)


def conv_general(
    input: Array,
    weight: Array,
    stride: Any = 1,
    padding: Any = 0,
    kernel_dilation: Any = 1,
    input_dilation: Any = 1,
    groups: int = 1,
    flip: bool = False,
) -> Array:
    """Convolution over one to three spatial axes; padding may be (all lows, all highs), `flip` turns the kernel round."""
    x, w = _fitting(None, input, weight)
    pads = _tuple(padding)
    if isinstance(pads, tuple) and any(isinstance(p, list | tuple) for p in pads):
        if len(pads) != 2:
            raise ArgumentError("padding is (all lows, all highs)", given={"padding": padding}, required="2 sequences")
        pads = tuple(zip(pads[0], pads[1], strict=True))
    return conv(
        x,
        filters_between(w),
        stride=_tuple(stride),
        padding=pads,
        dilation=_tuple(kernel_dilation),
        input_dilation=_tuple(input_dilation),
        groups=groups,
        flip=flip,
        layout="channels_last",
        rules="mlx",
    )


def conv_transpose1d(
    input: Array,
    weight: Array,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    output_padding: Any = 0,
    groups: int = 1,
) -> Array:
    """Transposed convolution over (N, L, C), weight (out, L, in / groups). See astride.conv_transpose."""
    return _transpose(1, input, weight, stride, padding, dilation, output_padding, groups)


def conv_transpose2d(
    input: Array,
    weight: Array,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    output_padding: Any = 0,
    groups: int = 1,
) -> Array:
    """Transposed convolution over (N, H, W, C), weight (out, H, W, in / groups). See astride.conv_transpose."""
    return _transpose(2, input, weight, stride, padding, dilation, output_padding, groups)


def conv_transpose3d(
    input: Array,
    weight: Array,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    output_padding: Any = 0,
    groups: int = 1,
) -> Array:
    """Transposed convolution over (N, D, H, W, C), weight (out, D, H, W, in / groups). See astride.conv_transpose."""
    return _transpose(3, input, weight, stride, padding, dilation, output_padding, groups)


def _pool(op: Any, rank: int, x: Any, kernel_size: Any, stride: Any, padding: Any) -> Array:
    y: Array = op(
        _ranked(rank, x, "x"),
        kernel=_tuple(kernel_size),
        stride=_tuple(stride),
        padding=_tuple(padding),
        layout="channels_last",
        rules="mlx",
    )
    return y


def _convolve(rank: int, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Array:
    x, w = _fitting(rank, input, weight)
    return conv(
        x,
        filters_between(w),
        stride=_tuple(stride),
        padding=_tuple(padding),
        dilation=_tuple(dilation),
        groups=groups,
        layout="channels_last",
        rules="mlx",
    )


def _transpose(
    rank: int, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any, groups: int
) -> Array:
    x, w = _fitting(rank, input, weight)
    if groups < 1 or w.shape[0] % groups:
        raise ArgumentError(
            "weight's outputs are not divisible by groups",
            given={"weight": w, "groups": groups},
            required=f"weight.shape[0] % groups == 0: {w.shape[0]} % {groups}",
        )
    kernel = w.shape[1:-1]
    by_group = shaped(w, (groups, w.shape[0] // groups, *kernel, w.shape[-1]))  # (g, O/g, *kernel, I/g)
    inner_first = moved(by_group, (0, rank + 2, 1, *range(2, rank + 2)))
    return conv_transpose(
        x,
        shaped(inner_first, (groups * w.shape[-1], w.shape[0] // groups, *kernel)),
        stride=_tuple(stride),
        padding=_tuple(padding),
        dilation=_tuple(dilation),
        output_padding=_tuple(output_padding),
        groups=groups,
        layout="channels_last",
        rules="mlx",
    )


def _fitting(rank: int | None, input: Any, weight: Any) -> tuple[Array, Array]:
    x = as_array(input, "input") if rank is None else _ranked(rank, input, "input")
    w = as_array(weight, "weight")
    if w.ndim != x.ndim:
        raise ArgumentError(
            "weight has another rank than input",
            given={"input": x, "weight": w},
            required=f"weight.ndim == input.ndim: {w.ndim} == {x.ndim}",
        )
    return x, w


def _ranked(rank: int, value: Any, name: str) -> Array:
    array = as_array(value, name)
    if array.ndim != rank + 2:
        raise ArgumentError(
            f"{name} has the wrong rank", given={name: array}, required=f"{name}.ndim == {rank + 2}: {array.ndim}"
        )
    return array


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
