"""DummyData: shapes and fillers in both forms, what is filled once and what in every pass."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError

NET = """
layer {
  name: "d" type: "DummyData" top: "data" top: "label"
  dummy_data_param {
    shape { dim: 3 dim: 2 } shape { dim: 3 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 2 }
  }
}
layer {
  name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { value: 1 } }
}
"""


def test_both_are_filled_before_the_first_pass() -> None:
    net = load_caffe(NET, seed=1)
    assert net.inputs == [] and net.blobs["data"].data.std() > 0
    np.testing.assert_array_equal(net.blobs["label"].data, [2, 2, 2])


def test_a_constant_stays_as_it_is_and_others_are_drawn_again() -> None:
    net = load_caffe(NET, seed=1)
    net.blobs["label"].data[...] = 5
    first, second = (net.forward()["ip"] for _ in range(2))
    assert not np.array_equal(first, second)
    assert (net.blobs["label"].data == 5).all()


def test_draws_follow_the_seed_and_the_number_of_the_pass() -> None:
    net, same, other = (load_caffe(NET, seed=seed) for seed in (1, 1, 2))
    first = net.forward()["ip"]
    np.testing.assert_array_equal(same.forward()["ip"], first)
    assert not np.array_equal(other.forward()["ip"], first)
    second = net.forward()["ip"]
    net.draws = 1
    np.testing.assert_array_equal(net.forward()["ip"], second)


def test_older_form_of_the_shapes() -> None:
    text = 'layer { name: "d" type: "DummyData" top: "a" top: "b" dummy_data_param { %s } }'
    net = load_caffe(text % "num: 2 num: 4 channels: 3 height: 5 width: 6")
    assert net.blobs["a"].shape == (2, 3, 5, 6) and net.blobs["b"].shape == (4, 3, 5, 6)
    assert not net.forward()["a"].any()
    assert load_caffe(text % "shape { dim: 2 }").blobs["b"].shape == (2,)
    for wrong in (
        "num: 2",
        "num: 2 channels: 3 height: 5 width: 6 shape { dim: 2 }",
        "num: 1 num: 2 num: 3 channels: 1 height: 1 width: 1",
    ):
        with pytest.raises(ArgumentError, match="one of the two forms, with 1 or 2 of each size"):
            load_caffe(text % wrong)


def test_shapes_and_fillers_must_be_as_many_as_the_tops() -> None:
    with pytest.raises(ArgumentError, match="shapes for all tops, or one each"):
        load_caffe('layer { name: "d" type: "DummyData" top: "a" }')
    with pytest.raises(ArgumentError, match="fillers for all tops, or one each"):
        load_caffe(NET.replace('top: "label"', 'top: "label" top: "more"').replace("shape { dim: 3 }", ""))


def test_compiled_it_fills_in_every_run() -> None:
    text = 'layer { name: "d" type: "DummyData" top: "a" dummy_data_param { shape { dim: 2 } data_filler { value: 3 } } }'
    program = load_caffe(text + 'layer { name: "r" type: "ReLU" bottom: "a" top: "r" }').compile()
    for _ in range(2):
        assert program()["r"].tolist() == [3, 3]
