"""Max unpooling: every value written where its index says, zeros elsewhere; the gradient is read from there.

    loops4    for each image, row, column, channel
    loops2    for each row and column, all images and channels at once
    scatter   all at once

Where two values have one index the last in row-major order stays, and both read the gradient of that place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArrayError
from ...plan import UnpoolPlan
from ...plan.kinds import IndexBase
from ..protocol import Array, Arrays, Kernel, Saved
from ._windows import Indices, as_channels_first


def checked(plan: UnpoolPlan, shape: tuple[int, ...], indices: Array) -> Indices:
    """The indices as places in (N, C, plane), each inside its plane or tensor. Raises ArrayError naming the first that is not."""
    view = as_channels_first(indices, plan.layout).astype(np.int64, copy=False)
    counted = math.prod(plan.counted)
    limit = counted if plan.index_base is IndexBase.PLANE else view.shape[0] * view.shape[1] * counted
    wrong = (view < 0) | (view >= limit)
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ArrayError(
            "an index lies outside the output",
            given={"index": int(view[first]), "at": first},
            required=f"0 <= index < {limit}: {int(view[first])}",
            hint="an output size that the indices were taken from",
        )
    return view


def forward_scatter(plan: UnpoolPlan, x: Array, indices: Array, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    xv = as_channels_first(x, plan.layout)
    flat = _flat(plan, xv.shape, checked(plan, x.shape, indices))
    y = np.zeros(xv.shape[0] * xv.shape[1] * plan.plane, x.dtype)
    y[flat.reshape(-1)] = xv.reshape(-1)
    return _finish(plan, y, xv, x, indices, out, save)


def backward_scatter(plan: UnpoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    if not want[0]:
        return (None, None)
    dx, view, places = _gradient(plan, dy, saved)
    flat = _flat(plan, view.shape, places)
    view[...] = np.ascontiguousarray(as_channels_first(dy, plan.layout)).reshape(-1)[flat]
    return (dx, None)


def forward_loops2(plan: UnpoolPlan, x: Array, indices: Array, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    xv = as_channels_first(x, plan.layout)
    flat = _flat(plan, xv.shape, checked(plan, x.shape, indices))
    y = np.zeros(xv.shape[0] * xv.shape[1] * plan.plane, x.dtype)
    if plan.index_base is IndexBase.PLANE:
        for position in np.ndindex(*plan.size):
            y[flat[(..., *position)]] = xv[(..., *position)]
    else:  # an index may point into another plane, so the order of planes counts as well
        for n, c in np.ndindex(*xv.shape[:2]):
            for position in np.ndindex(*plan.size):
                y[flat[(n, c, *position)]] = xv[(n, c, *position)]
    return _finish(plan, y, xv, x, indices, out, save)


def backward_loops2(plan: UnpoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    if not want[0]:
        return (None, None)
    dx, view, places = _gradient(plan, dy, saved)
    flat, source = _flat(plan, view.shape, places), np.ascontiguousarray(as_channels_first(dy, plan.layout)).reshape(-1)
    for position in np.ndindex(*plan.size):
        view[(..., *position)] = source[flat[(..., *position)]]
    return (dx, None)


def forward_loops4(plan: UnpoolPlan, x: Array, indices: Array, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    xv = as_channels_first(x, plan.layout)
    places = checked(plan, x.shape, indices)
    yv = as_channels_first(out, plan.layout)
    yv[...] = 0
    for n in range(xv.shape[0]):
        for c in range(xv.shape[1]):
            for position in np.ndindex(*plan.size):
                yv[_place(plan, yv.shape, n, c, int(places[(n, c, *position)]))] = xv[(n, c, *position)]
    return out, _saved(x, indices) if save else None


def backward_loops4(plan: UnpoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    if not want[0]:
        return (None, None)
    dx, view, places = _gradient(plan, dy, saved)
    dyv = as_channels_first(dy, plan.layout)
    for n in range(view.shape[0]):
        for c in range(view.shape[1]):
            for position in np.ndindex(*plan.size):
                view[(n, c, *position)] = dyv[_place(plan, dyv.shape, n, c, int(places[(n, c, *position)]))]
    return (dx, None)


def twice(plan: UnpoolPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """The gradient reads dy and does not see x: every place of dy gets the cotangents of all that read it."""
    assert cotangents[0] is not None
    arriving = as_channels_first(cotangents[0], plan.layout)
    flat = _flat(plan, arriving.shape, checked(plan, cotangents[0].shape, saved.extra["indices"]))
    total = np.zeros(dy.size, np.result_type(dy.dtype, np.float32) if dy.dtype.kind not in "iu" else dy.dtype)
    np.add.at(total, flat.reshape(-1), arriving.reshape(-1))
    gradient = np.empty(dy.shape, dy.dtype)
    as_channels_first(gradient, plan.layout)[...] = total.reshape(*arriving.shape[:2], *plan.out)
    return gradient, (None, None)


def _flat(plan: UnpoolPlan, shape: tuple[int, ...], places: Indices) -> Indices:
    """Positions in the whole output, (N, C, *out) row-major."""
    if plan.counted != plan.out:
        plane, rest = np.divmod(places, math.prod(plan.counted))
        places = plane * plan.plane + np.ravel_multi_index(np.unravel_index(rest, plan.counted), plan.out)
    if plan.index_base is IndexBase.TENSOR:
        return places
    planes = np.arange(shape[0] * shape[1], dtype=np.int64) * plan.plane
    return places + planes.reshape(shape[0], shape[1], *[1] * len(plan.size))


def _place(plan: UnpoolPlan, shape: tuple[int, ...], n: int, c: int, index: int) -> tuple[Any, ...]:
    """One index as (n, c, *position)."""
    if plan.index_base is IndexBase.TENSOR:
        return tuple(np.unravel_index(index, (*shape[:2], *plan.counted)))
    return (n, c, *np.unravel_index(index, plan.counted))


def _finish(
    plan: UnpoolPlan, y: Array, xv: Array, x: Array, indices: Array, out: Array, save: bool
) -> tuple[Array, Saved | None]:
    as_channels_first(out, plan.layout)[...] = y.reshape(*xv.shape[:2], *plan.out)
    return out, _saved(x, indices) if save else None


def _saved(x: Array, indices: Array) -> Saved:
    return Saved(shapes=(x.shape, indices.shape), extra={"indices": indices})


def _gradient(plan: UnpoolPlan, dy: Array, saved: Saved) -> tuple[Array, Array, Indices]:
    """dx to fill, its (N, C, *size) view, and the places to read."""
    assert saved.shapes[0] is not None
    dx = np.empty(saved.shapes[0], dy.dtype)
    return dx, as_channels_first(dx, plan.layout), checked(plan, saved.shapes[0], saved.extra["indices"])


KERNELS = (
    Kernel("scatter", forward_scatter, backward_scatter, twice=twice),
    Kernel("loops2", forward_loops2, backward_loops2, twice=twice),
    Kernel("loops4", forward_loops4, backward_loops4, twice=twice),
)
