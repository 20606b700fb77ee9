"""Field reports of people who work in Python on Caffe networks: each with what its reporter should get from pycaffe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

from astride import pycaffe as caffe
from astride.errors import ArgumentError, NotFiniteError
from astride.proto import read_caffemodel
from astride.pycaffe.proto import caffe_pb2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def net(text: str, phase: int = caffe.TEST) -> caffe.Net:
    Path("net.prototxt").write_text(text)
    return caffe.Net("net.prototxt", phase)


def data(*shape: int, name: str = "data") -> str:
    dims = " ".join(f"dim: {size}" for size in shape)
    return f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {dims} }} }} }}'


def test_caf_03_the_second_network_takes_crops_of_any_size() -> None:
    """Deconvolution of ones, 2 x 2 in steps of 2, plus the picture itself: nothing is loaded again."""
    one = net(
        data(1, 1, 4, 4)
        + 'layer { name: "up" type: "Deconvolution" bottom: "data" top: "up" convolution_param { num_output: 1 kernel_size: 2'
        ' stride: 2 bias_term: false weight_filler { type: "constant" value: 1 } } }'
        'layer { name: "twice" type: "Eltwise" bottom: "up" bottom: "up" top: "twice" }'
    )
    for height, width in ((4, 4), (3, 7), (9, 2)):
        crop = np.arange(height * width, dtype=np.float32).reshape(1, 1, height, width)
        one.blobs["data"].reshape(*crop.shape)
        out = one.forward(data=crop)["twice"]
        assert (out == 2 * crop.repeat(2, 2).repeat(2, 3)).all()


def test_caf_26_fields_and_names_of_forks_are_known_here_too() -> None:
    shuffle = 'layer { name: "s" type: "ShuffleChannel" bottom: "data" top: "s" shuffle_channel_param { group: 2 } }'
    assert net(data(1, 6, 1, 1) + shuffle).forward(data=np.arange(6).reshape(1, 6, 1, 1))["s"].reshape(-1).tolist() == [
        0, 3, 1, 4, 2, 5
    ]  # fmt: skip
    depthwise = """layer { name: "d" type: "%s" bottom: "data" top: "d"
      convolution_param { num_output: 2 kernel_size: 1 %s bias_term: false weight_filler { value: 3 } } }"""
    x = np.arange(8.0).reshape(1, 2, 2, 2)
    for kind, group in (("ConvolutionDepthwise", ""), ("DepthwiseConvolution", "group: 2")):
        made = net(data(1, 2, 2, 2) + depthwise % (kind, group))
        assert (made.forward(data=x)["d"] == 3 * x).all()
        made.save("net.caffemodel")
        assert [layer.type for layer in read_caffemodel("net.caffemodel").message.layer] == ["Input", kind]


def test_caf_27_a_layer_of_ones_own() -> None:
    Path("doubling.py").write_text(
        "import caffe\n\nclass Double(caffe.Layer):\n"
        "    def reshape(self, bottom, top):\n        top[0].reshape(*bottom[0].shape)\n"
        "    def forward(self, bottom, top):\n        top[0].data[...] = int(self.param_str) * bottom[0].data\n"
        "    def backward(self, top, propagate_down, bottom):\n        bottom[0].diff[...] = int(self.param_str) * top[0].diff\n"
    )
    text = 'layer { name: "p" type: "Python" bottom: "data" top: "p"'
    text += ' python_param { module: "doubling" layer: "Double" param_str: "2" } }'
    try:
        made = net("force_backward: true " + data(1, 3) + text)
    finally:
        caffe.uninstall()
    assert made.forward(data=np.array([[1, 2, 3]]))["p"].tolist() == [[2, 4, 6]]
    assert made.backward(p=np.array([[1, 0, 5]]))["data"].tolist() == [[2, 0, 10]]


def test_caf_29_networks_of_every_age() -> None:
    """The same network in the three formats, and V1's types by number and by name in caffe_pb2."""
    sizes = "input_dim: 1 input_dim: 1 input_dim: 2 input_dim: 2"
    head = f'input: "data" {sizes} '
    v0 = (
        head
        + 'layers { bottom: "data" top: "ip" layer { name: "ip" type: "innerproduct" num_output: 2 weight_filler { value: 2 } } }'
    )
    fields = 'name: "ip" bottom: "data" top: "ip" inner_product_param { num_output: 2 weight_filler { value: 2 } }'
    texts = (v0, head + f"layers {{ type: INNER_PRODUCT {fields} }}", head + f'layer {{ type: "InnerProduct" {fields} }}')
    outs = [net(text).forward(data=np.arange(4.0).reshape(1, 1, 2, 2))["ip"].tolist() for text in texts]
    assert outs == [[[12, 12]]] * 3
    message = text_format.Parse(texts[1], caffe_pb2.NetParameter())
    assert message.layers[0].type == caffe_pb2.V1LayerParameter.INNER_PRODUCT == 14


def test_caf_32_a_mean_larger_than_the_input() -> None:
    """The age and gender networks of 2015: both shapes are said, and what to do."""
    transformer = caffe.io.Transformer({"data": (1, 3, 227, 227)})
    mean = np.arange(3 * 256 * 256, dtype=np.float32).reshape(3, 256, 256)
    with pytest.raises(ValueError, match=r"Mean shape incompatible") as caught:
        transformer.set_mean("data", mean)
    assert "(3, 256, 256)" in str(caught.value) and "(3, 227, 227)" in str(caught.value)
    transformer.set_mean("data", mean.mean((1, 2)))
    transformer.set_mean("data", mean[:, 14:241, 14:241])
    assert transformer.mean["data"][0, 0, 0] == 14 * 256 + 14


def test_caf_35_mean_files() -> None:
    """Four axes come out of an old file; a mean of three axes stays of three; one number a channel always fits."""
    old = caffe_pb2.BlobProto(num=1, channels=3, height=2, width=2, data=range(12))
    array = caffe.io.blobproto_to_array(old)
    assert array.shape == (1, 3, 2, 2)
    transformer = caffe.io.Transformer({"data": (1, 3, 2, 2)})
    with pytest.raises(ValueError, match="mean\\[0\\], the blob without its first axis"):
        transformer.set_mean("data", array)
    transformer.set_mean("data", array[0])
    transformer.set_mean("data", array[0].mean((1, 2)))
    assert tuple(caffe.io.array_to_blobproto(array[0]).shape.dim) == (3, 2, 2)


def test_caf_37_channels_that_do_not_fit_and_networks_without_inputs() -> None:
    transformer = caffe.io.Transformer({"data": (1, 1, 28, 28)})
    with pytest.raises(ValueError, match="Mean channels incompatible") as caught:
        transformer.set_mean("data", np.array([104.0, 117.0, 123.0]))
    assert "3 == 1" in str(caught.value)
    memory = 'layer { name: "d" type: "MemoryData" top: "d" top: "l"'
    memory += " memory_data_param { batch_size: 1 channels: 1 height: 2 width: 2 } }"
    trained = net(memory + 'layer { name: "s" type: "Silence" bottom: "d" bottom: "l" }')
    assert trained.inputs == []
    trained.save("net.caffemodel")
    with pytest.raises(ArgumentError, match="the network has no input") as caught:
        caffe.Classifier("net.prototxt", "net.caffemodel")
    assert "Input" in str(caught.value)


def test_caf_42_no_generated_code_and_no_clash() -> None:
    """Another caffe.proto in protobuf's own pool, as old converters bring it, disturbs nothing."""
    code = (
        "from google.protobuf import descriptor_pb2, descriptor_pool\n"
        "f = descriptor_pb2.FileDescriptorProto(name='caffe.proto', package='caffe', syntax='proto2')\n"
        "f.message_type.add(name='NetParameter').field.add(name='other', number=1, type=5, label=1)\n"
        "descriptor_pool.Default().AddSerializedFile(f.SerializeToString())\n"
        "from astride.pycaffe.proto import caffe_pb2\n"
        "print(caffe_pb2.NetParameter(name='x').name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "x\n"


@pytest.mark.parametrize("stopped", [False, True])
def test_caf_45_a_frozen_deconvolution_passes_gradients_on(stopped: bool) -> None:
    """lr_mult 0 freezes weights and nothing else; propagate_down: false is what stops a gradient."""
    down = "propagate_down: false" if stopped else ""
    made = net(
        data(1, 1, 4, 4) + data(1, 2, 8, 8, name="truth") + 'layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"'
        " convolution_param { num_output: 2 kernel_size: 1 weight_filler { value: 1 } } }"
        f'layer {{ name: "up" type: "Deconvolution" bottom: "conv" top: "up" {down} param {{ lr_mult: 0 }}'
        " convolution_param { num_output: 2 group: 2 kernel_size: 2 stride: 2 bias_term: false weight_filler { value: 1 } } }"
        'layer { name: "loss" type: "EuclideanLoss" bottom: "up" bottom: "truth" top: "loss" }',
        caffe.TRAIN,
    )
    made.forward(data=np.ones((1, 1, 4, 4)), truth=np.zeros((1, 2, 8, 8)))
    made.backward()
    assert bool(made.params["conv"][0].diff.any()) is not stopped
    assert not made.params["up"][0].diff.any()


def test_caf_47_the_first_nan_has_a_name() -> None:
    text = (
        data(1, 1) + data(1, 1, name="truth") + 'layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"'
        " inner_product_param { num_output: 1 weight_filler { value: 1 } } }"
        'layer { name: "shady" type: "Log" bottom: "ip" top: "shady" }'
        'layer { name: "loss" type: "EuclideanLoss" bottom: "shady" bottom: "truth" top: "loss" }'
    )
    Path("net.prototxt").write_text(text)
    Path("solver.prototxt").write_text('train_net: "net.prototxt" base_lr: 0 lr_policy: "fixed"')
    solver = caffe.SGDSolver("solver.prototxt")
    solver.net.blobs["data"].data[...] = -1
    with pytest.raises(NotFiniteError, match="at iteration 0") as caught:
        solver.step(1)
    assert "blob shady, made by layer shady (Log)" in str(caught.value)


def test_caf_48_stochastic_pooling() -> None:
    pooled = (
        'layer { name: "p" type: "Pooling" bottom: "data" top: "p" pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 } }'
    )
    x = np.array([1.0, 2, 3, 4]).reshape(1, 1, 2, 2)
    test = net(data(1, 1, 2, 2) + pooled)
    assert test.forward(data=x)["p"].reshape(-1).tolist() == [3] and test.forward(data=0 * x)["p"] == 0
    caffe.set_random_seed(0)
    train = net(data(4000, 1, 2, 2) + pooled, caffe.TRAIN)
    drawn = train.forward(data=np.broadcast_to(x, (4000, 1, 2, 2)))["p"].reshape(-1)
    np.testing.assert_allclose(np.bincount(drawn.astype(int), minlength=5)[1:] / 4000, [0.1, 0.2, 0.3, 0.4], atol=0.03)


def test_caf_53_one_schema_for_all() -> None:
    """What a text may say, caffe_pb2 and net_spec know: there is one schema, and no second build on the path."""
    n = caffe.NetSpec()
    n.data = caffe.layers.Input(shape=dict(dim=[1, 2, 3]))
    n.swapped = caffe.layers.Permute(n.data, order=[0, 2, 1])
    proto = n.to_proto()
    assert text_format.Parse(str(proto), caffe_pb2.NetParameter()) == proto
    assert net(str(proto)).forward(data=np.arange(6).reshape(1, 2, 3))["swapped"].tolist() == [[[0, 3], [1, 4], [2, 5]]]
    with pytest.raises(AttributeError, match="PermuteParameter has no field orders"):
        caffe.to_proto(caffe.layers.Permute(n.data, orders=[0]))
