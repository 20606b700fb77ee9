"""TensorFlow Lite's pooling and convolution operators on (N, H, W, C) arrays, in floating point, by its reference kernels.

Options have the names of TFLite's schema (Pool2DOptions, Conv2DOptions, ...); fused activations are not part of them.
Padding is "VALID" or "SAME". Averages and maxima take int8, uint8 and int16 besides, one scale for input and output.
Each function's numbers and errors are those of the operator it names, under rules="tflite".
"""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv
from ..ops.conv_transpose import conv_transpose
from ..ops.lp_pool import lp_pool
from ..ops.max_pool import max_pool
from ._views import filters_between, moved

__all__ = ["average_pool_2d", "conv_2d", "depthwise_conv_2d", "l2_pool_2d", "max_pool_2d", "transpose_conv"]

SOURCE = "TensorFlow 2.21, tensorflow/lite/schema/schema.fbs"


def average_pool_2d(input: Array, *, filter_width: int, filter_height: int, stride_w: int, stride_h: int, padding: str) -> Array:
    """AVERAGE_POOL_2D; integers round half away from zero. See astride.avg_pool."""
    return avg_pool(_image(input), **_window(filter_width, filter_height, stride_w, stride_h, padding))


def max_pool_2d(
    input: Array,
    *,
    filter_width: int,
    filter_height: int,
    stride_w: int,
    stride_h: int,
    padding: str,
    xnnpack: bool = False,
) -> Array:
    """MAX_POOL_2D, by the reference kernels or by the XNNPACK delegate's start value. See astride.max_pool."""
    window = _window(filter_width, filter_height, stride_w, stride_h, padding)
    y: Array = max_pool(_image(input), xnnpack=xnnpack, **window)
    return y


def l2_pool_2d(input: Array, *, filter_width: int, filter_height: int, stride_w: int, stride_h: int, padding: str) -> Array:
    """L2_POOL_2D, the root of the mean square. See astride.lp_pool."""
    return lp_pool(_image(input), **_window(filter_width, filter_height, stride_w, stride_h, padding))


def conv_2d(
    input: Array,
    filter: Array,
    bias: Array | None = None,
    *,
    stride_w: int,
    stride_h: int,
    padding: str,
    dilation_w_factor: int = 1,
    dilation_h_factor: int = 1,
) -> Array:
    """CONV_2D, filter (out, H, W, in / groups). See astride.conv."""
    x, w = _image(input), _four(filter, "filter")
    if not w.shape[-1] or x.shape[-1] % w.shape[-1]:
        raise ArgumentError(
            "filter does not fit input",
            given={"input": x, "filter": w},
            required=f"filter's last axis divides the channels: {x.shape[-1]} % {w.shape[-1]}",
            because=SOURCE,
        )
    return conv(
        x,
        filters_between(w),
        bias,
        stride=(stride_h, stride_w),
        padding=_word(padding),
        dilation=(dilation_h_factor, dilation_w_factor),
        groups=x.shape[-1] // w.shape[-1],
        layout="channels_last",
        rules="tflite",
    )


def depthwise_conv_2d(
    input: Array,
    filter: Array,
    bias: Array | None = None,
    *,
    stride_w: int,
    stride_h: int,
    padding: str,
    depth_multiplier: int,
    dilation_w_factor: int = 1,
    dilation_h_factor: int = 1,
) -> Array:
    """DEPTHWISE_CONV_2D, filter (1, H, W, C * depth_multiplier). See astride.conv."""
    x, w = _image(input), _four(filter, "filter")
    if w.shape[0] != 1 or w.shape[-1] != x.shape[-1] * depth_multiplier:
        raise ArgumentError(
            "filter does not fit input",
            given={"input": x, "filter": w, "depth_multiplier": depth_multiplier},
            required=f"filter (1, H, W, C * depth_multiplier): {w.shape[-1]} == {x.shape[-1]} * {depth_multiplier}",
            because=SOURCE,
        )
    return conv(
        x,
        moved(w, (3, 0, 1, 2)),
        bias,
        stride=(stride_h, stride_w),
        padding=_word(padding),
        dilation=(dilation_h_factor, dilation_w_factor),
        groups=x.shape[-1],
        layout="channels_last",
        rules="tflite",
    )


def transpose_conv(
    output_shape: Any, weights: Array, input: Array, bias: Array | None = None, *, stride_w: int, stride_h: int, padding: str
) -> Array:
    """TRANSPOSE_CONV to `output_shape` (N, H, W, C), weights (out, H, W, in). See astride.conv_transpose."""
    x, w = _image(input), _four(weights, "weights")
    wanted = tuple(int(v) for v in output_shape)
    if len(wanted) != 4 or wanted[0] != x.shape[0] or wanted[3] != w.shape[0]:
        raise ArgumentError(
            "output_shape does not fit",
            given={"output_shape": wanted, "input": x, "weights": w},
            required=f"({x.shape[0]}, H, W, {w.shape[0]})",
            because=SOURCE,
        )
    return conv_transpose(
        x,
        moved(w, (3, 0, 1, 2)),
        bias,
        stride=(stride_h, stride_w),
        padding=_word(padding),
        output_size=wanted[1:3],
        layout="channels_last",
        rules="tflite",
    )


def _window(filter_width: int, filter_height: int, stride_w: int, stride_h: int, padding: str) -> dict[str, Any]:
    return dict(
        kernel=(filter_height, filter_width),
        stride=(stride_h, stride_w),
        padding=_word(padding),
        layout="channels_last",
        rules="tflite",
    )


def _image(input: Any) -> Array:
    return _four(input, "input")


def _four(value: Any, name: str) -> Array:
    array = as_array(value, name)
    if array.ndim != 4:
        raise ArgumentError(f"{name} has the wrong rank", given={name: array}, required=f"{name}.ndim == 4: {array.ndim}")
    return array


def _word(padding: Any) -> str:
    if not isinstance(padding, str) or padding not in ("VALID", "SAME"):
        raise ArgumentError("padding has no such value", given={"padding": padding}, required='"VALID" or "SAME"', because=SOURCE)
    return str(padding).lower()
