"""Concat and Slice: by hand, gradients, one undoing the other, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError
from astride.layers.concat import Concat
from astride.layers.slice import Slice

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(32)
X = RANDOM.normal(size=(2, 6, 3))

BOTH = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 6 dim: 3 }
layer { name: "s" type: "Slice" bottom: "data" top: "a" top: "b" top: "c" slice_param { slice_point: 1 slice_point: 4 } }
layer { name: "relu" type: "ReLU" bottom: "b" top: "b" }
layer { name: "c" type: "Concat" bottom: "c" bottom: "b" bottom: "a" top: "out" }
"""


def test_concat_by_hand() -> None:
    bench = Bench(Concat(), [np.array([[1.0, 2], [3, 4]]), np.array([[5.0], [6]])])
    np.testing.assert_array_equal(bench.forward()[0], [[1, 2, 5], [3, 4, 6]])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_concat_gradient(axis: int) -> None:
    shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
    for extra, shape in enumerate(shapes):
        shape[axis] += extra
    check_gradient(Bench(Concat(axis=axis), [RANDOM.normal(size=s) for s in shapes]))


def test_concat_of_one_and_of_some_gradients() -> None:
    check_gradient(Bench(Concat(axis=0), [X]))
    check_gradient(Bench(Concat(axis=0), [X, X]), want=[False, True])


def test_concat_refuses() -> None:
    with pytest.raises(ArgumentError, match=r"equal shapes but for axis 1: \(2, 3, 4\) and \(2, 3, 5\)"):
        Bench(Concat(), [np.zeros((2, 3, 5)), np.zeros((2, 3, 4))])
    with pytest.raises(ArgumentError, match="differ along another axis"):
        Bench(Concat(axis=0), [np.zeros((2, 3)), np.zeros((2,))])
    with pytest.raises(ArgumentError, match="no such axis"):
        Bench(Concat(axis=2), [np.zeros((2, 3))])


@pytest.mark.parametrize(
    ("axis", "points", "sizes"), [(1, (), (2, 2, 2)), (1, (1, 4), (1, 3, 2)), (-1, (1, 2), (1, 1, 1)), (-2, (4, 5), (4, 1, 1))]
)
def test_slice(axis: int, points: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    bench = Bench(Slice(axis=axis, points=points), [X], tops=3)
    tops = bench.forward()
    assert tuple(t.shape[axis] for t in tops) == sizes
    np.testing.assert_array_equal(np.concatenate(tops, axis), X)
    check_gradient(bench)


def test_slice_into_one() -> None:
    check_gradient(Bench(Slice(), [X]))


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ((), "6 % 4 = 2"),
        ((1, 2), "points == tops - 1: 2 == 3"),
        ((1, 1, 2), "0 < point"),
        ((1, 2, 6), "< 6"),
        ((0, 1, 2), "0 < point"),
    ],
)
def test_slice_refuses(points: tuple[int, ...], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Bench(Slice(points=points), [X], tops=4)


def test_both_in_a_network() -> None:
    net = load_caffe(BOTH)
    for batch in (2, 3):
        x = RANDOM.normal(size=(batch, 6, 3)).astype(np.float32)
        middle = np.maximum(x[:, 1:4], 0)
        np.testing.assert_array_equal(net.forward(data=x)["out"], np.concatenate([x[:, 4:], middle, x[:, :1]], 1))
        dy = RANDOM.normal(size=(batch, 6, 3)).astype(np.float32)
        expected = np.concatenate([dy[:, 5:], dy[:, 2:5] * (x[:, 1:4] > 0), dy[:, :2]], 1)
        np.testing.assert_array_equal(net.backward(out=dy)["data"], expected)


def test_older_names_of_the_axis() -> None:
    text = BOTH.replace("slice_param {", "slice_param { slice_dim: 1").replace(
        'top: "out"', 'top: "out" concat_param { concat_dim: 1 }'
    )
    x = RANDOM.normal(size=(2, 6, 3)).astype(np.float32)
    np.testing.assert_array_equal(load_caffe(text).forward(data=x)["out"], load_caffe(BOTH).forward(data=x)["out"])
    with pytest.raises(ArgumentError, match="concat_dim is an older name of axis"):
        load_caffe(text.replace("concat_dim: 1", "concat_dim: 1 axis: 1"))
