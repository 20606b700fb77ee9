"""Max unpooling on grids a person can check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compare import assert_same

import astride
from astride.like import pytorch as F


def gradient(x: Any, indices: Any, dy: Any, **arguments: Any) -> Any:
    _, pull = astride.vjp(astride.max_unpool, x, indices, **arguments)
    gradients = pull(dy)
    assert gradients[1] is None
    return gradients[0]


def test_values_return_to_their_places() -> None:
    #            . 5 . .
    #  5 7       . . 7 .
    #  9 11  ->  9 . . .
    #            . . . 11
    x = np.array([[[[5.0, 7], [9, 11]]]])
    indices = np.array([[[[1, 6], [8, 15]]]])
    y = astride.max_unpool(x, indices, kernel=2)
    assert y[0, 0].tolist() == [[0, 5, 0, 0], [0, 0, 7, 0], [9, 0, 0, 0], [0, 0, 0, 11]]
    dy = np.arange(16.0).reshape(1, 1, 4, 4)
    assert gradient(x, indices, dy, kernel=2).tolist() == [[[[1, 6], [8, 15]]]]


def test_of_two_values_with_one_index_the_last_stays() -> None:
    """And both read that place's gradient, as PyTorch's gather does."""
    x, indices = np.array([[[5.0, 7]]]), np.array([[[1, 1]]])
    assert astride.max_unpool(x, indices, kernel=2).tolist() == [[[0, 7, 0, 0]]]
    assert gradient(x, indices, np.array([[[1.0, 2, 3, 4]]]), kernel=2).tolist() == [[[2, 2]]]


def test_pooling_and_back() -> None:
    x = np.random.default_rng(8).permutation(2 * 3 * 36).reshape(2, 3, 6, 6).astype("float64")
    y, indices = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(y, indices, 2)
    assert_same(F.max_pool2d(back, 2), y)
    assert_same(back[back != 0], x[back != 0])
    assert (back != 0).sum() == y.size


def test_three_rounds_keep_odd_sizes() -> None:
    """54x97 by three poolings and back: each round remembers the size it came from."""
    x = np.random.default_rng(8).permutation(54 * 97).reshape(1, 1, 54, 97).astype("float32")
    record, y = [], x
    for _ in range(3):
        size = y.shape
        y, indices = F.max_pool2d(y, 2, 2, return_indices=True)
        record.append((size, indices))
    for size, indices in reversed(record):
        y = F.max_unpool2d(y, indices, 2, 2, output_size=size)
    assert y.shape == x.shape and y.max() == x.max()


def test_an_output_size_of_a_stride_less() -> None:
    x, indices = np.array([[[5.0, 7]]]), np.array([[[1, 3]]])
    assert F.max_unpool1d(x, indices, 2, 2, output_size=[5]).tolist() == [[[0, 5, 0, 7, 0]]]


@pytest.mark.parametrize(("index", "limit"), [(-1, 4), (4, 4), (9, 4), (2**32 + 3, 4)])
def test_an_index_outside(index: int, limit: int) -> None:
    """Checked in 64 bits: 2^32 + 3 is not 3."""
    indices = np.array([[[0, index]]])
    for backend in ("reference:scatter", "reference:loops2", "reference:loops4"):
        with pytest.raises(astride.ArrayError) as raised:
            astride.max_unpool(np.array([[[5.0, 7]]]), indices, kernel=2, backend=backend)
        message = str(raised.value)
        assert "an index lies outside the output" in message and f"0 <= index < {limit}: {index}" in message
        assert "at = (0, 0, 1)" in message


def test_places_in_the_whole_tensor() -> None:
    """ONNX's counting: the second channel's value lands in the first."""
    x, indices = np.array([[[5.0], [7.0]]]), np.array([[[0], [1]]])
    assert astride.max_unpool(x, indices, kernel=2, index_base="tensor").tolist() == [[[5, 7], [0, 0]]]
    assert astride.max_unpool(x, indices, kernel=2).tolist() == [[[5, 0], [0, 7]]]


def test_an_output_shape_is_what_indices_are_read_in() -> None:
    """Trap T20, ONNX Runtime's reading: 12 and 15 in rows of five."""
    x = np.array([[[[5.0, 7], [9, 11]]]])
    y = astride.max_unpool(x, np.array([[[[0, 3], [12, 15]]]]), output_size=(5, 5), index_base="tensor")
    assert (y[0, 0, 2, 2], y[0, 0, 3, 0]) == (9, 11)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
def test_indices_of_any_integer_type(dtype: str) -> None:
    assert astride.max_unpool(np.array([[[5.0, 7]]]), np.array([[[1, 2]]], dtype), kernel=2).tolist() == [[[0, 5, 7, 0]]]


def test_indices_that_are_not_integers() -> None:
    with pytest.raises(astride.ArrayError, match="indices are not integers"):
        astride.max_unpool(np.array([[[5.0, 7]]]), np.array([[[1.0, 2]]]), kernel=2)


def test_indices_of_another_shape() -> None:
    with pytest.raises(astride.ArrayError, match="indices need one place per value"):
        astride.max_unpool(np.array([[[5.0, 7]]]), np.array([[[1, 2, 3]]]), kernel=2)
