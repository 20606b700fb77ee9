"""Elementwise: by hand, against loops, gradients, kinks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.elementwise import CASES, REFUSALS, plan

import astride
from astride import ops
from astride.plan import ElementwisePlan
from astride.plan.dense import TIES, Function
from astride.plan.kinds import Nan

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def one(plan: ElementwisePlan, x: float) -> float:
    base = plan.shift + plan.scale * x
    found: dict[Function, Callable[[], float]] = {
        Function.RELU: lambda: x if x > 0 else plan.slope * x,
        Function.ELU: lambda: x if x > 0 else plan.slope * (math.exp(x) - 1),
        Function.SIGMOID: lambda: 1 / (1 + math.exp(-x)),
        Function.TANH: lambda: math.tanh(x),
        Function.ABS: lambda: -x if x < 0 else x,
        Function.BNLL: lambda: math.log(1 + math.exp(x)),
        Function.SWISH: lambda: x / (1 + math.exp(-plan.scale * x)),
        Function.POWER: lambda: base**plan.power,
        Function.EXP: lambda: plan.factor * math.exp(plan.scale * x),
        Function.LOG: lambda: plan.factor * math.log(base),
        Function.CLIP: lambda: plan.low if x < plan.low else plan.high if x > plan.high else x,
        Function.THRESHOLD: lambda: 1.0 if x > plan.low else 0.0,
    }
    return found[plan.function]()


def two(plan: ElementwisePlan, x: float, z: float) -> float:
    found: dict[Function, Callable[[], float]] = {
        Function.MULTIPLY: lambda: plan.scale * x * z,
        Function.DIVIDE: lambda: plan.scale * x / z if z else plan.scale * x * math.inf if x else math.nan,
        Function.ADD: lambda: plan.scale * x + plan.z_scale * z,
        Function.MAXIMUM: lambda: x if x > z else z,
    }
    return found[plan.function]()


def loops(plan: ElementwisePlan, x: Array, z: Array | None) -> Array:
    y = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        y[i] = one(plan, float(x[i])) if z is None else two(plan, float(x[i]), float(z[i]))
    return y


def test_by_hand() -> None:
    x, z = np.array([-2.0, 0, 3]), np.array([1.0, 2, 3])
    assert astride.elementwise(x).tolist() == [0, 0, 3]
    assert astride.elementwise(x, slope=0.5).tolist() == [-1, 0, 3]
    assert astride.elementwise(x, z, function="multiply", scale=2.0).tolist() == [-4, 0, 18]
    assert astride.elementwise(x, z, function="add", z_scale=10.0).tolist() == [8, 20, 33]


def test_nan_stays() -> None:
    assert np.isnan(astride.elementwise(np.array([np.nan]))).all()
    assert np.isnan(astride.elementwise(np.array([np.nan]), slope=0.1)).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    """A maximum's equals are in test_who_gets_the_gradient_of_equals; there is no derivative to compare with."""
    if case.plan.function is not Function.MAXIMUM:
        check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("nan", list(Nan))
@pytest.mark.parametrize("tie", TIES)
def test_gradient_of_the_maximum(tie: str, nan: str) -> None:
    x, z = np.random.default_rng(3).normal(size=(2, 4, 5))
    assert astride.check_gradient(astride.elementwise, x, z, function="maximum", tie=tie, nan=nan)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.elementwise, refusal)


def test_at_the_kink_the_gradient_is_the_slope() -> None:
    y, pull = astride.vjp(astride.elementwise, np.array([-2.0, 0, 3]), slope=0.5)
    assert pull(np.ones_like(y))[0].tolist() == [0.5, 0.5, 1]


def test_the_input_of_relu_may_be_overwritten() -> None:
    x = np.array([-2.0, 1.0, 3.0])
    relu = plan(Function.RELU, "float64", slope=-0.5)
    _, saved = ops.forward(relu, x, save=True)
    x[...] = 9
    assert saved is not None
    (dx, _) = ops.backward(relu, np.ones(3), saved)
    np.testing.assert_array_equal(dx, [-0.5, 1, 1])  # type: ignore[arg-type]


INF, NAN = np.inf, np.nan


def of(function: str, *arrays: list[float], **fields: Any) -> list[float]:
    return np.asarray(astride.elementwise(*[np.array(a, float) for a in arrays], function=function, **fields)).tolist()


def pulled(function: str, *arrays: list[float], **fields: Any) -> list[list[float]]:
    """Gradients of the sum."""
    y, pull = astride.vjp(astride.elementwise, *[np.array(a, float) for a in arrays], function=function, **fields)
    return [np.asarray(g).tolist() for g in pull(np.ones_like(y))]


def test_functions_by_hand() -> None:
    assert of("abs", [-2, 0, 3]) == [2, 0, 3]
    assert of("power", [1, 3], scale=0.5, shift=1.5, power=2) == [4, 9]
    assert of("clip", [-2, 0.5, 3], low=-1, high=2) == [-1, 0.5, 2]
    assert of("threshold", [-2, 0.5, 0.6], low=0.5) == [0, 0, 1]
    assert of("divide", [6, 8], [3, 2], scale=2) == [4, 8]
    assert of("maximum", [1, 5], [2, 3]) == [2, 5]
    np.testing.assert_allclose(of("exp", [0, 3], scale=math.log(2), factor=3), [3, 24])
    np.testing.assert_allclose(of("log", [1, 1000], factor=1 / math.log(10)), [0, 3], atol=1e-15)
    np.testing.assert_allclose(of("elu", [-1, 2], slope=2), [2 * (math.exp(-1) - 1), 2])
    np.testing.assert_allclose(of("swish", [0, 2], scale=0.5), [0, 2 / (1 + math.exp(-1))])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_far_out_nothing_overflows(dtype: str) -> None:
    x = np.array([-1e30, -200, 200, 1e30], dtype)
    for function, far in (
        ("sigmoid", [0, 0, 1, 1]),
        ("tanh", [-1, -1, 1, 1]),
        ("bnll", [0, 0, x[2], x[3]]),
        ("swish", [0, 0, x[2], x[3]]),
    ):
        y, pull = astride.vjp(astride.elementwise, x, function=function)
        np.testing.assert_allclose(y, far, atol=1e-30)
        np.testing.assert_allclose(
            pull(np.ones_like(y))[0], [0, 0, 0, 0] if function in ("sigmoid", "tanh") else [0, 0, 1, 1], atol=1e-30
        )


@pytest.mark.parametrize("function", [f for f in Function if not f.binary and f is not Function.THRESHOLD])
def test_nan_stays_whatever_the_function(function: str) -> None:
    assert np.isnan(of(function, [NAN])).all()


def test_nan_by_comparison() -> None:
    """C's max(low, min(x, high)) gives low; the greater of two is whom the one comparison leaves."""
    assert of("clip", [NAN, 9], nan="compared") == [0, 1]
    assert of("threshold", [NAN]) == [0]
    x, z = [NAN, 1, NAN], [1, NAN, NAN]
    np.testing.assert_array_equal(of("maximum", x, z), [NAN] * 3)
    np.testing.assert_array_equal(of("maximum", x, z, nan="compared"), [NAN, 1, NAN])
    np.testing.assert_array_equal(of("maximum", x, z, nan="compared", tie="last"), [1, NAN, NAN])


def test_no_number_is_nan_or_infinite() -> None:
    np.testing.assert_array_equal(of("log", [-1, 0]), [NAN, -INF])
    np.testing.assert_array_equal(of("power", [-1, 0], power=0.5), [NAN, 0])
    np.testing.assert_array_equal(of("power", [0], power=-1), [INF])
    np.testing.assert_array_equal(of("divide", [1, 0], [0, 0]), [INF, NAN])
    assert of("power", [NAN, INF], power=0) == [1, 1]
    assert of("power", [NAN, INF], scale=0, shift=3, power=2) == [9, 9]


def test_who_gets_the_gradient_of_equals() -> None:
    x, z = [1, 2, 3], [2, 2, 2]
    assert pulled("maximum", x, z) == [[0, 1, 1], [1, 0, 0]]
    assert pulled("maximum", x, z, tie="last") == [[0, 0, 1], [1, 1, 0]]
    assert pulled("maximum", x, z, tie="equal_share") == [[0, 0.5, 1], [1, 0.5, 0]]
    assert pulled("maximum", [NAN, 1], [1, NAN]) == [[1, 0], [0, 1]]


def test_gradients_at_kinks() -> None:
    assert pulled("abs", [-2, 0, 3]) == [[-1, 0, 1]]
    assert pulled("elu", [0], slope=0.5) == [[0.5]]
    assert pulled("clip", [-1, 0, 0.5, 1, 2]) == [[0, 1, 1, 1, 0]]
    assert pulled("threshold", [-1, 0, 1]) == [[0, 0, 0]]
    assert pulled("power", [0, 1], power=3) == [[0, 3]]
    assert pulled("power", [0], power=0.5) == [[INF]]


@pytest.mark.parametrize("function", [Function.ABS, Function.CLIP, Function.RELU])
def test_the_input_may_be_overwritten(function: Function) -> None:
    x = np.array([-2.0, 0.25, 3.0])
    expected = pulled(str(function), x.tolist())[0]
    made = plan(function, "float64")
    _, saved = ops.forward(made, x, save=True)
    x[...] = 9
    assert saved is not None
    np.testing.assert_array_equal(ops.backward(made, np.ones(3), saved)[0], expected)  # type: ignore[arg-type]
