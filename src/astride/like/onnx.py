"""ONNX's pooling, unpooling and convolution operators on NumPy arrays, by the rules of its text.

Inputs in the order of the node's, attributes by name, with ONNX's defaults: `strides` and `dilations` 1, `pads` 0 as
[x1_begin, x2_begin, ..., x1_end, x2_end, ...]. `opset` is the default domain's version. Arrays are (N, C, *size), one to
three spatial axes. ONNX defines no gradients; `astride.vjp` gives those of the plans. `astride.onnx.run_node` calls these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool
from ..ops.conv import conv
from ..ops.conv_integer import conv_integer
from ..ops.conv_transpose import conv_transpose
from ..ops.deform_conv import deform_conv
from ..ops.fold import fold
from ..ops.lp_pool import lp_pool
from ..ops.max_pool import max_pool
from ..ops.max_unpool import max_unpool
from ..rules._arguments import row, whole
from ..rules._onnx import opset_of
from ._onnx_regions import RoiAlign

__all__ = [
    "AveragePool",
    "Col2Im",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "DeformConv",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "LpPool",
    "MaxPool",
    "MaxUnpool",
    "QLinearConv",
    "RoiAlign",
]

LATEST = 22
Ints = Sequence[int] | None


def MaxPool(
    X: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    pads: Ints = None,
    storage_order: int = 0,
    strides: Ints = None,
    return_indices: bool = False,
    opset: int = LATEST,
) -> Any:
    """Y, or (Y, Indices) with return_indices: flat over the whole tensor, planes column-major by storage_order=1."""
    x = as_array(X, "X")
    if return_indices and opset_of(opset) < 8:
        raise ArgumentError(
            "MaxPool has no Indices in this opset",
            given={"opset": opset},
            required=f"opset >= 8: {opset}",
            hint="opset=8",
            operator="MaxPool",
        )
    return max_pool(
        x,
        **_window(x, kernel_shape, auto_pad, pads, strides, dilations),
        ceil_mode=ceil_mode,
        storage_order=storage_order,
        opset=opset,
        return_indices=return_indices,
        rules="onnx",
    )


def AveragePool(
    X: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """The mean of the real taps, or by count_include_pad of those inside the padded input. See astride.avg_pool."""
    x = as_array(X, "X")
    return avg_pool(
        x,
        **_window(x, kernel_shape, auto_pad, pads, strides, dilations),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        opset=opset,
        rules="onnx",
    )


def LpPool(
    X: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints = None,
    p: float = 2,
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """(sum |x|^p)^(1/p). See astride.lp_pool."""
    x = as_array(X, "X")
    window = _window(x, kernel_shape, auto_pad, pads, strides, dilations)
    return lp_pool(x, p=p, **window, ceil_mode=ceil_mode, opset=opset, rules="onnx")


def GlobalMaxPool(X: Array, *, opset: int = LATEST) -> Array:
    """The greatest value of each plane, (N, C, 1, ...)."""
    x = as_array(X, "X")
    y: Array = max_pool(x, kernel=_plane(x), stride=1, opset=opset, rules="onnx")
    return y


def GlobalAveragePool(X: Array, *, opset: int = LATEST) -> Array:
    """The mean of each plane, (N, C, 1, ...)."""
    x = as_array(X, "X")
    return avg_pool(x, kernel=_plane(x), stride=1, opset=opset, rules="onnx")


def GlobalLpPool(X: Array, *, p: float = 2, opset: int = LATEST) -> Array:
    """The p-norm of each plane, (N, C, 1, ...)."""
    x = as_array(X, "X")
    return lp_pool(x, p=p, kernel=_plane(x), stride=1, opset=opset, rules="onnx")


def MaxUnpool(
    X: Array,
    I: Array,  # noqa: E741 - ONNX's name
    output_shape: Any = None,
    *,
    kernel_shape: Sequence[int],
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """Values to the places their indices name in the tensor of size s*(n-1) + k - pads. In a larger `output_shape`,
    (N, C, *size), each keeps its row and column: onnx's own test; rules="onnxruntime" has the other reading."""
    x = as_array(X, "X")
    window = _window(x, kernel_shape, "NOTSET", pads, strides, None)
    del window["dilation"]
    size = None
    if output_shape is not None:
        size = tuple(int(n) for n in as_array(output_shape, "output_shape"))
        if size[:2] != x.shape[:2] or len(size) != x.ndim:
            raise ArgumentError(
                "output_shape has another batch, channels or rank than X",
                given={"X": x, "output_shape": size},
                required=f"output_shape[:2] == X.shape[:2]: {size[:2]} == {x.shape[:2]}",
                operator="MaxUnpool",
            )
    return max_unpool(x, I, **window, output_size=None if size is None else size[2:], opset=opset, rules="onnx")


def Conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """Cross-correlation, W (M, C/group, *kernel), B (M,). `kernel_shape`, where given, is W's. See astride.conv."""
    x, w = as_array(X, "X"), as_array(W, "W")
    window = _window(x, _kernel_of(w, kernel_shape, "Conv"), auto_pad, pads, strides, dilations)
    del window["kernel"]
    return conv(x, w, B, **window, groups=group, opset=opset, rules="onnx")


def ConvInteger(
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """Convolution of int8 or uint8 less their zero points, summed in int32. See astride.conv_integer."""
    x, w = as_array(x, "x"), as_array(w, "w")
    window = _window(x, _kernel_of(w, kernel_shape, "ConvInteger"), auto_pad, pads, strides, dilations)
    del window["kernel"]
    zeros: dict[str, Any] = {"x_zero_point": x_zero_point, "w_zero_point": w_zero_point}
    return conv_integer(x, w, **zeros, **window, groups=group, opset=opset, rules="onnx")


def QLinearConv(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """Convolution of int8 or uint8, scaled back to the type of y_zero_point; B (M,) int32. See astride.conv_integer."""
    x, w = as_array(x, "x"), as_array(w, "w")
    window = _window(x, _kernel_of(w, kernel_shape, "QLinearConv"), auto_pad, pads, strides, dilations)
    del window["kernel"]
    zeros: dict[str, Any] = {"x_zero_point": x_zero_point, "w_zero_point": w_zero_point, "y_zero_point": y_zero_point}
    scales: dict[str, Any] = {"x_scale": x_scale, "w_scale": w_scale, "y_scale": y_scale}
    return conv_integer(x, w, B, **zeros, **scales, **window, groups=group, opset=opset, rules="onnx")


def DeformConv(
    X: Array,
    W: Array,
    offset: Array,
    B: Array | None = None,
    mask: Array | None = None,
    *,
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    offset_group: int = 1,
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """Convolution whose taps lie where `offset` (N, offset_group * taps * axes, *out) moves them, weighed by `mask`
    (N, offset_group * taps, *out). See astride.deform_conv."""
    x, w = as_array(X, "X"), as_array(W, "W")
    window = _window(x, _kernel_of(w, kernel_shape, "DeformConv"), "NOTSET", pads, strides, dilations)
    del window["kernel"]
    more: dict[str, Any] = {"mask": mask, "groups": group, "offset_groups": offset_group, "opset": opset}
    return deform_conv(x, offset, w, B, **window, **more, rules="onnx")


def ConvTranspose(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints = None,
    group: int = 1,
    kernel_shape: Ints = None,
    output_padding: Ints = None,
    output_shape: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """The adjoint of a convolution, W (C, M/group, *kernel). `output_shape` (*size) makes pads be ignored. See
    astride.conv_transpose."""
    x, w = as_array(X, "X"), as_array(W, "W")
    kernel = _kernel_of(w, kernel_shape, "ConvTranspose")
    window = _window(x, kernel, auto_pad, None if output_shape is not None else pads, strides, dilations)
    del window["kernel"]
    return conv_transpose(
        x,
        w,
        B,
        **window,
        output_padding=0 if output_padding is None else tuple(output_padding),
        output_shape=None if output_shape is None else tuple(output_shape)[-len(kernel) :],
        groups=group,
        opset=opset,
        rules="onnx",
    )


def Col2Im(
    X: Array,
    image_shape: Any,
    block_shape: Any,
    *,
    dilations: Ints = None,
    pads: Ints = None,
    strides: Ints = None,
    opset: int = LATEST,
) -> Array:
    """Columns (N, C * taps, windows) summed where their taps lie in an image (N, C, *image_shape). See astride.fold."""
    x = as_array(X, "X")
    if opset_of(opset) < 18:
        raise ArgumentError(
            "this opset has no Col2Im", given={"opset": opset}, required=f"opset >= 18: {opset}", operator="Col2Im"
        )
    image, block = (
        tuple(whole(n, name) for n in row(a, name)) for a, name in ((image_shape, "image_shape"), (block_shape, "block_shape"))
    )
    if x.ndim != 3 or len(image) != len(block):
        raise ArgumentError(
            "X is not three axes of columns, or the shapes differ in length",
            given={"X": x, "image_shape": image, "block_shape": block},
            required=f"X.ndim == 3: {x.ndim};  len(image_shape) == len(block_shape): {len(image)} == {len(block)}",
            operator="Col2Im",
        )
    window = _window(None, block, "NOTSET", pads, strides, dilations)
    return fold(x, output_size=image, **window, opset=opset, rules="onnx")


def _window(x: Array | None, kernel_shape: Any, auto_pad: str, pads: Ints, strides: Ints, dilations: Ints) -> dict[str, Any]:
    """ONNX's attributes in the shared vocabulary."""
    kernel = tuple(whole(k, "kernel_shape") for k in row(kernel_shape, "kernel_shape"))
    rank = len(kernel)
    if x is not None and rank != x.ndim - 2:
        raise ArgumentError(
            "kernel_shape has another rank than X",
            given={"X": x, "kernel_shape": kernel},
            required=f"len(kernel_shape) == X.ndim - 2: {rank} == {x.ndim - 2}",
        )
    flat = [0] * (2 * rank) if pads is None else [int(p) for p in pads]
    if len(flat) != 2 * rank:
        raise ArgumentError(
            "pads need a begin and an end for every axis",
            given={"pads": flat},
            required=f"len(pads) == 2 * {rank}: {len(flat)}",
            hint="[x1_begin, x2_begin, ..., x1_end, x2_end, ...]",
        )
    if auto_pad != "NOTSET" and any(flat):
        raise ArgumentError(
            "pads and auto_pad cannot be used together",
            given={"pads": flat, "auto_pad": auto_pad},
            because="onnx, onnx/defs/nn/defs.cc",
            hint='auto_pad="NOTSET"',
        )
    return {
        "kernel": kernel,
        "stride": (1,) * rank if strides is None else tuple(strides),
        "dilation": (1,) * rank if dilations is None else tuple(dilations),
        "padding": auto_pad if auto_pad != "NOTSET" else tuple(zip(flat[:rank], flat[rank:], strict=True)),
    }


def _kernel_of(w: Array, kernel_shape: Ints, operator: str) -> tuple[int, ...]:
    """The kernel's sizes, of W; an attribute that says otherwise is an error."""
    kernel = tuple(w.shape[2:])
    if kernel_shape is not None and tuple(kernel_shape) != kernel:
        raise ArgumentError(
            "kernel_shape is not W's",
            given={"kernel_shape": tuple(kernel_shape), "W": w},
            required=f"kernel_shape == W.shape[2:]: {tuple(kernel_shape)} == {kernel}",
            operator=operator,
        )
    return kernel


def _plane(x: Array) -> tuple[int, ...]:
    return tuple(x.shape[2:])
