"""torch.nn.functional's pooling, unpooling and convolution on NumPy arrays, by PyTorch 2.13's rules.

Arguments, order and defaults are PyTorch's; inputs are (N, C, *size) or, unbatched, (C, *size). Differentiate with
`astride.vjp`. Each function's numbers, edges and errors are those of the operator it names, under rules="pytorch".
"""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops._run import plan as plan_of
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv
from ..ops.conv_transpose import conv_transpose
from ..ops.max_pool import max_pool
from ..ops.max_unpool import max_unpool
from ._pytorch_columns import fold, unfold
from ._pytorch_norms import norm_pool
from ._pytorch_nothing import convolved, nothing_of, refuse_no_channels
from ._pytorch_sized import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    fractional_max_pool2d,
    fractional_max_pool3d,
)
from ._unbatched import batched, batched_one, one_or_all

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "unfold",
]


def max_pool1d(
    input: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Max pooling over (N, C, L) or (C, L); indices flat in the plane. See astride.max_pool."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Max pooling over (N, C, H, W) or (C, H, W); indices flat in the plane. See astride.max_pool."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Max pooling over (N, C, D, H, W) or (C, D, H, W); indices flat in the volume. See astride.max_pool."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
) -> Array:
    """Average pooling over (N, C, L) or (C, L). See astride.avg_pool."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Average pooling over (N, C, H, W) or (C, H, W). See astride.avg_pool."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Average pooling over (N, C, D, H, W) or (C, D, H, W). See astride.avg_pool."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def lp_pool1d(input: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    """Lp pooling over (N, C, L) or (C, L). See astride.lp_pool."""
    return norm_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    """Lp pooling over (N, C, H, W) or (C, H, W). See astride.lp_pool."""
    return norm_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    """Lp pooling over (N, C, D, H, W) or (C, D, H, W). See astride.lp_pool."""
    return norm_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def max_unpool1d(
    input: Array, indices: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Array:
    """Max unpooling over (N, C, L) or (C, L). See astride.max_unpool."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Array, indices: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Array:
    """Max unpooling over (N, C, H, W) or (C, H, W). See astride.max_unpool."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Array, indices: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Array:
    """Max unpooling over (N, C, D, H, W) or (C, D, H, W). See astride.max_unpool."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def conv1d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Array:
    """Convolution over (N, C, L) or (C, L). See astride.conv."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Array:
    """Convolution over (N, C, H, W) or (C, H, W). See astride.conv."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Array, weight: Array, bias: Array | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Array:
    """Convolution over (N, C, D, H, W) or (C, D, H, W). See astride.conv."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Array:
    """Transposed convolution over (N, C, L) or (C, L). See astride.conv_transpose."""
    return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Array:
    """Transposed convolution over (N, C, H, W) or (C, H, W). See astride.conv_transpose."""
    return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Array:
    """Transposed convolution over (N, C, D, H, W) or (C, D, H, W). See astride.conv_transpose."""
    return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _max_pool(
    rank: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, return_indices: bool
) -> Any:
    def compute(x: Array) -> Any:
        if rank == 1 and not return_indices and x.dtype.kind in "iub":
            raise ArgumentError(
                "max_pool1d takes integers only where it is asked for indices",
                given={"input": x},
                because="PyTorch 2.13, aten/src/ATen/native/MaxPooling.cpp",
                operator="max_pool",
                rules="pytorch",
                hint="return_indices=True",
            )
        return max_pool(
            x,
            kernel=one_or_all(kernel_size),
            stride=one_or_all(stride),
            padding=one_or_all(padding),
            dilation=one_or_all(dilation),
            ceil_mode=ceil_mode,
            return_indices=return_indices,
            rules="pytorch",
        )

    return batched(rank, input, compute)


def _avg_pool(
    rank: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    def compute(x: Array) -> Array:
        return avg_pool(
            x,
            kernel=one_or_all(kernel_size),
            stride=one_or_all(stride),
            padding=one_or_all(padding),
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor_override=divisor_override,
            rules="pytorch",
        )

    return batched_one(rank, input, compute)


def _max_unpool(rank: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Array:
    places = as_array(indices, "indices")
    refuse_no_channels("max_unpool", as_array(input, "input"), rank)
    if places.ndim == rank + 1:
        places = places[None]

    def compute(x: Array) -> Array:
        window: dict[str, Any] = dict(
            kernel=one_or_all(kernel_size),
            stride=one_or_all(stride),
            padding=one_or_all(padding),
            output_size=output_size if output_size is None else tuple(output_size)[-rank:],
            rules="pytorch",
        )
        if 0 in x.shape[:2] and places.shape == x.shape:  # of nothing, whatever its dtype
            out = plan_of("max_unpool", (1, 1, *x.shape[2:]), **window).out
            return nothing_of("max_unpool", (x,), (*x.shape[:2], *out))
        return max_unpool(x, places, **window)

    return batched_one(rank, input, compute)


def _conv(rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Array:
    w, b = as_array(weight, "weight", also_complex=True), None if bias is None else as_array(bias, "bias", also_complex=True)

    def compute(x: Array) -> Array:
        bare = convolved(x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups)
        if bare is not None:
            return bare
        return conv(
            x,
            w,
            b,
            stride=one_or_all(stride),
            padding=one_or_all(padding),
            dilation=one_or_all(dilation),
            groups=groups,
            rules="pytorch",
        )

    return batched_one(rank, input, compute)


def _conv_transpose(
    rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
) -> Array:
    w, b = as_array(weight, "weight", also_complex=True), None if bias is None else as_array(bias, "bias", also_complex=True)

    def compute(x: Array) -> Array:
        window = dict(stride=stride, padding=padding, dilation=dilation, groups=groups, output_padding=output_padding)
        bare = convolved(x, w, b, transposed=True, **window)
        if bare is not None:
            return bare
        return conv_transpose(
            x,
            w,
            b,
            stride=one_or_all(stride),
            padding=one_or_all(padding),
            output_padding=one_or_all(output_padding),
            dilation=one_or_all(dilation),
            groups=groups,
            rules="pytorch",
        )

    return batched_one(rank, input, compute)
