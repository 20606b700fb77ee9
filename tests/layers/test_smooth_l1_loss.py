"""SmoothL1Loss: both parts of it, weights, what it is divided by, gradients, and its text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers.smooth_l1_loss import SmoothL1Loss
from astride.plan.dense import Normalization

from .gradients import Bench, away_from, check_gradient
from .losses import run

RANDOM = np.random.RandomState(52)
SHAPE = (2, 3, 2, 2)


def smooth(d: Any, sigma: float) -> Any:
    return np.where(np.abs(d) < 1 / sigma**2, (sigma * d) ** 2 / 2, np.abs(d) - 0.5 / sigma**2)


def bottoms(count: int, sigma: float) -> list[Any]:
    """Distances on both sides of 1 / sigma^2 and of 0, none near them; weights of every sign, and zeros."""
    inner = RANDOM.choice([-1.0, 0.0, 1.0, 2.0], SHAPE)
    outer = RANDOM.choice([0.0, 0.5, 2.0], SHAPE)
    d = RANDOM.uniform(-2, 2, SHAPE) / sigma**2
    for kink in (-1, 0, 1):
        d = away_from(d, kink / sigma**2)
    b = RANDOM.normal(size=SHAPE)
    weighted = d / np.where(inner == 0, 1, inner) if count > 2 else d
    return [b + weighted, b, inner, outer][:count]


@pytest.mark.parametrize("sigma", [1.0, 3.0])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_values_and_gradient(sigma: float, count: int) -> None:
    given = bottoms(count, sigma)
    bench = Bench(SmoothL1Loss(sigma=sigma), given)
    d = given[0] - given[1]
    each = smooth(d * given[2] if count > 2 else d, sigma) * (given[3] if count > 3 else 1)
    np.testing.assert_allclose(bench.forward()[0], each.sum() / 2, rtol=1e-13)
    check_gradient(bench, [True, True, False, False][:count])


@pytest.mark.parametrize(
    ("options", "divided_by"),
    [
        ({}, 2),
        ({"normalization": Normalization.FULL}, 8),
        ({"normalization": Normalization.VALID}, 8),
        ({"normalization": Normalization.NONE}, 1),
        ({"divisor": 5.0}, 5),
        ({"divisor": 0.25}, 1),
    ],
)
def test_divided_by(options: dict[str, Any], divided_by: float) -> None:
    bench = Bench(SmoothL1Loss(**options), [np.full(SHAPE, 3.0), np.zeros(SHAPE)])
    assert bench.forward()[0] == 24 * 2.5 / divided_by


def test_each_place_has_its_loss() -> None:
    a, b = bottoms(2, 1.0)
    tops = Bench(SmoothL1Loss(), [a, b], tops=2).forward()
    assert tops[1].shape == (2, 1, 2, 2)
    np.testing.assert_allclose(tops[1], smooth(a - b, 1.0).sum(axis=1, keepdims=True), rtol=1e-13)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="sigma > 0: 0"):
        SmoothL1Loss(sigma=0)
    with pytest.raises(ArgumentError, match="of one shape"):
        Bench(SmoothL1Loss(), [np.ones((2, 3)), np.ones((2, 4))])
    bench = Bench(SmoothL1Loss(), bottoms(3, 1.0))
    with pytest.raises(UnsupportedError, match="labels have no gradient"):
        bench.backward(bench.forward(), [True, True, True])


def test_text() -> None:
    a, b = [[2.0, 0.5]], [[0.0, 0.0]]
    loss, gradients = run('type: "SmoothL1Loss" smooth_l1_loss_param { sigma: 2 }', a=a, b=b)
    assert loss == 2 - 1 / 8 + 0.5 - 1 / 8
    np.testing.assert_array_equal(gradients["a"], [[1, 1]])
    np.testing.assert_array_equal(gradients["b"], [[-1, -1]])
    loss, _ = run('type: "SmoothL1Loss" loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 4 }', a=a, b=b)
    assert loss == (1.5 + 0.125) / 4
    loss, _ = run('type: "SmoothL1Loss" loss_param { normalize: true }', a=[[[[2.0, 2.0]]]], b=[[[[0.0, 0.0]]]])
    assert loss == 1.5
    text = 'input: "a" input: "b" input_shape { dim: 1 dim: 2 } input_shape { dim: 1 dim: 2 } '
    text += 'layer { name: "l" type: "SmoothL1Loss" bottom: "a" bottom: "b" top: "l" }'
    assert load_caffe(text, dialect="ssd").forward(a=a, b=b)["l"] == 1.625
