"""Wishes that no framework meets, and what answers them here."""

from __future__ import annotations

import numpy as np

import astride


def test_wish_01_min_pooling_of_a_page() -> None:
    page = np.full((1, 1, 6, 6), 255, np.uint8)
    page[0, 0, 2, 3] = 7
    y = astride.min_pool(page, kernel=3, stride=1, padding=1)
    assert y.dtype == np.uint8 and y.shape == page.shape
    assert y[0, 0, 0].tolist() == [255] * 6 and y[0, 0, 1:4, 2:5].tolist() == [[7] * 3] * 3
    dark = np.array([[[3.0, -1.0, 2.0, -5.0]]])
    y, pull = astride.vjp(astride.min_pool, dark, kernel=2)
    assert y.tolist() == [[[-1, -5]]] and pull(np.ones_like(y))[0].tolist() == [[[0, 1, 0, 1]]]
    np.testing.assert_array_equal(y, -astride.max_pool(-dark, kernel=2))


def middle(window: np.ndarray) -> float:
    return float(np.median(window))


def test_wish_03_a_reduction_of_your_own() -> None:
    median = astride.window_op(middle, compile=False, gradient="numeric")
    x = np.random.default_rng(3).permutation(64).reshape(1, 1, 8, 8).astype(np.float64)
    y = median(x, kernel=3, stride=2, rules="caffe")
    assert y.shape == astride.max_pool(x, kernel=3, stride=2, rules="caffe").shape
    assert y[0, 0, 0, 0] == np.median(x[0, 0, :3, :3]) and y[0, 0, 3, 3] == np.median(x[0, 0, 6:, 6:])
    y, pull = astride.vjp(median, x, kernel=3, stride=2)
    assert pull(np.ones_like(y))[0].sum() == np.float64(y.size)


def test_wish_04_pads_of_one_side() -> None:
    x = np.array([[[-3.0, -1.0, -2.0]]])
    assert astride.max_pool(x, kernel=3, stride=1, padding=((2, 0),)).tolist() == [[[-3, -1, -1]]]
    assert astride.avg_pool(x, kernel=3, stride=1, padding=((2, 0),)).tolist() == [[[-3, -2, -2]]]


def test_wish_06_random_regions_by_a_seed() -> None:
    x = np.random.default_rng(6).normal(size=(1, 2, 9, 9))
    first, again, other = (astride.fractional_pool(x, kernel=2, output_size=5, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (1, 2, 5, 5) and (first != other).any()
    assert astride.check_gradient(astride.fractional_pool, x, kernel=2, output_size=5, seed=1)
