"""Networks on a device: the same numbers as on the host, forward, backward and in training; blobs that follow when looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_close

import astride
import astride.examples
from astride.backends.webgpu.device import Device
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.net import Net
from astride.net.device import DeviceSide

LENET = Path(astride.examples.__file__).parent / "lenet"
MTCNN = Path(__file__).resolve().parents[3] / "shared" / "models" / "mtcnn"
CLOSE = 1e-4

HEAD = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 4 dim: 6 dim: 5 } } }
"""
LOSS = """
layer { name: "labels" type: "Input" top: "labels" input_param { shape { dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "labels" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "labels" top: "accuracy" }
"""
FILLED = 'weight_filler { type: "gaussian" std: 0.5 } bias_filler { type: "gaussian" std: 0.5 }'
BODIES = {
    "convolution": f'type: "Convolution" convolution_param {{ num_output: 6 kernel_size: 3 pad: 1 stride: 2 group: 2 {FILLED} }}',
    "deconvolution": f'type: "Deconvolution" convolution_param {{ num_output: 2 kernel_size: 4 stride: 2 {FILLED} }}',
    "pooling max": 'type: "Pooling" pooling_param { pool: MAX kernel_size: 3 stride: 2 }',
    "pooling average": 'type: "Pooling" pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }',
    "relu": 'type: "ReLU" relu_param { negative_slope: 0.25 }',
    "prelu": 'type: "PReLU"',
    "prelu shared": 'type: "PReLU" prelu_param { channel_shared: true }',
    "sigmoid": 'type: "Sigmoid"',
    "tanh": 'type: "TanH"',
    "elu": 'type: "ELU" elu_param { alpha: 0.5 }',
    "bnll": 'type: "BNLL"',
    "power": 'type: "Power" power_param { power: 2 scale: 0.5 shift: 1 }',
    "exp": 'type: "Exp"',
    "scale": 'type: "Scale" scale_param { bias_term: true filler { type: "gaussian" } bias_filler { type: "gaussian" } }',
    "bias": 'type: "Bias" bias_param { filler { type: "gaussian" std: 1 } }',
    "lrn": 'type: "LRN" lrn_param { local_size: 3 alpha: 0.5 }',
    "lrn within": 'type: "LRN" lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }',
    "dropout": 'type: "Dropout"',
    "softmax": 'type: "Softmax"',
    "flatten": 'type: "Flatten"',
    "reshape": 'type: "Reshape" reshape_param { shape { dim: 0 dim: 2 dim: -1 } }',
    "concat": 'type: "Concat" bottom: "data"',
    "concat along rows": 'type: "Concat" bottom: "data" concat_param { axis: 2 }',
    "slice": 'type: "Slice" top: "rest" top: "more" slice_param { slice_point: 1 slice_point: 3 }',
    "slice along rows": 'type: "Slice" top: "rest" slice_param { axis: 2 }',
    "eltwise sum": 'type: "Eltwise" bottom: "data" eltwise_param { operation: SUM coeff: 2 coeff: -1 }',
    "eltwise product": 'type: "Eltwise" bottom: "data" eltwise_param { operation: PROD }',
    "eltwise max": 'type: "Eltwise" bottom: "data" eltwise_param { operation: MAX }',
}


def net_of(body: str, phase: str = "TRAIN") -> Net:
    """A network of one layer under a loss."""
    text = HEAD + f'layer {{ name: "x" bottom: "data" top: "x" {body} }}\n' + LOSS
    return astride.load_caffe("force_backward: true\n" + text, phase=phase)


def twins(one: Net, other: Net, device: Device) -> tuple[Net, Net]:
    """The first on the host, the second with the same weights on the device."""
    other.copy_params({name: [p.data.copy() for p in params] for name, params in one.params.items()})
    for mine, its in zip(one.layers, other.layers, strict=True):
        its.key = mine.key
    return one, other.to(device)


def agree(here: Net, there: Net, inputs: dict[str, Any]) -> None:
    """Outputs, blobs, the inputs' gradients and the parameters'."""
    expected, found = here.forward(**inputs), there.forward(**inputs)
    for name, y in expected.items():
        assert_close(found[name], y, CLOSE, name, scale=1.0)
    for name in here.blobs:
        assert_close(there.blobs[name].data, here.blobs[name].data, CLOSE, name, scale=1.0)
    wanted, given = here.backward(), there.backward()
    for name, dx in wanted.items():
        assert_close(given[name], dx, CLOSE, f"gradient of {name}")
    for mine, its in zip(here.learnable, there.learnable, strict=True):
        assert_close(its.diff, mine.diff, CLOSE, "gradient of a parameter", scale=float(np.abs(mine.diff).max()) or 1.0)


@pytest.mark.parametrize("name", BODIES)
def test_a_layer(device: Device, name: str) -> None:
    here, there = twins(net_of(BODIES[name]), net_of(BODIES[name]), device)
    rng = np.random.default_rng(1)
    inputs = {"data": rng.standard_normal((2, 4, 6, 5)).astype("float32"), "labels": np.array([2, 0], np.float32)}
    agree(here, there, inputs)
    agree(here, there, inputs)  # parameters' gradients add up, dropout goes on


def lenet(phase: str = "TEST") -> Net:
    """LeNet with weights of a size that its gradients can be told apart."""
    net = astride.load_caffe(LENET / "lenet.prototxt", phase=phase)
    rng = np.random.default_rng(7)
    net.copy_params({name: [rng.standard_normal(p.shape) * 0.1 for p in params] for name, params in net.params.items()})
    return net


def test_lenet(device: Device) -> None:
    here, there = twins(lenet(), lenet(), device)
    x = np.random.default_rng(0).random((2, 1, 28, 28), dtype="float32")
    assert_close(there.forward(data=x)["prob"], here.forward(data=x)["prob"], CLOSE)
    g = np.random.default_rng(1).random((2, 10), dtype="float32")
    assert_close(there.backward(prob=g)["data"], here.backward(prob=g)["data"], CLOSE)
    for mine, its in zip(here.learnable, there.learnable, strict=True):
        assert_close(its.diff, mine.diff, CLOSE)


TRAINED = """
layer { name: "data" type: "Input" top: "data" top: "labels"
  input_param { shape { dim: 8 dim: 1 dim: 28 dim: 28 } shape { dim: 8 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param { num_output: 4 kernel_size: 5 %s } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1" inner_product_param { num_output: 16 %s } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param { num_output: 10 %s } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "labels" top: "loss" }
""" % ((FILLED.replace("0.5", "0.1"),) * 3)


def test_training(device: Device) -> None:
    """A LeNet in small: the host's solver, gradients from the device; the loss falls as it does on the host."""
    solvers = []
    for place in ("cpu", device):
        solver = astride.load_solver(
            f'net_param {{ {TRAINED} }} base_lr: 0.02 momentum: 0.9 lr_policy: "fixed" max_iter: 4 random_seed: 5'
        )
        solver.net.to(place)
        rng = np.random.default_rng(2)
        solver.net.blobs["data"].data[...] = rng.random((8, 1, 28, 28))
        solver.net.blobs["labels"].data[...] = rng.integers(0, 10, 8)
        losses = []
        for _ in range(4):
            solver.step(1)
            losses.append(solver.net.loss)
        solvers.append((solver, losses))
    (here, expected), (there, found) = solvers
    np.testing.assert_allclose(found, expected, rtol=CLOSE)
    assert found[-1] < found[0]
    for mine, its in zip(here.net.learnable, there.net.learnable, strict=True):
        assert_close(its.data, mine.data, CLOSE)


@pytest.mark.parametrize(("number", "shape"), [(1, (1, 3, 24, 18)), (2, (2, 3, 24, 24)), (3, (1, 3, 48, 48))])
def test_mtcnn(device: Device, number: int, shape: tuple[int, ...]) -> None:
    if not MTCNN.is_dir():
        pytest.skip("MTCNN's networks are not here")
    files = MTCNN / f"det{number}.prototxt", MTCNN / f"det{number}.caffemodel"
    here, there = astride.load_caffe(*files), astride.load_caffe(*files).to(device)
    x = np.random.default_rng(0).random(shape, dtype="float32") * 2 - 1
    expected, found = here.forward(data=x), there.forward(data=x)
    for name, y in expected.items():
        assert_close(found[name], y, CLOSE, name)
    seeds = {name: np.ones_like(y) for name, y in expected.items()}
    assert_close(there.backward(**seeds)["data"], here.backward(**seeds)["data"], CLOSE)


RELUS = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 3 bias_term: false } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
"""


def relus(device: Device) -> Net:
    net = astride.load_caffe(RELUS)
    net.params["ip"][0].data[...] = np.eye(3)
    return net.to(device)


def test_views_kept_from_before_stay_live(device: Device) -> None:
    net = relus(device)
    weights, result, data = net.params["ip"][0].data, net.blobs["ip"].data, net.blobs["data"].data
    data[...] = [[1, -2, 3], [4, 5, -6]]
    net.forward()
    np.testing.assert_array_equal(result, [[1, 0, 3], [4, 5, 0]])
    weights[...] = 2 * np.eye(3)
    net.forward()
    np.testing.assert_array_equal(result, [[2, 0, 6], [8, 10, 0]])
    data[0] = 1
    net.forward()
    np.testing.assert_array_equal(result, [[2, 2, 2], [8, 10, 0]])


def test_what_is_written_between_passes_counts(device: Device) -> None:
    net = relus(device)
    net.forward(data=np.ones((2, 3), np.float32))
    net.blobs["ip"].data[...] = 7
    np.testing.assert_array_equal(net.blobs["ip"].data, np.full((2, 3), 7))
    net.backward(ip=np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(net.params["ip"][0].diff, np.full((3, 3), 2))
    net.clear_param_diffs()
    net.backward(ip=np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(net.params["ip"][0].diff, np.full((3, 3), 2))


def test_nothing_is_brought_down_that_nobody_looks_at(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    net = relus(device)
    net.forward(data=np.ones((2, 3), np.float32))
    read: list[Any] = []
    before = Device.read
    monkeypatch.setattr(Device, "read", lambda self, tensor: read.append(tensor.shape) or before(self, tensor))
    net.run_forward()
    assert read == []
    assert net.blobs["ip"].data.sum() == 6
    assert read == [(6,)]


def test_another_size_and_back_to_the_host(device: Device) -> None:
    net = relus(device)
    x = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
    on_device = net.forward(data=x)["ip"]
    assert net.to("cpu") is net
    np.testing.assert_array_equal(net.blobs["ip"].data, on_device)
    np.testing.assert_array_equal(net.forward(data=x)["ip"], np.maximum(x, 0))
    np.testing.assert_array_equal(net.to(device).forward(data=x[:1])["ip"], np.maximum(x[:1], 0))


def test_gradients_need_a_forward_pass_where_the_network_is(device: Device) -> None:
    net = net_of(BODIES["relu"])
    inputs = {"data": np.ones((2, 4, 6, 5), np.float32), "labels": np.zeros(2, np.float32)}
    net.forward(**inputs)
    net.to(device)
    with pytest.raises(UnsupportedError, match="forward pass"):
        net.backward()
    net.forward(**inputs)
    net.to("cpu")
    with pytest.raises(UnsupportedError, match="forward pass"):
        net.backward()


def test_layers_without_a_kernel_are_named_before_anything_runs(device: Device) -> None:
    net = net_of('type: "MVN"')
    with pytest.raises(UnsupportedError, match=r'layer "x" \(MVN\)'):
        net.to(device)
    inputs = {"data": np.ones((2, 4, 6, 5), np.float32), "labels": np.zeros(2, np.float32)}
    assert np.isfinite(net.forward(**inputs)["loss"])


def test_parameters_beyond_a_binding_are_named(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astride.net.on_device.BINDING_MAX", 32)
    with pytest.raises(UnsupportedError, match="parameters of 36 bytes"):
        relus(device)


def test_nothing_is_kept_that_no_gradient_needs(device: Device) -> None:
    net = relus(device)
    net.forward(data=np.ones((2, 3), np.float32))
    assert isinstance(net._place, DeviceSide)
    assert not net._place.kept
    net.backward(ip=np.ones((2, 3), np.float32))
    assert {layer.name for layer in net._place.kept} == {"ip", "relu"}


def test_refusals(device: Device) -> None:
    with pytest.raises(ArgumentError, match="no such place"):
        relus(device).to("cuda")
    net = net_of(BODIES["relu"]).to(device)
    with pytest.raises(ArrayError, match="names no class"):
        net.forward(data=np.ones((2, 4, 6, 5), np.float32), labels=np.array([0, 3], np.float32))


def test_shared_parameters_are_one_on_the_device(device: Device) -> None:
    first, second = relus(device), relus(device)
    second.share_params(first)
    first.params["ip"][0].data[...] = 3 * np.eye(3)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(second.forward(data=x)["ip"], np.full((2, 3), 3))
    np.testing.assert_array_equal(first.forward(data=x)["ip"], np.full((2, 3), 3))


def test_saving_writes_what_the_device_has(device: Device, tmp_path: Path) -> None:
    net = relus(device)
    net.forward(data=np.ones((2, 3), np.float32))
    net.save(tmp_path / "net.caffemodel")
    again = astride.load_caffe(RELUS, tmp_path / "net.caffemodel")
    np.testing.assert_array_equal(again.params["ip"][0].data, np.eye(3))
