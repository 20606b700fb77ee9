"""Reshape: every form of its dims by hand, shared memory, and the shapes that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError
from astride.layers.reshape import Reshape

from .gradients import Bench, check_gradient

X = np.arange(144.0).reshape(2, 8, 3, 3)

NET = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 6 dim: 3 dim: 2 }
layer { name: "r" type: "Reshape" bottom: "data" top: "r" reshape_param { shape { dim: 0 dim: -1 dim: 3 } } }
layer { name: "relu" type: "ReLU" bottom: "r" top: "r" }
"""


@pytest.mark.parametrize(
    ("dims", "axis", "num_axes", "shape"),
    [
        ((2, 72), 0, -1, (2, 72)),
        ((0, -1), 0, -1, (2, 72)),
        ((0, 0, 9), 0, -1, (2, 8, 9)),
        ((-1, 0, 3), 0, -1, (6, 8, 3)),
        ((2, 4, 0), 1, 2, (2, 2, 4, 3, 3)),
        ((2, 4), 1, 1, (2, 2, 4, 3, 3)),
        ((4, -1), 1, 2, (2, 4, 6, 3)),
        ((9,), -3, 2, (2, 8, 9)),
        ((9,), 2, -1, (2, 8, 9)),
        ((1,), 0, 0, (1, 2, 8, 3, 3)),
        ((1, 1), -1, 0, (2, 8, 3, 3, 1, 1)),
        ((-1,), 1, 0, (2, 1, 8, 3, 3)),
        ((), 1, 0, (2, 8, 3, 3)),
        ((144,), 0, -1, (144,)),
    ],
)
def test_shapes(dims: tuple[int, ...], axis: int, num_axes: int, shape: tuple[int, ...]) -> None:
    assert Reshape(dims, axis=axis, num_axes=num_axes).top_shape(X.shape) == shape


@pytest.mark.parametrize("copies", [False, True])
def test_values_and_gradient(copies: bool) -> None:
    layer = Reshape((0, -1, 6))
    layer.copies = copies
    bench = Bench(layer, [X])
    np.testing.assert_array_equal(bench.forward()[0], X.reshape(2, 12, 6))
    assert np.shares_memory(bench.top[0].data, bench.bottom[0].data) is not copies
    check_gradient(bench)


@pytest.mark.parametrize(
    ("dims", "options", "says"),
    [
        ((-1, -1), {}, "at most one -1"),
        ((2, -2), {}, "sizes >= 0"),
        ((7, -1), {}, "144 % 7"),
        ((7,), {}, "top.count == bottom.count: 7 == 144"),
        ((0, 0, 0, 0, 0), {}, "axis \\+ 4 < 4: 4"),
        ((1,), {"axis": 5}, "no such axis"),
        ((1,), {"axis": -6}, "no such axis"),
        ((1,), {"axis": 3, "num_axes": 2}, "axis \\+ num_axes <= 4: 3 \\+ 2"),
        ((1,), {"num_axes": -2}, "num_axes >= -1"),
    ],
)
def test_refusals(dims: tuple[int, ...], options: dict[str, int], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Reshape(dims, **options).top_shape(X.shape)


def test_a_layer_in_place_behind_it_leaves_the_input_alone() -> None:
    net = load_caffe(NET)
    x = np.linspace(-1, 1, 72, dtype=np.float32).reshape(2, 6, 3, 2)
    np.testing.assert_array_equal(net.forward(data=x)["r"], np.maximum(x, 0).reshape(2, 12, 3))
    np.testing.assert_array_equal(net.blobs["data"].data, x)
    dy = np.ones((2, 12, 3), np.float32)
    np.testing.assert_array_equal(net.backward(r=dy)["data"], (x > 0).astype(np.float32))


def test_another_size_in_between() -> None:
    net = load_caffe(NET)
    for batch in (2, 5, 1):
        x = np.ones((batch, 6, 3, 2), np.float32)
        assert net.forward(data=x)["r"].shape == (batch, 12, 3)
