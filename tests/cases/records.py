"""What a case is, and how its plan and arrays are made: the same in every process."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import astride
from astride.plan import Axis, ConvPlan, Plan, PoolPlan, UnpoolPlan
from astride.plan.kinds import IndexBase, Layout

Array = NDArray[Any]
HALF = {"bfloat16": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class Case:
    """Arguments that make a plan, and what fills its arrays.

    `fill` names a filling of `FILLS`; integers are small, so that sums are exact in any order. `axes` replaces the
    plan's axes, for those that no argument describes; `changes` replaces other fields.
    """

    name: str
    shape: tuple[int, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    rules: str = "explicit"
    dtype: str = "float32"
    w_shape: tuple[int, ...] | None = None
    bias: bool = False
    fill: str = "integers"
    axes: tuple[Axis, ...] | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Refusal:
    """Arguments that are refused: the class of the error, and texts its message holds."""

    name: str
    shape: tuple[int, ...]
    arguments: Mapping[str, Any]
    says: tuple[str, ...]
    error: str = "ArgumentError"
    rules: str = "explicit"
    dtype: str = "float32"
    w_shape: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Inputs:
    """A case's plan and arrays, in the order of the plan's roles, and a gradient for its result."""

    plan: Plan
    arrays: tuple[Array | None, ...]
    dy: Array = field(repr=False)


def plan_of(op: str, case: Case) -> Plan:
    """The plan a case describes."""
    weights = {} if case.w_shape is None else {"w_shape": case.w_shape}
    plan: Plan = astride.plan(op, case.shape, rules=case.rules, dtype=case.dtype, **weights, **case.arguments)
    if case.axes is not None:
        plan = replace(plan, axes=case.axes)
    return replace(plan, **case.changes)


def inputs_of(op: str, case: Case) -> Inputs:
    """The plan and filled arrays of a case."""
    plan = plan_of(op, case)
    rng = np.random.default_rng(zlib.crc32(f"{op} {case.name}".encode()))
    return filled(plan, case.shape, case.fill, rng, w_shape=case.w_shape, bias=case.bias)


def filled(
    plan: Plan,
    shape: tuple[int, ...],
    fill: str,
    rng: np.random.Generator,
    *,
    w_shape: tuple[int, ...] | None = None,
    bias: bool = False,
) -> Inputs:
    """Arrays for a plan. Gradients are small integers whatever the filling."""
    dtype = np.dtype(HALF.get(plan.dtype, plan.dtype))
    x = FILLS[fill](rng, shape, dtype)
    arrays: list[Array | None] = [x]
    if isinstance(plan, ConvPlan):
        assert w_shape is not None
        arrays.append(integers(rng, w_shape, dtype))
        arrays.append(integers(rng, (plan.out_channels,), dtype) if bias else None)
        y_shape = plan.output_shape(shape, w_shape, None)
    elif isinstance(plan, UnpoolPlan):
        arrays.append(indices(plan, shape, rng))
        y_shape = plan.output_shape(shape, shape)
    else:
        assert isinstance(plan, PoolPlan)
        out = tuple(axis.out for axis in plan.axes)
        y_shape = (*shape[:2], *out) if plan.layout is Layout.CHANNELS_FIRST else (shape[0], *out, shape[-1])
        drawn = plan.reduce.value == "stochastic"
        arrays.append((rng.integers(1, 9, y_shape) / 8).astype(dtype) if drawn else None)
    result = np.dtype(HALF.get(plan.output_dtype, plan.output_dtype))
    return Inputs(plan, tuple(arrays), integers(rng, y_shape, result))


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    low = 0 if dtype.kind == "u" else -4
    return rng.integers(low, 5, shape).astype(dtype)


def ties(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return rng.integers(0, 2, shape).astype(dtype)


def negatives(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return rng.integers(-9, 0, shape).astype(dtype)


def positives(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return rng.integers(0, 5, shape).astype(dtype)


def mixed(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Ties, both infinities and NaN in every second place."""
    return rng.choice(np.array([-np.inf, np.inf, np.nan, 0, 1, 1, 2, -1]), shape).astype(dtype)


def every(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Image n holds the n-th combination of six values on its places: all there are, where the batch is large enough."""
    values = (-np.inf, -1.0, 0.0, 1.0, np.inf, np.nan)
    places = int(np.prod(shape[1:]))
    rows = list(itertools.islice(itertools.product(values, repeat=places), shape[0]))
    return np.array(rows).reshape(shape).astype(dtype)


def lowest(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """The type's least and greatest values."""
    limits = np.iinfo(dtype)
    return rng.choice(np.array([limits.min, limits.max], dtype), shape)


def constant(value: float) -> Any:
    return lambda rng, shape, dtype: np.full(shape, value, dtype)


FILLS: dict[str, Any] = {
    "integers": integers,
    "ties": ties,
    "negatives": negatives,
    "positives": positives,
    "mixed": mixed,
    "every": every,
    "limits": lowest,
    "zeros": constant(0.0),
    "all_nan": constant(np.nan),
    "all_negative_infinity": constant(-np.inf),
    "all_infinity": constant(np.inf),
}


def indices(plan: UnpoolPlan, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Indices inside the output, some of them twice."""
    planes = shape[0] * (shape[1] if plan.layout is Layout.CHANNELS_FIRST else shape[-1])
    counted = math.prod(plan.counted)
    limit = counted if plan.index_base is IndexBase.PLANE else counted * planes
    return rng.integers(0, max(limit, 1), shape)
