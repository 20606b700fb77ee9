"""Batch normalization: by hand, against loops, gradients through the statistics and not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.cases.batch_norm import CASES, REFUSALS
from tests.cases.dense import Array, DenseCase, DenseRefusal

import astride
from astride import ops
from astride.plan import BatchNormPlan

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: BatchNormPlan, x: Array, mean: Array | None, variance: Array | None) -> Array:
    places = np.moveaxis(np.asarray(x, np.float64), plan.axis, 0)
    y = np.zeros(places.shape)
    for i, place in enumerate(places):
        values = [float(v) for v in place.reshape(-1)]
        m = sum(values) / len(values) if mean is None else float(mean[i])
        v = sum((u - m) ** 2 for u in values) / len(values) if variance is None else float(variance[i])
        y[i] = (place - m) / math.sqrt(v + plan.eps)
    return np.moveaxis(y, 0, plan.axis)


def test_by_hand() -> None:
    """Means 2 and 10, variances 1 and 0."""
    x = np.array([[1.0, 10], [3, 10]])
    np.testing.assert_allclose(astride.batch_norm(x, eps=3), [[-0.5, 0], [0.5, 0]])
    np.testing.assert_allclose(astride.batch_norm(x, np.array([1.0, 0]), np.array([3.0, 99]), eps=1), [[0, 1], [1, 1]])


def test_statistics_are_kept() -> None:
    """The variance is divided by the count, not by one less."""
    x = np.array([[1.0, 10], [3, 14], [8, 15]])
    saved = ops.forward(BatchNormPlan(dtype="float64"), x, save=True)[1]
    assert saved is not None
    np.testing.assert_allclose(saved.extra["mean"], [4, 13])
    np.testing.assert_allclose(saved.extra["variance"], x.var(axis=0))


def test_statistics_of_large_offsets_keep_their_digits() -> None:
    x = (np.arange(8192) % 2 + 4096).astype(np.float32).reshape(-1, 1)
    np.testing.assert_allclose(np.abs(astride.batch_norm(x, eps=0)), 1, rtol=1e-6)


def test_a_single_value_gives_zero() -> None:
    assert not astride.batch_norm(np.array([[3.0, -7]])).any()


def test_a_negative_variance_is_nan() -> None:
    assert np.isnan(astride.batch_norm(np.ones((1, 1)), np.zeros(1), np.array([-1.0]))).all()


def test_nothing_at_all_has_no_mean() -> None:
    y, saved = ops.forward(BatchNormPlan(dtype="float32"), np.zeros((0, 2), np.float32), save=True)
    assert y.shape == (0, 2) and saved is not None and np.isnan(saved.extra["mean"]).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    """Of the statistics too, where they are given."""
    check_gradient(case)
    check_wanted(case)


def test_gradient_not_through_the_statistics() -> None:
    """It is that of given statistics which happen to be the data's own."""
    x, dy = np.random.default_rng(2).normal(size=(2, 5, 3, 2))
    own = BatchNormPlan(dtype="float64", axis=1)
    saved = ops.forward(own, x, save=True)[1]
    assert saved is not None
    given = ops.forward(own, x, saved.extra["mean"], saved.extra["variance"], save=True)[1]
    assert given is not None
    (constant, _, _), (expected, _, _) = ops.backward(replace(own, through=False), dy, saved), ops.backward(own, dy, given)
    np.testing.assert_array_equal(constant, expected)  # type: ignore[arg-type]
    assert not np.allclose(ops.backward(own, dy, saved)[0], expected)  # type: ignore[arg-type]


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.batch_norm, refusal)
