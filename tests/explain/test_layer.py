"""Layers of a network: summaries, operands, multiplications, and the same geometry under other rules."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from astride.caffe import load_caffe
from astride.explain.layer import compare_layer, layer_views, plan_of
from astride.net import Net

TEXT = """
name: "mixed"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 4 dim: 9 dim: 7 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 6 kernel_h: 3 kernel_w: 2 stride: 2 pad: 1 group: 2 dilation: 1 } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" relu_param { negative_slope: 0.1 } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
        pooling_param { pool: AVE kernel_size: 2 stride: 2 round_mode: FLOOR } }
layer { name: "up" type: "Deconvolution" bottom: "pool" top: "up"
        convolution_param { num_output: 3 kernel_size: 3 bias_term: false } }
layer { name: "fc" type: "InnerProduct" bottom: "up" top: "fc" inner_product_param { num_output: 5 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""


@pytest.fixture
def net() -> Net:
    return load_caffe(TEXT)


def test_views_say_what_layers_are(net: Net) -> None:
    views = {view.name: view for view in layer_views(net)}
    assert views["conv"].summary == "6 of 3x2, stride 2, pad 1, 2 groups"
    assert views["relu"].summary == "slope 0.1" and views["relu"].in_place
    assert views["pool"].summary == "average 2x2, stride 2"
    assert views["fc"].summary == "5 outputs"
    assert all(view.formula for view in views.values())
    json.dumps([view.to_dict() for view in views.values()], allow_nan=False)


def test_multiplications_by_hand(net: Net) -> None:
    """conv: 2 images, 5x4 places, 6 outputs of 2 channels x 3x2 taps; up: 2 images, 2x2 places, 6 x 3 x 3x3; fc: 2 x 48 x 5."""
    products = {view.name: view.products for view in layer_views(net)}
    assert (
        net.blobs["conv"].shape == (2, 6, 5, 4)
        and net.blobs["pool"].shape == (2, 6, 2, 2)
        and net.blobs["up"].shape == (2, 3, 4, 4)
    )
    assert products["conv"] == 2 * 5 * 4 * 6 * (2 * 3 * 2)
    assert products["up"] == 2 * 2 * 2 * 6 * 3 * 3 * 3
    assert products["fc"] == 2 * 48 * 5
    assert products["relu"] == products["pool"] == 0


@pytest.mark.parametrize("name", ["conv", "pool", "up"])
def test_caffes_side_is_the_layers_own_plan(net: Net, name: str) -> None:
    found = compare_layer(net, name, ["caffe", "pytorch"])
    node = next(node for node in net.nodes if node.name == name)
    assert found is not None
    assert found.sides[0].plan == plan_of(node.layer, [net.blobs[b] for b in node.bottoms])


def test_layers_without_windows_are_not_compared(net: Net) -> None:
    assert compare_layer(net, "relu") is None
    assert compare_layer(net, "data") is None
    assert compare_layer(net, "fc") is None


def test_lenet() -> None:
    net = load_caffe(files("astride.examples") / "lenet" / "lenet.prototxt")  # type: ignore[arg-type]
    found = compare_layer(net, "pool1", ["caffe", "mps"])
    assert found is not None and [side.axes[0].out for side in found.sides] == [12, 12]
