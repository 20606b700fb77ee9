"""Saved and loaded again, text and weights are the same; weights of the old format fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride.caffe import load_caffe, load_weights
from astride.caffe.export import write_weights
from astride.caffe.weights import fits
from astride.errors import ModelFileError
from astride.net import Net
from astride.proto import message, read_caffemodel, write_caffemodel

from .texts import CONV_IP, TRAIN_TEST

X = np.random.RandomState(0).rand(2, 3, 6, 6).astype(np.float32)


def equal(one: Net, other: Net) -> None:
    assert list(one.params) == list(other.params)
    for name, params in one.params.items():
        for mine, its in zip(params, other.params[name], strict=True):
            assert mine.data.tobytes() == its.data.tobytes()


def test_saved_weights_are_bit_equal(tmp_path: Path) -> None:
    net = load_caffe(CONV_IP, seed=1)
    net.params["conv"][1].data[...] = [np.pi, -0.0, 1e-42, 3e38]
    net.save(tmp_path / "w.caffemodel")
    again = load_caffe(CONV_IP, tmp_path / "w.caffemodel")
    equal(net, again)
    np.testing.assert_array_equal(net.forward(data=X)["prob"], again.forward(data=X)["prob"])
    assert [p.name for p in tmp_path.iterdir()] == ["w.caffemodel"], "no temporary file is left"


def test_a_caffemodel_holds_names_types_and_shapes(tmp_path: Path) -> None:
    net = load_caffe(CONV_IP)
    write_weights(net, tmp_path / "w.caffemodel")
    file = read_caffemodel(tmp_path / "w.caffemodel")
    assert file.message.name == "small"
    assert [(layer.name, layer.type) for layer in file.layers] == [(n.name, n.layer.type) for n in net.nodes]
    assert [[b.shape for b in blobs] for blobs in file.blobs] == [[], [(4, 3, 3, 3), (4,)], [], [(5, 64), (5,)], []]


@pytest.mark.parametrize(("text", "phase"), [(CONV_IP, "TEST"), (TRAIN_TEST, "TRAIN"), (TRAIN_TEST, "TEST")])
def test_text_round_trip(text: str, phase: str) -> None:
    net = load_caffe(text, phase=phase, seed=2)
    again = load_caffe(net.to_prototxt(), phase=phase, seed=2)
    assert again.to_prototxt() == net.to_prototxt()
    assert [n.name for n in again.nodes] == [n.name for n in net.nodes]
    equal(net, again)


def test_the_text_has_the_shapes_of_now() -> None:
    net = load_caffe(CONV_IP.replace('layer { name: "relu"', 'layer { name: "x" type: "Input" top: "x" }\nlayer { name: "relu"'))
    net.reshape(data=(7, 3, 6, 6), x=(1, 2))
    again = load_caffe(net.to_prototxt())
    assert again.blobs["data"].shape == (7, 3, 6, 6) and again.blobs["x"].shape == (1, 2)


def test_load_weights_into_a_net(tmp_path: Path) -> None:
    net, other = load_caffe(CONV_IP, seed=1), load_caffe(CONV_IP, seed=2)
    net.save(tmp_path / "w.caffemodel")
    view = other.params["conv"][0].data
    assert load_weights(other, tmp_path / "w.caffemodel") == []
    equal(net, other)
    np.testing.assert_array_equal(view, net.params["conv"][0].data, "views from before see the new weights")
    renamed = load_caffe(CONV_IP.replace('name: "ip"', 'name: "fc"'))
    assert load_weights(renamed, (tmp_path / "w.caffemodel").read_bytes(), allow_missing=True) == ["fc"]


def test_a_refused_file_changes_nothing(tmp_path: Path) -> None:
    net = load_caffe(CONV_IP, seed=1)
    net.save(tmp_path / "w.caffemodel")
    other = load_caffe(CONV_IP.replace("num_output: 5", "num_output: 6"), seed=2)
    before = other.params["conv"][0].data.copy()
    with pytest.raises(ModelFileError):
        load_weights(other, tmp_path / "w.caffemodel")
    np.testing.assert_array_equal(other.params["conv"][0].data, before)


@pytest.mark.parametrize(
    ("shape", "own", "good"),
    [
        ((5,), (5,), True),
        ((1, 1, 1, 5), (5,), True),
        ((1, 1, 5, 64), (5, 64), True),
        ((1, 1, 1, 1), (), True),
        ((1, 5), (5,), False),
        ((5, 1, 1, 1), (5,), False),
        ((1, 1, 64, 5), (5, 64), False),
        ((1, 5, 1, 64), (5, 64), False),
    ],
)
def test_old_shapes(shape: tuple[int, ...], own: tuple[int, ...], good: bool) -> None:
    assert fits(shape, own) is good


def test_an_old_file_loads(tmp_path: Path) -> None:
    """Blobs of four dimensions in `layers`, as files of 2014 have them."""
    net = load_caffe(CONV_IP, seed=1)
    old = message("NetParameter")()
    for name, params in net.params.items():
        layer = old.layers.add(name=name)
        for parameter in params:
            shape = (1,) * (4 - len(parameter.shape)) + parameter.shape
            blob = layer.blobs.add(num=shape[0], channels=shape[1], height=shape[2], width=shape[3])
            blob.data.extend(parameter.data.reshape(-1).tolist())
    (tmp_path / "old.caffemodel").write_bytes(old.SerializeToString())
    equal(net, load_caffe(CONV_IP, tmp_path / "old.caffemodel", seed=2))


def test_double_precision_weights_load(tmp_path: Path) -> None:
    net = load_caffe(CONV_IP, seed=1)
    wide = message("NetParameter")()
    for name in net.params:
        wide.layer.add(name=name)
    blobs = [[p.data.astype(np.float64) for p in params] for params in net.params.values()]
    write_caffemodel(tmp_path / "wide.caffemodel", wide, blobs)
    equal(net, load_caffe(CONV_IP, tmp_path / "wide.caffemodel"))
