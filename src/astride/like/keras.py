"""keras.ops' pooling and convolution on NumPy arrays, by Keras 3.15's rules on TensorFlow.

Arguments, order and defaults are Keras'; `data_format` None is "channels_last". Kernels are (*kernel, in / groups, out),
transposed (*kernel, out, in). Each function's numbers and errors are those of the operator it names, under rules="keras".
"""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv as _conv
from ..ops.conv_transpose import conv_transpose as _conv_transpose
from ..ops.max_pool import max_pool as _max_pool
from ._views import depthwise, filters_last, moved

__all__ = ["average_pool", "conv", "conv_transpose", "depthwise_conv", "max_pool"]

OPS = "Keras 3.15, keras/src/ops/nn.py"


def max_pool(inputs: Array, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None) -> Array:
    """Max pooling over one to three spatial axes; strides default to pool_size. See astride.max_pool."""
    y: Array = _max_pool(
        as_array(inputs, "inputs"),
        kernel=_tuple(pool_size),
        stride=_tuple(strides),
        padding=_word(padding),
        layout=_layout(data_format),
        rules="keras",
    )
    return y


def average_pool(
    inputs: Array, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Array:
    """Average pooling over one to three spatial axes; strides default to pool_size. See astride.avg_pool."""
    return avg_pool(
        as_array(inputs, "inputs"),
        kernel=_tuple(pool_size),
        stride=_tuple(strides),
        padding=_word(padding),
        layout=_layout(data_format),
        rules="keras",
    )


def conv(
    inputs: Array,
    kernel: Array,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Array:
    """Convolution over one to three spatial axes, groups as the channels say. "causal" is the layers': see rules="keras"."""
    x, w = _fitting(inputs, kernel)
    inner = x.shape[1 if data_format == "channels_first" else -1]
    if not w.shape[-2] or inner % w.shape[-2]:
        raise ArgumentError(
            "kernel does not fit inputs",
            given={"inputs": x, "kernel": w},
            required=f"kernel (*kernel, in, out), in dividing the inputs' channels: {inner} % {w.shape[-2]}",
            because=OPS,
        )
    return _conv(
        x,
        filters_last(w),
        stride=_tuple(strides),
        padding=_word(padding),
        dilation=_tuple(dilation_rate),
        groups=inner // w.shape[-2],
        layout=_layout(data_format),
        rules="keras",
    )


def depthwise_conv(
    inputs: Array,
    kernel: Array,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Array:
    """Each channel by filters of its own, kernel (*kernel, C, multiplier). See astride.conv."""
    x, w = _fitting(inputs, kernel)
    inner = x.shape[1 if data_format == "channels_first" else -1]
    if w.shape[-2] != inner:
        raise ArgumentError(
            "kernel does not fit inputs",
            given={"inputs": x, "kernel": w},
            required=f"kernel (*kernel, C, multiplier), C as inputs have it: {w.shape[-2]} == {inner}",
            because=OPS,
        )
    return _conv(
        x,
        depthwise(w),
        stride=_tuple(strides),
        padding=_word(padding),
        dilation=_tuple(dilation_rate),
        groups=inner,
        layout=_layout(data_format),
        rules="keras",
    )


def conv_transpose(
    inputs: Array,
    kernel: Array,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Array:
    """Transposed convolution over one to three spatial axes, of the size output_padding says. See astride.conv_transpose."""
    x, w = _fitting(inputs, kernel)
    rank = x.ndim - 2
    return _conv_transpose(
        x,
        moved(w, (rank + 1, rank, *range(rank))),
        stride=_tuple(strides),
        padding=_word(padding),
        output_padding=_tuple(output_padding),
        dilation=_tuple(dilation_rate),
        layout=_layout(data_format),
        rules="keras",
    )


def _fitting(inputs: Any, kernel: Any) -> tuple[Array, Array]:
    x, w = as_array(inputs, "inputs"), as_array(kernel, "kernel")
    if x.ndim != w.ndim or x.ndim < 3:
        raise ArgumentError(
            "kernel has another rank than inputs",
            given={"inputs": x, "kernel": w},
            required=f"kernel.ndim == inputs.ndim, 3 to 5: {w.ndim} == {x.ndim}",
            because=OPS,
        )
    return x, w


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _word(padding: Any) -> str:
    if not isinstance(padding, str) or padding.lower() not in ("valid", "same"):
        raise ArgumentError("padding has no such value", given={"padding": padding}, required='"valid" or "same"', because=OPS)
    return padding.lower()


def _layout(data_format: str | None) -> str:
    if data_format not in (None, "channels_last", "channels_first"):
        raise ArgumentError(
            "there is no such data_format",
            given={"data_format": data_format},
            required='"channels_last" or "channels_first"',
            because=OPS,
        )
    return data_format or "channels_last"
