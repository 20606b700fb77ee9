"""Elementwise: by hand, against loops, gradients, kinks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.elementwise import CASES, REFUSALS, plan

import astride
from astride import ops
from astride.plan import ElementwisePlan
from astride.plan.dense import Function

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: ElementwisePlan, x: Array, z: Array | None) -> Array:
    y = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        if plan.function is Function.RELU:
            y[i] = x[i] if x[i] > 0 else plan.slope * x[i]
        else:
            assert z is not None
            y[i] = plan.scale * x[i] * z[i] if plan.function is Function.MULTIPLY else plan.scale * x[i] + plan.z_scale * z[i]
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
    check_gradient(case)
    check_wanted(case)


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
