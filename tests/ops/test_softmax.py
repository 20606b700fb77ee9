"""Softmax: by hand, against loops, gradients, extreme scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.softmax import CASES, REFUSALS

import astride
from astride.plan import SoftmaxPlan

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: SoftmaxPlan, x: Array) -> Array:
    lines = np.moveaxis(np.asarray(x, np.float64), plan.axis, -1)
    y = np.zeros(lines.shape)
    for place in np.ndindex(lines.shape[:-1]):
        terms = [math.exp(v) for v in lines[place]]
        y[place] = [t / sum(terms) for t in terms]
    return np.moveaxis(y, -1, plan.axis)


def test_by_hand() -> None:
    y = astride.softmax(np.log(np.array([[1.0, 2, 5], [2, 2, 4]])))
    np.testing.assert_allclose(y, [[0.125, 0.25, 0.625], [0.25, 0.25, 0.5]])
    np.testing.assert_allclose(astride.softmax(np.zeros((2, 4)), axis=0), np.full((2, 4), 0.5))
    np.testing.assert_allclose(astride.softmax(np.zeros((2, 4)), axis=-1), np.full((2, 4), 0.25))


def test_nothing_overflows() -> None:
    assert astride.softmax(np.float32([[1e30, 0], [-1e30, -3e38]])).tolist() == [[1, 0], [1, 0]]
    assert np.isnan(astride.softmax(np.float32([[np.nan, 0]]))).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.softmax, refusal)
