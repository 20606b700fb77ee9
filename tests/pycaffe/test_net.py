"""caffe.Net: what its calls take and give, and what stays the same memory."""

from __future__ import annotations

import gc
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from astride import load_caffe
from astride import pycaffe as caffe
from astride.errors import AstrideError, ModelFileError
from astride.proto import read_caffemodel

from .texts import LEARNS, SMALL, written


@pytest.fixture
def net(folder: Path) -> caffe.Net:
    caffe.set_random_seed(1)
    return caffe.Net(written("net.prototxt", SMALL), caffe.TEST)


def image(count: int = 2) -> np.ndarray:
    return np.arange(count * 32, dtype=np.float32).reshape(count, 2, 4, 4) % 7


# Construction


def test_every_form_of_the_constructor(net: caffe.Net) -> None:
    net.save("net.caffemodel")
    expected = net.forward(data=image())["prob"].copy()
    forms = [
        caffe.Net("net.prototxt", "net.caffemodel", caffe.TEST),
        caffe.Net("net.prototxt", caffe.TEST, weights="net.caffemodel"),
        caffe.Net("net.prototxt", caffe.TEST, 0, [], "net.caffemodel"),
        caffe.Net("net.prototxt", weights="net.caffemodel", phase=caffe.TEST, level=2, stages=["deploy"]),
        caffe.Net(network_file="net.prototxt", phase=caffe.TEST, weights=Path("net.caffemodel")),
    ]
    for made in forms:
        assert (made.forward(data=image())["prob"] == expected).all()
    train = caffe.Net("net.prototxt", caffe.TRAIN)
    assert (train.phase, forms[0].phase, train.name) == (caffe.TRAIN, caffe.TEST, "small")


@pytest.mark.parametrize("arguments", [(), ("net.caffemodel",), (7,), (1, 0, None, None, 5), ("a", "b", 1, 2)])
def test_arguments_that_no_constructor_takes(net: caffe.Net, arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match="no constructor of Net takes these"):
        caffe.Net("net.prototxt", *arguments)


def test_a_missing_file_is_a_runtime_error(net: caffe.Net) -> None:
    with pytest.raises(RuntimeError, match=r"Could not open file nothing\.prototxt"):
        caffe.Net("nothing.prototxt", caffe.TEST)
    with pytest.raises(RuntimeError, match=r"Could not open file nothing\.caffemodel"):
        caffe.Net("net.prototxt", "nothing.caffemodel", caffe.TEST)
    with pytest.raises(RuntimeError, match="Could not open file"):
        net.copy_from("nothing.caffemodel")


def test_stages_and_levels_choose_layers(folder: Path) -> None:
    more = 'layer { name: "more" type: "ReLU" bottom: "ip" top: "more" include { stage: "x" min_level: 1 } }'
    file = written("net.prototxt", SMALL + more)
    assert "more" not in caffe.Net(file, caffe.TEST).blobs
    assert "more" in caffe.Net(file, caffe.TEST, level=1, stages=["x"]).blobs


# What there is


def test_names_in_their_order(net: caffe.Net) -> None:
    assert list(net.blobs)[:2] == ["data", "conv"] and isinstance(net.blobs, OrderedDict)
    assert net._blob_names == list(net.blobs) and net._blobs == list(net.blobs.values())
    assert (net.inputs, net.outputs, list(net.params)) == (["data"], ["prob"], ["conv", "ip"])
    assert net._layer_names == [
        "input", "conv", "relu", "conv_relu_0_split", "left", "right", "sum", "ip", "prob"
    ]  # fmt: skip
    assert [layer.type for layer in net.layers][-2:] == ["InnerProduct", "Softmax"]
    assert list(net.layer_dict) == net._layer_names and net.layer_dict["ip"].type == "InnerProduct"
    assert net.top_names["sum"] == ["sum"] and net.bottom_names["sum"] == ["left", "right"]
    assert [net._blob_names[i] for i in net._bottom_ids(6)] == ["left", "right"]
    assert [net._blob_names[i] for i in net._top_ids(6)] == ["sum"]
    assert [net._blob_names[i] for i in net._inputs + net._outputs] == ["data", "prob"]
    assert net.layers[1] is net.layers[1] and net.blobs["data"] is net.blobs["data"]


def test_parameters_are_vectors_of_blobs(net: caffe.Net) -> None:
    weights, bias = net.params["conv"]
    assert (weights.data.shape, bias.data.shape, len(net.params["conv"])) == ((3, 2, 3, 3), (3,), 2)
    assert net.params["conv"][1] is bias and net.params["conv"][-1] is bias and net.layers[1].blobs[0] is weights
    assert [blob.shape for blob in net.params["conv"][:1]] == [(3, 2, 3, 3)]
    assert (bias.data == 0.5).all() and weights.data.any()
    with pytest.raises(IndexError):
        net.params["conv"][2]
    with pytest.raises(KeyError):
        net.params["relu"]
    with pytest.raises(RuntimeError, match="parameters its text asks for"):
        net.params["conv"].add_blob(1)


def test_blobs_have_sizes_of_both_kinds(net: caffe.Net) -> None:
    blob = net.blobs["data"]
    assert (blob.num, blob.channels, blob.height, blob.width, blob.count) == (2, 2, 4, 4, 64)
    assert tuple(blob.shape) == blob.data.shape == blob.diff.shape and blob.data.dtype == np.float32
    with pytest.raises(AttributeError):
        blob.data = np.zeros(3)


def test_loss_weights_by_blob(folder: Path) -> None:
    net = caffe.Net(written("net.prototxt", LEARNS), caffe.TRAIN)
    assert net.blob_loss_weights["loss"] == 1 and sum(net.blob_loss_weights.values()) == 1
    assert net._blob_loss_weights == list(net.blob_loss_weights.values())


# Memory


def test_data_is_the_same_memory_each_time(net: caffe.Net) -> None:
    data = net.blobs["data"].data
    data[...] = 3
    assert np.shares_memory(data, net.blobs["data"].data) and (net.blobs["data"].data == 3).all()
    net.blobs["data"].data[...] = image()
    out = net.forward()
    assert np.shares_memory(out["prob"], net.blobs["prob"].data)
    held = out["prob"].copy()
    net.forward(data=image() * 2)
    assert not (out["prob"] == held).all(), "what forward returns is a view, as in Caffe"


def test_in_place_layers_share_a_blob_and_splits_its_data(net: caffe.Net) -> None:
    net.forward(data=image())
    assert (net.blobs["conv"].data >= 0).all()
    assert np.shares_memory(net.blobs["conv"].data, net.blobs["conv_relu_0_split_1"].data)


def test_blobs_outlive_their_network(net: caffe.Net) -> None:
    other = caffe.Net("net.prototxt", caffe.TEST)
    blob, array = other.blobs["data"], other.params["ip"][0].data
    array[...] = 2
    del other
    gc.collect()
    blob.data[...] = 1
    assert blob.data.sum() == 64 and (array == 2).all()


def test_reshape_one_input_then_run(net: caffe.Net) -> None:
    before = net.blobs["data"].data
    net.blobs["data"].reshape(5, 2, 4, 4)
    assert net.blobs["data"].data.shape == (5, 2, 4, 4) and not np.shares_memory(before, net.blobs["data"].data)
    net.reshape()
    assert net.blobs["prob"].data.shape == (5, 5)
    net.blobs["data"].reshape(1, 2, 4, 4)
    net.blobs["data"].data[...] = image(1)
    assert net.forward()["prob"].shape == (1, 5)


def test_a_size_that_cannot_be_names_the_layer(net: caffe.Net) -> None:
    net.blobs["data"].reshape(1, 2, 9, 9)
    with pytest.raises(AstrideError, match='layer "ip"'):
        net.forward()


# Passes


def test_forward_equals_astrides(net: caffe.Net) -> None:
    net.save("net.caffemodel")
    plain = load_caffe("net.prototxt", "net.caffemodel")
    assert (net.forward(data=image())["prob"] == plain.forward(data=image())["prob"]).all()


def test_forward_to_a_layer_and_from_one(net: caffe.Net) -> None:
    out = net.forward(data=image(), end="sum", blobs=["conv"])
    assert set(out) == {"sum", "conv"} and not net.blobs["ip"].data.any()
    net.blobs["sum"].data[...] = 0
    out = net.forward(start="ip")
    np.testing.assert_allclose(out["prob"], 0.2, rtol=1e-6)
    assert set(net.forward(start="left", end="left")) == {"left"}
    assert net._forward(0, 8) == 0.0


def test_float64_and_lists_are_taken(net: caffe.Net) -> None:
    expected = net.forward(data=image())["prob"].copy()
    assert (net.forward(data=image().astype(np.float64))["prob"] == expected).all()
    assert (net.forward(data=image().tolist())["prob"] == expected).all()


def test_refusals_of_forward(net: caffe.Net) -> None:
    with pytest.raises(Exception, match="Input blob arguments do not match net inputs"):
        net.forward(image=image())
    with pytest.raises(Exception, match="Input is not batch sized"):
        net.forward(data=image(3))
    with pytest.raises(ValueError, match="broadcast"):
        net.forward(data=np.zeros((2, 2, 5, 4)))
    with pytest.raises(ValueError, match="not in list"):
        net.forward(end="nothing")
    with pytest.raises(KeyError):
        net.forward(blobs=["nothing"])


def test_backward_from_outputs(net: caffe.Net) -> None:
    net.forward(data=image())
    diff = np.zeros((2, 5), np.float32)
    diff[:, 1] = 1
    grads = net.backward(prob=diff, diffs=["sum"])
    assert set(grads) == {"data", "sum"} and grads["data"].shape == (2, 2, 4, 4) and grads["data"].any()
    assert np.shares_memory(grads["data"], net.blobs["data"].diff)
    plain = load_caffe("net.prototxt")
    plain.copy_params({name: [blob.data for blob in blobs] for name, blobs in net.params.items()})
    plain.forward(data=image())
    assert (plain.backward(prob=diff)["data"] == grads["data"]).all()


def test_backward_between_two_layers(net: caffe.Net) -> None:
    net.forward(data=image())
    net.blobs["sum"].diff[...] = 1
    grads = net.backward(start="sum", end="left")
    assert set(grads) == set(net.bottom_names["left"]) and (net.blobs["left"].diff == 1).all()
    assert not net.blobs["data"].diff.any()
    with pytest.raises(Exception, match="Top diff arguments do not match net outputs"):
        net.backward(sum=np.ones((2, 3, 1, 1)))
    with pytest.raises(Exception, match="Diff is not batch sized"):
        net.backward(prob=np.ones((3, 5)))


def test_backward_through_layers_that_have_not_run(net: caffe.Net) -> None:
    """Caffe's layers look at their blobs when they run backward; so whoever fills blobs needs no forward pass."""
    rng = np.random.default_rng(0)
    net.blobs["sum"].data[...] = rng.integers(-3, 4, (2, 3, 1, 1))
    net.blobs["ip"].data[...] = 7
    net.blobs["ip"].diff[...] = diff = rng.integers(-3, 4, (2, 5))
    seen: list[int] = []
    net.before_forward(seen.append)
    grads = net.backward(start="ip", end="ip")
    np.testing.assert_allclose(grads["sum"].reshape(2, 3), diff @ net.params["ip"][0].data, rtol=1e-5)
    np.testing.assert_array_equal(net.params["ip"][0].diff, diff.T.astype(np.float32) @ net.blobs["sum"].data.reshape(2, 3))
    assert (net.blobs["ip"].data == 7).all() and seen == []


def test_parameter_gradients_add_up_until_cleared(folder: Path) -> None:
    net = caffe.Net(written("net.prototxt", LEARNS), caffe.TRAIN)
    net.forward(data=np.eye(4, 3), label=np.array([0, 1, 0, 1]))
    assert net.blobs["loss"].diff == 1, "a loss's diff holds its weight from the beginning"
    net.backward()
    once = net.params["ip"][0].diff.copy()
    net.backward()
    assert once.any()
    np.testing.assert_array_equal(net.params["ip"][0].diff, 2 * once)
    net.clear_param_diffs()
    assert not net.params["ip"][0].diff.any()
    net.blobs["loss"].diff[...] = 3
    net.backward()
    np.testing.assert_allclose(net.params["ip"][0].diff, 3 * once, rtol=1e-6)


def test_without_a_loss_nothing_flows_unless_forced(folder: Path) -> None:
    net = caffe.Net(written("net.prototxt", SMALL.replace("force_backward: true", "")), caffe.TEST)
    net.forward(data=image())
    net.blobs["prob"].diff[:, 0] = 1
    assert not net.backward()["data"].any()


def test_forward_all_fills_up_the_last_batch(net: caffe.Net) -> None:
    images = image(5)
    outs = net.forward_all(blobs=["sum"], data=images)
    assert outs["prob"].shape == (5, 5) and outs["sum"].shape == (5, 3, 1, 1)
    single = np.concatenate([net.forward(data=np.stack([one, one]))["prob"][:1].copy() for one in images])
    np.testing.assert_array_equal(outs["prob"], single)
    assert net.forward_all(data=image(4))["prob"].shape == (4, 5)


def test_forward_backward_all(net: caffe.Net) -> None:
    images, diffs = image(3), np.eye(3, 5, dtype=np.float32)
    outs, grads = net.forward_backward_all(data=images, prob=diffs, diffs=["sum"])
    assert outs["prob"].shape == (3, 5) and grads["data"].shape == (3, 2, 4, 4) and grads["sum"].shape == (3, 3, 1, 1)
    net.forward(data=images[:2])
    np.testing.assert_array_equal(net.backward(prob=diffs[:2])["data"], grads["data"][:2])


def test_callbacks_see_every_layer(net: caffe.Net) -> None:
    seen: list[tuple[str, int]] = []
    for name in ("before_forward", "after_forward", "before_backward", "after_backward"):
        getattr(net, name)(lambda layer, name=name: seen.append((name, layer)))
    net.forward(data=image(), end="conv")
    net.backward(start="conv", end="conv")
    assert seen == [
        ("before_forward", 0), ("after_forward", 0), ("before_forward", 1), ("after_forward", 1),
        ("before_backward", 1), ("after_backward", 1),
    ]  # fmt: skip


# Weights


def test_copy_from_takes_what_it_knows(net: caffe.Net) -> None:
    net.params["ip"][1].data[...] = [1, 2, 3, 4, 5]
    net.save("net.caffemodel")
    renamed = caffe.Net(written("other.prototxt", SMALL.replace('"ip"', '"other"')), caffe.TEST)
    before = renamed.params["other"][0].data.copy()
    renamed.copy_from("net.caffemodel")
    assert (renamed.params["conv"][0].data == net.params["conv"][0].data).all()
    assert (renamed.params["other"][0].data == before).all(), "a layer the file lacks keeps its fillers, without an error"
    wider = caffe.Net(written("wide.prototxt", SMALL.replace("num_output: 5", "num_output: 6")), caffe.TEST)
    with pytest.raises(ModelFileError, match=r"parameter 0: network \(6, 3\), file \(5, 3\)"):
        wider.copy_from("net.caffemodel")


def test_weights_in_hdf5(net: caffe.Net) -> None:
    pytest.importorskip("h5py")
    net.save_hdf5("net.weights")
    net.save("net.caffemodel.h5")
    for load in (
        lambda other: other.load_hdf5("net.weights"),
        lambda other: other.copy_from("net.caffemodel.h5"),
    ):
        other = caffe.Net("net.prototxt", caffe.TEST)
        load(other)
        assert all((a.data == b.data).all() for n in net.params for a, b in zip(net.params[n], other.params[n]))
    net.params["ip"][1].diff[...] = 3
    net.save_hdf5("net.weights", True)
    assert (read_caffemodel("net.weights").blobs[-1][1].diff == 3).all()


def test_share_with(net: caffe.Net) -> None:
    other = caffe.Net("net.prototxt", caffe.TEST)
    other.share_with(net)
    net.params["ip"][0].data[...] = 4
    assert (other.params["ip"][0].data == 4).all()


# Data in memory

MEMORY = """
layer { name: "data" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 2 channels: 1 height: 2 width: 2 } }
layer { name: "sum" type: "Reduction" bottom: "data" top: "sum" reduction_param { axis: 1 } }
"""


def test_set_input_arrays(folder: Path) -> None:
    net = caffe.Net(written("net.prototxt", MEMORY), caffe.TEST)
    data = np.arange(16, dtype=np.float32).reshape(4, 1, 2, 2)
    net.set_input_arrays(data, np.array([3, 2, 1, 0], np.float32))
    assert [net.forward()["sum"].tolist() for _ in range(3)] == [[6, 22], [38, 54], [6, 22]]
    assert net.blobs["label"].data.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (np.zeros((4, 1, 2, 2)), np.zeros(4), "data array must be float32"),
        (np.zeros((4, 1, 4), np.float32), np.zeros(4), "data array must be 4-d"),
        (np.zeros((4, 1, 4, 2), np.float32)[:, :, ::2], np.zeros(4), "data array must be C contiguous"),
        (np.zeros((4, 3, 2, 2), np.float32), np.zeros(4), "data array has wrong number of channels"),
        (np.zeros((4, 1, 3, 2), np.float32), np.zeros(4), "data array has wrong height"),
        (np.zeros((4, 1, 2, 3), np.float32), np.zeros(4), "data array has wrong width"),
        (np.zeros((4, 1, 2, 2), np.float32), np.zeros(2), "must have the same first dimension"),
        (np.zeros((3, 1, 2, 2), np.float32), np.zeros(3), "must be a multiple of batch size"),
    ],
)
def test_arrays_that_memory_data_refuses(folder: Path, data: np.ndarray, labels: np.ndarray, message: str) -> None:
    net = caffe.Net(written("net.prototxt", MEMORY), caffe.TEST)
    with pytest.raises(RuntimeError, match=message):
        net.set_input_arrays(data, labels.astype(np.float32))


def test_set_input_arrays_needs_a_memory_data_layer(net: caffe.Net) -> None:
    with pytest.raises(RuntimeError, match="first layer is a MemoryDataLayer"):
        net.set_input_arrays(image(), np.zeros(2, np.float32))
