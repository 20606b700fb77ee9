"""TensorFlow Lite of TensorFlow 2.21: the rules of its pooling and convolution operators, which have no gradient there.

Source: tensorflow/lite/kernels/padding.h, internal/reference/pooling.h, reference/integer_ops/pooling.h and
transpose_conv.cc; confirmed by running its reference kernels (tests/golden/semantics), but for L2, which was read.
Where a gradient is asked for, it is the one the forward rule suggests. TFLite pools two axes, channels last; sizes and
padding ("valid", "same" with the odd pixel at the end) hold per axis for one to three.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Divisor, Empty, Layout, LpForm, LpScale, Nan, Reduce, Rounding, Start, Tie, Unpicked
from . import tensorflow
from ._arguments import FLOATS, accumulator, only_each, per_axis, require_dtype, spatial
from ._words import padded_axes, words_only

POOL = "TensorFlow 2.21, tensorflow/lite/kernels/internal/reference/pooling.h"
CONV = "TensorFlow 2.21, tensorflow/lite/kernels/conv.cc"
TRANSPOSED = "TensorFlow 2.21, tensorflow/lite/kernels/transpose_conv.cc"
INTEGERS = frozenset({"int8", "int16", "uint8"})


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
    xnnpack: bool = False,
) -> PoolPlan:
    """The reference kernels: std::max from the lowest finite value, so that NaN and -inf lose to it. `xnnpack`, the default
    delegate, begins at -inf; what it makes of a NaN depends on its lanes ([1, 2, 3, NaN] gave 2), here a NaN never wins."""
    only_each(dilation, "dilation", 1, POOL)
    place, axes = _windows(shape, layout, kernel, stride, padding)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | INTEGERS, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.INFINITY if xnnpack else Start.FINITE,
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
    """Divides by the taps inside the input; integers round to the nearest, halves away from zero: [1, 2] gives 2, [-1, -2]
    gives -2."""
    only_each(dilation, "dilation", 1, POOL)
    place, axes = _windows(shape, layout, kernel, stride, padding)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | INTEGERS, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.VALID,
        rounding=Rounding.HALF_AWAY,
        empty=Empty.ZERO,
        accumulate="int32" if dtype in INTEGERS else accumulator(dtype),
    )


def lp_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    p: float = 2.0,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
) -> PoolPlan:
    """L2_POOL_2D: the root of the **mean** square over the taps inside the input. Read, not run."""
    only_each(dilation, "dilation", 1, POOL)
    if p != 2:
        raise ArgumentError("TFLite has the 2-norm only", given={"p": p}, because=POOL, hint="p=2.0")
    place, axes = _windows(shape, layout, kernel, stride, padding)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, POOL),
        axes=axes,
        reduce=Reduce.LP,
        layout=place,
        p=2.0,
        lp_form=LpForm.ABSOLUTE,
        lp_scale=LpScale.MEAN,
        lp_scaled=False,
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
    """CONV_2D and DEPTHWISE_CONV_2D in floating point: TensorFlow's, padded by words only. The quantised forms, whose padding is
    the input's zero point, are not here."""
    return tensorflow.conv(
        shape,
        w_shape,
        dtype,
        stride=stride,
        padding=words_only(padding, CONV),
        dilation=dilation,
        groups=groups,
        layout=layout,
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
    """TRANSPOSE_CONV: TensorFlow's rule, without dilation."""
    only_each(dilation, "dilation", 1, TRANSPOSED)
    return tensorflow.conv_transpose(
        shape,
        w_shape,
        dtype,
        stride=stride,
        padding=words_only(padding, TRANSPOSED),
        groups=groups,
        output_size=output_size,
        layout=layout,
    )


def _windows(shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any) -> tuple[Layout, tuple[StridedAxis, ...]]:
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    return place, padded_axes(sizes, k, s, (1,) * rank, words_only(padding, POOL), because=POOL)
