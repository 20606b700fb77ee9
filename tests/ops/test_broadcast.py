"""Broadcast: by hand, against loops, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.broadcast import CASES, REFUSALS
from tests.cases.dense import Array, DenseCase, DenseRefusal

import astride
from astride.plan import BroadcastPlan
from astride.plan.norms import Along

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: BroadcastPlan, x: Array, z: Array, b: Array | None) -> Array:
    y = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        own = i[plan.axis : plan.axis + z.ndim]
        if plan.function is Along.ADD:
            y[i] = x[i] + z[own]
        elif plan.function is Along.PRELU:
            y[i] = x[i] if x[i] > 0 else z[own] * x[i]
        else:
            y[i] = x[i] * z[own] + (0 if b is None else b[own])
    return y


def test_by_hand() -> None:
    x, z = np.array([[-1.0, 2, -3], [4, -5, 6]]), np.array([1.0, 10, 100])
    assert astride.broadcast(x, z).tolist() == [[-1, 20, -300], [4, -50, 600]]
    assert astride.broadcast(x, z, z).tolist() == [[0, 30, -200], [5, -40, 700]]
    assert astride.broadcast(x, z, function="add").tolist() == [[0, 12, 97], [5, 5, 106]]
    assert astride.broadcast(x, z, function="prelu").tolist() == [[-1, 2, -300], [4, -50, 6]]
    assert astride.broadcast(x, np.array([1.0, 2]), axis=0).tolist() == [[-1, 2, -3], [8, -10, 12]]
    assert astride.broadcast(x, np.array(2.0), axis=-1).tolist() == [[-2, 4, -6], [8, -10, 12]]


def test_gradients_by_hand() -> None:
    """Those of the smaller array are sums over everything it was repeated on."""
    x, z, b = np.array([[-1.0, 2], [3, -4]]), np.array([10.0, 20]), np.array([0.0, 1])
    dy = np.array([[1.0, 2], [3, 4]])
    assert [g.tolist() for g in astride.vjp(astride.broadcast, x, z, b)[1](dy)] == [[[10, 40], [30, 80]], [8, -12], [4, 6]]  # type: ignore[union-attr]
    add = astride.vjp(astride.broadcast, x, z, function="add")[1](dy)
    assert [g.tolist() for g in add] == [dy.tolist(), [4, 6]]  # type: ignore[union-attr]
    prelu = astride.vjp(astride.broadcast, x, z, function="prelu")[1](dy)
    assert [g.tolist() for g in prelu] == [[[10, 2], [3, 80]], [-1, -16]]  # type: ignore[union-attr]


def test_at_zero_the_gradient_is_the_slope() -> None:
    y, pull = astride.vjp(astride.broadcast, np.zeros((1, 2)), np.array([0.25, -1.0]), function="prelu")
    dx, dz = pull(np.ones_like(y))
    assert np.asarray(dx).tolist() == [[0.25, -1]] and np.asarray(dz).tolist() == [0, 0]


def test_nan_stays() -> None:
    for function in Along:
        assert np.isnan(astride.broadcast(np.array([[np.nan]]), np.ones(1), function=str(function))).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.broadcast, refusal)
