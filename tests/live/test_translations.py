"""Translated lines run as they stand in the framework they are written for: the numbers are the source's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import astride
from astride.explain import Translation, translate
from astride.explain.spelling import spelling
from astride.explain.steps import Steps, computed

pytestmark = pytest.mark.live

CALLS = [
    ("caffe", "L.Pooling(x, pool=P.Pooling.MAX, kernel_size=3, stride=2)"),
    ("caffe", "L.Pooling(x, pool=P.Pooling.AVE, kernel_size=3, stride=2, pad=1)"),
    ("caffe", "L.Deconvolution(x, convolution_param=dict(num_output=4, kernel_size=4, stride=2, pad=1))"),
    ("pytorch", "MaxPool2d(3, 2, 1)"),
    ("pytorch", "MaxPool2d((3, 2), (2, 1), ceil_mode=True)"),
    ("pytorch", "AvgPool2d(3, 2, 1, ceil_mode=True)"),
    ("pytorch", "AvgPool2d(3, 2, 1, count_include_pad=False)"),
    ("pytorch", "AvgPool2d(2, divisor_override=3)"),
    ("pytorch", "Conv2d(4, 6, 3, 2, 1, groups=2)"),
    ("pytorch", "Conv2d(4, 6, 3, padding=1, padding_mode='reflect')"),
    ("pytorch", "ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)"),
    ("tensorflow", "tf.nn.max_pool2d(x, 3, 2, 'SAME')"),
    ("tensorflow", "tf.nn.avg_pool2d(x, 3, 2, 'SAME')"),
    ("tensorflow", "tf.nn.conv2d(x, (3, 3, 4, 6), 2, 'SAME')"),
    ("keras", "Conv2DTranspose(6, 3, strides=2, padding='same')"),
    ("jax", "lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), 'SAME_LOWER')"),
    ("jax", "lax.reduce_window(x, 0., lax.add, (1, 1, 3, 3), (1, 1, 2, 2), 'SAME')"),
    ("jax", "lax.conv_transpose(x, (4, 4, 4, 6), (2, 2), 'SAME')"),
    ("onnx", "AveragePool(kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1], count_include_pad=1)"),
    ("onnx", "ConvTranspose(X=x, W=(4, 6, 3, 3), strides=[2, 2], auto_pad='SAME_LOWER')"),
    ("mxnet", "mx.nd.Pooling(x, kernel=(3, 3), stride=(2, 2), pooling_convention='full', pool_type='avg')"),
    ("chainer", "F.max_pooling_2d(x, 3, 2, 1)"),
    ("mlx", "nn.AvgPool2d(3, 2, 1)"),
]
SIZES = (7, 10)


def torch_names() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    torch = pytest.importorskip("torch")
    return {"F": torch.nn.functional, "nn": torch.nn, "torch": torch}, torch.tensor


def tensorflow_names() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    tf = pytest.importorskip("tensorflow")
    return {"tf": tf}, tf.constant


def keras_names() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    keras = pytest.importorskip("keras")
    return {"keras": keras}, keras.ops.convert_to_tensor


def jax_names() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    jax = pytest.importorskip("jax")
    names: dict[str, Any] = {"jnp": jax.numpy, "lax": jax.lax}
    try:
        import flax.linen

        names["nn"] = flax.linen
    except ImportError:
        names["nn"] = None
    return names, jax.numpy.asarray


def mlx_names() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    mx = pytest.importorskip("mlx.core")
    nn = pytest.importorskip("mlx.nn")
    mx.set_default_device(mx.cpu)
    return {"mx": mx, "nn": nn}, mx.array


def chainer_names() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    chainer = pytest.importorskip("chainer")
    return {"F": chainer.functions}, chainer.Variable


class Node:
    """One node of ONNX as a function of arrays, computed by ONNX Runtime."""

    def __init__(self, op: str) -> None:
        self.op = op

    def __call__(self, *inputs: Any, **attributes: Any) -> np.ndarray:
        import onnxruntime

        import onnx
        from onnx import helper

        arrays = [np.asarray(i, np.int64 if isinstance(i, list) else np.float32) for i in inputs if i is not None]
        names = [f"i{k}" for k in range(len(arrays))]
        kinds = [onnx.helper.np_dtype_to_tensor_dtype(a.dtype) for a in arrays]
        given = [helper.make_tensor_value_info(n, k, a.shape) for n, k, a in zip(names, kinds, arrays)]
        y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
        graph = helper.make_graph([helper.make_node(self.op, names, ["y"], **attributes)], "one", given, [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        (result,) = session.run(None, dict(zip(names, arrays)))
        return np.asarray(result)


def onnx_names() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    ops = ("MaxPool", "AveragePool", "LpPool", "Conv", "ConvTranspose", "Pad", "Slice", "Mul")
    return {op: Node(op) for op in ops}, np.asarray


def astride_names() -> tuple[dict[str, Any], Callable[[Any], Any]]:
    return {"astride": astride}, np.asarray


TARGETS = {
    "pytorch": torch_names,
    "tensorflow": tensorflow_names,
    "keras": keras_names,
    "jax": jax_names,
    "mlx": mlx_names,
    "chainer": chainer_names,
    "onnx": onnx_names,
    "onnxruntime": onnx_names,
    "explicit": astride_names,
}


def run(found: Translation, x: np.ndarray, w: np.ndarray | None, target: str) -> np.ndarray:
    """The lines, those of the weights on NumPy arrays, the others on the framework's."""
    names, tensor = TARGETS[target]()
    last = "# x and y have their channels last" in found.lines
    first = "# x and y have their channels first" in found.lines
    assert found.steps is not None
    place = spelling(target).layout(found.operation.op, found.steps.arguments)
    assert not (last and place == "channels_first") and not (first and place == "channels_last")
    if place == "channels_last":
        x = np.moveaxis(x, 1, -1)
    code = [line for line in found.lines if not line.startswith("#")]
    if names.get("nn", True) is None and any("nn.avg_pool" in line for line in code):
        pytest.skip("flax is not installed")
    scope: dict[str, Any] = {"np": np, "x": tensor(x), "w": w, "b": None, "N": 1, "C": found.operation.out_channels or 6, **names}
    for line in [line for line in code if line.startswith("w = ")]:
        exec(line, scope)
    if w is not None:
        scope["w"] = tensor(np.ascontiguousarray(scope["w"]))
    for line in [line for line in code if not line.startswith("w = ")]:
        exec(line, scope)
    y = np.asarray(scope["y"].array if target == "chainer" else scope["y"])
    return np.moveaxis(y, -1, 1) if place == "channels_last" else y


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize(("source", "call"), CALLS, ids=lambda value: value)
def test_lines_run_as_they_stand(source: str, call: str, target: str) -> None:
    TARGETS[target]()
    found = translate(source, call, target, SIZES)
    if not found.expressed:
        pytest.skip(str(found.reason))
    if found.operation.weighted and (target == "keras" or any("nn.Conv" in line for line in found.lines)):
        pytest.skip("a layer makes its own weights")
    rng = np.random.default_rng(0)
    o = found.operation
    groups = int(o.arguments.get("groups") or 1)
    inner, outer = o.in_channels or 4, o.out_channels or 6
    x = rng.normal(size=(1, inner, *SIZES)).astype(np.float32)
    w = None
    if o.weighted:
        shape = (outer, inner // groups, *o.kernel) if o.op == "conv" else (inner, outer // groups, *o.kernel)
        w = rng.normal(size=shape).astype(np.float32)
    expected = computed(source, o, Steps(o.arguments), x.astype(np.float64), None if w is None else w.astype(np.float64)).y
    given = None if w is None else np.transpose(w, _as_in(source, o, w.ndim))
    np.testing.assert_allclose(run(found, x, given, target), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("source", "call"), [pair for pair in CALLS if "ool" in pair[1]], ids=lambda value: value)
def test_layers_run_in_opencv(source: str, call: str) -> None:
    """A network of the lines alone, read by OpenCV's Caffe importer."""
    dnn = pytest.importorskip("cv2").dnn
    if not hasattr(dnn, "readNetFromCaffe"):
        pytest.skip("OpenCV 5 reads no Caffe files")
    found = translate(source, call, "opencv", SIZES)
    layers = [line for line in found.lines if not line.startswith("#")]
    if not found.expressed or any("Crop" in line for line in layers):
        pytest.skip(found.reason or "Crop needs a second blob")
    head = 'name: "n" input: "x" ' + " ".join(f"input_dim: {n}" for n in (1, 4, *SIZES))
    net = dnn.readNetFromCaffe(np.frombuffer("\n".join([head, *layers]).encode(), np.uint8))
    x = np.random.default_rng(0).normal(size=(1, 4, *SIZES)).astype(np.float32)
    expected = computed(source, found.operation, Steps(found.operation.arguments), x.astype(np.float64), None).y
    net.setInput(x, "x")
    np.testing.assert_allclose(net.forward(), expected, rtol=1e-4, atol=1e-4)


def _as_in(source: str, o: Any, rank: int) -> tuple[int, ...]:
    """From (O, I, *k), transposed (I, O, *k), to the order in which the source keeps its weights."""
    canonical = ["O", "I"] if o.op == "conv" else ["I", "O"]
    names = [*canonical, *[f"k{i}" for i in range(rank - 2)]]
    letters = spelling(source).WEIGHTS[o.op]
    order = [name for letter in letters for name in (names[2:] if letter == "*" else [letter])]
    return tuple(names.index(name) for name in order)
