"""Small random plans of every operator, the same for the same seed: what nobody thought of as a case."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from tests.cases.records import Inputs, filled

from astride.plan import Axis, ConvPlan, ExplicitAxis, PoolPlan, StridedAxis, UnpoolPlan
from astride.plan.kinds import (
    Direction,
    Divisor,
    Edge,
    Empty,
    IndexBase,
    Layout,
    LpForm,
    LpScale,
    Nan,
    Reduce,
    Start,
    Tie,
    Unpicked,
    ZeroWindow,
)

T = TypeVar("T")
SIZES = {1: 9, 2: 6, 3: 4}


def random_inputs(op: str, seed: int) -> Inputs:
    """Plan and arrays number `seed` of an operator."""
    rng = np.random.default_rng([seed, *op.encode()])
    if op in ("conv", "conv_transpose"):
        return _convolution(rng, op == "conv_transpose")
    return _unpooling(rng) if op == "max_unpool" else _pooling(rng, op)


def _pooling(rng: np.random.Generator, op: str) -> Inputs:
    rank = int(rng.choice([1, 1, 2, 2, 3]))
    reduce = {
        "max_pool": Reduce.MAX,
        "min_pool": Reduce.MIN,
        "avg_pool": Reduce.AVERAGE,
        "lp_pool": Reduce.LP,
        "stochastic_pool": _one(rng, (Reduce.STOCHASTIC, Reduce.STOCHASTIC_MEAN)),
    }[op]
    stochastic = op == "stochastic_pool"
    edge = Edge.SKIP if stochastic or rng.random() < 0.6 else _one(rng, Edge)
    divisor = _one(rng, Divisor)
    plain = edge is not Edge.SKIP
    axes = tuple(_axis(rng, rank, plain=plain, undilated=divisor is Divisor.CAFFE) for _ in range(rank))
    p = float(rng.choice([1.0, 2.0, 3.0, 2.5, math.inf]))
    dtype = str(rng.choice(["float32", "float64"]))
    plan = PoolPlan(
        dtype=dtype,
        accumulate=dtype,
        threshold="float32" if rng.random() < 0.5 else dtype,
        axes=axes,
        reduce=reduce,
        layout=_one(rng, Layout),
        start=_one(rng, Start),
        nan=_one(rng, Nan),
        tie=_one(rng, [t for t in Tie if t.picks_one]) if op == "lp_pool" else _one(rng, Tie),
        unpicked=_one(rng, Unpicked),
        divisor=divisor,
        divisor_override=int(rng.choice([-3, 2, 4])) if divisor is Divisor.OVERRIDE else 0,
        divisor_pad=tuple((1, 2) for _ in axes) if rng.random() < 0.2 else None,
        p=p,
        lp_form=_one(rng, LpForm),
        lp_scale=_one(rng, LpScale),
        lp_scaled=bool(rng.random() < 0.5),
        zero_window=_one(rng, ZeroWindow),
        edge=edge,
        edge_value=float(rng.integers(-2, 3)),
        empty=_one(
            rng,
            (Empty.START, Empty.ZERO, Empty.NAN) if op in ("max_pool", "min_pool") else (Empty.QUOTIENT, Empty.ZERO, Empty.NAN),
        ),
    )
    fills = {"max_pool": ("ties", "mixed", "negatives", "integers"), "min_pool": ("ties", "mixed", "integers")}
    fill = str(rng.choice(fills.get(op, ("integers", "positives"))))
    return filled(plan, _shape(rng, plan.layout, tuple(axis.size for axis in axes)), fill, rng)


def _convolution(rng: np.random.Generator, transposed: bool) -> Inputs:
    rank = int(rng.choice([1, 1, 2, 2, 3]))
    edge = Edge.SKIP if transposed or rng.random() < 0.7 else _one(rng, [e for e in Edge if e is not Edge.CONSTANT])
    plain = edge is not Edge.SKIP or transposed
    axes = tuple(_strided(rng, rank, plain=plain, undilated=False) for _ in range(rank))
    groups = int(rng.choice([1, 1, 2, 3]))
    inner, outer = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    batch_groups = 2 if not transposed and groups == 1 and rng.random() < 0.2 else 1
    dtype = str(rng.choice(["float32", "float64"]))
    plan = ConvPlan(
        dtype=dtype,
        accumulate=dtype,
        axes=axes,
        in_channels=inner * groups,
        out_channels=outer * groups * batch_groups,
        direction=Direction.TRANSPOSED if transposed else Direction.FORWARD,
        layout=_one(rng, Layout),
        groups=groups,
        batch_groups=batch_groups,
        flip=bool(rng.random() < 0.3),
        edge=edge,
    )
    sizes = tuple(axis.out if transposed else axis.size for axis in axes)
    shape = _shape(rng, plan.layout, sizes, channels=plan.in_channels, batches=batch_groups)
    return filled(plan, shape, "integers", rng, w_shape=plan.weight_shape, bias=bool(rng.random() < 0.5))


def _unpooling(rng: np.random.Generator) -> Inputs:
    rank = int(rng.choice([1, 2, 3]))
    size, out = (tuple(int(n) for n in rng.integers(1, SIZES[rank], rank)) for _ in range(2))
    plan = UnpoolPlan(
        dtype=str(rng.choice(["float32", "float64", "int32"])),
        size=size,
        out=out,
        layout=_one(rng, Layout),
        index_base=_one(rng, (IndexBase.PLANE, IndexBase.TENSOR)),
    )
    return filled(plan, _shape(rng, plan.layout, size), "integers", rng)


def _axis(rng: np.random.Generator, rank: int, *, plain: bool, undilated: bool) -> Axis:
    if not plain and not undilated and rng.random() < 0.15:
        size = int(rng.integers(1, SIZES[rank]))
        starts = [int(n) for n in rng.integers(0, size + 1, int(rng.integers(1, 4)))]
        return ExplicitAxis(size, tuple(starts), tuple(int(rng.integers(a, size + 1)) for a in starts))
    return _strided(rng, rank, plain=plain, undilated=undilated)


def _strided(rng: np.random.Generator, rank: int, *, plain: bool, undilated: bool) -> StridedAxis:
    """Any axis with at least one window: cropping, padding far beyond the kernel, an output of either rounding."""
    while True:
        size, kernel = int(rng.integers(1, SIZES[rank])), int(rng.integers(1, 4))
        stride, dilation = int(rng.integers(1, 4)), 1 if undilated else int(rng.choice([1, 1, 2, 3]))
        lo, hi = (int(n) for n in rng.integers(-2, 5, 2))
        inner = 1 if plain else int(rng.choice([1, 1, 1, 2, 3]))
        free = (size - 1) * inner + 1 + lo + hi - (kernel - 1) * dilation - 1
        floor, ceil = free // stride + 1, -(-free // stride) + 1
        clipped = ceil - 1 if (ceil - 1) * stride >= (size - 1) * inner + 1 + lo else ceil
        outs = [n for n in (floor, ceil, clipped) if n >= 1]
        if outs:
            out = int(rng.choice(outs))
            return StridedAxis(
                size=size, kernel=kernel, stride=stride, dilation=dilation, pad_lo=lo, pad_hi=hi, out=out, input_dilation=inner
            )


def _shape(
    rng: np.random.Generator, layout: Layout, sizes: tuple[int, ...], *, channels: int | None = None, batches: int = 1
) -> tuple[int, ...]:
    n, c = batches * int(rng.integers(1, 3)), channels or int(rng.integers(1, 3))
    return (n, c, *sizes) if layout is Layout.CHANNELS_FIRST else (n, *sizes, c)


def _one(rng: np.random.Generator, choices: Any) -> Any:
    every = list(choices)
    return every[int(rng.integers(len(every)))]
