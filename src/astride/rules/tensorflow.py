"""TensorFlow 2.21 on the CPU: the rules of tf.nn's pooling and convolution.

Source: tensorflow/core/framework/kernel_shape_util.cc, core/kernels/maxpooling_op.cc, pooling_ops_3d.cc, dilation_ops.cc
and conv_grad_shape_utils.cc; confirmed by running it (tests/golden/semantics, tests/live). Sizes, padding and refusals hold
per axis for one to three axes. Padding is "valid" (the default here; tf.nn asks for it), "same" (the odd pixel at the end)
or, for maxima and convolution, (low, high) pairs. float64 is taken everywhere, though TensorFlow's 3-D pooling lacks it.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Empty, IndexBase, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import (
    FLOATS,
    accumulator,
    channels,
    on_axis,
    only,
    only_each,
    pads,
    per_axis,
    require_dtype,
    spatial,
    whole,
)
from ._weights import transposed_weights_of, weights_of
from ._words import padded_axes, word, words_only

SHAPES = "TensorFlow 2.21, tensorflow/core/framework/kernel_shape_util.cc"
MAXIMUM = "TensorFlow 2.21, tensorflow/core/kernels/maxpooling_op.cc"
AVERAGE = "TensorFlow 2.21, tensorflow/core/kernels/avgpooling_op.cc"
EROSION = "TensorFlow 2.21, tensorflow/core/kernels/dilation_ops.cc"
CONV = "TensorFlow 2.21, tensorflow/core/kernels/conv_ops.cc"
TRANSPOSED = "TensorFlow 2.21, tensorflow/core/kernels/conv_grad_shape_utils.cc"
INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16"})


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
    with_argmax: bool = False,
    include_batch_in_index: bool = False,
) -> PoolPlan:
    """Forward the lowest finite value loses to all but NaN and -inf; the gradient goes to the first greatest tap, or to a
    NaN that stands first. In three axes every tap less than 1e-5 from the result, and no infinite one, has the whole gradient.
    `with_argmax` is max_pool_with_argmax, where the first tap is the start and so a leading NaN the result; indices count
    over one image, channels included, or over the batch."""
    only_each(dilation, "dilation", 1, MAXIMUM)
    place, axes = _windows(shape, layout, kernel, stride, padding, 1, because=MAXIMUM)
    for i, axis in enumerate(axes):
        if max(axis.pad_lo, axis.pad_hi) >= axis.kernel and not isinstance(padding, str):
            raise ArgumentError(
                "the padding is not smaller than the window",
                given={"padding": padding, "kernel": kernel},
                required=f"{on_axis('padding < kernel', i, len(axes))}: {max(axis.pad_lo, axis.pad_hi)} < {axis.kernel}",
                because=MAXIMUM,
                hint=f"padding={axis.kernel - 1}",
            )
    if with_argmax:
        tie = Tie.FIRST
    else:
        tie = Tie.NEAR if len(axes) == 3 else Tie.LEADING_NAN
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | (INTEGERS if len(axes) < 3 else frozenset()), MAXIMUM),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FIRST_TAP if with_argmax else Start.FINITE,
        nan=Nan.COMPARED,
        tie=tie,
        unpicked=Unpicked.FIRST_TAP,
        index_base=IndexBase.TENSOR if include_batch_in_index else IndexBase.IMAGE,
        accumulate=accumulator(dtype),
    )


def min_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
) -> PoolPlan:
    """tf.nn.erosion2d with a flat filter: the greatest finite value loses to all but NaN and +inf, the gradient goes to the
    first least tap. TensorFlow has it in two axes, channels last."""
    place, axes = _windows(shape, layout, kernel, stride, words_only(padding, EROSION), dilation, because=EROSION)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | (INTEGERS - {"uint8", "uint16"}), EROSION),
        axes=axes,
        reduce=Reduce.MIN,
        layout=place,
        start=Start.FINITE,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.FIRST_TAP,
        accumulate=accumulator(dtype),
    )


def avg_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
) -> PoolPlan:
    """Divides by the taps inside the input. No explicit padding, no integers."""
    only_each(dilation, "dilation", 1, AVERAGE)
    place, axes = _windows(shape, layout, kernel, stride, words_only(padding, AVERAGE), 1, because=AVERAGE)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, AVERAGE),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.VALID,
        empty=Empty.ZERO,
        accumulate=accumulator(dtype),
    )


def conv(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """Zeros outside; TensorFlow has no groups argument, they follow from the filter's input channels."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, CONV),
        axes=padded_axes(
            sizes, kernel, per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation"), padding, because=CONV
        ),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def conv_transpose(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    output_size: Any = None,
    layout: str = "channels_first",
) -> ConvPlan:
    """The input gradient of `conv` on an input of `output_size`, which that convolution must take to this input's size.
    Without `output_size` (tf.nn asks for it): n*stride for "same", n*stride + max(kernel - stride, 0) for "valid" (Keras), the
    least that fits explicit pads. No groups."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    only(groups, "groups", 1, TRANSPOSED)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    if output_size is None:
        wanted = tuple(
            _default_output(n, _sizes.reach(k, di), si, padding, i, rank)
            for i, (n, k, si, di) in enumerate(zip(sizes, kernel, s, d, strict=True))
        )
    else:
        wanted = per_axis(output_size, rank, "output_size")
    axes = padded_axes(wanted, kernel, s, d, padding, because=TRANSPOSED)
    for i, (axis, n) in enumerate(zip(axes, sizes, strict=True)):
        if axis.out != n:
            raise ArgumentError(
                "no convolution takes output_size to this input",
                given={"output_size": wanted, "stride": stride, "padding": padding},
                required=f"{on_axis('windows over output_size == size', i, rank)}: {axis.out} == {n}",
                because=TRANSPOSED,
                hint=f"output_size={_default_output(n, axis.reach, axis.stride, padding, i, rank)} on that axis",
            )
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, CONV),
        axes=axes,
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        accumulate=accumulator(dtype),
    )


def _default_output(n: int, reach: int, stride: int, padding: Any, i: int, rank: int) -> int:
    if not isinstance(padding, str):
        lo, hi = pads(padding, rank)[i]
        return (n - 1) * stride + reach - lo - hi
    return n * stride if word(padding) == "same" else (n - 1) * stride + max(reach, stride)


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, *, because: str
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    return place, padded_axes(sizes, k, s, d, padding, because=because)
