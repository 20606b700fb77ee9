"""torch.nn.functional's pooling, unpooling and convolution on NumPy arrays, by PyTorch 2.13's rules.

Arguments, order and defaults are PyTorch's; inputs are (N, C, *size) or, unbatched, (C, *size). Differentiate with
`astride.vjp`. Each function's numbers, edges and errors are those of the operator it names, under rules="pytorch".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import tape
from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv
from ..ops.conv_transpose import conv_transpose
from ..ops.lp_pool import lp_pool
from ..ops.max_pool import max_pool
from ..ops.max_unpool import max_unpool

__all__ = [
    f"{op}{rank}d" for op in ("avg_pool", "conv", "conv_transpose", "lp_pool", "max_pool", "max_unpool") for rank in (1, 2, 3)
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
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    """Lp pooling over (N, C, H, W) or (C, H, W). See astride.lp_pool."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    """Lp pooling over (N, C, D, H, W) or (C, D, H, W). See astride.lp_pool."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


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
        return max_pool(
            x,
            kernel=_one_or_all(kernel_size),
            stride=_one_or_all(stride),
            padding=_one_or_all(padding),
            dilation=_one_or_all(dilation),
            ceil_mode=ceil_mode,
            return_indices=return_indices,
            rules="pytorch",
        )

    return _batched(rank, input, compute)


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
            kernel=_one_or_all(kernel_size),
            stride=_one_or_all(stride),
            padding=_one_or_all(padding),
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor_override=divisor_override,
            rules="pytorch",
        )

    return _batched_one(rank, input, compute)


def _lp_pool(rank: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Array:
    def compute(x: Array) -> Array:
        return lp_pool(
            x, p=norm_type, kernel=_one_or_all(kernel_size), stride=_one_or_all(stride), ceil_mode=ceil_mode, rules="pytorch"
        )

    return _batched_one(rank, input, compute)


def _max_unpool(rank: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Array:
    places = as_array(indices, "indices")
    if places.ndim == rank + 1:
        places = places[None]

    def compute(x: Array) -> Array:
        return max_unpool(
            x,
            places,
            kernel=_one_or_all(kernel_size),
            stride=_one_or_all(stride),
            padding=_one_or_all(padding),
            output_size=output_size if output_size is None else tuple(output_size)[-rank:],
            rules="pytorch",
        )

    return _batched_one(rank, input, compute)


def _conv(rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Array:
    def compute(x: Array) -> Array:
        return conv(
            x,
            weight,
            bias,
            stride=_one_or_all(stride),
            padding=_one_or_all(padding),
            dilation=_one_or_all(dilation),
            groups=groups,
            rules="pytorch",
        )

    return _batched_one(rank, input, compute)


def _conv_transpose(
    rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
) -> Array:
    def compute(x: Array) -> Array:
        return conv_transpose(
            x,
            weight,
            bias,
            stride=_one_or_all(stride),
            padding=_one_or_all(padding),
            output_padding=_one_or_all(output_padding),
            dilation=_one_or_all(dilation),
            groups=groups,
            rules="pytorch",
        )

    return _batched_one(rank, input, compute)


def _batched(rank: int, input: Any, compute: Callable[[Array], Any]) -> Any:
    """Run on (N, C, *size); an unbatched input gets a batch axis and its results lose it."""
    x = as_array(input, "input")
    if x.ndim not in (rank + 1, rank + 2):
        raise ArgumentError(
            "input has the wrong rank",
            given={"input": x},
            required=f"input.ndim is {rank + 1} (unbatched) or {rank + 2}: {x.ndim}",
            because="PyTorch 2.13, torch.nn.functional",
        )
    if x.ndim == rank + 2:
        return compute(x)
    result = compute(tape.view(x, lambda a: a[None], lambda g: g[0]))
    if isinstance(result, tuple):
        return tuple(tape.view(y, lambda a: a[0], lambda g: g[None]) for y in result)
    return tape.view(result, lambda a: a[0], lambda g: g[None])


def _batched_one(rank: int, input: Any, compute: Callable[[Array], Array]) -> Array:
    """_batched for functions with one result."""
    y: Array = _batched(rank, input, compute)
    return y


def _one_or_all(value: Any) -> Any:
    """A one-element list stands for its element, an empty stride for none, as PyTorch expands them."""
    if isinstance(value, list | tuple):
        if not value:
            return None
        return value[0] if len(value) == 1 else tuple(value)
    return value
