"""Tile: by hand, gradients, sizes."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError
from astride.layers.tile import Tile

from .gradients import Bench, check_gradient

NET = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 3 dim: 1 }
layer { name: "t" type: "Tile" bottom: "data" top: "t" tile_param { axis: 2 tiles: 4 } }
"""


def test_by_hand() -> None:
    x = np.array([[1.0, 2], [3, 4]])
    assert Bench(Tile(2), [x]).forward()[0].tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert Bench(Tile(2, axis=0), [x]).forward()[0].tolist() == [[1, 2], [3, 4], [1, 2], [3, 4]]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("tiles", [1, 3])
def test_gradient(tiles: int, axis: int) -> None:
    check_gradient(Bench(Tile(tiles, axis=axis), [np.random.RandomState(35).normal(size=(2, 3, 2))]))


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="tiles >= 1: 0"):
        Tile(0)
    with pytest.raises(ArgumentError, match='layer "t"'):
        load_caffe(NET.replace("tiles: 4", ""))


def test_in_a_network_of_changing_size() -> None:
    net = load_caffe(NET)
    for batch in (2, 1):
        x = np.arange(batch * 3, dtype=np.float32).reshape(batch, 3, 1)
        np.testing.assert_array_equal(net.forward(data=x)["t"], x.repeat(4, 2))
        np.testing.assert_array_equal(net.backward(t=np.ones((batch, 3, 4)))["data"], np.full((batch, 3, 1), 4))
