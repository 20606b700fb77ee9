"""Lp pooling: sums of powers and their roots in vectors; the greatest magnitude where p is infinite.

Norms that scale are summed in float64 as they are. Windows whose powers would leave its range are found by their results
and computed once more, each divided by a power of two that fits it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import Empty, Nan, Start
from .. import memory
from ..protocol import Array, Kernel, Saved
from . import pooling, powers
from .edges import grow
from .extremes import Extreme
from .sums import Sum


def forward(plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """The norms of x into out; with `save`, keep what backward needs."""
    result = pooling.forward(plan, x, out=out, save=save)
    if not math.isinf(plan.p) and powers.may_leave(plan) and powers.suspicious(plan, out):
        _repair(plan, memory.contiguous(x), out)
    return result


@lru_cache(maxsize=512)
def _greatest(plan: PoolPlan) -> Extreme:
    found = replace(plan, p=math.inf, nan=Nan.COMPARED, start=Start.INFINITY, empty=Empty.ZERO)
    return Extreme.of(found, save=False)


def _repair(plan: PoolPlan, x: Array, y: Array) -> None:
    """Compute again what left the range."""
    x = grow(plan, x)
    greatest = np.empty(y.shape, y.dtype)
    pooling.over_windows(plan, _greatest(plan), x, greatest)
    scale, needed = powers.scales(plan, greatest)
    if needed.any():
        scaled = np.empty(y.shape, y.dtype)
        pooling.over_windows(plan, replace(Sum.of(plan), scaled=True), x, scaled, scale)
        y[needed] = scaled[needed]


KERNELS = (Kernel("vectors", forward, pooling.backward, pooling.declines, numpy=False),)
