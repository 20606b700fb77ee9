"""MLX's rules: whole windows, shared gradients, and its weight layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import size_or_none

import astride
from astride.like import mlx
from astride.plan.kinds import Divisor, Tie
from astride.rules import mlx as rules

NAN = np.nan


def gradient(values: Any, *arguments: Any) -> list[float]:
    x = np.array(values, float).reshape(1, -1, 1)
    y, pull = astride.vjp(mlx.max_pool1d, x, *arguments)
    return [round(float(v), 4) for v in pull(np.ones_like(y))[0].ravel()]


def test_sizes() -> None:
    for n, k, s, p in ((6, 3, 2, 1), (7, 2, 2, 0), (5, 2, 3, 2)):
        assert size_or_none("max_pool", n, rules="mlx", kernel=k, stride=s, padding=p) == (n + 2 * p - k) // s + 1
    assert size_or_none("max_pool", 2, rules="mlx", kernel=3) is None


def test_ties_share() -> None:
    """T12, T44: padding has no part in it."""
    assert rules.max_pool((1, 1, 8), kernel=2).tie is Tie.EQUAL_SHARE
    assert gradient([1] * 4, 4) == [0.25] * 4
    assert gradient([-1] * 6, 3, 2, 1) == [0.5, 0.8333, 0.3333, 0.6667, 0.3333, 0.3333]


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_nan_wins_and_spreads() -> None:
    """T10, T11."""
    assert np.isnan(mlx.max_pool1d(np.array([NAN, 1.0]).reshape(1, 2, 1), 2)).all()
    assert str(gradient([NAN, 1, 2, 3], 2)) == "[nan, nan, 0.0, 1.0]"
    assert gradient([NAN, 1, 2, 3], 1) == [1, 1, 1, 1]  # a window of one tap is no choice


def test_averages_divide_by_the_kernel() -> None:
    assert rules.avg_pool((1, 1, 8), kernel=2).divisor is Divisor.KERNEL
    assert mlx.avg_pool1d(np.ones((1, 4, 1)), 3, 2, 1).ravel().round(4).tolist() == [0.6667, 1]


def test_weights_have_their_outputs_first(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 5, 4, 4))
    w = rng.normal(size=(6, 3, 2, 2))
    same = astride.conv(x, w.transpose(0, 3, 1, 2), groups=2, layout="channels_last")
    assert np.allclose(mlx.conv2d(x, w, groups=2), same)
    assert astride.check_gradient(mlx.conv2d, x, w, 2, (1, 0), 1, 2)
    assert astride.check_gradient(mlx.conv_transpose2d, x, w, 2, 1, 1, 1, 2)
    y = mlx.conv_transpose1d(np.array([1.0, 2]).reshape(1, 2, 1), np.array([1.0, 10, 100]).reshape(1, 3, 1), 2)
    assert y.ravel().tolist() == [1, 10, 102, 20, 200]


def test_a_general_convolution() -> None:
    x, w = np.arange(1.0, 5).reshape(1, 4, 1), np.array([1.0, 10]).reshape(1, 2, 1)
    assert mlx.conv_general(x, w).ravel().tolist() == [21, 32, 43]
    assert mlx.conv_general(x, w, flip=True).ravel().tolist() == [12, 23, 34]
    assert mlx.conv_general(x, w, padding=([1], [0])).ravel().tolist() == [10, 21, 32, 43]
    assert mlx.conv_general(x, w, input_dilation=2).ravel().tolist() == [1, 20, 2, 30, 3, 40]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: mlx.max_pool2d(np.ones((1, 4, 1)), 2), "x.ndim == 4: 3"),
        (lambda: mlx.conv1d(np.ones((1, 4, 1)), np.ones((3, 1))), "weight has another rank than input"),
        (lambda: mlx.conv_transpose1d(np.ones((1, 4, 2)), np.ones((3, 1, 1)), groups=2), "not divisible by groups"),
        (lambda: mlx.conv_general(np.ones((1, 4, 1)), np.ones((1, 2, 1)), padding=([1], [1], [1])), "required  2 sequences"),
        (lambda: mlx.max_pool1d(np.ones((1, 4, 1), np.int32), 2), "there is no rule for int32 arrays"),
        (lambda: rules.max_pool((1, 1, 4), kernel=2, padding=((1, 0),)), "MLX pads both sides of an axis alike"),
        (lambda: rules.max_pool((1, 1, 4), kernel=2, dilation=2), "these rules have no dilation"),
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(astride.AstrideError) as raised:
        call()
    assert says in str(raised.value)
