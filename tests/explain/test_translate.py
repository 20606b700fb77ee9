"""Translations: the known ones by hand, what cannot be said and why, and the proof that comes with each."""

from __future__ import annotations

import json

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.explain import translate, translation_to_dict
from astride.explain.spelling import SPELLINGS, read
from astride.explain.steps import Steps, computed
from astride.explain.trials import difference

LINES = [
    (
        "pytorch",
        "MaxPool2d(3, 2, ceil_mode=True)",
        "tensorflow",
        8,
        ["y = tf.nn.max_pool2d(x, 3, 2, [[0, 0], [0, 1], [0, 1], [0, 0]])"],
    ),
    (
        "pytorch",
        "MaxPool2d(3, 2, 1)",
        "keras",
        8,
        [
            'x = keras.ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=float("-inf"))',
            "y = keras.layers.MaxPooling2D(3, strides=2)(x)",
        ],
    ),
    ("pytorch", "MaxPool1d(2)", "keras", 8, ["y = keras.layers.MaxPooling1D(2)(x)"]),
    (
        "pytorch",
        "AvgPool2d(3, 2, 1)",
        "tensorflow",
        8,
        ["x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])", 'y = tf.nn.avg_pool2d(x, 3, 2, "VALID")'],
    ),
    ("pytorch", "AvgPool2d(2, divisor_override=3)", "mlx", 8, ["y = nn.AvgPool2d(2)(x)", "y = y * (4/3)"]),
    (
        "pytorch",
        "Conv2d(4, 8, 3, padding=1, padding_mode='reflect')",
        "tensorflow",
        8,
        [
            "w = np.transpose(w, (2, 3, 1, 0))",
            'x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")',
            'y = tf.nn.conv2d(x, w, 1, "VALID")',
        ],
    ),
    ("tensorflow", "tf.nn.max_pool2d(x, 3, 2, 'SAME')", "pytorch", 7, ["y = F.max_pool2d(x, 3, stride=2, padding=1)"]),
    (
        "tensorflow",
        "tf.nn.conv2d(x, (3, 3, 4, 8), 2, 'SAME')",
        "caffe",
        224,
        [
            "w = np.transpose(w, (3, 2, 0, 1))",
            "y = L.Convolution(x, num_output=8, kernel_size=3, stride=2, pad=2)",
            "y = L.Crop(y, like, axis=2, offset=[1, 1])",
        ],
    ),
    (
        "caffe",
        "Pooling(pool='AVE', kernel_size=3, stride=2, pad=1)",
        "pytorch",
        6,
        ["y = F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)"],
    ),
    (
        "caffe",
        "Pooling(kernel_size=1, stride=2)",
        "pytorch",
        6,
        ["x = F.pad(x, (0, 1, 0, 1), value=torch.finfo(x.dtype).min)", "y = F.max_pool2d(x, 1, stride=2)"],
    ),
    (
        "keras",
        "Conv2DTranspose(8, 3, strides=2, padding='same')",
        "pytorch",
        5,
        ["w = np.transpose(w, (3, 2, 0, 1))", "y = F.conv_transpose2d(x, w, b, stride=2)", "y = y[:, :, :-1, :-1]"],
    ),
    (
        "keras",
        "Conv1D(4, 3, padding='causal')",
        "pytorch",
        9,
        ["w = np.transpose(w, (2, 1, 0))", "x = F.pad(x, (2, 0))", "y = F.conv1d(x, w, b)"],
    ),
    (
        "jax",
        "lax.conv_transpose(x, (4, 4, 4, 8), (2, 2), 'SAME')",
        "pytorch",
        5,
        ["w = np.transpose(w, (2, 3, 0, 1))", "w = np.flip(w, (2, 3))", "y = F.conv_transpose2d(x, w, b, stride=2, padding=1)"],
    ),
    (
        "jax",
        "lax.reduce_window(x, 0., lax.add, (1, 1, 2, 2), (1, 1, 2, 2))",
        "mxnet",
        8,
        ['y = mx.nd.Pooling(x, pool_type="sum", kernel=(2, 2), stride=(2, 2))'],
    ),
    (
        "onnx",
        "AveragePool(kernel_shape=[2, 2], pads=[0, 0, 1, 1])",
        "chainer",
        6,
        ["y = F.average_pooling_nd(x, (2, 2), stride=1, pad=1, pad_value=None)", "y = y[:, :, 1:, 1:]"],
    ),
]


@pytest.mark.parametrize(("source", "call", "target", "size", "lines"), LINES, ids=lambda value: str(value)[:50])
def test_known_translations(source: str, call: str, target: str, size: int, lines: list[str]) -> None:
    found = translate(source, call, target, size)
    assert [line for line in found.lines if not line.startswith("#")] == lines
    ordinary = [trial for trial in found.trials if trial.name in ("distinct numbers", "all negative", "ties", "zeros")]
    assert ordinary and all(trial.equal for trial in ordinary) and found.condition is None


def test_the_proof_is_computed_and_not_asserted() -> None:
    """The numbers of the trials, by the operators themselves."""
    found = translate("pytorch", "AvgPool2d(3, 2, 1, ceil_mode=True)", "tensorflow", 6)
    assert found.steps is not None and found.exact
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 6))
    dy = np.ones((2, 3, 4, 4))
    ours = computed("pytorch", found.operation, Steps(found.operation.arguments), x, None, dy)
    theirs = computed("tensorflow", found.operation, found.steps, x, None, dy)
    np.testing.assert_allclose(theirs.y, ours.y)
    np.testing.assert_allclose(theirs.dx, ours.dx)


def test_gradients_of_steps_are_those_of_differences() -> None:
    rng = np.random.default_rng(1)
    o = read("tensorflow", "conv2d(x, (3, 2, 2, 3), 1, 'VALID')")
    steps = Steps({"padding": "valid"}, ((1, 2), (2, -1)), "mirror", True, ((0, 3), (1, 5)), ((1.0, 2.0, 3.0), (0.5,)))
    x, w = rng.normal(size=(1, 2, 4, 6)), rng.normal(size=(3, 2, 3, 2))
    y = computed("tensorflow", o, steps, x, w).y
    dy = rng.normal(size=y.shape)
    found = computed("tensorflow", o, steps, x, w, dy)
    assert y.shape == (1, 3, 3, 4) and found.dx is not None and found.dw is not None
    for array, gradient in ((x, found.dx), (w, found.dw)):
        direction = rng.normal(size=array.shape)
        up, down = ([x + 1e-6 * s * direction, w] if array is x else [x, w + 1e-6 * s * direction] for s in (1, -1))
        slope = ((computed("tensorflow", o, steps, *up).y - computed("tensorflow", o, steps, *down).y) * dy).sum() / 2e-6
        assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    ("source", "call", "target", "said"),
    [
        ("pytorch", "LPPool2d(2, 3)", "tensorflow", "tensorflow has no lp_pool"),
        ("pytorch", "MaxPool2d(3, 2, dilation=2)", "tensorflow", "tensorflow refuses it: these rules have no dilation"),
        ("tensorflow", "tf.nn.avg_pool2d(x, 3, 2, 'SAME')", "caffe", "divides by: taps inside the input there"),
        ("pytorch", "Conv2d(4, 8, 3, padding=1, padding_mode='circular')", "caffe", "reads from the other side there"),
        ("caffe", "Deconvolution(num_output=4, kernel_size=4, stride=2, group=2)", "jax", "no groups"),
        ("onnx", "LpPool(kernel_shape=[3, 3], p=3)", "coreml", "the 2-norm only"),
    ],
)
def test_what_cannot_be_expressed_says_why(source: str, call: str, target: str, said: str) -> None:
    found = translate(source, call, target, 9)
    assert not found.expressed and not found.exact and found.lines == () and said in (found.reason or "")


def test_what_holds_without_negative_numbers_alone() -> None:
    found = translate("pytorch", "LPPool2d(3, 2)", "onnx", 6)
    assert found.condition == "x has no negative values" and not found.exact
    assert {trial.name for trial in found.trials if trial.equal} == {"ties", "zeros"}


def test_which_sizes_the_same_lines_are_right_for() -> None:
    always = translate("pytorch", "MaxPool2d(3, 2, ceil_mode=True)", "tensorflow", 8).holds
    assert always is not None and always.everywhere and always.tried[0] == 3
    even = translate("tensorflow", "tf.nn.max_pool2d(x, 3, 2, 'SAME')", "pytorch", 8).holds
    assert even is not None and even.right == tuple(range(2, 20, 2))
    alone = translate("pytorch", "AvgPool2d(3, 2, 1, ceil_mode=True)", "tensorflow", 6).holds
    assert alone is not None and alone.right == (6,)


def test_differences_are_found_with_their_causes() -> None:
    found = translate("pytorch", "MaxPool2d(2)", "caffe", 4)
    (nan,) = [trial for trial in found.trials if trial.name == "NaN"]
    assert nan.forward is not None and np.isnan(nan.forward.source) and not np.isnan(nan.forward.target)
    assert found.differing["NaN"] == ("a NaN wins", "a NaN never wins")
    assert "divides by" not in found.differing


def test_no_gradient_where_a_framework_has_none() -> None:
    found = translate("pytorch", "MaxPool2d(2)", "onnx", 4)
    assert not any(trial.gradient_asked for trial in found.trials)


def test_what_is_unverified_is_said() -> None:
    found = translate("pytorch", "AvgPool2d(2)", "coreml", 4)
    assert any("no value could be run" in sentence for sentence in found.unverified["coreml"])
    assert "pytorch" not in found.unverified


def test_sizes_and_kernels_that_the_call_does_not_say() -> None:
    assert translate("pytorch", "MaxPool2d(3)", "caffe").sizes == (8, 8)
    assert translate("pytorch", "MaxPool2d(7)", "caffe").sizes == (14, 14)
    assert translate("pytorch", "F.max_pool2d((1, 1, 6, 9), 3)", "caffe").sizes == (6, 9)
    assert translate("pytorch", "F.conv1d(x, w)", "caffe", kernel=3).expressed
    with pytest.raises(ArgumentError, match="how large the kernel"):
        translate("pytorch", "F.conv1d(x, w)", "caffe")
    with pytest.raises(ArgumentError, match="sizes needs one value per axis"):
        translate("pytorch", "MaxPool2d(3)", "caffe", (8, 8, 8))
    with pytest.raises(ArgumentError, match="too large"):
        translate("pytorch", "MaxPool2d(3)", "caffe", 10**6)
    with pytest.raises(ArgumentError, match="more than half the kernel"):
        translate("pytorch", "MaxPool2d(3, padding=2)", "caffe")


SELF = {
    "caffe": "L.Pooling(x, pool=P.Pooling.AVE, kernel_size=3, stride=2, pad=1)",
    "pytorch": "AvgPool2d(3, 2, 1, ceil_mode=True)",
    "tensorflow": "tf.nn.avg_pool2d(x, 3, 2, 'SAME')",
    "keras": "Conv2DTranspose(4, 3, strides=2, padding='same')",
    "jax": "lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), 'SAME_LOWER')",
    "onnx": "AveragePool(kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1], ceil_mode=1)",
    "mxnet": "mx.nd.Pooling(x, kernel=(3, 3), stride=(2, 2), pooling_convention='full')",
    "chainer": "F.max_pooling_2d(x, 3, 2)",
    "mlx": "nn.MaxPool2d(3, 2, 1)",
    "tflite": "MAX_POOL_2D(x, filter_height=3, filter_width=2, stride_h=2, padding='SAME')",
    "onnxruntime": "LpPool(kernel_shape=[3, 3], strides=[2, 2], p=3)",
    "openvino": "ops.avg_pool(x, [2, 2], [1, 1], [0, 0], [3, 3], False, rounding_type='ceil')",
    "onednn": "pooling_forward::desc(prop_kind::forward, algorithm::pooling_avg, src, dst, {2, 2}, {3, 3}, {1, 1}, {0, 1})",
    "ncnn": "Pooling pool 1 1 data pool 0=1 1=3 11=2 2=2 14=1 5=2 6=1",
    "mps": "let p = MPSCNNPoolingMax(device: d, kernelWidth: 3, kernelHeight: 3, strideInPixelsX: 2, strideInPixelsY: 1)",
    "opencv": 'layer { type: "Pooling" pooling_param { pool: AVE kernel_h: 3 kernel_w: 2 stride: 2 ceil_mode: false } }',
    "darknet": "[maxpool] size=2 stride=1",
    "numpy_loops": "max_pool_forward_naive(x, {'pool_height': 2, 'pool_width': 2, 'stride': 2})",
    "explicit": "astride.max_pool(x, kernel=3, stride=2, padding=((0, 1), (1, 1)), nan='compared', edge='mirror')",
    "coreml": "mb.avg_pool(x=x, kernel_sizes=[3, 3], strides=[2, 2], pad_type='valid', ceil_mode=True)",
}


@pytest.mark.parametrize("framework", SPELLINGS)
def test_a_call_in_its_own_framework_is_one_call_that_reads_back(framework: str) -> None:
    found = translate(framework, SELF[framework], framework, 8)
    assert found.exact and found.steps is not None and found.steps.pads is None and found.steps.crop is None
    text = "\n".join(found.lines).removeprefix("y = ").removesuffix("(x)")
    assert read(framework, text, rank=2).op == found.operation.op
    assert translate(framework, text, framework, 8).lines == found.lines


@pytest.mark.parametrize("target", SPELLINGS)
def test_there_is_data_for_tools(target: str) -> None:
    data = translation_to_dict(translate("pytorch", "MaxPool2d(3, 2, 1)", target, 7))
    text = json.dumps(data)
    assert data["expressed"] and data["lines"] and '"trials"' in text and data["plans"][1]["plan"] == "PoolPlan"


def test_differences_of_arrays() -> None:
    assert difference(np.array([1.0, np.nan]), np.array([1.0, np.nan])) is None
    found = difference(np.array([[1.0, 2.0]]), np.array([[1.0, np.nan]]))
    assert found is not None and (found.place, found.source, found.count, found.of) == ((0, 1), 2.0, 1, 2)
