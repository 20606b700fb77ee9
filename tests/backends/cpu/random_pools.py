"""Random pooling plans for the CPU backend: everything a plan can say, several geometries to each kernel that is compiled.

A *kind* fixes what kernels are written for (rules, dtype, the window's width); its geometries vary sizes, pads, strides,
dilations, channels and strides in memory. Both are functions of their numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from astride.errors import ArgumentError
from astride.plan import Axis, ExplicitAxis, PoolPlan, StridedAxis
from astride.plan.kinds import (
    Divisor,
    Edge,
    Empty,
    Layout,
    LpForm,
    LpScale,
    Nan,
    Reduce,
    Rounding,
    Start,
    Tie,
    Unpicked,
    ZeroWindow,
)

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
OFTEN = {Reduce.MAX: 3, Reduce.MIN: 2, Reduce.AVERAGE: 3, Reduce.LP: 3, Reduce.STOCHASTIC: 1, Reduce.STOCHASTIC_MEAN: 1}
REDUCES = tuple(reduce for reduce, times in OFTEN.items() for _ in range(times))


@dataclass(frozen=True)
class Kind:
    """What all geometries of a kernel share: the last axis's window, and the plan's fields."""

    fields: dict[str, Any]
    kernels: tuple[int, ...]
    stride: int
    dilation: int
    stretched: int
    explicit: bool


@dataclass(frozen=True)
class Draw:
    """One plan and its arrays; `uniform` is None where nothing is drawn."""

    plan: PoolPlan
    x: Any
    uniform: Any
    dy: Any


def kind_of(number: int) -> Kind:
    """Kind number `number`."""
    rng = np.random.default_rng([number, 6])
    rank = int(rng.choice([1, 2, 2, 2, 3]))
    reduce = _one(rng, REDUCES)
    extreme, stochastic = reduce in (Reduce.MAX, Reduce.MIN), reduce in (Reduce.STOCHASTIC, Reduce.STOCHASTIC_MEAN)
    whole = not stochastic and rng.random() < 0.3
    dtype = str(rng.choice(INTEGERS if whole else FLOATS))
    signed = not dtype.startswith("u")
    accumulate = "float64" if dtype == "float64" else "float32"
    if whole:
        accumulate = str(rng.choice(["int32", "int64"] if signed else ["uint32", "uint64"]))
        if "64" in dtype:
            accumulate = "int64" if signed else "uint64"
    empties = [Empty.START, Empty.ZERO, Empty.NAN] if extreme else [Empty.QUOTIENT, Empty.ZERO, Empty.NAN]
    form = _one(rng, LpForm)
    orders = [1.0, 2.0, 2.0, 3.0, math.inf, 0.5, 2.5, 4.0, 7.0]
    divisor = _one(rng, Divisor)
    edge = Edge.SKIP if stochastic or rng.random() < 0.65 else _one(rng, [e for e in Edge if e is not Edge.SKIP])
    explicit = edge is Edge.SKIP and divisor is not Divisor.CAFFE and rng.random() < 0.15
    plain = edge is not Edge.SKIP
    most = {1: 40, 2: 9, 3: 4}[rank]
    kernels = tuple(int(min(rng.choice([1, 2, 2, 3, 3, 3, 4, 5, 7, 30]), most)) for _ in range(rank))
    fields = dict(
        dtype=dtype,
        reduce=reduce,
        layout=_one(rng, Layout),
        start=_one(rng, Start),
        nan=_one(rng, Nan),
        tie=_one(rng, [t for t in Tie if t.picks_one or (extreme and not whole)]),
        unpicked=_one(rng, [Unpicked.NOWHERE, Unpicked.FIRST_TAP]),
        divisor=divisor,
        divisor_override=int(rng.choice([-3, 2, 5])) if divisor is Divisor.OVERRIDE else 0,
        divisor_pad=tuple((1, 2) for _ in range(rank)) if rng.random() < 0.1 else None,
        rounding=_one(rng, Rounding),
        p=math.inf if whole else float(rng.choice(orders)),
        lp_form=form,
        lp_scale=_one(rng, LpScale),
        lp_scaled=bool(rng.random() < 0.6),
        zero_window=_one(rng, ZeroWindow),
        threshold="float64" if dtype == "float64" and rng.random() < 0.5 else "float32",
        edge=edge,
        edge_value=float(rng.integers(0 if whole and not signed else -2, 3)),
        empty=_one(rng, [e for e in empties if not (whole and e is Empty.NAN)]),
        accumulate=accumulate,
    )
    undilated = divisor is Divisor.CAFFE
    return Kind(
        fields,
        kernels,
        int(rng.choice([1, 1, 2, 2, 3, 5])),
        1 if undilated else int(rng.choice([1, 1, 1, 2])),
        1 if plain or undilated else int(rng.choice([1, 1, 1, 1, 2, 3])),
        explicit,
    )


def draw_of(kind: Kind, number: int) -> Draw:
    """Geometry number `number` of a kind, filled."""
    rng = np.random.default_rng([number, 7, *kind.kernels])
    while True:
        try:
            plan = PoolPlan(axes=tuple(_axis(rng, kind, a) for a in range(len(kind.kernels))), **kind.fields)
            break
        except ArgumentError:
            continue
    sizes, outs = tuple(axis.size for axis in plan.axes), tuple(axis.out for axis in plan.axes)
    batch, channels = int(rng.choice([0, 1, 1, 2, 2])), int(rng.choice([0, 1, 1, 2, 3, 4, 5, 8, 16, 19, 33]))
    last = plan.layout is Layout.CHANNELS_LAST
    x_shape, y_shape = ((batch, *n, channels) if last else (batch, channels, *n) for n in (sizes, outs))
    x, dy = (_strange(rng, _filled(rng, plan, shape)) for shape in (x_shape, y_shape))
    if np.dtype(plan.dtype).kind not in "iu" or plan.reduce is not Reduce.AVERAGE:
        dy = np.asarray(_numbers(rng, plan, y_shape))
    uniform = None
    if plan.reduce is Reduce.STOCHASTIC:
        uniform = _strange(rng, ((rng.integers(0, 1 << 10, y_shape) + 1) / (1 << 10)).astype(x.dtype))
    return Draw(plan, x, uniform, dy)


def _axis(rng: np.random.Generator, kind: Kind, a: int) -> Axis:
    """Axis a; the last one keeps the window that kernels are written for."""
    rank, last = len(kind.kernels), a == len(kind.kernels) - 1
    size = int(rng.choice({1: [1, 2, 5, 9, 33, 70], 2: [1, 2, 5, 9, 17], 3: [1, 2, 4, 7]}[rank]))
    if kind.explicit and (last or rng.random() < 0.5):
        starts = [int(n) for n in rng.integers(0, size + 1, int(rng.integers(1, 5)))]
        return ExplicitAxis(size, tuple(starts), tuple(int(rng.integers(s, size + 1)) for s in starts))
    kernel = kind.kernels[a]
    stride = kind.stride if last else int(rng.choice([1, 2, 3]))
    lo, hi = int(rng.integers(-1, 4)), int(rng.integers(-2, 5))
    free = (size - 1) * kind.stretched + 1 + lo + hi - ((kernel - 1) * kind.dilation + 1)
    out = max(free // stride + 1, 0) + int(rng.choice([0, 0, bool(free % stride)]))
    return StridedAxis(
        size=size,
        kernel=kernel,
        stride=stride,
        dilation=kind.dilation,
        pad_lo=lo,
        pad_hi=hi,
        out=max(out, 0),
        input_dilation=kind.stretched,
    )


def _filled(rng: np.random.Generator, plan: PoolPlan, shape: tuple[int, ...]) -> Any:
    """x: ties, zeros of both signs, and where extremes are chosen or sums tell them, NaN and infinities too."""
    if np.dtype(plan.dtype).kind in "iu":
        limits = np.iinfo(plan.dtype)
        if rng.random() < 0.3 and plan.reduce is not Reduce.AVERAGE:
            return rng.choice(np.array([limits.min, limits.max, 1], plan.dtype), shape)
        return rng.integers(max(limits.min, -9), 10, shape).astype(plan.dtype)
    values = _numbers(rng, plan, shape).astype(np.float64)
    signed_power = plan.reduce is Reduce.LP and plan.lp_form is not LpForm.ABSOLUTE
    if signed_power or plan.reduce in (Reduce.STOCHASTIC, Reduce.STOCHASTIC_MEAN):
        values = np.abs(values)
    elif plan.reduce in (Reduce.MAX, Reduce.MIN, Reduce.AVERAGE) or math.isinf(plan.p):
        for odd, often in ((np.nan, 0.1), (-np.inf, 0.1), (np.inf, 0.05), (-0.0, 0.3)):
            if rng.random() < 0.4:
                values[rng.random(shape) < often] = odd
    return values.astype(_dtype(plan.dtype))


def _numbers(rng: np.random.Generator, plan: PoolPlan, shape: tuple[int, ...]) -> Any:
    """Small integers, with ties, or real numbers."""
    if rng.random() < 0.5 or np.dtype(plan.dtype).kind in "iu":
        return rng.integers(0 if plan.dtype.startswith("u") else -3, 4, shape).astype(_dtype(plan.dtype))
    return rng.standard_normal(shape).astype(_dtype(plan.dtype))


def _strange(rng: np.random.Generator, array: Any) -> Any:
    """The same numbers, lying otherwise in memory: backwards, transposed, read-only, between others."""
    way = int(rng.integers(5))
    if way == 1:
        array = np.ascontiguousarray(array[:, ::-1])[:, ::-1]
    elif way == 2:
        array = np.ascontiguousarray(array.T).T
    elif way == 3:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        array = wide[..., ::2]
    elif way == 4:
        array.flags.writeable = False
    return array


def _dtype(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" else np.dtype(name)


def _one(rng: np.random.Generator, choices: Any) -> Any:
    every = list(choices)
    return every[int(rng.integers(len(every)))]
