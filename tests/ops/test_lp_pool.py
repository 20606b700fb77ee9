"""Lp pooling on windows a person can check: 3-4-5, zeros, huge and tiny values, signs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near

import astride
from astride.like import mps
from astride.like import pytorch as F


def row(*values: float, dtype: str = "float64") -> Any:
    return np.array(values, dtype)[None, None]


def gradient(x: Any, **arguments: Any) -> Any:
    y, pull = astride.vjp(astride.lp_pool, x, **arguments)
    dx = pull(np.ones_like(y))[0]
    assert dx is not None
    return dx[0, 0].tolist()


def test_three_four_five() -> None:
    assert astride.lp_pool(row(3, 4, -6, 8), kernel=2).tolist() == [[[5, 10]]]
    assert gradient(row(3, 4, -6, 8), kernel=2) == [0.6, 0.8, -0.6, 0.8]


def test_overlapping_windows_add_up() -> None:
    #  3 4 3: both windows are 5, the middle gets 4/5 twice
    assert gradient(row(3, 4, 3), kernel=2, stride=1) == [0.6, 1.6, 0.6]


@pytest.mark.parametrize("rules", ["explicit", "mps", "pytorch"])
def test_a_window_of_zeros(rules: str) -> None:
    """y 0 and gradient exactly 0, not the 0/0 of the formula."""
    x = np.zeros((1, 1, 4, 4))
    arguments: dict[str, Any] = dict(kernel=2, rules=rules)
    y, pull = astride.vjp(astride.lp_pool, x, **arguments)
    assert not y.any()
    assert pull(np.ones_like(y))[0].tolist() == x.tolist()


def test_the_formula_is_an_option() -> None:
    assert np.isnan(gradient(row(0, 0, 3, 4), kernel=2, zero_window="formula")).tolist() == [True, True, False, False]
    x = np.zeros((1, 2, 2, 1), "float32")
    y, pull = astride.vjp(mps.pooling_l2_norm, x, 2, 2, 2, 2, zero_window="formula")
    assert np.isnan(pull(np.ones_like(y))[0]).all()


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_pytorch_gives_zero_windows_no_gradient(p: float) -> None:
    """Trap T15, where for p=1 the true derivative is 1."""
    y, pull = astride.vjp(F.lp_pool1d, row(0, 0, 1, 0), p, 2)
    assert pull(np.ones_like(y))[0][0, 0].tolist() == [0, 0, 1, float(p == 1)]


@pytest.mark.parametrize(("dtype", "huge", "tiny"), [("float32", 1e30, 1e-30), ("float64", 1e300, 1e-300)])
@pytest.mark.parametrize("rules", ["explicit", "mps"])
def test_no_power_overflows_or_vanishes(dtype: str, huge: float, tiny: float, rules: str) -> None:
    for unit in (huge, tiny):
        x = row(3 * unit, 4 * unit, -6 * unit, 8 * unit, dtype=dtype).reshape(1, 1, 1, 4)
        arguments: dict[str, Any] = dict(kernel=(1, 2), stride=(1, 2), rules=rules)
        if rules == "mps":
            arguments["padding"] = "valid"
        y, pull = astride.vjp(astride.lp_pool, x, **arguments)
        eps = float(np.finfo(dtype).eps)
        assert_near(y.reshape(-1) / x.dtype.type(unit), [5, 10], 4 * eps)
        assert_near(pull(np.ones_like(y))[0].reshape(-1), [0.6, 0.8, -0.6, 0.8], 8 * eps)


def test_subnormals_and_mixed_magnitudes() -> None:
    smallest = np.finfo("float32").smallest_subnormal
    assert astride.lp_pool(row(smallest, 0, dtype="float32"), kernel=2).item() == smallest
    assert astride.lp_pool(row(1e30, 1e-30, dtype="float32"), kernel=2).item() == np.float32(1e30)
    largest = np.finfo("float64").max
    assert astride.lp_pool(row(largest, 0), kernel=2).item() == largest


def test_pytorch_forms_the_powers_as_they_are() -> None:
    with np.errstate(over="ignore"):
        assert F.lp_pool1d(row(1e30, 1e30, dtype="float32"), 2.0, 2).item() == np.inf
    assert F.lp_pool1d(row(1e-30, 1e-30, dtype="float32"), 2.0, 2).item() == 0


@pytest.mark.parametrize(
    ("p", "expected"), [(1.5, 6.61786), (2.0, 5.47723), (3.0, 4.64159), (1.0, 10.0), (math.inf, 4.0), (0.5, 37.776566)]
)
def test_magnitudes_of_any_order(p: float, expected: float) -> None:
    x = np.array([[[[-1.0, 2], [3, -4]]]])
    assert_near(astride.lp_pool(x, p=p, kernel=2).reshape(-1), [expected], 1e-5)


def test_signs_by_form() -> None:
    """Trap T14: -1 2 -3 4, windows of two."""
    x = row(-1, 2, -3, 4)
    assert F.lp_pool1d(x, 1.0, 2).tolist() == [[[1, 1]]]
    assert astride.lp_pool(x, p=1.0, kernel=2).tolist() == [[[3, 7]]]
    assert_near(F.lp_pool1d(x, 3.0, 2).reshape(-1), [1.9129312, 3.3322218], 1e-6)
    assert_near(astride.lp_pool(x, p=3.0, kernel=2).reshape(-1), [2.0800838, 4.4979414], 1e-6)
    negative = row(1, -3)
    with np.errstate(invalid="ignore"):
        assert np.isnan(F.lp_pool1d(negative, 3.0, 2).item())
    assert_near(astride.lp_pool(negative, p=3.0, kernel=2, form="signed_root").reshape(-1), [-2.9624961], 1e-6)


def test_partial_windows() -> None:
    """Trap T13: five ones, k=2, ceil. PyTorch scales the last up, ONNX Runtime does not, TFLite takes means."""
    x = np.ones((1, 1, 5))
    root = math.sqrt(2)
    assert_near(F.lp_pool1d(x, 2.0, 2, ceil_mode=True).reshape(-1), [root, root, root], 1e-12)
    assert_near(astride.lp_pool(x, kernel=2, rounding="ceil").reshape(-1), [root, root, 1], 1e-12)
    assert_near(astride.lp_pool(x, kernel=2, rounding="ceil", scale="mean").reshape(-1), [1, 1, 1], 1e-12)


def test_infinity_takes_the_sign_of_its_winner() -> None:
    x = row(-5, 2, -3, -4)
    assert F.lp_pool1d(x, math.inf, 2).tolist() == [[[5, 4]]]
    assert gradient(x, kernel=2, p=math.inf) == [-1, 0, 0, -1]


def test_not_numbers_spread() -> None:
    y = astride.lp_pool(row(np.nan, 1, np.inf, 1), kernel=2)
    assert_near(y.reshape(-1), [np.nan, np.inf], 0.0)


@pytest.mark.parametrize(("width", "height"), [(2, 2), (3, 3), (3, 2), (2, 5)])
def test_mps_windows_of_any_size(width: int, height: int) -> None:
    """Centred windows of odd and even kernels, by a plain sum over real pixels."""
    x = np.random.default_rng(6).normal(size=(1, 6, 7, 2)).astype("float32")
    y = mps.pooling_l2_norm(x, width, height, 2, 3, offset=(1, 0), destination_size=(3, 2))
    expected = np.zeros((1, 2, 3, 2))
    for oy in range(2):
        for ox in range(3):
            top, left = oy * 3 - height // 2, 1 + ox * 2 - width // 2
            window = x[:, max(top, 0) : top + height, max(left, 0) : left + width].astype("float64")
            expected[:, oy, ox] = np.sqrt((window**2).sum(axis=(1, 2)))
    assert_near(y, expected, 1e-6)
