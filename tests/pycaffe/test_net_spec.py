"""caffe.net_spec and caffe.coord_map: networks written in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride import load_caffe
from astride import pycaffe as caffe
from astride.pycaffe import NetSpec, coord_map, to_proto
from astride.pycaffe import layers as L
from astride.pycaffe import params as P
from astride.pycaffe.proto import caffe_pb2


def lenet(batch: int = 2) -> NetSpec:
    n = NetSpec()
    n.data, n.label = L.DummyData(shape=[dict(dim=[batch, 1, 28, 28]), dict(dim=[batch])], ntop=2)
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=dict(type="xavier"))
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.conv2 = L.Convolution(n.pool1, kernel_size=5, num_output=50, weight_filler=dict(type="xavier"))
    n.pool2 = L.Pooling(n.conv2, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.ip1 = L.InnerProduct(n.pool2, num_output=500, weight_filler=dict(type="xavier"))
    n.relu1 = L.ReLU(n.ip1, in_place=True)
    n.ip2 = L.InnerProduct(n.relu1, num_output=10, weight_filler=dict(type="xavier"))
    n.loss = L.SoftmaxWithLoss(n.ip2, n.label)
    return n


def test_a_network_loads_and_runs(tmp_path: Path) -> None:
    proto = lenet().to_proto()
    assert [layer.name for layer in proto.layer] == [
        "data", "conv1", "pool1", "conv2", "pool2", "ip1", "relu1", "ip2", "loss"
    ]  # fmt: skip
    assert list(proto.layer[6].top) == ["ip1"] and list(proto.layer[7].bottom) == ["ip1"]
    assert list(proto.layer[0].top) == ["data", "label"]
    assert proto.layer[2].pooling_param.pool == caffe_pb2.PoolingParameter.MAX
    assert list(proto.layer[1].convolution_param.kernel_size) == [5]
    (tmp_path / "net.prototxt").write_text(str(proto))
    net = load_caffe(tmp_path / "net.prototxt", phase="TRAIN")
    assert net.forward()["loss"].shape == () and net.blobs["pool2"].shape == (2, 50, 4, 4)


def test_without_a_spec_names_are_types_and_numbers() -> None:
    data, label = L.DummyData(shape=[dict(dim=[1, 1, 4, 4]), dict(dim=[1])], ntop=2)
    bottom = data
    for _ in range(2):
        bottom = L.Convolution(bottom, kernel_size=1, num_output=2)
    loss = L.SoftmaxWithLoss(bottom, label)
    named = [(layer.name, list(layer.top)) for layer in to_proto(loss).layer]
    assert named == [
        ("DummyData1", ["DummyData1", "DummyData2"]),
        ("Convolution1", ["Convolution1"]),
        ("Convolution2", ["Convolution2"]),
        ("SoftmaxWithLoss1", ["SoftmaxWithLoss1"]),
    ]
    assert str(loss.to_proto()) == str(to_proto(loss))


def test_a_network_deeper_than_pythons_stack() -> None:
    n = NetSpec()
    n.data = top = L.Input(shape=dict(dim=[1, 1, 1, 1]))
    for _ in range(3000):
        top = L.ReLU(top)
    n.out = top
    assert len(n.to_proto().layer) == 3001


def test_layers_without_tops() -> None:
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 2]))
    n.silence = L.Silence(n.data, ntop=0)
    proto = n.to_proto()
    assert [(layer.name, list(layer.top), list(layer.bottom)) for layer in proto.layer] == [
        ("data", ["data"], []),
        ("silence", [], ["data"]),
    ]


def test_fields_find_their_place() -> None:
    n = NetSpec()
    n.data = L.Data(source="x", backend=P.Data.LMDB, batch_size=3, transform_param=dict(scale=0.5, mean_value=[1, 2]), ntop=1)
    n.up = L.Deconvolution(n.data, convolution_param=dict(num_output=2, kernel_size=4, bias_term=False), param=[dict(lr_mult=0)])
    n.loss = L.SoftmaxWithLoss(n.up, n.data, loss_weight=2, loss_param=dict(ignore_label=255), include=dict(phase=caffe.TRAIN))
    n.python = L.Python(n.data, module="m", layer="C", param_str="x", name="mine", propagate_down=[False])
    data, up, loss, python = n.to_proto().layer
    assert (data.data_param.backend, data.data_param.batch_size, data.transform_param.mean_value[1]) == (1, 3, 2)
    assert up.convolution_param.num_output == 2 and up.param[0].lr_mult == 0 and not up.convolution_param.bias_term
    assert list(loss.loss_weight) == [2] and loss.loss_param.ignore_label == 255 and loss.include[0].phase == caffe.TRAIN
    assert (python.name, python.python_param.module, list(python.propagate_down)) == ("mine", "m", [False])


def test_values_of_numpy_and_of_tuples() -> None:
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=np.array([1, 3, 8, 8])))
    n.conv = L.Convolution(n.data, kernel_size=(3, np.int64(2)), num_output=np.int32(4), weight_filler=dict(std=np.float32(0.5)))
    n.crop = L.Crop(n.conv, n.data, crop_param={})
    proto = n.to_proto()
    assert list(proto.layer[1].convolution_param.kernel_size) == [3, 2]
    assert proto.layer[1].convolution_param.weight_filler.std == 0.5 and proto.layer[2].HasField("crop_param")


def test_a_spec_is_also_a_dictionary() -> None:
    n = lenet()
    assert n["conv1"] is n.conv1 and n.keys()[:3] == ["data", "label", "conv1"] and n.vals()[2] is n.conv1
    n["ip3"] = L.InnerProduct(n.ip2, num_output=3)
    n.update("ip3", dict(num_output=4))
    assert n.to_proto().layer[-1].inner_product_param.num_output == 4
    del n["ip3"]
    with pytest.raises(AttributeError):
        getattr(n, "ip3")  # noqa: B009


def test_what_cannot_be_written() -> None:
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1]))
    n.conv = L.Convolution(n.data, kernel=3)
    with pytest.raises(AttributeError, match="ConvolutionParameter has no field kernel"):
        n.to_proto()
    with pytest.raises(AttributeError, match="LayerParameter has no field alpha"):
        to_proto(L.ImaginaryLayer(n.data, alpha=3))
    with pytest.raises(TypeError, match=r"ConvolutionParameter\.num_output does not take this value"):
        to_proto(L.Convolution(n.data, num_output="many"))
    with pytest.raises(TypeError, match=r"ConvolutionParameter\.kernel_size does not take this value"):
        to_proto(L.Convolution(n.data, kernel_size=[-1]))
    with pytest.raises(TypeError, match=r"^Silence input 0 is not a Top \(type is <class 'tuple'>\)$"):
        L.Silence(L.DummyData(ntop=2), ntop=0)
    with pytest.raises(AttributeError, match="no such parameters"):
        getattr(P, "Imaginary")  # noqa: B009
    with pytest.raises(AttributeError):
        getattr(P.Pooling, "IMAGINARY")  # noqa: B009


# Where to crop, as Caffe's own tests of coord_map have it


def spec() -> NetSpec:
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 1, 100, 100]))
    n.aux = L.Input(shape=dict(dim=[2, 1, 20, 20]))
    n.conv = L.Convolution(n.data, num_output=10, kernel_size=5, stride=2, pad=0)
    n.pool = L.Pooling(n.conv, pool=P.Pooling.MAX, kernel_size=2, stride=2, pad=0)
    n.relu = L.ReLU(n.pool)
    n.deconv = L.Deconvolution(n.relu, num_output=10, kernel_size=4, stride=2, pad=0)
    return n


def test_a_convolution_and_its_transpose_meet() -> None:
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 30, 30]))
    n.conv = L.Convolution(n.data, num_output=4, kernel_size=3, stride=2, pad=1)
    n.up = L.Deconvolution(n.conv, convolution_param=dict(num_output=4, kernel_size=4, stride=2, pad=0))
    axis, scale, shift = coord_map.coord_map_from_to(n.up, n.data)
    assert (axis, scale.tolist(), shift.tolist()) == (1, [1.0], [-1.5])
    n.score = L.Deconvolution(n.conv, convolution_param=dict(num_output=4, kernel_size=3, stride=2, pad=0))
    crop = coord_map.crop(n.score, n.data)
    assert crop.fn.type_name == "Crop" and crop.fn.params["crop_param"] == dict(axis=2, offset=[1])
    with pytest.raises(AssertionError, match="noninteger"):
        coord_map.crop(n.up, n.data)


def test_maps_compose_and_invert() -> None:
    n = spec()
    axis, scale, shift = coord_map.coord_map_from_to(n.deconv, n.data)
    back = coord_map.coord_map_from_to(n.data, n.deconv)
    composed = coord_map.compose((axis, scale, shift), back)
    assert composed[0] == 1 and composed[1] == pytest.approx([1]) and composed[2] == pytest.approx([0])
    assert coord_map.coord_map(n.relu.fn) == (None, 1, 0)
    assert coord_map.coord_map_from_to(n.relu, n.pool) == (None, 1.0, 0.0)


def test_what_has_no_map() -> None:
    n = spec()
    n.ip = L.InnerProduct(n.relu, num_output=10)
    with pytest.raises(RuntimeError, match="Could not compute map between tops"):
        coord_map.coord_map_from_to(n.ip, n.data)
    with pytest.raises(RuntimeError, match="Could not compute map between tops"):
        coord_map.coord_map_from_to(n.aux, n.data)
    with pytest.raises(AssertionError, match="scale mismatch"):
        coord_map.crop(n.pool, n.data)
    n.wide = L.Convolution(n.data, num_output=10, kernel_size=1, pad=2)
    with pytest.raises(AssertionError, match="negative width"):
        coord_map.crop(n.data, n.wide)
    n.old = L.Pooling(n.data, kernel_h=2, kernel_w=2)
    with pytest.raises(AssertionError, match="legacy"):
        coord_map.crop(n.old, n.data)
    n.deep = L.Convolution(n.data, num_output=10, kernel_size=3, axis=2)
    with pytest.raises(coord_map.AxisMismatchException):
        coord_map.coord_map_from_to(L.Convolution(n.deep, kernel_size=1, num_output=1), n.data)


def test_a_crop_moves_the_map() -> None:
    n = spec()
    n.cut = L.Crop(n.data, n.conv, crop_param=dict(axis=2, offset=[3]))
    axis, scale, shift = coord_map.coord_map_from_to(n.cut, n.data)
    assert (axis, scale, list(shift)) == (1, 1, [3])


def test_many_ways_between_two_tops_are_walked_once() -> None:
    n = NetSpec()
    n.data = top = L.Input(shape=dict(dim=[1, 1, 8, 8]))
    for _ in range(60):
        top = L.Eltwise(L.Convolution(top, kernel_size=3, pad=1, num_output=1), top)
    n.out = top
    assert np.all(coord_map.coord_map_from_to(n.out, n.data)[1] == 1)
