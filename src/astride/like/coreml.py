"""Core ML's MIL operators on (N, C, *size) arrays, by coremltools 9.0's text; no value of it could be run.

MIL's builder takes everything by keyword; here the arrays may stand first, and `pad_type` is asked for where MIL asks for it.
`pad` is (before, after) of each axis in a row, for pad_type "custom" alone. Each function's numbers and errors are those of
the operator it names, under rules="coreml".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool as _avg_pool
from ..ops.conv import conv as _conv
from ..ops.conv_transpose import conv_transpose as _conv_transpose
from ..ops.lp_pool import lp_pool as _lp_pool
from ..ops.max_pool import max_pool as _max_pool
from ..rules._arguments import row

__all__ = ["avg_pool", "conv", "conv_transpose", "l2_pool", "max_pool"]

SOURCE = "coremltools 9.0, converters/mil/mil/ops/defs"


def max_pool(
    x: Array,
    *,
    kernel_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    pad_type: str,
    pad: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Array:
    """MIL max_pool; strides default to 1. See astride.max_pool."""
    y: Array = _max_pool(as_array(x, "x"), ceil_mode=ceil_mode, **_window(kernel_sizes, strides, pad_type, pad))
    return y


def avg_pool(
    x: Array,
    *,
    kernel_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    pad_type: str,
    pad: Sequence[int] | None = None,
    exclude_padding_from_average: bool = False,
    ceil_mode: bool = False,
) -> Array:
    """MIL avg_pool; strides default to 1. See astride.avg_pool."""
    return _avg_pool(
        as_array(x, "x"),
        ceil_mode=ceil_mode,
        exclude_padding_from_average=exclude_padding_from_average,
        **_window(kernel_sizes, strides, pad_type, pad),
    )


def l2_pool(
    x: Array,
    *,
    kernel_sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    pad_type: str,
    pad: Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Array:
    """MIL l2_pool, sqrt(sum x^2), one or two spatial axes; strides default to 1. See astride.lp_pool."""
    return _lp_pool(as_array(x, "x"), ceil_mode=ceil_mode, **_window(kernel_sizes, strides, pad_type, pad))


def conv(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    strides: Sequence[int] | None = None,
    pad_type: str = "valid",
    pad: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Array:
    """MIL conv, weight (out, in / groups, *kernel). See astride.conv."""
    return _conv(
        as_array(x, "x"),
        weight,
        bias,
        stride=_or_ones(strides),
        padding=_padding(pad_type, pad),
        dilation=_or_ones(dilations),
        groups=groups,
        rules="coreml",
    )


def conv_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    pad: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pad_type: str = "valid",
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
) -> Array:
    """MIL conv_transpose, weight (in, out / groups, *kernel); output_shape (N, out, *size). See astride.conv_transpose."""
    image, w = as_array(x, "x"), as_array(weight, "weight")
    size = None
    if output_shape is not None:
        wanted = tuple(int(v) for v in output_shape)
        outer = w.shape[1] * groups if w.ndim > 1 else 0
        if len(wanted) != image.ndim or wanted[:2] != (image.shape[0], outer):
            raise ArgumentError(
                "output_shape does not fit",
                given={"output_shape": wanted, "x": image, "weight": w},
                required=f"({image.shape[0]}, {outer}, *size)",
                because=SOURCE,
            )
        size = wanted[2:]
    return _conv_transpose(
        image,
        w,
        bias,
        stride=_or_ones(strides),
        padding=_padding(pad_type, pad),
        dilation=_or_ones(dilations),
        groups=groups,
        output_size=size,
        rules="coreml",
    )


def _window(kernel_sizes: Any, strides: Any, pad_type: str, pad: Any) -> dict[str, Any]:
    return dict(
        kernel=row(kernel_sizes, "kernel_sizes"),
        stride=_or_ones(strides),
        padding=_padding(pad_type, pad),
        layout="channels_first",
        rules="coreml",
    )


def _or_ones(values: Any) -> Any:
    return 1 if values is None else tuple(values)


def _padding(pad_type: str, pad: Any) -> Any:
    """A word, or for "custom" the pairs."""
    if (pad_type == "custom") != (pad is not None):
        raise ArgumentError(
            '`pad` goes with pad_type "custom" and with no other',
            given={"pad_type": pad_type, "pad": pad},
            because=SOURCE,
            hint='pad_type="custom"' if pad is not None else "pad=[0, 0]",
        )
    if pad is None:
        return pad_type
    values = tuple(int(p) for p in pad)
    if len(values) % 2:
        raise ArgumentError("pad has an odd length", given={"pad": pad}, required="(before, after) of each axis", because=SOURCE)
    return tuple(zip(values[::2], values[1::2], strict=True))
