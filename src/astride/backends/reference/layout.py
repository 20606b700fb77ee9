"""Moving values: each move is one step of NumPy's, and its adjoint sends every gradient back where the value came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import ArrayError
from ...plan.layout import LayoutPlan, Move
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: LayoutPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Only the inputs' shapes are kept, and a take's indices."""
    x = arrays[0]
    assert x is not None
    if plan.move is Move.PERMUTE:
        out[...] = x.transpose(plan.order)
    elif plan.move is Move.CONCAT:
        np.concatenate([a for a in arrays if a is not None], axis=plan.axis, out=out)
    elif plan.move is Move.CROP:
        out[...] = x[plan.box]
    elif plan.move is Move.TILE:
        before, after = x.shape[: plan.axis], x.shape[plan.axis :]
        out[...] = np.broadcast_to(np.expand_dims(x, plan.axis), (*before, plan.tiles, *after)).reshape(out.shape)
    else:
        out[...] = np.take(x, _inside(plan, arrays[1], x.shape[plan.axis]), axis=plan.axis)
    shapes = tuple(None if a is None else a.shape for a in arrays)
    extra = {"indices": arrays[1]} if plan.move is Move.TAKE else {}
    return out, Saved(shapes, extra=extra) if save else None


def backward(plan: LayoutPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """A value that went to several places gets the sum of their gradients, one that went nowhere gets 0."""
    if plan.move is Move.CONCAT:
        return _split(plan, dy, saved, want)
    shape = saved.shapes[0]
    assert shape is not None
    dx = ADJOINTS[plan.move](plan, dy, shape, saved) if want[0] else None
    return (dx, None) if plan.move is Move.TAKE else (dx,)


def _split(plan: LayoutPlan, dy: Array, saved: Saved, want: Sequence[bool]) -> Arrays:
    sizes = [shape[plan.axis] for shape in saved.shapes if shape is not None]
    pieces = np.split(dy, np.cumsum(sizes)[:-1], axis=plan.axis)
    return tuple(piece.copy() if wanted else None for piece, wanted in zip(pieces, want, strict=True))


def _permuted(plan: LayoutPlan, dy: Array, shape: tuple[int, ...], saved: Saved) -> Array:
    return dy.transpose(np.argsort(plan.order)).copy()


def _cut(plan: LayoutPlan, dy: Array, shape: tuple[int, ...], saved: Saved) -> Array:
    dx = np.zeros(shape, dy.dtype)
    dx[plan.box] = dy
    return dx


def _tiled(plan: LayoutPlan, dy: Array, shape: tuple[int, ...], saved: Saved) -> Array:
    total: Array = dy.reshape(*shape[: plan.axis], plan.tiles, *shape[plan.axis :]).sum(axis=plan.axis)
    return total


def _taken(plan: LayoutPlan, dy: Array, shape: tuple[int, ...], saved: Saved) -> Array:
    indices = saved.extra["indices"]
    outer, inner = math.prod(shape[: plan.axis]), math.prod(shape[plan.axis + 1 :])
    dx = np.zeros((outer, shape[plan.axis], inner), dy.dtype)
    places: Any = (slice(None), indices.reshape(-1))
    np.add.at(dx, places, dy.reshape(outer, indices.size, inner))
    return dx.reshape(shape)


ADJOINTS: dict[Move, Callable[[LayoutPlan, Array, tuple[int, ...], Saved], Array]] = {
    Move.PERMUTE: _permuted,
    Move.CROP: _cut,
    Move.TILE: _tiled,
    Move.TAKE: _taken,
}
"""move -> (plan, dy, the input's shape, saved) -> dx"""


def _inside(plan: LayoutPlan, indices: Array | None, size: int) -> Array:
    """The indices, each of which must name a place; none counts from the end."""
    assert indices is not None
    bad = (indices < 0) | (indices >= size)
    if bad.any():
        wrong = int(indices[bad][0])
        raise ArrayError(
            "an index names no place",
            given={"index": wrong},
            required=f"0 <= index < x.shape[{plan.axis}]: 0 <= {wrong} < {size}",
        )
    return indices


KERNELS = (Kernel("numpy", forward, backward),)
