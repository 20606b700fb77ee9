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


def loops(plan: SoftmaxLossPlan, x: Array, labels: Array) -> float:
    lines = np.moveaxis(np.asarray(x, np.float64), plan.axis, -1)
    lines = lines.reshape(labels.size, x.shape[plan.axis])
    total, counted = 0.0, 0
    for line, label in zip(lines, labels.reshape(-1), strict=True):
        if label != plan.ignore_label:
            counted += 1
            total -= math.log(math.exp(line[label]) / sum(math.exp(v) for v in line))
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
