"""Layers written in Python, found by import as Caffe finds them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from astride import pycaffe as caffe
from astride.errors import ArgumentError

from .texts import written

LAYERS = """
import caffe
import numpy as np

class Times(caffe.Layer):
    def setup(self, bottom, top):
        if len(bottom) != 1:
            raise Exception("one bottom, please")
        self.factor = float(self.param_str)
        self.calls = []

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        self.calls.append(self.phase)
        top[0].data[...] = self.factor * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        if propagate_down[0]:
            bottom[0].diff[...] = self.factor * top[0].diff

class Handed(caffe.Layer):
    def __init__(self, p_object, *args, **kwargs):
        super().__init__(p_object, *args, **kwargs)
        self.message = p_object

class Alone(caffe.Layer):
    def __init__(self):
        self.begun = True

class Learned(caffe.Layer):
    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[...] = 2

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.blobs[0].data * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[...] += (top[0].diff * bottom[0].data).sum()
        bottom[0].diff[...] = self.blobs[0].data * top[0].diff

class Batches(caffe.Layer):
    # Reshapes its tops when it runs, as the data layers of detectors do.

    def setup(self, bottom, top):
        assert self.param_str_ == self.param_str
        top[0].reshape(1, 3)

    def set_samples(self, samples):
        self.samples = iter(samples)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        sample = next(self.samples)
        top[0].reshape(*sample.shape)
        top[0].data[...] = sample.astype(np.float32, copy=False)

    def backward(self, top, propagate_down, bottom):
        pass

class NotOne:
    pass

number = 3
"""

NET = """
force_backward: true
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 } } }
layer { name: "mine" type: "Python" bottom: "data" top: "out"
  python_param { module: "my_layers" layer: "CLASS" param_str: "2.5" } }
"""


def network(kind: str, text: str = NET) -> caffe.Net:
    Path("my_layers.py").write_text(LAYERS)
    sys.modules.pop("my_layers", None)
    return caffe.Net(written("net.prototxt", text.replace("CLASS", kind)), caffe.TEST)


def test_a_layer_runs_forward_and_backward(installed: Path) -> None:
    net = network("Times")
    assert net.forward(data=np.array([[1, 2, 4]]))["out"].tolist() == [[2.5, 5, 10]]
    assert net.backward(out=np.array([[1, 0, 2]]))["data"].tolist() == [[2.5, 0, 5]]


def test_the_object_itself_is_among_the_layers(installed: Path) -> None:
    """Trainers hand data to their input layer this way: solver.net.layers[0].set_roidb(...)."""
    net = network("Times")
    layer = net.layers[1]
    assert layer is net.layer_dict["mine"] and layer.factor == 2.5 and layer.type == "Python"
    net.forward(data=np.ones((1, 3)))
    assert layer.calls == [caffe.TEST]
    layer.factor = 4
    assert net.forward()["out"].tolist() == [[4, 4, 4]]


def test_parameters_of_a_python_layer(installed: Path) -> None:
    net = network("Learned")
    assert net.params["mine"][0].data.tolist() == [2]
    net.params["mine"][0].data[...] = 3
    assert net.forward(data=np.array([[1, 2, 3]]))["out"].tolist() == [[3, 6, 9]]
    net.backward(out=np.ones((1, 3)))
    assert net.params["mine"][0].diff.tolist() == [6]
    net.save("net.caffemodel")
    assert caffe.Net("net.prototxt", "net.caffemodel", caffe.TEST).params["mine"][0].data.tolist() == [3]


def test_import_caffe_in_a_layers_module_needs_no_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "caffe" not in sys.modules
    try:
        assert network("Times").forward(data=np.ones((1, 3)))["out"].tolist() == [[2.5, 2.5, 2.5]]
        assert sys.modules["caffe"] is caffe
    finally:
        caffe.uninstall()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Nothing", "the module has no such class"),
        ("NotOne", "this is no class of a Python layer"),
        ("number", "this is no class of a Python layer"),
        ("np", "this is no class of a Python layer"),
    ],
)
def test_what_is_no_layer_is_not_run(installed: Path, kind: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        network(kind)
    assert "mine" in str(caught.value)


@pytest.mark.parametrize("module", ["nowhere_to_be_found", "", "my_layers.deeper", ".my_layers", "../my_layers", "os;x"])
def test_a_module_that_cannot_be_imported(installed: Path, module: str) -> None:
    with pytest.raises(ArgumentError, match="cannot be imported"):
        network("Times", NET.replace("my_layers", module))


def test_errors_of_the_layer_come_out_as_they_are(installed: Path) -> None:
    with pytest.raises(ValueError, match="could not convert") as caught:
        network("Times", NET.replace("2.5", "two"))
    assert 'layer "mine"' in "".join(caught.value.__notes__)
    with pytest.raises(RuntimeError, match="this layer has no forward"):
        network("Handed").forward(data=np.zeros((1, 3)))


def test_constructors_with_and_without_the_layers_message(installed: Path) -> None:
    assert network("Handed").layers[1].message.python_param.layer == "Handed"
    assert network("Alone").layers[1].begun


def test_a_data_layer_that_reshapes_as_it_runs(installed: Path) -> None:
    text = """
    layer { name: "input" type: "Python" top: "data" python_param { module: "my_layers" layer: "Batches" param_str: "x" } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
      inner_product_param { num_output: 1 weight_filler { value: 1 } } }
    layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 }
    """
    Path("my_layers.py").write_text(LAYERS)
    written("net.prototxt", text)
    solver = caffe.SGDSolver(written("solver.prototxt", 'train_net: "net.prototxt" base_lr: 1 lr_policy: "fixed"'))
    solver.net.layers[0].set_samples([np.ones((2, 3)), np.array([[1.0, 0, 0]]), np.ones((4, 3))])
    solver.step(1)
    assert solver.net.blobs["ip"].data.tolist() == [[3], [3]]
    assert solver.net.params["ip"][0].data.tolist() == [[-1, -1, -1]]
    solver.step(1)
    assert solver.net.blobs["ip"].data.tolist() == [[-1 - 2]]
    assert solver.net.forward()["loss"] == 4 * (-2 - 1 - 1 - 3)


def test_training_through_a_python_layer(installed: Path) -> None:
    """Loss 0.5 * (w * 1 - 6)^2 by a layer of one's own; gradient descent finds w = 6."""
    text = """
    layer { name: "data" type: "Input" top: "data" top: "label" input_param { shape { dim: 1 dim: 1 } } }
    layer { name: "mine" type: "Python" bottom: "data" top: "out" python_param { module: "my_layers" layer: "Learned" } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "out" bottom: "label" top: "loss" }
    """
    Path("my_layers.py").write_text(LAYERS)
    written("net.prototxt", text)
    solver = caffe.SGDSolver(written("solver.prototxt", 'net: "net.prototxt" base_lr: 0.5 lr_policy: "fixed"'))
    solver.net.blobs["data"].data[...], solver.net.blobs["label"].data[...] = 1, 6
    solver.step(20)
    assert solver.net.params["mine"][0].data[0] == pytest.approx(6, abs=1e-4)
