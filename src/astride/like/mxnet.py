"""MXNet 1.9.1's mx.nd operators on NumPy arrays: Pooling, Convolution, Deconvolution and AdaptiveAvgPooling2D.

Names, order and defaults are MXNet's, (N, C, *size) arrays; what only tunes (workspace, cudnn_tune, cudnn_off) is taken and
has no effect. Each function's numbers, edges and errors are those of the operator it names, under rules="mxnet".
"""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.adaptive_pool import adaptive_pool
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv
from ..ops.conv_transpose import conv_transpose
from ..ops.lp_pool import lp_pool
from ..ops.max_pool import max_pool

__all__ = ["AdaptiveAvgPooling2D", "Convolution", "Deconvolution", "Pooling"]

SOURCE = "MXNet 1.9.1, src/operator/nn"


def Pooling(
    data: Array,
    kernel: Any = (),
    pool_type: str = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: str = "valid",
    stride: Any = (),
    pad: Any = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: str | None = None,
) -> Array:
    """Max, average, sum or Lp pooling over (N, C, *size), stride 1 unless given. See astride.max_pool, avg_pool, lp_pool.

    `global_pool` takes the plane for the kernel and leaves kernel, stride and pad unread. `p_value` (1, 2 or 3) is needed by
    "lp" and read by nothing else, `count_include_pad` (true where None) by "avg".
    """
    x = as_array(data, "data")
    rank = x.ndim - 2
    window: dict[str, Any] = dict(kernel=_tuple(kernel), stride=_tuple(stride) or (1,) * max(rank, 1), padding=_tuple(pad) or 0)
    if global_pool:
        sizes = x.shape[1:-1] if layout and layout.endswith("C") else x.shape[2:]
        window = dict(kernel=sizes, stride=(1,) * len(sizes), padding=0)
    else:
        window["pooling_convention"] = pooling_convention
        if not window["kernel"]:
            raise ArgumentError("the kernel is not given", given={"kernel": kernel}, because=SOURCE, hint="kernel=(2, 2)")
    window |= dict(layout=layout or "channels_first", rules="mxnet")
    if pool_type == "max":
        y: Array = max_pool(x, **window)
        return y
    if pool_type == "lp":
        if p_value is None:
            raise ArgumentError("lp pooling needs its power", given={"p_value": None}, because=SOURCE, hint="p_value=2")
        return lp_pool(x, p=p_value, **window)
    if pool_type not in ("avg", "sum"):
        raise ArgumentError(
            "pool_type has no such value", given={"pool_type": pool_type}, required="one of 'max', 'avg', 'sum', 'lp'"
        )
    return avg_pool(x, pool_type=pool_type, count_include_pad=count_include_pad is not False, **window)


def Convolution(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    kernel: Any = (),
    stride: Any = (),
    dilate: Any = (),
    pad: Any = (),
    num_filter: int | None = None,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
) -> Array:
    """Convolution over (N, C, *size), weight (num_filter, C/num_group, *kernel). See astride.conv."""
    w = as_array(weight, "weight")
    _agree(w, 0, 1, kernel, num_filter, bias, no_bias, layout)
    return conv(
        data,
        w,
        bias,
        stride=_tuple(stride) or 1,
        padding=_tuple(pad) or 0,
        dilation=_tuple(dilate) or 1,
        groups=num_group,
        rules="mxnet",
    )


def Deconvolution(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    kernel: Any = (),
    stride: Any = (),
    dilate: Any = (),
    pad: Any = (),
    adj: Any = (),
    target_shape: Any = (),
    num_filter: int | None = None,
    num_group: int = 1,
    workspace: int = 512,
    no_bias: bool = True,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
) -> Array:
    """Transposed convolution over (N, C, *size), weight (C, num_filter/num_group, *kernel). See astride.conv_transpose.

    `target_shape` overrides pad and adj, by the source's formula: the CPU build fails on it.
    """
    w = as_array(weight, "weight")
    _agree(w, 1, num_group, kernel, num_filter, bias, no_bias, layout)
    return conv_transpose(
        data,
        w,
        bias,
        stride=_tuple(stride) or 1,
        padding=_tuple(pad) or 0,
        dilation=_tuple(dilate) or 1,
        output_padding=_tuple(adj) or 0,
        target_shape=_tuple(target_shape) or None,
        groups=num_group,
        rules="mxnet",
    )


def AdaptiveAvgPooling2D(data: Array, output_size: Any = ()) -> Array:
    """mx.nd.contrib's adaptive average over (N, C, H, W), to 1x1 unless given. See astride.adaptive_pool."""
    x = as_array(data, "data")
    if x.ndim != 4:
        raise ArgumentError("data has the wrong rank", given={"data": x}, required=f"data.ndim == 4: {x.ndim}", because=SOURCE)
    sizes = _tuple(output_size) or (1,)
    y: Array = adaptive_pool(x, output_size=sizes[0] if len(sizes) == 1 else sizes, rules="mxnet")
    return y


def _tuple(value: Any) -> tuple[Any, ...]:
    """MXNet's Shape arguments: a number is a shape of one axis, () is the default."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _agree(
    w: Array, axis: int, groups: int, kernel: Any, num_filter: int | None, bias: Any, no_bias: bool, layout: str | None
) -> None:
    """What MXNet is told twice must agree with the arrays."""
    if w.ndim > axis and (num_filter is None or num_filter != w.shape[axis] * groups):
        raise ArgumentError(
            "num_filter is not the number of filters in weight",
            given={"num_filter": num_filter, "weight": w},
            because=SOURCE,
            hint=f"num_filter={w.shape[axis] * groups}",
        )
    if _tuple(kernel) != w.shape[2:]:
        raise ArgumentError(
            "kernel is not the size of weight",
            given={"kernel": kernel, "weight": w},
            required=f"kernel == weight.shape[2:]: {_tuple(kernel)} == {w.shape[2:]}",
            because=SOURCE,
            hint=f"kernel={w.shape[2:]}",
        )
    if no_bias != (bias is None):
        raise ArgumentError(
            "no_bias and bias disagree", given={"no_bias": no_bias, "bias": bias}, because=SOURCE, hint=f"no_bias={bias is None}"
        )
    if layout is not None and (len(layout) != w.ndim or not layout.startswith("NC")):
        raise ArgumentError(
            "MXNet's CPU convolution has channels first only",
            given={"layout": layout},
            because=f"{SOURCE}/convolution-inl.h",
            hint="layout=None",
        )
