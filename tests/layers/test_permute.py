"""Permute: orders, the axes not named, and its text."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, PrototxtError
from astride.layers.permute import Permute

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(31)
X = RANDOM.normal(size=(2, 3, 4, 2))

NET = """
input: "data" input_shape { dim: 1 dim: 2 dim: 3 dim: 4 }
layer {
  name: "p" type: "Permute" bottom: "data" top: "p"
  permute_param { order: 0 order: 2 order: 3 order: 1 }
}
"""


@pytest.mark.parametrize(
    ("order", "axes"), [((0, 2, 3, 1), (0, 2, 3, 1)), ((3,), (3, 0, 1, 2)), ((1, 0), (1, 0, 2, 3)), ((), (0, 1, 2, 3))]
)
def test_order(order: tuple[int, ...], axes: tuple[int, ...]) -> None:
    bench = Bench(Permute(order), [X])
    np.testing.assert_array_equal(bench.forward()[0], X.transpose(axes))
    check_gradient(bench)


def test_refusals() -> None:
    for order in ((0, 0), (-1,)):
        with pytest.raises(ArgumentError, match="names an axis twice, or one that cannot be"):
            Permute(order)
    with pytest.raises(ArgumentError, match="order < 4: 4"):
        Bench(Permute((4,)), [X])


def test_text_of_the_fork() -> None:
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    for dialect in (None, "ssd"):
        net = load_caffe(NET, dialect=dialect)
        np.testing.assert_array_equal(net.forward(data=x)["p"], x.transpose(0, 2, 3, 1))
        np.testing.assert_array_equal(load_caffe(net.to_prototxt()).forward(data=x)["p"], x.transpose(0, 2, 3, 1))
    with pytest.raises(PrototxtError, match="permute_param"):
        load_caffe(NET, dialect="bvlc")
