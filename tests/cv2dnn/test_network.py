"""Net and Layer: everything of `cv2.dnn` that scripts call, on small networks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import astride
from astride import ArgumentError, ArrayError, ModelFileError, PrototxtError, UnsupportedError, cv2dnn

from .files import random_input, written
from .generated import NETS, data, ip, layer

TEXT = (
    data(1, 3, 8, 8)
    + layer("conv1", "Convolution", "data", "c", "convolution_param { num_output: 4 kernel_size: 3 }")
    + layer("relu1", "ReLU", "c", "c")
    + layer("parts", "Slice", "c", "one rest", "slice_param { axis: 1 slice_point: 1 }")
    + layer("prob", "Softmax", "rest", "prob")
    + layer("twice", "Power", "one", "two", "power_param { scale: 2 }")
)


@pytest.fixture
def net(tmp_path: Path) -> cv2dnn.Net:
    made = astride.load_caffe(TEXT)
    for parameter in made.params["conv1"]:
        parameter.data[...] = np.random.default_rng(1).normal(size=parameter.shape)
    made.save(tmp_path / "net.caffemodel")
    return cv2dnn.readNetFromCaffe(TEXT, str(tmp_path / "net.caffemodel"))


@pytest.mark.parametrize("name", NETS)
def test_numbers_are_the_networks_own(name: str, tmp_path: Path) -> None:
    """What runs is compiled, each layer apart; the numbers are those of Caffe's rules."""
    paths = written(NETS[name], tmp_path)
    x = random_input(NETS[name])
    plain = astride.load_caffe(*paths)
    expected = plain.forward(data=x)
    makers = {top: node.name for node in plain.nodes for top in node.tops}
    ours = cv2dnn.readNetFromCaffe(*paths)
    ours.setInput(x)
    assert {makers[top] for top in expected} == set(ours.getUnconnectedOutLayersNames())
    for top, values in expected.items():
        found = ours.forward([], makers[top])
        index = ours.getLayer(makers[top]).outputNameToIndex(top)
        np.testing.assert_allclose(found[index], values, rtol=1e-5, atol=1e-5)


def test_layers_have_numbers_and_names(net: cv2dnn.Net) -> None:
    assert net.getLayerNames() == ("conv1", "relu1", "parts", "prob", "twice")
    assert [net.getLayer(i).name for i in range(6)] == ["", "conv1", "relu1", "parts", "prob", "twice"]
    assert [net.getLayerId(name) for name in ("_input", "conv1", "prob", "nothing")] == [0, 1, 4, -1]
    assert net.getLayer("parts").outputNameToIndex("rest") == 1 and net.getLayer("parts").outputNameToIndex("x") == -1
    assert net.getLayer(np.int32(1)).type == "Convolution" and net.getLayer(layerName="prob").type == "Softmax"
    assert net.getUnconnectedOutLayers().tolist() == [4, 5] and net.getUnconnectedOutLayers().dtype == np.int32
    names = net.getLayerNames()
    assert [names[i - 1] for i in net.getUnconnectedOutLayers()] == list(net.getUnconnectedOutLayersNames()) == ["prob", "twice"]
    assert net.getLayerTypes() == ("Convolution", "Power", "ReLU", "Slice", "Softmax", "__NetInputLayer__")
    assert net.getLayersCount("ReLU") == 1 and not net.empty()


def test_every_form_of_forward(net: cv2dnn.Net) -> None:
    x = np.random.default_rng(2).normal(size=(2, 3, 8, 8)).astype(np.float32)
    net.setInput(x)
    last = net.forward()
    assert last.shape == (2, 1, 6, 6) and last.dtype == np.float32
    np.testing.assert_array_equal(net.forward("twice"), last)
    np.testing.assert_array_equal(net.forward(outputName="two"), last)
    before, after = net.forward(["conv1", "relu1"])
    assert before.min() < 0
    np.testing.assert_array_equal(np.maximum(before, 0), after)
    one, rest = net.forward([], "parts")
    np.testing.assert_array_equal(np.concatenate([one, rest], axis=1), after)
    np.testing.assert_array_equal(net.forward("parts"), one)
    (both, (prob,)) = net.forwardAndRetrieve(["parts", "prob"])
    assert len(both) == 2 and prob.shape == (2, 3, 6, 6)
    (named,) = net.forward(outBlobNames=("prob",))
    np.testing.assert_array_equal(named, prob)
    assert not np.shares_memory(net.forward(), net.forward())


def test_inputs_are_scaled_and_of_any_size(net: cv2dnn.Net) -> None:
    x = np.random.default_rng(3).integers(0, 256, (1, 3, 8, 8)).astype(np.uint8)
    net.setInput(x, "data", 0.5, (1, 2, 3))
    scaled = net.forward("conv1")
    net.setInput((x - np.array([1.0, 2, 3]).reshape(3, 1, 1)) * 0.5)
    np.testing.assert_array_equal(net.forward("conv1"), scaled)
    np.testing.assert_array_equal(net.forward("conv1"), scaled)
    for shape in ((3, 3, 8, 8), (1, 3, 20, 11)):
        net.setInput(np.zeros(shape, np.float32))
        assert net.forward("conv1").shape == (shape[0], 4, shape[2] - 2, shape[3] - 2)


def test_two_inputs_with_names_of_their_own() -> None:
    two = data(1, 2) + layer("more", "Input", "", "more", "input_param { shape { dim: 1 dim: 2 } }")
    net = cv2dnn.readNetFromCaffe(two + layer("sum", "Eltwise", "data more", "sum"))
    net.setInput(np.array([[1, 2]]))
    with pytest.raises(ArgumentError, match="more"):
        net.forward()
    net.setInput(np.array([[10, 20]]), "more")
    assert net.forward().tolist() == [[11, 22]]
    net.setInputsNames(["left", "right"])
    net.setInput(np.array([[0, 0]]), "left")
    assert net.forward().tolist() == [[10, 20]]
    with pytest.raises(ArgumentError, match="left, right"):
        net.setInput(np.zeros((1, 2)), "data")


def test_weights_are_read_and_set(net: cv2dnn.Net) -> None:
    """As the colourisation example does, whose last layers get their weights from the script."""
    weights, bias = net.getLayer("conv1").blobs
    assert weights.shape == (4, 3, 3, 3) and bias.shape == (4, 1)
    np.testing.assert_array_equal(net.getParam("conv1", 1), bias)
    net.setInput(np.ones((1, 3, 8, 8), np.float32))
    first = net.forward("conv1")
    net.getLayer(net.getLayerId("conv1")).blobs = [weights * 2]
    np.testing.assert_allclose(net.forward("conv1"), 2 * (first - bias.reshape(-1, 1, 1)), rtol=1e-5, atol=1e-5)
    net.setParam("conv1", 1, np.ones(4))
    np.testing.assert_allclose(net.forward("conv1"), 2 * (first - bias.reshape(-1, 1, 1)) + 1, rtol=1e-5, atol=1e-5)
    weights[...] = 0  # a copy
    assert net.getLayer("conv1").blobs[0].any()
    for wrong in ([], [np.zeros(5)], [weights, bias, bias]):
        with pytest.raises(ArrayError, match="conv1"):
            net.getLayer("conv1").blobs = wrong
    with pytest.raises(ArgumentError, match="numParam"):
        net.getParam("conv1", 2)


def test_shared_weights_stay_shared() -> None:
    shared = (
        data(1, 2)
        + layer("a", "InnerProduct", "data", "a", 'param { name: "w" } param { name: "b" } inner_product_param { num_output: 2 }')
        + layer("b", "InnerProduct", "a", "b", 'param { name: "w" } param { name: "b" } inner_product_param { num_output: 2 }')
    )
    net = cv2dnn.readNetFromCaffe(shared)
    net.getLayer("b").blobs = [np.array([[0, 2], [3, 0]])]
    net.setParam("a", 1, np.zeros(2))
    net.setInput(np.array([[1, 10]]))
    net._missing.clear()
    assert net.forward("a").tolist() == [[20, 3]] and net.forward().tolist() == [[6, 60]]
    assert net.getLayer("a").blobs[1].shape == (1, 2)


def test_missing_weights_are_named_when_they_are_needed() -> None:
    bare = cv2dnn.readNetFromCaffe(TEXT)
    bare.setInput(np.zeros((1, 3, 8, 8)))
    with pytest.raises(ModelFileError, match="conv1"):
        bare.forward()
    bare.getLayer("conv1").blobs = [np.ones((4, 3, 3, 3)), np.zeros(4)]
    assert bare.forward().shape == (1, 1, 6, 6)


def test_what_its_text_fills_needs_no_weights() -> None:
    window = "num_output: 2 group: 2 kernel_size: 4 stride: 2 pad: 1 bias_term: false weight_filler { type: 'bilinear' }"
    up = layer("up", "Deconvolution", "data", "up", f"convolution_param {{ {window} }}")
    net = cv2dnn.readNetFromCaffe(data(1, 2, 4, 4) + up)
    net.setInput(np.ones((1, 2, 4, 4)))
    assert (net.forward()[0, :, 2:-2, 2:-2] == 1).all()


def test_files_as_paths_bytes_and_arrays(tmp_path: Path) -> None:
    prototxt, weights = written(NETS["softmax"], tmp_path)
    text, model = Path(prototxt).read_bytes(), Path(weights).read_bytes()
    x = random_input(NETS["softmax"])
    found = []
    for one in (
        cv2dnn.readNetFromCaffe(prototxt, weights),
        cv2dnn.readNetFromCaffe(prototxt=prototxt, caffeModel=weights),
        cv2dnn.readNetFromCaffe(Path(prototxt), Path(weights)),
        cv2dnn.readNetFromCaffe(text, model),
        cv2dnn.readNetFromCaffe(bytearray(text), bytearray(model)),
        cv2dnn.readNetFromCaffe(np.frombuffer(text, np.uint8), np.frombuffer(model, np.uint8)),
        cv2dnn.readNetFromCaffe(bufferProto=text, bufferModel=model),
        cv2dnn.readNetFromCaffe(io.BytesIO(text), io.BytesIO(model)),
        cv2dnn.readNet(weights, prototxt),
        cv2dnn.readNet(prototxt, weights, "Caffe"),
    ):
        one.setInput(x)
        found.append(one.forward())
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_what_it_costs(net: cv2dnn.Net) -> None:
    shape = (2, 3, 8, 8)
    outputs = 2 * 4 * 6 * 6
    assert net.getFLOPS("conv1", shape) == net.getFLOPS(1, [shape]) == outputs * (2 * 27 + 1)
    assert net.getFLOPS(shape) == outputs * (2 * 27 + 1) + outputs + 4 * outputs * 3 // 4 + 2 * outputs // 4
    assert net.getMemoryConsumption(1, shape) == (4 * (4 * 27 + 4), 4 * outputs)
    weights, blobs = net.getMemoryConsumption(shape)
    assert weights == 4 * 112 and blobs == 4 * (2 * 3 * 64 + 3 * outputs + outputs * 3 // 4 + outputs // 4)
    numbers, ins, outs = net.getLayersShapes(shape)
    assert numbers.tolist() == list(range(6))
    assert ins[1][0].tolist() == [2, 3, 8, 8] and [s.tolist() for s in outs[3]] == [[2, 1, 6, 6], [2, 3, 6, 6]]
    with pytest.raises(ArgumentError, match="each input has one shape"):
        net.getFLOPS([shape, shape])


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("deconvolution, depthwise", 2 * (2 * 4 * 5 * 6) * 16 + 2 * 4 * 10 * 12),
        ("convolution, depthwise", 4 * 9 * 8 * (2 * 9 + 1)),
        ("inner product", 2 * 7 * (2 * 90 + 1)),
        ("max pooling", 2 * 3 * 4 * 4 * 9),
        ("concat", 2 * 3 * 5 * 6),
    ],
)
def test_operations_by_hand(name: str, flops: int, tmp_path: Path) -> None:
    net = cv2dnn.readNetFromCaffe(*written(NETS[name], tmp_path))
    shape = random_input(NETS[name]).shape
    assert net.getFLOPS(shape) == flops


def test_time_of_each_layer(net: cv2dnn.Net) -> None:
    net.setInput(np.zeros((1, 3, 8, 8)))
    assert net.getPerfProfile()[0] == 0
    net.forward("relu1")
    total, layers = net.getPerfProfile()
    assert isinstance(total, int) and layers.shape == (5,)
    assert layers[0] > 0 and not layers[2:].any() and layers.sum() <= total


def test_the_graph_as_text(net: cv2dnn.Net, tmp_path: Path) -> None:
    text = net.dump()
    assert text.startswith("digraph") and '"conv1" -> "relu1"' in text and "1 x 4 x 6 x 6" in text
    net.dumpToFile(tmp_path / "net.dot")
    assert (tmp_path / "net.dot").read_text() == text


def test_where_to_run_is_taken_and_without_effect(net: cv2dnn.Net) -> None:
    net.setInput(np.ones((1, 3, 8, 8)))
    before = net.forward()
    net.setPreferableBackend(cv2dnn.DNN_BACKEND_CUDA)
    net.setPreferableTarget(cv2dnn.DNN_TARGET_CUDA_FP16)
    net.enableFusion(False)
    net.enableWinograd(False)
    np.testing.assert_array_equal(net.forward(), before)
    with pytest.raises(ArgumentError, match="DNN_"):
        net.setPreferableTarget("cpu")
    assert cv2dnn.getAvailableTargets(cv2dnn.DNN_BACKEND_OPENCV) == [cv2dnn.DNN_TARGET_CPU]
    assert cv2dnn.getAvailableTargets(cv2dnn.DNN_BACKEND_CUDA) == []
    net.setInputShape("data", (1, 3, 30, 30))
    net.setInput(np.ones((1, 3, 8, 8)))
    np.testing.assert_array_equal(net.forward(), before)


def test_an_empty_network() -> None:
    net = cv2dnn.Net()
    assert net.empty() and net.getLayerNames() == ()
    for call in (net.forward, net.dump, lambda: net.setInput(np.zeros(1)), lambda: net.getLayer(1)):
        with pytest.raises(ArgumentError, match="readNetFromCaffe"):
            call()


def test_mistakes_are_named(net: cv2dnn.Net) -> None:
    net.setInput(np.zeros((1, 3, 8, 8)))
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: net.forward("relu"), ArgumentError, "relu1"),
        (lambda: net.forward(["prob", "nothing"]), ArgumentError, "nothing"),
        (lambda: net.getLayer(6), ArgumentError, "from 1 to 5"),
        (lambda: net.getLayer(-1), ArgumentError, "from 1 to 5"),
        (lambda: net.setInput(np.zeros((1, 3, 8, 8)), "date"), ArgumentError, "data"),
        (lambda: net.setInput("image.jpg"), ArrayError, "real numbers"),
        (lambda: net.setInput(np.zeros((1, 3, 8, 8)), "", 1.0, (1, 2, 3, 4)), ArrayError, "more channels"),
        (lambda: net.setInputsNames(["a", "b"]), ArgumentError, "1 names"),
        (lambda: net.forwardAsync(), UnsupportedError, "ThreadPoolExecutor"),
        (lambda: cv2dnn.readNetFromCaffe("layer {"), PrototxtError, "1:7"),
        (lambda: cv2dnn.readNetFromCaffe("nosuch.prototxt"), ModelFileError, "nosuch"),
        (lambda: cv2dnn.readNet("net.onnx"), UnsupportedError, "onnxruntime"),
        (lambda: cv2dnn.readNet("net.bin", "", "tensorflow"), UnsupportedError, "Caffe"),
    ]
    for call, error, said in calls:
        with pytest.raises(error, match=said):
            call()
    net.setInput(np.zeros((1, 5, 8, 8)))
    with pytest.raises(ArgumentError, match='layer "conv1"'):
        net.forward()


def test_weights_are_not_copied_for_each_set_of_outputs(tmp_path: Path) -> None:
    net = cv2dnn.readNetFromCaffe(*written(data(1, 3, 8, 8) + ip("a", "data", 4) + ip("b", "a", 3), tmp_path))
    net.setInput(np.ones((1, 3, 8, 8)))
    net.forward("a")
    net.forward("b")
    first, second = (program.steps[0].node.layer.params[0].data for program in net._programs.values())
    assert np.shares_memory(first, second)


def test_no_opencv_is_needed() -> None:
    import subprocess
    import sys

    code = "import sys; sys.modules['cv2'] = None; from astride import cv2dnn; cv2dnn.blobFromImage; print(cv2dnn.Net().empty())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
