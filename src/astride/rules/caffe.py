"""BVLC Caffe, master 9b89154: the rules of its Pooling, Convolution and Deconvolution layers.

`pooling`, `convolution` and `deconvolution` take Caffe's own fields and only what Caffe takes (pooling: four axes);
the functions named like operators take the shared vocabulary and extend the rule per axis to one, two and three axes.
Source: src/caffe/layers/{pooling,conv,base_conv,deconv}_layer.cpp and pooling_layer.cu; confirmed by tests/golden/caffe.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Empty, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import (
    Pads,
    PerAxis,
    accumulator,
    as_minimum,
    channels,
    choice,
    only_each,
    per_axis,
    require_dtype,
    spatial,
    symmetric,
    whole,
)
from ._caffe_fields import CONVOLUTION, POOLING, field_pair, per_axis_fields
from ._weights import transposed_weights_of, weights_of

DTYPES = frozenset({"float32", "float64"})
DECONVOLUTION = "Caffe, src/caffe/layers/deconv_layer.cpp"


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    round_mode: str = "CEIL",
) -> PoolPlan:
    """Strict `>` from -FLT_MAX, first wins, NaN never does; a window of -inf or NaN alone gives -FLT_MAX and no gradient."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, round_mode, pads_allowed=True)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOLING),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FINITE,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.NOWHERE,
        accumulate=accumulator(dtype),
    )


def min_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    round_mode: str = "CEIL",
) -> PoolPlan:
    """Max pooling's rule mirrored; Caffe itself has no minimum."""
    return as_minimum(
        max_pool(
            shape, dtype, kernel=kernel, stride=stride, padding=padding, dilation=dilation, layout=layout, round_mode=round_mode
        )
    )


def avg_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    round_mode: str = "CEIL",
) -> PoolPlan:
    """Divides by the window clipped to the padded input; unpadded ceil windows behind the input give 0/0 = NaN or -0."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, round_mode, pads_allowed=True)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOLING),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.CAFFE,
        empty=Empty.QUOTIENT,
        accumulate=accumulator(dtype),
    )


def stochastic_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    round_mode: str = "CEIL",
    training: bool = False,
) -> PoolPlan:
    """As Caffe's GPU kernels (its CPU has none): the threshold in float32 whatever the dtype; test time sum x^2 / sum x,
    0 unless the sum is positive."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, round_mode, pads_allowed=False)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOLING),
        axes=axes,
        reduce=Reduce.STOCHASTIC if training else Reduce.STOCHASTIC_MEAN,
        layout=place,
        empty=Empty.ZERO,
        threshold="float32",
        accumulate=accumulator(dtype),
    )


def conv(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """Size by C's integer division, which truncates toward zero: a kernel less than a stride too large still fits once."""
    place, sizes = spatial(shape, layout)
    kernel, out_channels = weights_of(w_shape, len(sizes), channels(shape, place), groups)
    return _convolution(sizes, place, dtype, kernel, stride, padding, dilation, groups, channels(shape, place), out_channels)


def conv_transpose(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """stride*(n-1) + (kernel-1)*dilation + 1 - 2*padding; no output padding."""
    place, sizes = spatial(shape, layout)
    kernel, out_channels = transposed_weights_of(w_shape, len(sizes), channels(shape, place), groups)
    return _deconvolution(sizes, place, dtype, kernel, stride, padding, dilation, groups, channels(shape, place), out_channels)


def pooling(
    shape: Shape,
    dtype: str = "float32",
    *,
    pool: str = "MAX",
    kernel_size: int | None = None,
    kernel_h: int | None = None,
    kernel_w: int | None = None,
    stride: int | None = None,
    stride_h: int | None = None,
    stride_w: int | None = None,
    pad: int | None = None,
    pad_h: int | None = None,
    pad_w: int | None = None,
    global_pooling: bool = False,
    round_mode: str = "CEIL",
    phase: str = "TEST",
) -> PoolPlan:
    """The Pooling layer's own fields, on (N, C, H, W) only."""
    choice(pool, "pool", ("MAX", "AVE", "STOCHASTIC"))
    choice(phase, "phase", ("TRAIN", "TEST"))
    if len(shape) != 4:
        raise ArgumentError(
            "Caffe pools arrays of four axes",
            required=f"x.ndim == 4: {len(shape)}",
            because=POOLING,
            hint="rules='caffe' on astride.max_pool takes one to three spatial axes",
        )
    pads = field_pair("pad", pad, pad_h, pad_w, 0)
    strides = field_pair("stride", stride, stride_h, stride_w, 1)
    if global_pooling:
        if (kernel_size, kernel_h, kernel_w) != (None, None, None) or pads != (0, 0) or strides != (1, 1):
            raise ArgumentError(
                "global pooling takes its window from the input",
                given={"kernel": (kernel_size, kernel_h, kernel_w), "pad": pads, "stride": strides},
                required="no kernel fields, pad 0, stride 1",
                because=POOLING,
                hint="global_pooling=False, or the other fields left out",
            )
        kernel: Any = tuple(shape[2:])
    else:
        kernel = field_pair("kernel", kernel_size, kernel_h, kernel_w, None)
    window: dict[str, Any] = {"kernel": kernel, "stride": strides, "padding": pads, "round_mode": round_mode}
    if pool == "MAX":
        return max_pool(shape, dtype, **window)
    if pool == "AVE":
        return avg_pool(shape, dtype, **window)
    return stochastic_pool(shape, dtype, training=phase == "TRAIN", **window)


def convolution(
    shape: Shape,
    dtype: str = "float32",
    *,
    num_output: int,
    kernel_size: Any = (),
    stride: Any = (),
    pad: Any = (),
    dilation: Any = (),
    group: int = 1,
    kernel_h: int | None = None,
    kernel_w: int | None = None,
    stride_h: int | None = None,
    stride_w: int | None = None,
    pad_h: int | None = None,
    pad_w: int | None = None,
) -> ConvPlan:
    """The Convolution layer's own fields, on (N, C, *size) with the axes before the channels already in the batch."""
    sizes, kernel, strides, pads, dilations = per_axis_fields(
        shape, kernel_size, stride, pad, dilation, (kernel_h, kernel_w), (stride_h, stride_w), (pad_h, pad_w)
    )
    out_channels = whole(num_output, "num_output", 1)
    return _convolution(sizes, Layout.CHANNELS_FIRST, dtype, kernel, strides, pads, dilations, group, int(shape[1]), out_channels)


def deconvolution(
    shape: Shape,
    dtype: str = "float32",
    *,
    num_output: int,
    kernel_size: Any = (),
    stride: Any = (),
    pad: Any = (),
    dilation: Any = (),
    group: int = 1,
    kernel_h: int | None = None,
    kernel_w: int | None = None,
    stride_h: int | None = None,
    stride_w: int | None = None,
    pad_h: int | None = None,
    pad_w: int | None = None,
) -> ConvPlan:
    """The Deconvolution layer's own fields, as `convolution`; weights are (in, out/group, *kernel)."""
    sizes, kernel, strides, pads, dilations = per_axis_fields(
        shape, kernel_size, stride, pad, dilation, (kernel_h, kernel_w), (stride_h, stride_w), (pad_h, pad_w)
    )
    out_channels = whole(num_output, "num_output", 1)
    return _deconvolution(
        sizes, Layout.CHANNELS_FIRST, dtype, kernel, strides, pads, dilations, group, int(shape[1]), out_channels
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, round_mode: str, *, pads_allowed: bool
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """Sizes in float32 in Caffe, in integers here: they differ only above 2^24."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    choice(round_mode, "round_mode", ("CEIL", "FLOOR"))
    only_each(dilation, "dilation", 1, POOLING)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "Caffe")
    if any(p) and not pads_allowed:
        raise ArgumentError(
            "Caffe pads only maximum and average pooling", given={"padding": padding}, because=POOLING, hint="padding=0"
        )
    for i, (pi, ki) in enumerate(zip(p, k, strict=True)):
        if pi >= ki:
            axis = ("D", "H", "W")[3 - rank :][i]
            raise ArgumentError(
                "the pad is not smaller than the kernel",
                given={"padding": pi, "kernel": ki},
                required=f"pad < kernel, on axis {axis}: {pi} < {ki}",
                because=POOLING,
                hint=f"padding={ki - 1}",
            )
    size = _sizes.ceil if round_mode == "CEIL" else _sizes.floor
    outs = tuple(size(n, 2 * pi, ki, si) for n, pi, ki, si in zip(sizes, p, k, s, strict=True))
    if any(p):
        outs = tuple(_sizes.clipped(out, n, pi, si) for out, n, pi, si in zip(outs, sizes, p, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, (1,) * rank, _both(p), outs, because=POOLING)


def _convolution(
    sizes: PerAxis,
    place: Layout,
    dtype: str,
    kernel: PerAxis,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    inner: int,
    outer: int,
) -> ConvPlan:
    rank = len(sizes)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    p = symmetric(padding, rank, "Caffe")
    outs = tuple(
        _sizes.truncated(n, 2 * pi, _sizes.reach(k, di), si) for n, pi, k, di, si in zip(sizes, p, kernel, d, s, strict=True)
    )
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONVOLUTION),
        axes=_sizes.strided_axes(sizes, kernel, s, d, _both(p), outs, because=CONVOLUTION),
        in_channels=inner,
        out_channels=outer,
        layout=place,
        groups=whole(groups, "group", 1),
        accumulate=accumulator(dtype),
    )


def _deconvolution(
    sizes: PerAxis,
    place: Layout,
    dtype: str,
    kernel: PerAxis,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    inner: int,
    outer: int,
) -> ConvPlan:
    rank = len(sizes)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    p = symmetric(padding, rank, "Caffe")
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, DECONVOLUTION),
        axes=_sizes.transposed_axes(sizes, kernel, s, d, _both(p), (0,) * rank, because=DECONVOLUTION),
        in_channels=inner,
        out_channels=outer,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "group", 1),
        accumulate=accumulator(dtype),
    )


def _both(p: PerAxis) -> Pads:
    return tuple((pi, pi) for pi in p)
