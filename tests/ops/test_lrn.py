"""Local response normalization: by hand, against loops, gradients."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.lrn import CASES, REFUSALS

import astride
from astride.errors import ArgumentError
from astride.plan import LrnPlan

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: LrnPlan, x: Array) -> Array:
    x = np.asarray(x, np.float64)
    y = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        total = 0.0
        for shifts in itertools.product(range(-plan.before, plan.after + 1), repeat=len(plan.axes)):
            place = list(i)
            for axis, shift in zip(plan.axes, shifts, strict=True):
                place[axis] += shift
            if all(0 <= p < n for p, n in zip(place, x.shape, strict=True)):
                total += x[tuple(place)] ** 2
        y[i] = x[i] / (plan.k + plan.alpha * total) ** plan.beta
    return y


def test_across_channels_by_hand() -> None:
    """Three channels, a window of three: sums of squares 5, 9 and 8, a third of alpha each."""
    y = astride.lrn(np.array([[1.0, 2, 2]]), size=3, alpha=3, beta=1, k=1)
    np.testing.assert_allclose(y, [[1 / 6, 2 / 10, 2 / 9]])


def test_within_a_channel_by_hand() -> None:
    """The sum is divided by nine at the corners too."""
    x = np.arange(1.0, 10).reshape(1, 1, 3, 3)
    y = astride.lrn(x, size=3, alpha=9, beta=1, k=1, axes=(2, 3))
    np.testing.assert_allclose(y[0, 0, 0, 0], 1 / (1 + 1 + 4 + 16 + 25))
    np.testing.assert_allclose(y[0, 0, 1, 1], 5 / (1 + (x**2).sum()))


def test_of_an_even_size_one_place_more_is_before() -> None:
    y = astride.lrn(np.array([[1.0, 2, 4]]), size=2, alpha=2, beta=1, k=0)
    np.testing.assert_allclose(y, [[1, 2 / 5, 4 / 20]])


def test_zeros_with_k_zero() -> None:
    assert np.isnan(astride.lrn(np.zeros((1, 2)), k=0)).all()
    assert not astride.lrn(np.zeros((1, 2)), k=1).any()


@pytest.mark.parametrize("fields", [{"before": -1}, {"after": -1}, {"axes": (-1,)}])
def test_plans_that_cannot_be(fields: dict[str, int]) -> None:
    with pytest.raises(ArgumentError):
        LrnPlan(dtype="float32", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.lrn, refusal)
