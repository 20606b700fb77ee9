"""Matmul: by hand, against loops, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.matmul import CASES, REFUSALS

import astride
from astride.plan import MatmulPlan

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: MatmulPlan, x: Array, w: Array, b: Array | None) -> Array:
    y = np.zeros((*x.shape[:-1], plan.columns))
    for place in np.ndindex(y.shape):
        for k in range(plan.inner):
            y[place] += x[(*place[:-1], k)] * (w[place[-1], k] if plan.transposed else w[k, place[-1]])
        y[place] += 0 if b is None else b[place[-1]]
    return y


def test_by_hand() -> None:
    x = np.array([[1.0, 2], [3, 4]])
    assert astride.matmul(x, [[1.0, 0, 1], [0, 1, 1]], [10.0, 20, 30]).tolist() == [[11, 22, 33], [13, 24, 37]]
    assert astride.matmul(x, [[1.0, 1], [1, -1]], transposed=True).tolist() == [[3, -1], [7, -1]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.matmul, refusal)


def test_vjp() -> None:
    x, w = np.array([[1.0, 2]]), np.array([[1.0, 0, 1], [0, 1, 1]])
    _, pull = astride.vjp(astride.matmul, x, w)
    dx, dw = pull(np.ones((1, 3)))[:2]
    assert dx.tolist() == [[2, 2]] and dw.tolist() == [[1, 1, 1], [2, 2, 2]]
