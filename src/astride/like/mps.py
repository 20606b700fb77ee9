"""Metal Performance Shaders' CNN kernels on (N, H, W, C) arrays, by rules read from the SDK headers (nothing was run).

Names follow MPSCNN's properties. Without `offset` the padding policy decides where windows lie and how many there are;
with `offset` (x, y), the position of the first centre, the policy is ignored and `destination_size` (width, height)
counts the windows, as in a manual encode.
"""

from __future__ import annotations

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

__all__ = [
    "ALIGN_BOTTOM_RIGHT",
    "ALIGN_CENTERED",
    "ALIGN_TOP_LEFT",
    "REMAINDER_BOTTOM_LEFT",
    "REMAINDER_BOTTOM_RIGHT",
    "REMAINDER_TOP_LEFT",
    "REMAINDER_TOP_RIGHT",
    "SIZE_FULL",
    "SIZE_SAME",
    "SIZE_VALID_ONLY",
    "convolution",
    "convolution_transpose",
    "dilated_pooling_max",
    "pooling_average",
    "pooling_l2_norm",
    "pooling_max",
]

ALIGN_CENTERED, ALIGN_TOP_LEFT, ALIGN_BOTTOM_RIGHT = 0, 1, 2
REMAINDER_TOP_LEFT, REMAINDER_TOP_RIGHT, REMAINDER_BOTTOM_LEFT, REMAINDER_BOTTOM_RIGHT = 0, 4, 8, 12
SIZE_VALID_ONLY, SIZE_SAME, SIZE_FULL = 0, 16, 32

_ALIGN = {0: "centred", 1: "top_left", 2: "bottom_right"}
_SIZE = {0: "valid", 16: "same", 32: "full"}


def pooling_max(
    source: Array,
    kernel_width: int,
    kernel_height: int,
    stride_in_pixels_x: int = 1,
    stride_in_pixels_y: int = 1,
    *,
    offset: tuple[int, int] | None = None,
    destination_size: tuple[int, int] | None = None,
    edge_mode: str = "zero",
    padding_policy: int = SIZE_SAME,
) -> Array:
    """MPSCNNPoolingMax. With edge_mode "zero" the zeros outside take part: they beat negative data."""
    return dilated_pooling_max(
        source,
        kernel_width,
        kernel_height,
        1,
        1,
        stride_in_pixels_x,
        stride_in_pixels_y,
        offset=offset,
        destination_size=destination_size,
        edge_mode=edge_mode,
        padding_policy=padding_policy,
    )


def dilated_pooling_max(
    source: Array,
    kernel_width: int,
    kernel_height: int,
    dilation_rate_x: int,
    dilation_rate_y: int,
    stride_in_pixels_x: int = 1,
    stride_in_pixels_y: int = 1,
    *,
    offset: tuple[int, int] | None = None,
    destination_size: tuple[int, int] | None = None,
    edge_mode: str = "zero",
    padding_policy: int = SIZE_SAME,
) -> Array:
    """MPSCNNDilatedPoolingMax: centred by the dilated extent."""
    y: Array = max_pool(
        as_array(source, "source"),
        kernel=(kernel_height, kernel_width),
        stride=(stride_in_pixels_y, stride_in_pixels_x),
        dilation=(dilation_rate_y, dilation_rate_x),
        edge=edge_mode,
        **_place(offset, destination_size, padding_policy),
    )
    return y


def pooling_average(
    source: Array,
    kernel_width: int,
    kernel_height: int,
    stride_in_pixels_x: int = 1,
    stride_in_pixels_y: int = 1,
    *,
    zero_pad_size_x: int = 0,
    zero_pad_size_y: int = 0,
    offset: tuple[int, int] | None = None,
    destination_size: tuple[int, int] | None = None,
    edge_mode: str = "zero",
    padding_policy: int = SIZE_SAME,
) -> Array:
    """MPSCNNPoolingAverage. edge_mode "clamp" shrinks windows to their real taps, or to zero_pad_size around the input."""
    return avg_pool(
        as_array(source, "source"),
        kernel=(kernel_height, kernel_width),
        stride=(stride_in_pixels_y, stride_in_pixels_x),
        edge=edge_mode,
        zero_pad_size=(zero_pad_size_y, zero_pad_size_x),
        **_place(offset, destination_size, padding_policy),
    )


def pooling_l2_norm(
    source: Array,
    kernel_width: int,
    kernel_height: int,
    stride_in_pixels_x: int = 1,
    stride_in_pixels_y: int = 1,
    *,
    offset: tuple[int, int] | None = None,
    destination_size: tuple[int, int] | None = None,
    edge_mode: str = "zero",
    padding_policy: int = SIZE_SAME,
    zero_window: str = "zero",
) -> Array:
    """MPSCNNPoolingL2Norm: sqrt(sum of squares over the window). Its gradient is source / result, 0 where the result is
    0, or NaN there with zero_window="formula", the header's formula taken literally."""
    return lp_pool(
        as_array(source, "source"),
        kernel=(kernel_height, kernel_width),
        stride=(stride_in_pixels_y, stride_in_pixels_x),
        edge=edge_mode,
        zero_window=zero_window,
        **_place(offset, destination_size, padding_policy),
    )


def convolution(
    source: Array,
    weights: Array,
    bias: Array | None = None,
    *,
    stride_in_pixels_x: int = 1,
    stride_in_pixels_y: int = 1,
    dilation_rate_x: int = 1,
    dilation_rate_y: int = 1,
    groups: int = 1,
    offset: tuple[int, int] | None = None,
    destination_size: tuple[int, int] | None = None,
    edge_mode: str = "zero",
    padding_policy: int = SIZE_SAME,
) -> Array:
    """MPSCNNConvolution: weights (out, kH, kW, in/groups); groups need channels in multiples of four."""
    return conv(
        as_array(source, "source"),
        tape.view(_weights(weights), lambda w: w.transpose(0, 3, 1, 2), lambda g: g.transpose(0, 2, 3, 1)),
        bias,
        stride=(stride_in_pixels_y, stride_in_pixels_x),
        dilation=(dilation_rate_y, dilation_rate_x),
        groups=groups,
        edge=edge_mode,
        **_place(offset, destination_size, padding_policy),
    )


def convolution_transpose(
    source: Array,
    weights: Array,
    bias: Array | None = None,
    *,
    stride_in_pixels_x: int = 1,
    stride_in_pixels_y: int = 1,
    groups: int = 1,
    offset: tuple[int, int] = (0, 0),
    kernel_offset_x: int = 0,
    kernel_offset_y: int = 0,
    destination_size: tuple[int, int] | None = None,
    padding_policy: int = SIZE_SAME,
) -> Array:
    """MPSCNNConvolutionTranspose: zeros between the pixels, then plain correlation; the kernel is not turned around.

    weights (out, kH, kW, in/groups). "Same" gives (n-1)*stride + 1 pixels, not n*stride.
    """
    w = _weights(weights)
    shape = w.shape
    outer, inner = shape[0] // groups, shape[3]

    def canonical(a: Array) -> Array:
        """(O, kH, kW, I/g) as (I, O/g, kH, kW)."""
        return a.reshape(groups, outer, *shape[1:]).transpose(0, 4, 1, 2, 3).reshape(groups * inner, outer, shape[1], shape[2])

    def own(g: Array) -> Array:
        return g.reshape(groups, inner, outer, shape[1], shape[2]).transpose(0, 2, 3, 4, 1).reshape(shape)

    return conv_transpose(
        as_array(source, "source"),
        tape.view(w, canonical, own),
        bias,
        stride=(stride_in_pixels_y, stride_in_pixels_x),
        groups=groups,
        layout="channels_last",
        rules="mps",
        padding=_policy(padding_policy)["padding"],
        offset=(offset[1], offset[0]),
        kernel_offset=(kernel_offset_y, kernel_offset_x),
        size=None if destination_size is None else (destination_size[1], destination_size[0]),
    )


def _weights(weights: Any) -> Array:
    w = as_array(weights, "weights")
    if w.ndim != 4:
        raise ArgumentError(
            "weights have the wrong rank", given={"weights": w}, required=f"(out, kH, kW, in/groups), ndim == 4: {w.ndim}"
        )
    return w


def _place(offset: Any, destination_size: Any, policy: int) -> dict[str, Any]:
    """The rule's arguments for where windows lie, in axis order (y, x)."""
    if destination_size is not None and offset is None:
        raise ArgumentError(
            "a destination size needs an offset", given={"destination_size": destination_size}, hint="offset=(0, 0)"
        )
    return {
        "layout": "channels_last",
        "rules": "mps",
        "offset": None if offset is None else (offset[1], offset[0]),
        "size": None if destination_size is None else (destination_size[1], destination_size[0]),
        **_policy(policy),
    }


def _policy(policy: int) -> dict[str, Any]:
    """MPSNNPaddingMethod's bits as words. Raises ArgumentError for bits that are not placement, remainder or size."""
    align, remainder, size = policy & 3, policy & 12, policy & 48
    if policy & ~63 or align not in _ALIGN or size not in _SIZE:
        raise ArgumentError(
            "the padding policy has bits that are not supported",
            given={"padding_policy": policy},
            required="ALIGN_* | REMAINDER_* | SIZE_*",
            because="MPSNeuralNetworkTypes.h, MPSNNPaddingMethod",
            hint="SIZE_SAME | REMAINDER_BOTTOM_RIGHT is TensorFlow's SAME",
        )
    return {
        "padding": _SIZE[size],
        "align": _ALIGN[align],
        "remainder": ("bottom_right" if remainder & 8 else "top_left", "bottom_right" if remainder & 4 else "top_left"),
    }
