"""caffe.coord_map: where a place in one blob lies in another, to crop feature maps so that they meet.

A map is (axis, scale, shift): position i of the input is position scale * i + shift of the output. Composing the maps of the
layers on the way, from each of two tops down to a blob both depend on, relates the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from . import net_spec
from .errors import CallError

Map = tuple[int | None, Any, Any]

PASS_THROUGH_LAYERS = [
    "AbsVal", "BatchNorm", "Bias", "BNLL", "Dropout", "Eltwise", "ELU", "Log", "LRN", "Exp", "MVN", "Power", "ReLU", "PReLU",
    "Scale", "Sigmoid", "Split", "TanH", "Threshold",
]  # fmt: skip
"""Types whose output lies where their input lies."""

IDENTITY: Map = (None, 1, 0)


class UndefinedMapException(ArgumentError):
    """A layer whose output has no place in its input."""


class AxisMismatchException(ArgumentError):
    """Two maps of different axes."""


def _numbers(value: Any) -> npt.NDArray[Any]:
    return np.array(value, ndmin=1)


def conv_params(fn: Any) -> tuple[int, Any, Any, Any]:
    """axis, stride, extent of the kernel with its dilation, and padding of a layer with windows."""
    params = fn.params.get("convolution_param", fn.params)
    legacy = {"pad_h", "pad_w", "kernel_h", "kernel_w", "stride_h", "stride_w"} & set(params)
    if legacy:
        raise AssertionError(f"cropping does not support legacy _h/_w params: {', '.join(sorted(legacy))}")
    extent = (_numbers(params["kernel_size"]) - 1) * _numbers(params.get("dilation", 1)) + 1
    return params.get("axis", 1), _numbers(params.get("stride", 1)), extent, _numbers(params.get("pad", 0))


def crop_params(fn: Any) -> tuple[int, Any]:
    """axis and offsets of a Crop layer."""
    params = fn.params.get("crop_param", fn.params)
    return params.get("axis", 2), _numbers(params.get("offset", 0))


def coord_map(fn: Any) -> Map:
    """The map of one layer. Raises UndefinedMapException where there is none."""
    kind = fn.type_name
    if kind in ("Convolution", "Pooling", "Im2col"):
        axis, stride, extent, pad = conv_params(fn)
        return axis, 1 / stride, (pad - (extent - 1) / 2) / stride
    if kind == "Deconvolution":
        axis, stride, extent, pad = conv_params(fn)
        return axis, stride, (extent - 1) / 2 - pad
    if kind in PASS_THROUGH_LAYERS:
        return IDENTITY
    if kind == "Crop":
        axis, offset = crop_params(fn)
        # A convolution's axis names the channels, a crop's the first axis that is cut.
        return axis - 1, 1, -offset
    raise UndefinedMapException("a layer of this type has no coordinate mapping", given={"type": kind})


def compose(base_map: Map, next_map: Map) -> Map:
    """First next_map, then base_map."""
    axis, scale, shift = base_map
    other, scale2, shift2 = next_map
    if axis is not None and other is not None and axis != other:
        raise AxisMismatchException(
            "the maps are of different axes", given={"axes": (axis, other)}, required=f"{axis} == {other}"
        )
    return other if axis is None else axis, scale * scale2, scale * shift2 + shift


def inverse(coord_map: Map) -> Map:
    """The way back."""
    axis, scale, shift = coord_map
    return axis, 1 / scale, -shift / scale


def _bottoms(top: Any) -> Any:
    """What a top lies in: a Crop's second bottom only gives the size."""
    return top.fn.inputs[:1] if top.fn.type_name == "Crop" else top.fn.inputs


def coord_map_from_to(top_from: Any, top_to: Any) -> Map:
    """The map from one top to another, through a blob both depend on. Raises RuntimeError: they have none in common.

    Where several ways lead to a blob one of them counts, as in Caffe: all are taken to agree.
    """
    from_maps: dict[Any, Map] = {top_from: IDENTITY}
    frontier = [top_from]
    while frontier:
        top = frontier.pop()
        for bottom, reached in _one_down(top, from_maps[top]):
            if bottom not in from_maps:
                from_maps[bottom] = reached
                frontier.append(bottom)
    to_maps: dict[Any, Map] = {top_to: IDENTITY}
    frontier = [top_to]
    while frontier:
        top = frontier.pop(0)
        if top in from_maps:
            return compose(to_maps[top], inverse(from_maps[top]))
        for bottom, reached in _one_down(top, to_maps[top]):
            if bottom not in to_maps:
                to_maps[bottom] = reached
                frontier.append(bottom)
    raise CallError(
        "Could not compute map between tops; are they connected by spatial layers?",
        given={"from": top_from.fn.type_name, "to": top_to.fn.type_name},
    )


def _one_down(top: Any, reached: Map) -> list[tuple[Any, Map]]:
    """The blobs a top is made of, with the maps to them; none where a layer has no map."""
    bottoms = _bottoms(top)
    try:
        return [(bottom, compose(reached, coord_map(top.fn))) for bottom in bottoms] if bottoms else []
    except UndefinedMapException:
        return []


def crop(top_from: Any, top_to: Any) -> Any:
    """A Crop layer that cuts top_from to where top_to lies. Raises AssertionError where no crop does."""
    axis, scale, shift = coord_map_from_to(top_from, top_to)
    scale, shift = _numbers(scale), _numbers(shift)
    if not (scale == 1).all():
        raise AssertionError(f"scale mismatch on crop (a = {scale})")
    if not (shift <= 0).all():
        raise AssertionError(f"cannot crop negative width (b = {shift})")
    if not (np.round(shift) == shift).all():
        raise AssertionError(f"cannot crop noninteger width (b = {shift})")
    offset = [int(b) for b in -np.round(shift)]
    return net_spec.layers.Crop(top_from, top_to, crop_param=dict(axis=(1 if axis is None else axis) + 1, offset=offset))


__all__ = [
    "PASS_THROUGH_LAYERS",
    "AxisMismatchException",
    "UndefinedMapException",
    "compose",
    "conv_params",
    "coord_map",
    "coord_map_from_to",
    "crop",
    "crop_params",
    "inverse",
]
