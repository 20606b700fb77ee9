"""Parameter: a blob that learns, shared memory, gradients that add up."""

from __future__ import annotations

import numpy as np

from astride.caffe import load_caffe
from astride.layers.fillers import Filler
from astride.layers.parameter import ParameterLayer

from .gradients import Bench, check_gradient

NET = """
layer { name: "p" type: "Parameter" top: "p" param { name: "shared" lr_mult: 3 } parameter_param { shape { dim: 2 dim: 3 } } }
layer { name: "q" type: "Parameter" top: "q" param { name: "shared" } parameter_param { shape { dim: 2 dim: 3 } } }
layer { name: "c" type: "Concat" bottom: "p" bottom: "q" top: "c" }
layer { name: "loss" type: "Reduction" bottom: "c" top: "loss" loss_weight: 1 reduction_param { operation: SUMSQ } }
"""


def test_top_is_the_parameter() -> None:
    bench = Bench(ParameterLayer((2, 3), filler=Filler(value=4)), [])
    bench.layer.params[0].fill(np.random.RandomState(0))
    assert (bench.forward()[0] == 4).all()
    assert np.shares_memory(bench.top[0].data, bench.layer.params[0].data)
    check_gradient(bench)


def test_as_a_copy() -> None:
    layer = ParameterLayer((2,))
    layer.copies = True
    bench = Bench(layer, [])
    np.testing.assert_array_equal(bench.forward()[0], layer.params[0].data)
    assert not np.shares_memory(bench.top[0].data, layer.params[0].data)
    check_gradient(bench)


def test_two_of_one_name_are_one_parameter_whose_gradients_add_up() -> None:
    net = load_caffe(NET, phase="TRAIN")
    assert len(net.learnable) == 1 and net.learnable[0].lr_mult == 3
    net.params["p"][0].data[...] = [[1, 2, 3], [4, 5, 6]]
    for passes in (1, 2):
        net.forward()
        assert net.loss == 2 * 91
        net.backward()
        np.testing.assert_array_equal(net.learnable[0].diff, passes * 4 * net.learnable[0].data)


def test_a_layer_in_place_behind_it_leaves_the_parameter_alone() -> None:
    text = 'layer { name: "p" type: "Parameter" top: "p" parameter_param { shape { dim: 3 } } }'
    net = load_caffe(text + 'layer { name: "r" type: "ReLU" bottom: "p" top: "p" }')
    net.params["p"][0].data[...] = [-1, 0, 2]
    assert net.forward()["p"].tolist() == [0, 0, 2] and net.params["p"][0].data.tolist() == [-1, 0, 2]
    assert net.compile()()["p"].tolist() == [0, 0, 2]
