"""Field reports about large and volumetric images: blocks at the edge, memory, labels, factors of their own per axis."""

from __future__ import annotations

import tracemalloc

import numpy as np

import astride


def test_big_01_blocks_that_the_image_does_not_fill() -> None:
    x = np.arange(1.0, 26).reshape(1, 1, 5, 5)
    partial = astride.avg_pool(x, kernel=2, rounding="ceil")
    assert partial[0, 0].tolist() == [[4, 6, 7.5], [14, 16, 17.5], [21.5, 23.5, 25]]
    zeros = astride.avg_pool(x, kernel=2, rounding="ceil", divisor="kernel")
    assert zeros[0, 0].tolist() == [[4, 6, 3.75], [14, 16, 8.75], [10.75, 11.75, 6.25]]
    assert astride.avg_pool(x, kernel=2)[0, 0].tolist() == [[4, 6], [14, 16]]


def test_big_03_padding_copies_nothing() -> None:
    """An input of 8 MB, an output of 0.5 MB: what is needed besides the input counts in outputs, padded or not."""
    x = np.ones((1, 1, 1000, 1000))
    for op in (astride.max_pool, astride.avg_pool):
        for padding in (0, 2):
            op(x, kernel=4, padding=padding)  # what is kept for the next call is not counted
            tracemalloc.start()
            y = op(x, kernel=4, padding=padding)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert y.size <= 251 * 251 and peak < x.nbytes / 2


def most_frequent(window: np.ndarray) -> float:
    """Of several the smallest."""
    values, counts = np.unique(window, return_counts=True)
    return float(values[np.argmax(counts)])


def first(window: np.ndarray) -> float:
    return float(window[0])


def test_big_06_a_pyramid_of_labels_has_no_new_ones() -> None:
    labels = np.random.default_rng(6).choice(np.array([0, 7, 9], np.uint16), (1, 1, 9, 13))
    for reduce in (most_frequent, first):
        level, operator = labels, astride.window_op(reduce, compile=False)
        for _ in range(3):
            level = operator(level, kernel=2, rounding="ceil")
            assert level.dtype == np.uint16 and set(level.ravel().tolist()) <= {0, 7, 9}
    level = labels
    for _ in range(3):
        level = astride.max_pool(level, kernel=2, rounding="ceil")
        assert level.dtype == np.uint16 and set(level.ravel().tolist()) <= {0, 7, 9}
    tied = np.array([[[[9, 7], [7, 9]]]], np.uint16)
    assert astride.window_op(most_frequent, compile=False)(tied, kernel=2).item() == 7


def test_big_08_a_factor_for_each_axis() -> None:
    x = np.arange(210.0).reshape(1, 1, 5, 6, 7)
    assert astride.avg_pool(x, kernel=(1, 2, 2)).shape[2:] == (5, 3, 3)
    y = astride.avg_pool(x, kernel=(1, 2, 2), rounding="ceil")
    assert y.shape[2:] == (5, 3, 4)
    assert y[0, 0, 3, 1, 0] == x[0, 0, 3, 2:4, :2].mean() and y[0, 0, 4, 2, 3] == x[0, 0, 4, 4:, 6].mean()
