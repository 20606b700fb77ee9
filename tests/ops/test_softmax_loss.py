"""Softmax loss: by hand, against loops, gradients, what is ignored and what is divided by."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.softmax_loss import CASES, REFUSALS

import astride
from astride.plan import SoftmaxLossPlan
from astride.plan.dense import Normalization

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: SoftmaxLossPlan, x: Array, labels: Array, gain: Array | None = None) -> float:
    lines = np.moveaxis(np.asarray(x, np.float64), plan.axis, -1)
    lines = lines.reshape(labels.size, x.shape[plan.axis])
    total, counted = 0.0, 0
    for line, label in zip(lines, labels.reshape(-1), strict=True):
        if label != plan.ignore_label:
            counted += 1
            weights = np.eye(len(line))[label] if gain is None else gain[label]
            logs = [math.log(math.exp(v) / sum(math.exp(other) for other in line)) for v in line]
            total -= sum(w * log for w, log in zip(weights, logs, strict=True))
    outer = math.prod(x.shape[: plan.axis])
    divisors = {"full": labels.size, "valid": counted, "batch_size": outer, "none": 1}
    return total / max(divisors[plan.normalization], 1)


def test_by_hand() -> None:
    x = np.log(np.array([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9]]))
    half, three_quarters, tenth = -math.log(0.5), -math.log(0.75), -math.log(0.1)
    assert float(astride.softmax_loss(x, [0, 1, 0])) == pytest.approx((half + three_quarters + tenth) / 3)
    assert float(astride.softmax_loss(x, [0, 1, 9], ignore_label=9)) == pytest.approx((half + three_quarters) / 2)
    full = astride.softmax_loss(x, [0, 1, 9], ignore_label=9, normalization="full")
    assert float(full) == pytest.approx((half + three_quarters) / 3)


def test_an_impossible_class() -> None:
    assert float(astride.softmax_loss(np.array([[0.0, 1e5]]), [0])) == pytest.approx(-math.log(np.finfo(np.float32).tiny))


def test_the_divisor_is_at_least_one() -> None:
    for normalization in Normalization:
        x = np.ones((2, 3))
        y, pull = astride.vjp(astride.softmax_loss, x, np.array([1, 1]), ignore_label=1, normalization=normalization.value)
        assert y == 0 and not pull(np.ones(()))[0].any()


def test_gain_by_hand() -> None:
    """Taking class 0 for 1 costs twice as much as the other way round."""
    x = np.log(np.array([[0.5, 0.5], [0.25, 0.75]]))
    y, pull = astride.vjp(astride.softmax_loss, x, np.array([0, 1]), np.array([[1.0, 0], [0.0, 2]]))
    assert float(y) == pytest.approx(-(math.log(0.5) + 2 * math.log(0.75)) / 2)
    dx, dlabels, dgain = pull(np.ones(()))
    np.testing.assert_allclose(dx, [[-0.25, 0.25], [0.25, -0.25]])
    assert dlabels is None
    np.testing.assert_allclose(dgain, -np.log([[0.5, 0.5], [0.25, 0.75]]) / 2)


def test_the_identity_as_gain_changes_nothing() -> None:
    x, labels = np.random.default_rng(0).normal(size=(3, 4, 2)), np.array([[0, 1], [3, 3], [2, 1]])
    results = [astride.vjp(astride.softmax_loss, x, labels, *gain, ignore_label=1) for gain in ((), (np.eye(4),))]
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
    np.testing.assert_allclose(results[0][1](np.ones(()))[0], results[1][1](np.ones(()))[0], rtol=1e-12, atol=1e-15)


def test_ignored_places_may_hold_anything() -> None:
    for gain in ((), (np.ones((2, 2)),)):
        x = np.array([[0.0, 0.0], [np.nan, np.inf]])
        y, pull = astride.vjp(astride.softmax_loss, x, np.array([0, 9]), *gain, ignore_label=9)
        assert np.isfinite(y) and np.isfinite(pull(np.ones(()))[0]).all() and not pull(np.ones(()))[0][1].any()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.softmax_loss, refusal)
