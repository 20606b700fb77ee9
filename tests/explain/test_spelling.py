"""Reading and writing calls: every framework's own forms, nothing executed, and what is written is read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from astride.errors import ArgumentError
from astride.explain.spelling import SPELLINGS, parsed, read, spelling
from astride.explain.spelling.call import Word
from astride.rules import RULES, has

CALLS = [
    ("pytorch", "nn.MaxPool2d(3, 2, 1, ceil_mode=True)", "max_pool", 3, {"stride": 2, "padding": 1, "ceil_mode": True}),
    ("pytorch", "F.avg_pool3d(x, (1, 2, 3), divisor_override=4)", "avg_pool", (1, 2, 3), {"divisor_override": 4}),
    ("pytorch", "LPPool1d(2, 3)", "lp_pool", 3, {"p": 2}),
    ("pytorch", "Conv2d(4, 8, (3, 1), groups=2)", "conv", (3, 1), {"groups": 2}),
    ("pytorch", "F.conv_transpose2d(x, (4, 8, 3, 3), stride=2)", "conv_transpose", (3, 3), {"stride": 2}),
    (
        "tensorflow",
        "tf.nn.max_pool2d(x, [1, 3, 3, 1], [1, 2, 2, 1], 'SAME')",
        "max_pool",
        (3, 3),
        {"stride": (2, 2), "padding": "same"},
    ),
    (
        "tensorflow",
        "tf.nn.conv2d(x, (3, 3, 4, 8), 1, [[0, 0], [1, 2], [0, 0], [0, 0]])",
        "conv",
        (3, 3),
        {"padding": ((1, 2), (0, 0))},
    ),
    ("tensorflow", "conv1d_transpose(x, (3, 8, 4), [1, 10, 8], 2)", "conv_transpose", (3,), {"output_size": (10,)}),
    ("keras", "keras.layers.AveragePooling1D(4, padding='same')", "avg_pool", 4, {"padding": "same"}),
    ("keras", "Conv1D(8, 3, padding='causal')", "conv", 3, {"padding": "causal"}),
    ("keras", "Conv2DTranspose(8, 3, output_padding=1)", "conv_transpose", 3, {"output_padding": 1}),
    ("keras", "ops.conv(x, (3, 3, 2, 8), dilation_rate=2)", "conv", (3, 3), {"dilation": 2}),
    (
        "jax",
        "lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), 'SAME')",
        "max_pool",
        (3, 3),
        {"stride": (2, 2)},
    ),
    ("jax", "lax.reduce_window(x, 0., lax.add, (1, 1, 2))", "avg_pool", (2,), {"total": True, "stride": (1,)}),
    ("jax", "nn.avg_pool(x, (2, 2), count_include_pad=False)", "avg_pool", (2, 2), {"stride": 1, "count_include_pad": False}),
    ("jax", "lax.conv_general_dilated(x, (8, 2, 3), (2,), 'SAME', feature_group_count=2)", "conv", (3,), {"groups": 2}),
    ("onnx", "MaxPool(kernel_shape=[3], pads=[0, 1], ceil_mode=1)", "max_pool", (3,), {"padding": ((0, 1),), "ceil_mode": 1}),
    ("onnx", "LpPool(kernel_shape=[2, 2], p=3)", "lp_pool", (2, 2), {"p": 3}),
    ("onnx", "ConvTranspose(x, (4, 8, 3, 3), auto_pad='SAME_LOWER')", "conv_transpose", (3, 3), {"padding": "SAME_LOWER"}),
    ("caffe", "L.Pooling(x, pool=P.Pooling.AVE, kernel_h=3, kernel_w=2, stride=2)", "avg_pool", (3, 2), {"stride": 2}),
    ("caffe", "L.Pooling(x, pooling_param=dict(pool=1, kernel_size=3))", "avg_pool", 3, {"stride": 1}),
    ("caffe", "Convolution(num_output=8, kernel_size=[3], pad=[1])", "conv", 3, {"padding": 1}),
    ("caffe", "L.Deconvolution(x, convolution_param=dict(num_output=8, kernel_size=4))", "conv_transpose", 4, {"groups": 1}),
    ("mxnet", "mx.nd.Pooling(x, kernel=(2, 2), pool_type='sum')", "avg_pool", (2, 2), {"pool_type": "sum", "stride": 1}),
    ("mxnet", "nn.MaxPool2D(3, 2, ceil_mode=True)", "max_pool", 3, {"pooling_convention": "full"}),
    (
        "mxnet",
        "mx.sym.Deconvolution(x, kernel=(4,), num_filter=8, adj=(1,), stride=(2,))",
        "conv_transpose",
        (4,),
        {"output_padding": (1,)},
    ),
    ("chainer", "F.average_pooling_nd(x, (2, 2), pad_value=None)", "avg_pool", (2, 2), {"pad_value": None}),
    ("chainer", "L.Convolution2D(3, 8, 3, stride=2)", "conv", 3, {"stride": 2}),
    ("mlx", "nn.AvgPool2d(2)", "avg_pool", 2, {"padding": 0}),
    ("mlx", "mx.conv_general(x, (8, 3, 4), padding=([1], [2]), flip=True)", "conv", (3,), {"padding": ((1, 2),), "flip": True}),
    (
        "coreml",
        "mb.l2_pool(x=x, kernel_sizes=[2, 2], pad_type='custom', pad=[0, 1, 0, 0])",
        "lp_pool",
        (2, 2),
        {"padding": ((0, 1), (0, 0))},
    ),
    ("tflite", "CONV_2D((1, 9, 9, 8), (6, 3, 3, 4), stride_w=2)", "conv", (3, 3), {"stride": (1, 2), "groups": 2}),
    ("tflite", "TRANSPOSE_CONV([1, 9, 9, 6], (6, 3, 3, 4), x, stride_h=2)", "conv_transpose", (3, 3), {"output_size": (9, 9)}),
    ("onnxruntime", "Conv(x, (8, 4, 3), strides=[2])", "conv", (3,), {"stride": (2,)}),
    (
        "openvino",
        "opset14.group_convolution(x, (2, 3, 4, 3, 3), [1, 1], [0, 1], [1, 1], [1, 1])",
        "conv",
        (3, 3),
        {"groups": 2, "padding": ((0, 1), (1, 1))},
    ),
    (
        "onednn",
        "dnnl::convolution_forward::desc(p, a, {1, 4, 8, 8}, {2, 3, 2, 3, 1}, bias, dst, {1, 2}, {1, 0}, {1, 0}, {1, 0});",
        "conv",
        (3, 1),
        {"groups": 2, "stride": (1, 2), "dilation": (2, 1), "padding": ((1, 1), (0, 0))},
    ),
    ("ncnn", "Convolution1D c 1 1 x y 0=8 1=3 4=-233", "conv", (3,), {"padding": "SAME_UPPER"}),
    (
        "ncnn",
        "Deconvolution d 1 1 x y 0=8 1=3 11=5 3=2 4=1 14=2 15=0 18=1 19=0",
        "conv_transpose",
        (5, 3),
        {"stride": (2, 2), "padding": ((2, 2), (1, 0)), "output_padding": (0, 1)},
    ),
    (
        "mps",
        "let p = MPSCNNDilatedPoolingMax(device: d, kernelWidth: 3, kernelHeight: 2, dilationRateX: 2, dilationRateY: 1, "
        "strideInPixelsX: 2, strideInPixelsY: 1)\np.offset = MPSOffset(x: 1, y: 0, z: 0); p.edgeMode = .clamp",
        "max_pool",
        (2, 3),
        {"dilation": (1, 2), "offset": (0, 1), "edge": "clamp", "stride": (1, 2)},
    ),
    (
        "mps",
        "let p = MPSCNNPoolingAverage(device: d, kernelWidth: 3, kernelHeight: 3, strideInPixelsX: 2, strideInPixelsY: 2)\n"
        "p.padding = MPSNNDefaultPadding(method: [.addRemainderToBottomRight, .sizeSame])",
        "avg_pool",
        (3, 3),
        {"padding": "same", "remainder": "bottom_right"},
    ),
    (
        "caffe",
        'layer { name: "c" type: "Convolution" bottom: "x" top: "c" param { lr_mult: 1 } convolution_param { num_output: 8 '
        "kernel_size: 3 kernel_size: 5 pad: 1 } }",
        "conv",
        (3, 5),
        {"padding": 1},
    ),
    ("opencv", 'layer { type: "Pooling" pooling_param { kernel_size: 3 } }', "max_pool", 3, {"ceil_mode": True, "stride": 1}),
    ("darknet", "[convolutional]\nfilters = 8\nsize = 3\npad = 1\nactivation=leaky", "conv", 3, {"padding": 1, "groups": 1}),
    ("darknet", "[maxpool] size=2 stride=2", "max_pool", 2, {"padding": 1}),
    ("numpy_loops", "pool_forward(A_prev, {'f': 3, 'stride': 2}, mode='average')", "avg_pool", 3, {"stride": 2}),
    ("numpy_loops", "conv_forward_naive(x, (8, 4, 3, 3), b, {'stride': 1, 'pad': 1})", "conv", (3, 3), {"padding": 1}),
    ("explicit", "astride.avg_pool(x, kernel=3, divisor='kernel', padding=1)", "avg_pool", 3, {"divisor": "kernel"}),
    ("coreml", "mb.conv(x, (8, 4, 3, 3), dilations=[2, 2])", "conv", (3, 3), {"dilation": (2, 2)}),
]


@pytest.mark.parametrize(("framework", "text", "op", "kernel", "arguments"), CALLS, ids=lambda value: str(value)[:60])
def test_calls_are_read(framework: str, text: str, op: str, kernel: object, arguments: dict[str, object]) -> None:
    found = read(framework, text)
    assert (found.op, found.kernel) == (op, kernel)
    assert {name: found.arguments[name] for name in arguments} == arguments


def test_shapes_in_the_place_of_arrays_say_sizes_and_channels() -> None:
    found = read("pytorch", "F.conv2d((1, 4, 9, 7), (6, 2, 3, 3), groups=2)")
    assert (found.sizes, found.in_channels, found.out_channels) == ((9, 7), 4, 6)
    found = read("tensorflow", "tf.nn.conv2d((1, 9, 7, 4), (3, 3, 2, 6), 1, 'VALID')")
    assert (found.sizes, found.in_channels, found.out_channels, found.arguments["groups"]) == ((9, 7), 4, 6, 2)
    found = read("keras", "ops.max_pool((1, 9, 7, 4), 2)")
    assert (found.sizes, found.rank) == ((9, 7), 2)


@pytest.mark.parametrize("framework", SPELLINGS)
def test_every_framework_has_what_is_needed(framework: str) -> None:
    module = spelling(framework)
    assert framework in RULES and module.__doc__ and isinstance(module.GRADIENT, bool)
    assert all(has(framework, op) for op in module.CHOICES)
    assert set(module.WEIGHTS) == {"conv", "conv_transpose"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("MaxPool2d(3", "not a call in Python's syntax"),
        ("3 + 4", "not one call"),
        ("pools[0](3)", "not one call"),
        ("MaxPool2d(*sizes)", "without \\* and \\*\\*"),
        ("MaxPool2d(**options)", "without \\* and \\*\\*"),
        ("MaxPool2d(open('x').read())", "neither a literal nor a name"),
        ("MaxPool2d(2**40)", "neither a literal nor a name"),
        ("MaxPool2d([i for i in range(9)])", "neither a literal nor a name"),
        ("MaxPool2d(kernel)", "a name stands where kernel is a number"),
        ("MaxPool2d()", "missing a required argument: 'kernel_size'"),
        ("MaxPool2d(3, kernel=2)", "unexpected keyword argument"),
        ("MaxPol2d(3)", "MaxPool2d"),
        ("Conv2d('a', 4, 3)", "in_channels is not a whole number"),
        ("Conv2d(0, 4, 3)", "in_channels is below 1"),
        ("F.conv2d(3, w)", "a name or by its shape"),
        ("x" * 3000, "too long"),
        ("(" * 1500 + ")" * 1500, "not a call in Python's syntax|too long"),
    ],
)  # fmt: skip
def test_what_is_no_call_is_refused(text: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        read("pytorch", text)


@pytest.mark.parametrize(
    ("framework", "text", "said"),
    [
        ("darknet", "maxpool size=2", "no section of a .cfg|not a section of a .cfg"),
        ("darknet", "[maxpool] size", "a setting is name=value"),
        ("darknet", "[maxpol] size=2", "maxpool"),
        ("darknet", "[maxpool] size=2 strid=2", "unexpected keyword argument 'strid'"),
        ("ncnn", "Pooling(3)", "not a line of a .param file"),
        ("ncnn", "Pooling p 1 1 x y 0=0", "the kernel is not given"),
        ("ncnn", "Pooling p 1 1 x y 0=0 4=1", "no window of their own"),
        ("opencv", 'layer { type: "Pooling" pooling_param { kernel_size: 3 }', "not one layer of a prototxt"),
        ("opencv", "layer { pooling_param { kernel_size: 3 } }", "not one layer of a prototxt"),
        ("opencv", "layer " + "{ a " * 400, "not one layer of a prototxt|neither|not a call"),
        ("onednn", "pooling_forward::desc(p, algorithm::pooling_mx, src, dst, {2}, {3}, {0}, {0})", "another kind"),
        ("mps", "let p = MPSCNNPoolingMx(device: d, kernelWidth: 3, kernelHeight: 3)", "MPSCNNPoolingMax"),
        ("mps", "p.edgeMode = .clamp", "no such function"),
        ("numpy_loops", "max_pool_forward_naive(x, {'stride': 2})", "another kind"),
        ("openvino", "ops.max_pool(x, [2, 2])", "missing"),
        ("tflite", "MAX_POOL_2D(x, filter_height=3)", "missing"),
        ("explicit", "astride.max_pool(x, 3)", "too many positional"),
    ],
)
def test_other_notations_refuse_what_they_are_not(framework: str, text: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        read(framework, text)


def test_lines_as_they_are_pasted() -> None:
    for text in ("y = nn.MaxPool2d(3, stride=2)(x)", "MaxPool2d(3, stride=2)(x)", "pool=MaxPool2d(3, stride=2)"):
        assert read("pytorch", text).arguments["stride"] == 2


def test_nothing_is_executed(tmp_path: Path) -> None:
    target = tmp_path / "made"
    for text in (f"MaxPool2d(open({str(target)!r}, 'w'))", f"__import__('pathlib').Path({str(target)!r}).touch()"):
        with pytest.raises(ArgumentError):
            read("pytorch", text)
    assert not target.exists()


def test_names_and_infinities() -> None:
    call = parsed("f(-jnp.inf, float('-inf'), P.Pooling.MAX, [x, 1], a={'b': 2})")
    assert call.positional == (Word("-jnp.inf"), float("-inf"), Word("P.Pooling.MAX"), (Word("x"), 1))
    assert call.positional[2].last == "MAX" and call.keywords == {"a": {"b": 2}}


def test_frameworks_whose_calls_are_not_read() -> None:
    with pytest.raises(ArgumentError, match="one of caffe, pytorch"):
        read("theano", "pool_2d(3)")
