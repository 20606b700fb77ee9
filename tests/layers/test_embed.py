"""Embed: rows by index, gradients of weights and bias, indices that name no row."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.embed import Embed
from astride.layers.fillers import Filler

from .gradients import Bench, check_gradient

INDICES = np.array([[0.0, 3], [3, 3], [1, 0]])

NET = """
input: "words" input_shape { dim: 2 dim: 3 }
layer {
  name: "e" type: "Embed" bottom: "words" top: "e"
  embed_param { num_output: 2 input_dim: 5 weight_filler { type: "uniform" } bias_filler { value: 7 } }
}
layer { name: "loss" type: "Reduction" bottom: "e" top: "loss" loss_weight: 1 }
"""


@pytest.mark.parametrize("bias", [False, True])
def test_rows_and_gradient(bias: bool) -> None:
    bench = Bench(Embed(4, 3, bias=bias), [INDICES])
    w = bench.layer.params[0].data
    expected = w[INDICES.astype(int)] + (bench.layer.params[1].data if bias else 0)
    np.testing.assert_array_equal(bench.forward()[0], expected)
    check_gradient(bench, want=[False])


def test_rows_that_are_not_read_have_no_gradient() -> None:
    bench = Bench(Embed(4, 2, bias=False), [INDICES])
    y = bench.forward()[0]
    bench.backward([np.ones_like(y)], [False])
    np.testing.assert_array_equal(bench.layer.params[0].diff, [[2, 2], [1, 1], [0, 0], [3, 3]])


@pytest.mark.parametrize("index", [-1, 4])
def test_an_index_that_names_no_row(index: int) -> None:
    with pytest.raises(ArrayError, match="an index names no place") as caught:
        Bench(Embed(4, 2), [np.array([0.0, index])]).forward()
    assert f"0 <= {index} < 4" in str(caught.value)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="input_dim >= 1: 0"):
        Embed(0, 2)
    with pytest.raises(ArgumentError, match="num_output >= 1: 0"):
        Embed(2, 0)
    bench = Bench(Embed(4, 2), [INDICES])
    bench.forward()
    with pytest.raises(UnsupportedError, match="indices have no gradient"):
        bench.backward([np.zeros((3, 2, 2))], [True])


def test_in_a_network_of_changing_size() -> None:
    net = load_caffe(NET, phase="TRAIN", seed=1)
    w = net.params["e"][0].data
    for shape in ((2, 3), (1, 4), (0, 4)):
        words = np.random.RandomState(3).randint(0, 5, shape)
        net.forward(words=words)
        np.testing.assert_array_equal(net.blobs["e"].data, w[words] + 7)
        net.clear_param_diffs()
        net.backward()
        np.testing.assert_array_equal(net.params["e"][0].diff[:, 0], np.bincount(words.ravel(), minlength=5))
        assert (net.params["e"][1].diff == words.size).all()


def test_without_a_bias_there_is_one_parameter() -> None:
    layer = Embed(3, 2, bias=False, weight_filler=Filler(value=2))
    assert len(Bench(layer, [np.zeros(1)]).layer.params) == 1
