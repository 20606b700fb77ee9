"""TFLite's rules: integer rounding, start values of its two implementations, and TensorFlow's transposed convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import astride
from astride.like import tflite
from astride.plan.kinds import LpScale, Rounding, Start
from astride.rules import pytorch
from astride.rules import tflite as rules

NAN, INF, LOWEST = np.nan, np.inf, float(-np.finfo(np.float32).max)
PAIRS = dict(filter_width=2, filter_height=1, stride_w=2, stride_h=1, padding="VALID")


def row(values: Any, dtype: str = "float32") -> Any:
    return np.array(values, dtype).reshape(1, 1, -1, 1)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_integers_round_halves_away_from_zero(dtype: str) -> None:
    """T30."""
    y = tflite.average_pool_2d(row([1, 2, -1, -2, 0, -1, 0, 1], dtype), **PAIRS)
    assert y.dtype == dtype and y.ravel().tolist() == [2, -2, -1, 1]


def test_other_integers() -> None:
    y = tflite.average_pool_2d(row([255, 255, 254, 255, 0, 1], "uint8"), **PAIRS)
    assert y.ravel().tolist() == [255, 255, 1]
    three = tflite.average_pool_2d(row([1, 0, 0, 2, 0, 0, -2, 0, 0], "int8"), **(PAIRS | dict(filter_width=3, stride_w=3)))
    assert three.ravel().tolist() == [0, 1, -1]


def test_pytorch_truncates() -> None:
    """T30: the same numbers, toward zero."""
    plan = rules.avg_pool((1, 1, 4), "int16", kernel=2)
    assert plan.rounding is Rounding.HALF_AWAY and plan.accumulate == "int32"
    x = np.array([[[-1, -2, 1, 2]]])
    assert pytorch.avg_pool((1, 1, 4), "int64", kernel=2).rounding is Rounding.TRUNCATE
    assert astride.avg_pool(x, kernel=2, rules="pytorch").tolist() == [[[-1, 1]]]


@pytest.mark.parametrize(
    ("values", "reference", "xnnpack"),
    [([NAN, 1, 2, 3], 3, 3), ([1, 2, 3, NAN], 3, 3), ([NAN] * 4, LOWEST, -INF), ([-INF] * 4, LOWEST, -INF)],
)
def test_maxima(values: list[float], reference: float, xnnpack: float) -> None:
    window = PAIRS | dict(filter_width=4)
    assert tflite.max_pool_2d(row(values), **window).item() == np.float32(reference)
    assert tflite.max_pool_2d(row(values), xnnpack=True, **window).item() == xnnpack
    assert rules.max_pool((1, 1, 4), kernel=2).start is Start.FINITE


def test_the_norm_is_of_the_mean_over_what_is_inside() -> None:
    assert rules.lp_pool((1, 1, 4), kernel=2).lp_scale is LpScale.MEAN
    y = tflite.l2_pool_2d(row([3, 4, 6]), **(PAIRS | dict(padding="SAME")))
    assert np.allclose(y.ravel(), [np.sqrt(12.5), 6])


def test_convolutions(rng: np.random.Generator) -> None:
    x, step = rng.normal(size=(1, 5, 4, 2)), dict(stride_w=1, stride_h=1, padding="SAME")
    assert astride.check_gradient(tflite.conv_2d, x, rng.normal(size=(3, 3, 2, 2)), rng.normal(size=3), **step)
    assert astride.check_gradient(tflite.depthwise_conv_2d, x, rng.normal(size=(1, 3, 2, 4)), depth_multiplier=2, **step)
    two = dict(stride_w=2, stride_h=1, padding="SAME")
    y = tflite.transpose_conv([1, 1, 4, 1], np.array([1.0, 10, 100]).reshape(1, 1, 3, 1), np.array([[[[1.0], [2]]]]), **two)
    assert y.ravel().tolist() == [1, 10, 102, 20]
    depth = tflite.depthwise_conv_2d(np.ones((1, 1, 1, 3)), np.arange(6.0).reshape(1, 1, 1, 6), depth_multiplier=2, **step)
    assert depth.ravel().tolist() == list(range(6))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tflite.average_pool_2d(row([1, 2], "int32"), **PAIRS), "there is no rule for int32 arrays"),
        (lambda: tflite.average_pool_2d(row([1, 2]), **(PAIRS | dict(padding="same"))), 'required  "VALID" or "SAME"'),
        (lambda: tflite.average_pool_2d(np.ones((1, 2, 2)), **PAIRS), "input.ndim == 4: 3"),
        (
            lambda: tflite.conv_2d(row([1, 2]), np.ones((1, 1, 1, 2)), stride_w=1, stride_h=1, padding="SAME"),
            "filter does not fit",
        ),
        (lambda: rules.lp_pool((1, 1, 4), kernel=2, p=3), "TFLite has the 2-norm only"),
        (lambda: rules.max_pool((1, 1, 4), kernel=2, padding=1), 'pad by "valid" and "same" only'),
        (lambda: rules.conv_transpose((1, 1, 4), (1, 1, 3), dilation=2), "these rules have no dilation"),
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(astride.AstrideError) as raised:
        call()
    assert says in str(raised.value)
