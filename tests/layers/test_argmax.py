"""ArgMax: both forms, ties, shapes, and no gradient."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers.argmax import ArgMax

from .gradients import Bench

X = np.array([[[1.0, 5, 2], [9, 5, 9]], [[0, 0, 0], [-1, 0, -2]]])

NET = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 3 dim: 4 dim: 5 }
layer { name: "m" type: "ArgMax" bottom: "data" top: "m" argmax_param { axis: 1 } }
"""


def test_along_an_axis() -> None:
    assert Bench(ArgMax(axis=1), [X]).forward()[0].tolist() == [[[1, 1, 1]], [[0, 1, 0]]]
    assert Bench(ArgMax(axis=-1, top_k=2), [X]).forward()[0].tolist() == [[[1, 2], [2, 0]], [[2, 1], [1, 0]]]
    assert Bench(ArgMax(axis=2, values=True), [X]).forward()[0].tolist() == [[[5], [9]], [[0], [-0.0]]]


def test_over_whole_images() -> None:
    assert Bench(ArgMax(), [X]).forward()[0].tolist() == [[[5]], [[4]]]
    both = Bench(ArgMax(top_k=3, values=True), [X]).forward()[0]
    assert both.tolist() == [[[5, 3, 4], [9, 9, 5]], [[4, 2, 1], [0, 0, 0]]]


@pytest.mark.parametrize(
    ("shape", "values", "top"),
    [
        ((2, 6), False, (2, 1, 2)),
        ((2, 6), True, (2, 2, 2)),
        ((2, 3, 4, 5), True, (2, 2, 2, 1)),
        ((1, 2, 1, 1, 2), False, (1, 1, 2, 1, 1)),
    ],
)
def test_shapes_without_an_axis(shape: tuple[int, ...], values: bool, top: tuple[int, ...]) -> None:
    assert Bench(ArgMax(top_k=2, values=values), [np.zeros(shape)]).forward()[0].shape == top


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="top_k <= 2: 3"):
        Bench(ArgMax(axis=1, top_k=3), [X])
    with pytest.raises(ArgumentError, match="top_k <= 6: 7"):
        Bench(ArgMax(top_k=7), [X])
    with pytest.raises(ArgumentError, match="counts from 1"):
        ArgMax(top_k=0)
    bench = Bench(ArgMax(), [X])
    bench.forward()
    bench.backward([np.zeros((2, 1, 1))], [False])
    with pytest.raises(UnsupportedError, match="has no gradient"):
        bench.backward([np.zeros((2, 1, 1))], [True])


def test_in_a_network_of_changing_size() -> None:
    net = load_caffe(NET)
    for batch in (2, 4):
        x = np.random.RandomState(batch).normal(size=(batch, 3, 4, 5)).astype(np.float32)
        np.testing.assert_array_equal(net.forward(data=x)["m"], x.argmax(1)[:, None])
    assert not net.backward(m=np.ones((4, 1, 4, 5)))["data"].any()
