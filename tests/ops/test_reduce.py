"""Reduce: by hand, against loops, gradients, nothing at all."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.reduce import CASES, REFUSALS, plan

import astride
from astride.errors import ArgumentError
from astride.plan import ReducePlan
from astride.plan.reduce import Total

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: ReducePlan, x: Array) -> Array:
    y = np.zeros(x.shape[: plan.axis])
    count = int(np.prod(x.shape[plan.axis :]))
    for i in np.ndindex(x.shape):
        value = {Total.ASUM: abs(x[i]), Total.SUMSQ: x[i] ** 2}.get(plan.total, x[i])
        y[i[: plan.axis]] += plan.coeff * value / (count if plan.total is Total.MEAN else 1)
    return y


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.reduce, refusal)


def test_by_hand() -> None:
    x = np.array([[1.0, -2, 3], [0, 4, -4]])
    assert astride.reduce(x) == 2
    assert astride.reduce(x, axis=1).tolist() == [2, 0]
    assert astride.reduce(x, total="mean", axis=1, coeff=3.0).tolist() == [2, 0]
    assert astride.reduce(x, total="asum", axis=-1).tolist() == [6, 8]
    assert astride.reduce(x, total="sumsq", axis=1, coeff=0.5).tolist() == [7, 16]


def test_at_zero_the_gradient_of_a_magnitude_is_zero() -> None:
    y, pull = astride.vjp(astride.reduce, np.array([-2.0, 0, 3]), total="asum")
    assert pull(np.ones_like(y))[0].tolist() == [-1, 0, 1]  # type: ignore[union-attr]


def test_the_mean_of_nothing_is_not_a_number() -> None:
    assert np.isnan(astride.reduce(np.zeros((2, 0)), total="mean", axis=1)).all()
    assert astride.reduce(np.zeros((2, 0)), axis=1).tolist() == [0, 0]


def test_a_nan_stays_in_its_row() -> None:
    x = np.array([[1.0, np.nan], [1, 2]])
    np.testing.assert_array_equal(astride.reduce(x, axis=1), [np.nan, 3])


def test_many_small_numbers_add_up() -> None:
    """In pairs, or pairs of blocks: one after the other 1e7 tenths in float32 would be 8 % off."""
    assert abs(astride.reduce(np.full(10_000_000, 0.1, np.float32)) - 1e6) < 100


def test_a_plan_checks_itself() -> None:
    with pytest.raises(ArgumentError, match="counts from the front"):
        plan(Total.SUM, axis=-1)
