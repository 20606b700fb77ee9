"""Mean and variance normalization: by hand, against loops, both gradients."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.mvn import CASES, REFUSALS

import astride
from astride import ops
from astride.plan import MvnPlan

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: MvnPlan, x: Array) -> Array:
    y = np.zeros(x.shape)
    for i in np.ndindex(x.shape[: plan.axis]):
        values = [float(v) for v in np.asarray(x[i]).reshape(-1)]
        if values:
            mean = sum(values) / len(values)
            deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
            y[i] = (np.asarray(x[i], np.float64) - mean) / (deviation + plan.eps if plan.normalize_variance else 1)
    return y


def test_by_hand() -> None:
    """Each channel has mean 3 and deviation 2; the image as a whole too."""
    x = np.array([[[1.0, 5], [5, 1]]])
    for axis in (1, 2):
        np.testing.assert_allclose(astride.mvn(x, axis=axis, eps=0), [[[-1, 1], [1, -1]]])
        np.testing.assert_allclose(astride.mvn(x, axis=axis, eps=2), [[[-0.5, 0.5], [0.5, -0.5]]])
        np.testing.assert_allclose(astride.mvn(x, axis=axis, normalize_variance=False), [[[-2, 2], [2, -2]]])


def test_what_is_constant_gives_zero() -> None:
    x = np.full((1, 1, 4), 7.0)
    assert not astride.mvn(x).any()
    assert np.isnan(astride.mvn(x, eps=0)).all()
    pull = astride.vjp(astride.mvn, x, eps=0.5)[1]
    np.testing.assert_allclose(pull(np.array([[[1.0, 0, 0, 0]]]))[0], [[[1.5, -0.5, -0.5, -0.5]]])  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


def test_the_gradient_of_caffe_takes_eps_for_nothing() -> None:
    x, dy = np.random.default_rng(4).normal(size=(2, 2, 3, 5))
    for eps, same in ((0.0, True), (1e-9, True), (0.1, False)):
        exact = MvnPlan(dtype="float64", axis=2, eps=eps)
        y, saved = ops.forward(exact, x, save=True)
        assert saved is not None
        derivative, caffe = ops.backward(exact, dy, saved)[0], ops.backward(replace(exact, exact=False), dy, saved)[0]
        divisor = x.std(axis=2, keepdims=True) + eps
        expected = (dy - dy.mean(axis=2, keepdims=True) - y * (dy * y).mean(axis=2, keepdims=True)) / divisor
        np.testing.assert_allclose(caffe, expected)  # type: ignore[arg-type]
        assert np.allclose(derivative, expected, atol=1e-7) is same  # type: ignore[arg-type]


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.mvn, refusal)
