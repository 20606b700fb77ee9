"""Layers on a device that compute nothing: one memory under several names, pieces of one, blobs behind each other."""

from __future__ import annotations

from collections.abc import Sequence

from ..backends.webgpu import dense_recipe
from ..backends.webgpu.recipe import encode
from ..backends.webgpu.tensor import Tensor
from ..layers import Layer
from ..layers._view import View
from ..layers.concat import Concat
from ..layers.layer import canonical_axis
from ..layers.silence import Silence
from ..layers.slice import Slice
from ..layers.split import Split
from ..plan import Shape
from ..plan.dense import ElementwisePlan, Function
from .device import DeviceSide
from .form import Blobs, Form


def _split(side: DeviceSide, layer: Split, bottom: Blobs, top: Blobs) -> None:
    if layer.copies:
        for y in top:
            side.put(y, side.data(bottom[0]))


def _split_back(side: DeviceSide, layer: Split, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if not want[0]:
        return
    counted = [y for y, counts in zip(top, layer.sums or [True] * len(top), strict=True) if counts and y.has_diff]
    total: Tensor | None = None
    plan = ElementwisePlan(dtype="float32", function=Function.ADD)
    for y in counted:
        dy = side.diff(y)
        total = dy if total is None else side.run(dense_recipe.elementwise(plan, dy.shape), "y", dy.shape, x=total, z=dy)
    side.put_diff(bottom[0], side.zeros(bottom[0].shape) if total is None else total)


def _view(side: DeviceSide, layer: View, bottom: Blobs, top: Blobs) -> None:
    if layer.copies:
        side.put(top[0], side.data(bottom[0]))


def _view_back(side: DeviceSide, layer: View, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if layer.copies and want[0]:
        side.put_diff(bottom[0], side.diff(top[0]))


def _nothing(side: DeviceSide, layer: Silence, bottom: Blobs, top: Blobs) -> None:
    """There is nothing to compute."""


def _silent_back(side: DeviceSide, layer: Silence, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    for x, wanted in zip(bottom, want, strict=True):
        if wanted:
            side.put_diff(x, side.zeros(x.shape))


def _joined(side: DeviceSide, parts: Sequence[Tensor], axis: int, shape: Shape) -> Tensor:
    """Parts behind each other along an axis."""
    whole, at = side.device.empty(shape), 0
    for part in parts:
        encode(dense_recipe.piece(shape, part.shape, axis, at, into=True), side.commands, {"part": part, "whole": whole})
        at += part.shape[axis]
    return whole


def _cut(side: DeviceSide, whole: Tensor, axis: int, at: int, shape: Shape) -> Tensor:
    """The part of this shape that begins at a place of an axis."""
    return side.run(dense_recipe.piece(whole.shape, shape, axis, at, into=False), "part", shape, whole=whole)


def _concat(side: DeviceSide, layer: Concat, bottom: Blobs, top: Blobs) -> None:
    side.put(top[0], _joined(side, [side.data(x) for x in bottom], layer.plan(bottom).axis, top[0].shape))


def _concat_back(side: DeviceSide, layer: Concat, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    dy, axis, at = side.diff(top[0]), layer.plan(bottom).axis, 0
    for x, wanted in zip(bottom, want, strict=True):
        if wanted:
            side.put_diff(x, _cut(side, dy, axis, at, x.shape))
        at += x.shape[axis]


def _slice(side: DeviceSide, layer: Slice, bottom: Blobs, top: Blobs) -> None:
    x, axis, at = side.data(bottom[0]), canonical_axis(layer.axis, bottom[0].shape), 0
    for y in top:
        side.put(y, _cut(side, x, axis, at, y.shape))
        at += y.shape[axis]


def _slice_back(side: DeviceSide, layer: Slice, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
    if want[0]:
        shape = bottom[0].shape
        side.put_diff(bottom[0], _joined(side, [side.diff(y) for y in top], canonical_axis(layer.axis, shape), shape))


MOVES: tuple[tuple[type[Layer], Form], ...] = (
    (Split, Form(_split, _split_back)),
    (View, Form(_view, _view_back)),
    (Concat, Form(_concat, _concat_back)),
    (Slice, Form(_slice, _slice_back)),
    (Silence, Form(_nothing, _silent_back)),
)
"""Layer class -> form."""
