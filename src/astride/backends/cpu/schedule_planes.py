"""When poolings whose channels come first are computed several planes at a time (pool_planes.py), and how those are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import PoolPlan
from . import pool_last_quick, pool_planes
from .cache import functions
from .gradients import Gradient
from .machine import machine
from .tables import Geometry
from .window import Spec

Numbers = NDArray[np.int64]


def forward(plan: PoolPlan, spec: Spec, shape: Any, factor: int, planes: int) -> tuple[int, Geometry, int] | None:
    """The kernel's address, what it reads and its units for so many planes; None where planes are taken one by one.

    `shape` is the plan's Shape3, `factor` what all divisors are multiplied by.
    """
    lanes = pool_planes.lanes_of(spec, machine())
    if lanes is None or planes < lanes:
        return None
    bytes_, width, out = spec.number.bytes, shape.sizes[2], shape.outs[2]
    rows = _rows(_reads(shape.tables[0], shape.dilations[0]), _reads(shape.tables[1], shape.dilations[1]), shape.sizes[1])
    cut = pool_planes.cut(planes, lanes, rows, (out * bytes_, out * max(spec.offsets, 0)), (width * bytes_, 0))
    if cut is None:
        return None
    whole = pool_last_quick.way_of(spec, shape.kernels)
    (address,) = functions(
        f"pool_planes_{plan.reduce}", (spec, whole), lambda: pool_planes.forward(spec, whole, machine()), ("forward",)
    )
    return address, Geometry(shape.fields(cut.bundle, factor), [*shape.tables, cut.table]), cut.units


def backward(
    plan: PoolPlan, spec: Gradient, shape: Any, factor: int, tables: list[Numbers], planes: int
) -> tuple[int, Geometry, int] | None:
    """The same for the gradient, whose `tables` are the covers' first entries and entries."""
    lanes = pool_planes.lanes_of(spec, machine())
    if lanes is None or planes < lanes:
        return None
    bytes_, width, out = spec.number.bytes, shape.sizes[2], shape.outs[2]
    rows = _rows(_covers(tables[0], tables[3]), _covers(tables[1], tables[4]), shape.outs[1])
    other = 0 if spec.kind == "share" else spec.offsets or bytes_
    cut = pool_planes.cut(
        planes, lanes, rows, (width * bytes_, width * bytes_ if spec.reads_x else 0), (out * bytes_, out * other)
    )
    if cut is None:
        return None
    (address,) = functions(
        f"pool_planes_{plan.reduce}_gradient", spec, lambda: pool_planes.backward(spec, machine()), ("backward",)
    )
    return address, Geometry(shape.fields(cut.bundle, factor), [*tables, cut.table]), cut.units


def _reads(table: Numbers, step: int) -> Numbers:
    """(windows, 2): the pixels along one axis that windows read, from and to."""
    pixel, count = table[:, 0], table[:, 1]
    return np.where(count[:, None] > 0, np.stack([pixel, pixel + (count - 1) * step + 1], 1), 0)


def _covers(first: Numbers, entries: Numbers) -> Numbers:
    """(pixels, 2): the windows along one axis that have a pixel as a tap, from and to."""
    begin, end = first[:-1], first[1:]
    windows = np.concatenate([entries[:, 0], [0]])
    return np.where((begin < end)[:, None], np.stack([windows[begin], windows[end - 1] + 1], 1), 0)


def _rows(depths: Numbers, heights: Numbers, height: int) -> Numbers:
    """(depths x heights, 2): the rows, counted through depth and height, between the first and the last one read."""
    some = (depths[:, None, 0] < depths[:, None, 1]) & (heights[None, :, 0] < heights[None, :, 1])
    begin = depths[:, None, 0] * height + heights[None, :, 0]
    end = (depths[:, None, 1] - 1) * height + heights[None, :, 1]
    return np.where(some[..., None], np.stack([begin, end], -1), 0).reshape(-1, 2)
