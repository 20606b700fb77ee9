"""Min pooling on grids a person can check."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compare import assert_same

import astride

HIGHEST = 3.4028234663852886e38


def test_two_by_two() -> None:
    x = np.array([[[[1, 2, 3, 4], [8, 7, 6, 5], [9, 1, 0, 2], [3, 4, 4, 1]]]], "float32")
    y, indices = astride.min_pool(x, kernel=2, return_indices=True)
    assert y[0, 0].tolist() == [[1, 3], [1, 0]]
    assert indices[0, 0].tolist() == [[0, 2], [9, 10]]
    _, pull = astride.vjp(astride.min_pool, x, kernel=2)
    assert pull(np.ones_like(y))[0][0, 0].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]


def test_dark_on_white_keeps_its_padding_out() -> None:
    """A uint8 page: padding never lowers a result, and 0 needs no negative."""
    page = np.full((1, 1, 5, 5), 255, "uint8")
    page[0, 0, 2, 2] = 0
    y = astride.min_pool(page, kernel=3, stride=1, padding=1)
    assert y.dtype == np.uint8
    assert (y[0, 0, 1:4, 1:4] == 0).all() and y[0, 0, 0].tolist() == [255] * 5


def test_the_lowest_integer_has_no_negative() -> None:
    x = np.array([[[-128, 127]]], "int8")
    assert astride.min_pool(x, kernel=2).item() == -128
    assert astride.max_pool(x, kernel=2).item() == 127


@pytest.mark.parametrize("tie", ["first", "last", "all_full", "equal_share", "first_nan", "last_nan", "after_nan"])
def test_it_is_the_negated_maximum_of_the_negated(tie: str) -> None:
    """Gradients too, ties and NaN included."""
    x = np.random.default_rng(3).choice(np.array([0.0, 1, 2, np.nan, np.inf]), (2, 3, 6, 5))
    low, pull_low = astride.vjp(astride.min_pool, x, kernel=2, stride=1, padding=1, tie=tie)
    high, pull_high = astride.vjp(astride.max_pool, -x, kernel=2, stride=1, padding=1, tie=tie)
    assert_same(low, -high)
    dy = np.random.default_rng(4).integers(1, 5, low.shape).astype("float64")
    assert_same(pull_low(dy)[0], pull_high(dy)[0])


def test_caffe_style_is_mirrored() -> None:
    x = np.full((1, 1, 6), np.nan, "float32")
    y, indices = astride.min_pool(x, kernel=3, rules="caffe", return_indices=True)
    assert y.tolist() == [[[HIGHEST, HIGHEST]]] and indices.tolist() == [[[-1, -1]]]


def test_jax_sends_a_tie_to_the_first() -> None:
    x = np.array([[[1.0, 1, 2, 1]]])
    y, pull = astride.vjp(astride.min_pool, x, kernel=2, tie="after_nan")
    assert y.tolist() == [[[1, 1]]] and pull(np.ones_like(y))[0].tolist() == [[[1, 0, 0, 1]]]


def test_tensorflow_erosion_with_a_zero_kernel() -> None:
    assert astride.min_pool(np.array([[[1.0, 2, 3, 4]]]), kernel=2, stride=1, padding="same").tolist() == [[[1, 2, 3, 4]]]
