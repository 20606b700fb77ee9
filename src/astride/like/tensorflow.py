"""tf.nn's pooling and convolution on NumPy arrays, by TensorFlow 2.21's rules on the CPU.

from astride.like import tensorflow as nn
y = nn.max_pool2d(x, 3, strides=2, padding="SAME")

Arguments, order and defaults are tf.nn's: channels last unless `data_format` says otherwise, padding "VALID" or "SAME" in
capitals, ksize and strides one number, one per spatial axis, or one per axis of the input with 1 for batch and channels.
Filters are (*kernel, in / groups, out), transposed (*kernel, out, in). `name` is taken and ignored. Differentiate with
`astride.vjp`. Each function's numbers and errors are those of the operator it names, under rules="tensorflow".
"""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool as _avg_pool
from ..ops.conv import conv as _conv
from ..ops.conv_transpose import conv_transpose as _conv_transpose
from ..ops.max_pool import max_pool as _max_pool
from ..ops.min_pool import min_pool as _min_pool
from ._tensorflow_arguments import along, along_or_ones, layout_of, padding_of, rank_of, spatial_of, words
from ._views import depthwise, filters_last, moved

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "depthwise_conv2d",
    "erosion2d",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
]


def max_pool(input: Array, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: Any = None) -> Array:
    """Max pooling over one to three spatial axes. See astride.max_pool."""
    return _pool(_max_pool, rank_of(input), input, ksize, strides, padding, data_format)


def max_pool1d(input: Array, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: Any = None) -> Array:
    """Max pooling over (N, W, C) or (N, C, W). See astride.max_pool."""
    return _pool(_max_pool, 1, input, ksize, strides, padding, data_format)


def max_pool2d(input: Array, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: Any = None) -> Array:
    """Max pooling over (N, H, W, C) or (N, C, H, W). See astride.max_pool."""
    return _pool(_max_pool, 2, input, ksize, strides, padding, data_format)


def max_pool3d(input: Array, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: Any = None) -> Array:
    """Max pooling over (N, D, H, W, C) or (N, C, D, H, W); every tie has the whole gradient. See astride.max_pool."""
    return _pool(_max_pool, 3, input, ksize, strides, words(padding, "max_pool3d"), data_format)


def max_pool_with_argmax(
    input: Array,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: str = "int64",
    include_batch_in_index: bool = False,
    name: Any = None,
) -> tuple[Array, Array]:
    """Max pooling over (N, H, W, C) and the place of each maximum, (y*W + x)*C + c or with the batch in front."""
    if not isinstance(data_format, str) or data_format != "NHWC":
        raise ArgumentError("max_pool_with_argmax has one layout", given={"data_format": data_format}, hint='data_format="NHWC"')
    if str(output_dtype) not in ("int32", "int64"):
        raise ArgumentError("there are no indices of that dtype", given={"output_dtype": output_dtype}, required="int32 or int64")
    x = as_array(input, "input")
    y, indices = _max_pool(
        x,
        kernel=along(ksize, 2, False, "ksize"),
        stride=along(strides, 2, False, "strides"),
        padding=words(padding, "max_pool_with_argmax"),
        layout="channels_last",
        with_argmax=True,
        include_batch_in_index=include_batch_in_index,
        return_indices=True,
        rules="tensorflow",
    )
    return y, indices.astype(str(output_dtype))


def avg_pool(input: Array, ksize: Any, strides: Any, padding: str, data_format: str | None = None, name: Any = None) -> Array:
    """Average pooling over one to three spatial axes. See astride.avg_pool."""
    return _pool(_avg_pool, rank_of(input), input, ksize, strides, words(padding, "avg_pool"), data_format)


def avg_pool1d(input: Array, ksize: Any, strides: Any, padding: str, data_format: str = "NWC", name: Any = None) -> Array:
    """Average pooling over (N, W, C) or (N, C, W). See astride.avg_pool."""
    return _pool(_avg_pool, 1, input, ksize, strides, words(padding, "avg_pool1d"), data_format)


def avg_pool2d(input: Array, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC", name: Any = None) -> Array:
    """Average pooling over (N, H, W, C) or (N, C, H, W). See astride.avg_pool."""
    return _pool(_avg_pool, 2, input, ksize, strides, words(padding, "avg_pool2d"), data_format)


def avg_pool3d(input: Array, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: Any = None) -> Array:
    """Average pooling over (N, D, H, W, C) or (N, C, D, H, W). See astride.avg_pool."""
    return _pool(_avg_pool, 3, input, ksize, strides, words(padding, "avg_pool3d"), data_format)


def erosion2d(
    value: Array, filters: Array, strides: Any, padding: str, data_format: str, dilations: Any, name: Any = None
) -> Array:
    """The least of value - filters over each window of (N, H, W, C), for a flat filter: min pooling.

    `filters` (H, W, C) gives the window; one that is not all zeros is refused. See astride.min_pool.
    """
    kernel = as_array(filters, "filters")
    x = as_array(value, "value")
    if not isinstance(data_format, str) or data_format != "NHWC":
        raise ArgumentError("erosion2d has one layout", given={"data_format": data_format}, hint='data_format="NHWC"')
    if kernel.ndim != 3 or kernel.shape[-1:] != x.shape[-1:]:
        raise ArgumentError(
            "filters do not fit value", given={"value": x, "filters": kernel}, required="filters (H, W, C), C as value has it"
        )
    if kernel.any():
        raise UnsupportedError(
            "only flat filters are computed here", operator="erosion2d", given={"filters": kernel}, hint="filters of zeros"
        )
    y: Array = _min_pool(
        x,
        kernel=kernel.shape[:2],
        stride=along(strides, 2, False, "strides"),
        padding=words(padding, "erosion2d"),
        dilation=along(dilations, 2, False, "dilations"),
        layout="channels_last",
        rules="tensorflow",
    )
    return y


def conv1d(
    input: Array,
    filters: Array,
    stride: Any,
    padding: str,
    data_format: str = "NWC",
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Convolution over (N, W, C) or (N, C, W). See astride.conv."""
    return _convolve(1, input, filters, stride, words(padding, "conv1d"), data_format, dilations)


def conv2d(
    input: Array,
    filters: Array,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Convolution over (N, H, W, C) or (N, C, H, W). See astride.conv."""
    return _convolve(2, input, filters, strides, padding, data_format, dilations)


def conv3d(
    input: Array,
    filters: Array,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Convolution over (N, D, H, W, C) or (N, C, D, H, W), without groups. See astride.conv."""
    return _convolve(3, input, filters, strides, words(padding, "conv3d"), data_format, dilations)


def convolution(
    input: Array,
    filters: Array,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Convolution over one to three spatial axes. See astride.conv."""
    return _convolve(rank_of(input), input, filters, 1 if strides is None else strides, padding, data_format, dilations)


def depthwise_conv2d(
    input: Array,
    filter: Array,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Each channel of (N, H, W, C) by filters of its own, filter (H, W, C, multiplier). See astride.conv."""
    x, w = as_array(input, "input"), as_array(filter, "filter")
    layout, first = layout_of(data_format, 2)
    if w.ndim != 4 or x.ndim != 4 or w.shape[2] != x.shape[1 if first else -1]:
        raise ArgumentError("filter does not fit input", given={"input": x, "filter": w}, required="filter (H, W, C, multiplier)")
    return _conv(
        x,
        depthwise(w),
        stride=along(strides, 2, first, "strides"),
        padding=padding_of(padding, 2, first),
        dilation=along_or_ones(dilations, 2, first),
        groups=w.shape[2],
        layout=layout,
        rules="tensorflow",
    )


def conv_transpose(
    input: Array,
    filters: Array,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Transposed convolution over one to three spatial axes. See astride.conv_transpose."""
    return _transpose(rank_of(input), input, filters, output_shape, strides, padding, data_format, dilations)


def conv1d_transpose(
    input: Array,
    filters: Array,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Transposed convolution to `output_shape`, (N, W, C) or (N, C, W). See astride.conv_transpose."""
    return _transpose(1, input, filters, output_shape, strides, words(padding, "conv1d_transpose"), data_format, dilations)


def conv2d_transpose(
    input: Array,
    filters: Array,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Transposed convolution to `output_shape`, (N, H, W, C) or (N, C, H, W). See astride.conv_transpose."""
    return _transpose(2, input, filters, output_shape, strides, padding, data_format, dilations)


def conv3d_transpose(
    input: Array,
    filters: Array,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: Any = None,
) -> Array:
    """Transposed convolution to `output_shape`, (N, D, H, W, C) or (N, C, D, H, W). See astride.conv_transpose."""
    return _transpose(3, input, filters, output_shape, strides, words(padding, "conv3d_transpose"), data_format, dilations)


def _pool(op: Any, rank: int, input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None) -> Array:
    layout, first = layout_of(data_format, rank)
    y: Array = op(
        as_array(input, "input"),
        kernel=along(ksize, rank, first, "ksize"),
        stride=along(strides, rank, first, "strides"),
        padding=padding_of(padding, rank, first),
        layout=layout,
        rules="tensorflow",
    )
    return y


def _convolve(rank: int, input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None, dilations: Any) -> Array:
    x, w = as_array(input, "input"), as_array(filters, "filters")
    layout, first = layout_of(data_format, rank)
    inner = x.shape[1 if first else -1] if x.ndim == rank + 2 else 0
    if w.ndim != rank + 2 or not w.shape[-2] or inner % w.shape[-2] or (rank == 3 and inner != w.shape[-2]):
        raise ArgumentError(
            "filters do not fit input",
            given={"input": x, "filters": w},
            required=f"filters (*kernel, in, out), in {'equal to' if rank == 3 else 'dividing'} the input's channels",
        )
    return _conv(
        x,
        filters_last(w),
        stride=along(strides, rank, first, "strides"),
        padding=padding_of(padding, rank, first),
        dilation=along_or_ones(dilations, rank, first),
        groups=inner // w.shape[-2],
        layout=layout,
        rules="tensorflow",
    )


def _transpose(
    rank: int,
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
) -> Array:
    x, w = as_array(input, "input"), as_array(filters, "filters")
    layout, first = layout_of(data_format, rank)
    if w.ndim != rank + 2:
        raise ArgumentError("filters have the wrong rank", given={"filters": w}, required="filters (*kernel, out, in)")
    if x.ndim != rank + 2:
        raise ArgumentError("input has the wrong rank", given={"input": x}, required=f"input.ndim == {rank + 2}: {x.ndim}")
    size = spatial_of(output_shape, x, w.shape[-2], rank, first)
    return _conv_transpose(
        x,
        moved(w, (rank + 1, rank, *range(rank))),
        stride=along(strides, rank, first, "strides"),
        padding=padding_of(padding, rank, first),
        dilation=along_or_ones(dilations, rank, first),
        output_size=size,
        layout=layout,
        rules="tensorflow",
    )
