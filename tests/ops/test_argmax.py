"""Argmax: ties, order, NaN, values and their gradient."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.argmax import PLACES, REFUSALS, VALUES, plan
from tests.cases.dense import Array, DenseCase, DenseRefusal

import astride
from astride.errors import ArgumentError, UnsupportedError
from astride.plan import ArgmaxPlan

from .dense import check_contract, check_refusal, check_wanted


def loops(plan: ArgmaxPlan, x: Array) -> Array:
    """Pairs (value, place) in falling order, as Caffe sorts them."""
    y = np.zeros(plan.output_shape(x.shape))
    lead, rest = x.shape[: plan.axis], x.shape[plan.axis + 1 :]
    for i in np.ndindex(lead):
        for j in np.ndindex(rest):
            pairs = sorted(((float(x[(*i, k, *j)]), k) for k in range(x.shape[plan.axis])), reverse=True)
            for n, (value, place) in enumerate(pairs[: plan.top_k]):
                y[(*i, n, *j)] = value if plan.values else place
    return y


@pytest.mark.parametrize("case", PLACES + VALUES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.argmax, refusal)


def test_of_equals_the_highest_place_comes_first() -> None:
    x = np.array([[1.0, 7, 7, 0, 7]])
    assert astride.argmax(x).tolist() == [[4]]
    assert astride.argmax(x, top_k=4).tolist() == [[4, 2, 1, 0]]
    assert astride.argmax(x, top_k=4, values=True).tolist() == [[7, 7, 7, 1]]


def test_nan_counts_as_the_greatest() -> None:
    x = np.array([[1.0, np.nan, np.inf]])
    assert astride.argmax(x).tolist() == [[1]] and astride.argmax(x, top_k=3).tolist() == [[1, 2, 0]]


@pytest.mark.parametrize("case", VALUES, ids=str)
def test_values_pass_their_gradient_back(case: DenseCase) -> None:
    check_wanted(case)
    rng = np.random.default_rng(2)
    shape = case.shapes[0]
    assert shape is not None
    x = rng.permutation(np.arange(np.prod(shape), dtype=np.float64)).reshape(shape)  # no ties
    assert isinstance(case.plan, ArgmaxPlan)
    assert astride.check_gradient(astride.argmax, x, axis=case.plan.axis, top_k=case.plan.top_k, values=True)


def test_a_tie_sends_its_gradient_to_the_highest_place() -> None:
    _, pull = astride.vjp(astride.argmax, np.array([[3.0, 3, 1]]), values=True)
    assert pull(np.array([[5.0]]))[0].tolist() == [[0, 5, 0]]  # type: ignore[union-attr]


def test_places_have_no_gradient() -> None:
    y, pull = astride.vjp(astride.argmax, np.array([[3.0, 1]]))
    with pytest.raises(UnsupportedError, match="the place of a maximum has no gradient"):
        pull(np.ones_like(y))


def test_a_plan_checks_itself() -> None:
    with pytest.raises(ArgumentError, match="counts from the front"):
        plan(-1)
