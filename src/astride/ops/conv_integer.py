"""Convolution of quantised numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.protocol import Array, dtype_name
from ..errors import ArrayError
from ._run import as_array, make_plan, run

SCALES = ("x_scale", "w_scale", "y_scale")


def conv_integer(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    x_zero_point: Any = None,
    w_zero_point: Any = None,
    x_scale: Any = None,
    w_scale: Any = None,
    y_scale: Any = None,
    y_zero_point: Any = None,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    groups: int = 1,
    layout: str = "channels_first",
    rules: str = "explicit",
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """Convolution of eight-bit numbers less their zero points, summed in int32; with scales, brought back to eight bits.

    Without scales y is the sum itself (ONNX ConvInteger). With all three, y = clip(round(sum * (x_scale * w_scale / y_scale)) +
    y_zero_point) in the type of y_zero_point, x's where there is none (ONNX QLinearConv).

    Shapes    x (N, I, *size), w (O, I/groups, *kernel), b (O,) -> y (N, O, *out), or x and y channels last; zero points and
              scales one number each, w's also one per output channel
    Numbers   int8, uint8 in any pairing; b int32; scales float32; exact up to the scaling, which is float32 and rounds halves
              to the even number
    Edges     taps outside the input are skipped: they hold x's zero point. Sums beyond int32 wrap around; results beyond the
              type are clipped
    Gradient  none
    Raises    ArgumentError: other dtypes; what the rules' convolution refuses
              ArrayError: only some of the scales; shapes or dtypes that do not fit; `out` overlapping an input
              UnsupportedError: the rules have no integer convolution, or the named backend declines
    Source    ONNX, onnx/defs/nn/defs.cc ConvInteger and QLinearConv
    Example
    >>> import numpy as np, astride
    >>> x = np.array([[[3, 4, 5]]], dtype="uint8"); w = np.array([[[1, -1]]], dtype="int8")
    >>> astride.conv_integer(x, w, x_zero_point=3, padding=1).tolist()
    [[[0, -1, -1, 2]]]
    """
    x, w = as_array(x, "x"), as_array(w, "w")
    scales = [_number(value, name, np.dtype(np.float32)) for name, value in zip(SCALES, (x_scale, w_scale, y_scale), strict=True)]
    known = [scale is not None for scale in scales]
    if any(known) and not all(known):
        missing = SCALES[known.index(False)]
        raise ArrayError(
            f"{missing} is missing", required=f"all of {', '.join(SCALES)}, or none", operator="conv_integer", rules=rules
        )
    y_zero = None if not all(known) else _number(0 if y_zero_point is None else y_zero_point, "y_zero_point", x.dtype)
    plan = make_plan(
        "conv_integer",
        rules,
        x.shape,
        w.shape,
        dtype_name(x.dtype),
        given={"x": x, "w": w},
        w_dtype=w.dtype.name,
        y_dtype="int32" if y_zero is None else y_zero.dtype.name,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        **options,
    )
    zeros = _number(x_zero_point, "x_zero_point", x.dtype), _number(w_zero_point, "w_zero_point", w.dtype)
    bias = None if b is None else as_array(b, "b")
    return run(plan, x, w, *zeros, bias, *scales, y_zero, out=out, backend=backend, rules=rules)[0]


def _number(value: Any, name: str, dtype: np.dtype[Any]) -> Array | None:
    """An array as it is; a plain number, or several, in the dtype asked for. Raises ArrayError where it does not hold them."""
    if value is None or isinstance(value, np.ndarray | np.generic):
        return None if value is None else np.asarray(value)
    array = as_array(value, name)
    made: Array = array.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(made, array):
        raise ArrayError(f"{name} does not fit its dtype", given={name: value}, required=dtype.name, operator="conv_integer")
    return made
