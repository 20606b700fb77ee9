"""Which gradient of pooling is computed how where the channels come last."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import PoolPlan, StridedAxis
from . import pool_last_cells, pool_last_scatter
from .cache import functions
from .edges import axes_read, taps_inside
from .gradients import Gradient
from .machine import machine
from .numbers import NUMBERS
from .pool_last_cells import Cells
from .schedule import Schedule, alone_of, chunk_of, factor_of, shape3
from .tables import Geometry, windows

STREAMED = 8 << 20
"""Bytes of dx from which it goes past the caches."""

MOST_PLACES = 1 << 12
"""Taps of a window up to which there is a table of where they lie."""

Table = NDArray[np.int64]


BLOCK_BYTES = 1 << 19
"""Bytes of dx that large windows add to at a time, so that it stays in the cache; LEAST and MOST are its channels."""

LEAST, MOST = 16, 128

OVERLAP = 16
"""Windows that have a pixel from which large windows give rather than pixels ask."""


def backward_last(plan: PoolPlan, spec: Gradient, shape: tuple[int, ...]) -> Schedule | None:
    """The gradient of an input of this shape in one of the ways written for certain windows; None where there is none."""
    return by_cells(plan, spec, shape) or _whole_images(plan, spec, shape) or _given(plan, spec, shape)


def _whole_share(plan: PoolPlan, spec: Gradient) -> int | None:
    """The divisor of a plan whose one window is the whole image; None where it is not an average of that kind."""
    whole = shape3(plan)
    if spec.kind != "share" or any(
        len(table) != 1 or table[0, 0] != 0 or table[0, 1] != size or step != 1
        for table, size, step in zip(whole.tables, whole.sizes, whole.dilations, strict=True)
    ):
        return None
    return math.prod(int(table[0, 3]) for table in whole.tables) * factor_of(plan)


def _whole_images(plan: PoolPlan, spec: Gradient, shape: tuple[int, ...]) -> Schedule | None:
    """One average over each image."""
    whole, share = shape3(plan), _whole_share(plan, spec)
    if share is None:
        return None
    streaming = large(plan, shape)
    (address,) = functions(
        f"pool_last_{plan.reduce}_images",
        (spec, streaming),
        lambda: pool_last_scatter.whole_images(spec, machine(), streaming=streaming),
        ("backward",),
    )
    image = math.prod(shape[1:]) * spec.number.bytes
    geometry = Geometry(whole.fields(shape[-1], share), [])
    return Schedule(plan, address, geometry, spec, 1, chunk_of(image), alone=alone_of(image))


def _given(plan: PoolPlan, spec: Gradient, shape: tuple[int, ...]) -> Schedule | None:
    """Extremes of large windows, each of which gives to one tap a channel."""
    axes = [axis for axis in axes_read(plan) if isinstance(axis, StridedAxis) and axis.input_dilation == 1]
    if len(axes) < len(plan.axes) or spec.kind != "offsets" or spec.number.stored != spec.accumulate:
        return None
    if math.prod(-(-axis.kernel // axis.stride) for axis in axes) < OVERLAP or plan.taps > MOST_PLACES:
        return None
    whole, channels, bytes_ = shape3(plan), shape[-1], spec.number.bytes
    pixel = channels * bytes_
    planes = (whole.sizes[1] * whole.sizes[2] * pixel, whole.sizes[2] * pixel, pixel)
    steps = list(zip(whole.tables, whole.kernels, whole.dilations, planes, strict=True))
    tables = [(table[:, 0] - table[:, 2] * dilation) * plane for table, _, dilation, plane in steps]
    places = np.zeros(1, np.int64)
    for _, kernel, dilation, plane in steps:
        places = (places[:, None] + np.arange(kernel, dtype=np.int64) * (dilation * plane)).ravel()
    (address,) = functions(
        f"pool_last_{plan.reduce}_scatter", spec, lambda: pool_last_scatter.backward(spec, machine()), ("backward",)
    )
    pixels = math.prod(whole.sizes)
    block = min(max(BLOCK_BYTES // max(pixels * bytes_, 1) // LEAST * LEAST, LEAST), MOST)
    geometry = Geometry([*whole.fields(channels, 1), block], [*tables, places])
    return Schedule(plan, address, geometry, spec, -(-channels // block), 1)


def by_cells(plan: PoolPlan, spec: Gradient, shape: tuple[int, ...]) -> Schedule | None:
    """The gradient cell by cell, where windows are small and strided evenly."""
    axes = axes_read(plan)
    strided = [axis for axis in axes if isinstance(axis, StridedAxis) and axis.dilation == axis.input_dilation == 1]
    if len(strided) < len(axes) or min(min(axis.pad_lo, axis.size) for axis in strided) < 0:
        return None
    missing = 3 - len(axes)
    kernel, stride, pad, size, out = (
        (*[fill] * missing, *(getattr(axis, name) for axis in strided))
        for name, fill in (("kernel", 1), ("stride", 1), ("pad_lo", 0), ("size", 1), ("out", 1))
    )
    if min(out) == 0 or not pool_last_cells.takes(spec, kernel, stride):
        return None
    shares = [np.ones(1, np.int64)] * missing + [_shares(plan, spec, a) for a in range(len(axes))]
    count = [-(-(n + p) // s) for n, p, s in zip(size, pad, stride, strict=True)]
    whole = [_whole(*numbers) for numbers in zip(kernel, stride, pad, size, shares, strict=True)]
    low, high, middle = ([part[k] for part in whole] for k in range(3))
    channels = shape[-1]
    factor = factor_of(plan) if spec.kind == "share" else 1
    cells = Cells(kernel, stride, large(plan, shape))
    (address,) = functions(
        f"pool_last_{plan.reduce}_cells", (spec, cells), lambda: pool_last_cells.backward(spec, cells, machine()), ("backward",)
    )
    numbers = [*pad, *count, *low, *high, math.prod(middle) * factor]
    geometry = Geometry([*shape3(plan).fields(channels, factor), *numbers], shares)
    row = count[2] * math.prod(stride) * channels * spec.number.bytes * 2
    return Schedule(plan, address, geometry, spec, count[0] * count[1], chunk_of(row), alone=alone_of(row))


def _shares(plan: PoolPlan, spec: Gradient, axis: int) -> Table:
    """An axis's part of each window's share."""
    inside = taps_inside(axes_read(plan)[axis]).count if spec.kind == "norm" else windows(plan, axis)[:, 3]
    return np.ascontiguousarray(inside, np.int64)


def _whole(kernel: int, stride: int, pad: int, size: int, shares: Table) -> tuple[int, int, int]:
    """The cells of an axis from one to another that have all their windows and pixels, all of one share, and the share."""
    back, out = -(-kernel // stride), len(shares)
    low, high = max(back - 1, -(-pad // stride)), min(out, (size + pad) // stride)
    if low >= high:
        return 0, 0, 1
    middle = int(shares[(low + high) // 2])
    other = np.flatnonzero(shares != middle)
    before, after = other[other < (low + high) // 2], other[other > (low + high) // 2]
    low = max(low, int(before[-1]) + back if len(before) else 0)
    high = min(high, int(after[0]) if len(after) else out)
    return (low, high, middle) if low < high else (0, 0, 1)


def large(plan: PoolPlan, shape: tuple[int, ...]) -> bool:
    """Whether the gradient of an input of this shape goes past the caches: then every vector of it lies where one may."""
    bytes_ = NUMBERS[plan.dtype].bytes
    return math.prod(shape) * bytes_ >= STREAMED and shape[-1] * bytes_ % 64 == 0 and _streams()


@lru_cache(None)
def _streams() -> bool:
    m = machine()
    return m.vector_bytes >= 32 and m.triple.startswith("x86")
