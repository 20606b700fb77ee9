"""Average pooling on grids a person can check: above all, what is divided by."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.compare import assert_near

import astride
from astride.like import pytorch as F

SIX = np.ones((1, 1, 6), "float32")
SIXTEEN = np.arange(1, 17, dtype="float32").reshape(1, 1, 4, 4)


def gradient(x: Any, **arguments: Any) -> Any:
    y, pull = astride.vjp(astride.avg_pool, x, **arguments)
    dx = pull(np.ones_like(y))[0]
    assert dx is not None
    return dx[0, 0]


def test_two_by_two() -> None:
    #  1  2 |  3  4
    #  5  6 |  7  8      3.5   5.5
    #  -----+------  ->
    #  9 10 | 11 12     11.5  13.5
    # 13 14 | 15 16
    assert astride.avg_pool(SIXTEEN, kernel=2)[0, 0].tolist() == [[3.5, 5.5], [11.5, 13.5]]
    assert gradient(SIXTEEN, kernel=2).tolist() == [[0.25] * 4] * 4


def test_caffe_counts_to_the_padded_end() -> None:
    """1..16, k=3, s=2, p=1: the last window of three counts two, and its corner four."""
    expected = [[14 / 9, 30 / 9, 2], [57 / 9, 11, 6], [27 / 6, 45 / 6, 4]]
    assert_near(astride.avg_pool(SIXTEEN, kernel=3, stride=2, padding=1, rules="caffe")[0, 0], expected, 1e-6)
    assert_near(F.avg_pool2d(SIXTEEN, 3, 2, 1, ceil_mode=True)[0, 0], expected, 1e-6)
    column = np.array([1 / 3, 2 / 3, 1 / 3, 1 / 3 + 1 / 2])  # along one axis the windows share thirds, thirds and halves
    assert_near(gradient(SIXTEEN, kernel=3, stride=2, padding=1, rules="caffe"), np.outer(column, column), 1e-6)


def test_corners_of_ones_show_the_divisor() -> None:
    x = np.ones((1, 1, 5, 5), "float32")
    counted = [4 / 9, 6 / 9, 1]
    for rules, extra in (("caffe", {}), ("pytorch", {})):
        y = astride.avg_pool(x, kernel=3, stride=1, padding=1, rules=rules, **extra)[0, 0]
        assert_near([y[0, 0], y[0, 1], y[1, 1]], counted, 1e-6)
    for y in (
        astride.avg_pool(x, kernel=3, stride=1, padding="same"),
        F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
        astride.avg_pool(x, kernel=3, stride=1, rules="mps", edge="clamp"),
    ):
        assert_near(y[0, 0], np.ones((5, 5)), 1e-6)
    y = astride.avg_pool(x, kernel=3, stride=1, rules="mps")[0, 0]
    assert_near([y[0, 0], y[0, 1], y[1, 1]], counted, 1e-6)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (dict(rules="caffe", padding=1), [2 / 3, 1, 1, 1 / 2]),
        (dict(rules="pytorch", padding=1, ceil_mode=True), [2 / 3, 1, 1, 1 / 2]),
        (dict(padding=1, rounding="ceil", divisor="padded"), [2 / 3, 1, 1, 1 / 2]),
        (dict(padding=1, rounding="ceil", divisor="kernel"), [2 / 3, 1, 1, 1 / 3]),
        (dict(padding=1, rounding="ceil", divisor="valid"), [1, 1, 1, 1]),
        (dict(padding=1), [1, 1, 1]),
        (dict(rules="mps", offset=0, size=4, edge="clamp", zero_pad_size=1), [2 / 3, 1, 1, 1 / 2]),
        (dict(rules="mps", offset=0, size=4), [2 / 3, 1, 1, 1 / 3]),
        (dict(rules="mps", offset=0, size=4, edge="clamp"), [1, 1, 1, 1]),
    ],
)
def test_the_overhang(arguments: dict[str, Any], expected: list[float]) -> None:
    """Traps T5 and T40: six ones, k=3, s=2, p=1."""
    assert_near(astride.avg_pool(SIX, kernel=3, stride=2, **arguments)[0, 0], expected, 1e-6)


def test_an_override_divides_the_overhang_too() -> None:
    """Trap T35."""
    x = SIX.reshape(1, 1, 1, 6)
    y = F.avg_pool2d(x, (1, 3), (1, 2), (0, 1), ceil_mode=True, divisor_override=2)
    assert y.tolist() == [[[[1, 1.5, 1.5, 0.5]]]]


def test_caffe_windows_behind_the_input() -> None:
    """Trap T3: k=1, s=4 on 6x6 ones. Divisors of -2 and +4 make -0 and +0."""
    y = astride.avg_pool(np.ones((1, 1, 6, 6), "float32"), kernel=1, stride=4, rules="caffe")[0, 0]
    assert y.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert np.signbit(y).tolist() == [[False, False, True], [False, False, True], [True, True, False]]


def test_a_window_of_nothing() -> None:
    """Trap T2: k=1, s=2 on six ones."""
    assert_near(astride.avg_pool(SIX, kernel=1, stride=2, rules="caffe")[0, 0], [1, 1, 1, np.nan], 0.0)
    assert F.avg_pool1d(SIX, 1, 2, ceil_mode=True).tolist() == [[[1, 1, 1]]]
    never: dict[str, Any] = dict(kernel=1, stride=2, rounding="ceil", clip="never")
    assert astride.avg_pool(SIX, **never)[0, 0].tolist() == [1, 1, 1, 0]
    assert_near(astride.avg_pool(SIX, **never, empty="quotient")[0, 0], [1, 1, 1, np.nan], 0.0)


def test_same_divides_by_real_pixels() -> None:
    """Trap T34: 1..5, k=3, s=2; divisors 2, 3, 2."""
    x = np.arange(1.0, 6)[None, None]
    assert astride.avg_pool(x, kernel=3, stride=2, padding="same").tolist() == [[[1.5, 3, 4.5]]]
    assert_near(gradient(x, kernel=3, stride=2, padding="same"), [0.5, 5 / 6, 1 / 3, 5 / 6, 0.5], 1e-12)


def test_pads_that_differ() -> None:
    """Trap T7: 2x2 ones, pads (0, 0, 1, 1), padding counted. And a pad as large as the kernel."""
    x = np.ones((1, 1, 2, 2))
    y = astride.avg_pool(x, kernel=2, stride=1, padding=((0, 1), (0, 1)), divisor="padded")
    assert y.tolist() == [[[[1, 0.5], [0.5, 0.25]]]]
    row = np.arange(1.0, 6)[None, None]
    y = astride.avg_pool(row, kernel=2, stride=2, padding=((2, 3),), divisor="padded")
    assert y.tolist() == [[[0, 1.5, 3.5, 2.5, 0]]]


def test_block_means_by_edge_policy() -> None:
    x = np.arange(1.0, 26).reshape(1, 1, 5, 5)
    zero = [[4, 6, 3.75], [14, 16, 8.75], [10.75, 11.75, 6.25]]
    partial = [[4, 6, 7.5], [14, 16, 17.5], [21.5, 23.5, 25]]
    assert astride.avg_pool(x, kernel=2, rounding="ceil", divisor="kernel")[0, 0].tolist() == zero
    assert astride.avg_pool(x, kernel=2, rounding="ceil")[0, 0].tolist() == partial
    assert astride.avg_pool(x, kernel=2)[0, 0].tolist() == [[4, 6], [14, 16]]


@pytest.mark.parametrize(
    ("n", "stride", "expected"), [(7, 3, [[4, 7, 9.5], [25, 28, 30.5], [42.5, 45.5, 48]]), (3, 2, [[2, 3.5], [6.5, 8]])]
)
def test_pytorch_ceil_windows_of_partial_pixels(n: int, stride: int, expected: Any) -> None:
    x = np.arange(float(n * n)).reshape(1, 1, n, n)
    assert F.avg_pool2d(x, 2, stride, ceil_mode=True)[0, 0].tolist() == expected


def test_sums() -> None:
    x = np.array([[[[1.0, 2], [3, 4]]]])
    assert astride.avg_pool(x, kernel=2, stride=1, padding="same", divisor_override=1).tolist() == [[[[10, 6], [7, 4]]]]


def test_half_types_are_summed_in_float32() -> None:
    """Trap T50: a running bfloat16 sum of ones would stick at 256."""
    ones = np.ones((1, 1, 4096), ml_dtypes.bfloat16)
    y = F.avg_pool1d(ones, 4096)
    assert y.dtype == ones.dtype and float(y.item()) == 1.0


def test_a_large_window_of_half_floats() -> None:
    """One rounding at the end; and a gradient of 1/65025 that float16 holds."""
    x = np.random.default_rng(5).random((1, 1, 255, 255)).astype("float16")
    y, pull = astride.vjp(astride.avg_pool, x, kernel=255)
    exact = x.astype("float64").mean()
    assert abs(float(y.item()) - exact) <= float(np.spacing(np.float16(exact)))
    dx = pull(np.ones_like(y))[0]
    assert dx is not None and (dx == np.float16(1 / 65025)).all() and dx.all()


def test_zeros_after_large_values_average_to_zero() -> None:
    """No running or prefix sums: what left the window is gone."""
    x = np.zeros((1, 1, 20_000), "float32")
    x[..., :18_000] = 3.4e6
    y = astride.avg_pool(x, kernel=3, stride=1)
    assert y.min() == 0.0 and (y[..., 18_000:] == 0).all()
