"""Max unpooling: values moved to where their indices say, zeros elsewhere; the gradient read from there.

Numbers are moved as bits, whatever their dtype. A plane is written by one thread, in row-major order, so that of two values
with one index the last stays; where indices count through the whole tensor, one thread writes everything. Indices are
checked before anything is written, and each once more when used: one that another thread has changed meanwhile writes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...plan import UnpoolPlan
from ...plan.kinds import IndexBase, Layout
from .. import memory
from ..protocol import Array, Arrays, Kernel, Saved
from ..reference.max_unpool import checked
from .cache import functions
from .ir import Value, module
from .ir_types import BITS
from .numbers import lacks
from .schedule import CHUNK_BYTES, KEPT, three
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

CHANNELS, PLACES, OUT, COUNTED = 0, 1, 2, 5
"""Fields: channels of an image, values of a plane of x, and the sizes of y's planes and of those that indices count in."""

INDICES = {"int32": "i32", "int64": "i64"}
"""Indices that kernels read; others are converted."""


@dataclass(frozen=True, slots=True)
class Move:
    """What a kernel depends on besides geometry. `whole` says that indices count through the tensor, `inner` that they count
    in planes smaller than y's."""

    bits: int
    index: str
    last: bool
    whole: bool
    inner: bool
    back: bool


def text(spec: Move) -> str:
    """The module of `move`: a is x (dx backward), b is y (dy), c the indices; units are planes, or images where the channels
    come last. Where indices count through the tensor there is one unit, and d has the number of its images."""
    f = kernel_function("move")
    channels, places = f.field(f.geometry, CHANNELS), f.field(f.geometry, PLACES)
    out, counted = ([f.field(f.geometry, start + axis) for axis in range(3)] for start in (OUT, COUNTED))
    plane, inner = out[0] * out[1] * out[2], counted[0] * counted[1] * counted[2]
    images = f.load("i64", f.d) if spec.whole else f.value("i64", 0)

    def put(base: Value, channel: Value, source: Value) -> None:
        """One value, at place `source` of x; y's plane begins at `base` where indices count in planes."""
        index = f.load(spec.index, f.at(f.c, source * (BITS[spec.index] // 8))).to("i64")
        with f.when(index.below(inner * channels * images if spec.whole else inner), likely=True):
            if spec.whole:
                number, index = index // inner, index % inner
                channel = number % channels
                base = number // channels * plane * channels if spec.last else number * plane
            if spec.inner:
                row, column = index // counted[2], index % counted[2]
                index = (row // counted[1] * out[1] + row % counted[1]) * out[2] + column
            place = base + index * channels + channel if spec.last else base + index
            x, y = f.at(f.a, source * (spec.bits // 8)), f.at(f.b, place * (spec.bits // 8))
            f.store(f.load(f"i{spec.bits}", y if spec.back else x), x if spec.back else y)

    none = f.value("i64", 0)
    if spec.whole:
        with f.loop(0, images) as n, f.loop(0, channels) as c, f.loop(0, places) as p:
            put(none, none, (n * places + p) * channels + c if spec.last else (n * channels + c) * places + p)
        return module(f)
    with f.loop(f.begin, f.end) as unit:
        if spec.last:
            with f.loop(0, places) as p, f.loop(0, channels) as c:
                put(unit * plane * channels, c, (unit * places + p) * channels + c)
        else:
            with f.loop(0, places) as p:
                put(unit * plane, none, unit * places + p)
    return module(f)


def declines(plan: UnpoolPlan) -> str | None:
    """Why this backend does not unpool by a plan; None if it does."""
    return lacks(plan.dtype)


@lru_cache(maxsize=KEPT)
def _geometry(plan: UnpoolPlan, channels: int) -> Geometry:
    return Geometry([channels, math.prod(plan.size), *three(plan.out, 1), *three(plan.counted, 1)], [])


def _move(plan: UnpoolPlan, x: Array, y: Array, indices: Array, *, back: bool) -> None:
    """Between x and y, both contiguous."""
    last, whole = plan.layout is Layout.CHANNELS_LAST, plan.index_base is IndexBase.TENSOR
    if indices.dtype.name not in INDICES:
        indices = indices.astype(np.int64)
    spec = Move(8 * x.dtype.itemsize, INDICES[indices.dtype.name], last, whole, plan.counted != plan.out, back)
    (address,) = functions("max_unpool", spec, lambda: text(spec), ("move",))
    geometry = _geometry(plan, x.shape[-1] if last else x.shape[1])
    indices, images = memory.contiguous(indices), np.array([x.shape[0]], np.int64)
    units = 1 if whole else x.shape[0] * (1 if last else x.shape[1])
    chunk = max(CHUNK_BYTES * units // max(x.nbytes + y.nbytes, 1), 1)
    a, b, c, d = (address_of(array) for array in (x, y, indices, images))
    run(address, geometry.address, a, b, c, d, units, chunk)


def forward(plan: UnpoolPlan, x: Array, indices: Array, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Values to where their indices say."""
    _check(plan, indices)
    y = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    y.fill(0)
    if x.size:
        _move(plan, memory.contiguous(x), y, indices, back=False)
    if y is not out:
        out[...] = y
    return out, Saved(shapes=(x.shape, indices.shape), extra={"indices": indices}) if save else None


def backward(plan: UnpoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy from the same places."""
    if not want[0]:
        return (None, None)
    assert saved.shapes[0] is not None
    indices = saved.extra["indices"]
    _check(plan, indices)
    dx = np.zeros(saved.shapes[0], dy.dtype)
    if dx.size:
        _move(plan, dx, memory.contiguous(dy), indices, back=True)
    return (dx, None)


def _check(plan: UnpoolPlan, indices: Array) -> None:
    """Raise the reference's ArrayError where an index lies outside what it counts in."""
    if not indices.size:
        return
    planes = 1 if plan.index_base is IndexBase.PLANE else indices.size // math.prod(plan.size)
    if int(indices.min()) < 0 or int(indices.max()) >= math.prod(plan.counted) * planes:
        checked(plan, indices.shape, indices)


KERNELS = (Kernel("moves", forward, backward, declines, numpy=False),)
