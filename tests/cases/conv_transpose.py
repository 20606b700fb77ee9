"""Transposed convolution: the adjoint, by scatter and by the flip identity."""

from __future__ import annotations

from tests.cases.records import Case, Refusal

CASES = (
    Case("one axis", (2, 3, 5), dict(stride=2), w_shape=(3, 4, 3)),
    Case("one axis, channels last", (2, 5, 3), dict(stride=2, layout="channels_last"), w_shape=(3, 4, 3), bias=True),
    Case("two axes", (2, 3, 4, 3), dict(stride=(2, 1), padding=(1, 0)), w_shape=(3, 4, 3, 2), bias=True),
    Case("two axes, channels last", (2, 4, 3, 3), dict(stride=(2, 1), padding=(1, 0), layout="NHWC"), w_shape=(3, 4, 3, 2)),
    Case("three axes", (1, 2, 3, 2, 3), dict(stride=(1, 2, 1), padding=1), w_shape=(2, 3, 3, 4, 3), bias=True),
    Case("three axes, channels last", (1, 3, 2, 3, 2), dict(stride=2, layout="NDHWC"), w_shape=(2, 3, 2, 3, 2)),
    Case("1x1", (2, 3, 4, 4), {}, w_shape=(3, 5, 1, 1), bias=True),
    Case("stride above kernel", (1, 2, 3, 4), dict(stride=4), w_shape=(2, 2, 2, 2), bias=True),
    Case("groups", (2, 4, 4, 3), dict(groups=2, stride=2, padding=1), w_shape=(4, 3, 3, 3), bias=True),
    Case("depthwise", (2, 4, 4, 3), dict(groups=4, stride=2), w_shape=(4, 2, 3, 3)),
    Case("dilated", (1, 2, 5, 4), dict(dilation=(2, 3), padding=(2, 3)), w_shape=(2, 3, 3, 2)),
    Case("dilated, strided, grouped", (1, 4, 5, 4), dict(dilation=2, stride=3, padding=1, groups=2), w_shape=(4, 2, 3, 2)),
    Case("output padding", (1, 2, 3, 4), dict(stride=3, output_padding=(2, 1)), w_shape=(2, 3, 2, 2), bias=True),
    Case("output padding above the pad", (1, 2, 3, 4), dict(stride=3, padding=1, output_padding=2), w_shape=(2, 3, 3, 3)),
    Case("output padding beyond the kernel", (1, 2, 3), dict(stride=2, output_padding=1), w_shape=(2, 3, 2), bias=True),
    Case("flipped", (1, 2, 4, 3), dict(flip=True, stride=2, padding=1), w_shape=(2, 3, 3, 2), bias=True),
    Case("flipped, groups", (1, 4, 4, 3), dict(flip=True, groups=2), w_shape=(4, 2, 3, 2)),
    Case("unequal pads", (1, 2, 4, 3), dict(stride=2, padding=((1, 0), (0, 2))), w_shape=(2, 3, 3, 4)),
    Case("negative pads", (1, 2, 4, 3), dict(stride=2, padding=((-1, 0), (0, -2))), w_shape=(2, 3, 3, 4)),
    Case("pads of the whole kernel", (1, 2, 6), dict(padding=2), w_shape=(2, 2, 2)),
    Case("Caffe", (2, 4, 4, 3), dict(stride=2, padding=1, groups=2, dilation=2), rules="caffe", w_shape=(4, 3, 3, 3), bias=True),
    Case(
        "PyTorch",
        (2, 4, 4, 3),
        dict(stride=2, padding=1, output_padding=1, groups=2),
        rules="pytorch",
        w_shape=(4, 3, 3, 3),
        bias=True,
    ),
    Case("MPS, full", (2, 3, 4, 3), dict(stride=2, padding="full"), rules="mps", w_shape=(3, 2, 3, 3), bias=True),
    Case("MPS, same", (2, 3, 4, 3), dict(stride=2, kernel_offset=-1), rules="mps", w_shape=(3, 2, 3, 2)),
    Case("NumPy loops", (2, 3, 4, 3), dict(stride=2), rules="numpy_loops", w_shape=(3, 2, 3, 3), bias=True),
    Case("TensorFlow, SAME", (2, 3, 4, 3), dict(stride=2, padding="same"), rules="tensorflow", w_shape=(3, 2, 3, 3)),
    Case("TensorFlow, to a size", (2, 3, 4), dict(stride=3, output_size=14), rules="tensorflow", w_shape=(3, 2, 3)),
    Case("Keras", (2, 3, 4), dict(stride=2, padding="same", output_padding=0), rules="keras", w_shape=(3, 2, 3)),
    Case("JAX", (2, 3, 4, 3), dict(stride=2, dilation=2), rules="jax", w_shape=(3, 2, 3, 2)),
    Case("JAX, turned, large pads", (2, 3, 4), dict(padding=((5, 4),), transpose_kernel=True), rules="jax", w_shape=(3, 2, 3)),
    Case("Core ML, to a size", (2, 4, 4), dict(stride=2, output_size=10, groups=2), rules="coreml", w_shape=(4, 2, 3)),
    Case("MLX", (2, 3, 4), dict(stride=2, padding=1, output_padding=1), rules="mlx", w_shape=(3, 2, 3)),
    Case("empty batch", (0, 3, 5, 5), {}, w_shape=(3, 2, 3, 3), bias=True),
    Case("float64", (2, 2, 4, 3), dict(stride=2, padding=1), dtype="float64", w_shape=(2, 3, 3, 3), bias=True),
    Case("float16", (2, 2, 4, 3), dict(stride=2, padding=1), dtype="float16", w_shape=(2, 3, 3, 3), bias=True),
    Case("bfloat16", (2, 2, 4, 3), dict(stride=2), dtype="bfloat16", w_shape=(2, 3, 2, 2), bias=True),
    Case("NaN and infinities in x", (2, 2, 4, 3), dict(stride=1, padding=1), w_shape=(2, 3, 3, 3), fill="mixed"),
)

REFUSALS = (
    Refusal(
        "an empty output",
        (1, 1, 2),
        dict(padding=3),
        ("conv_transpose [pytorch]: the output is empty", "on axis W: -2"),
        rules="pytorch",
        w_shape=(1, 1, 3),
    ),
    Refusal(
        "output padding of a stride",
        (1, 1, 2),
        dict(stride=2, output_padding=2),
        ("output_padding is not smaller than stride or dilation", "2 < 2", "output_padding=1"),
        rules="pytorch",
        w_shape=(1, 1, 3),
    ),
    Refusal("other channels than x", (1, 3, 4, 4), {}, ("w has other input channels than x", "2 == 3"), w_shape=(2, 3, 3, 3)),
    Refusal("channels not divisible by groups", (1, 6, 4, 4), dict(groups=4), ("channels", "6 % 4 = 2"), w_shape=(6, 2, 3, 3)),
    Refusal(
        "output padding under Caffe",
        (1, 1, 4),
        dict(output_padding=1),
        ("there is no argument 'output_padding'",),
        rules="caffe",
        w_shape=(1, 1, 3),
    ),
    Refusal(
        "negative padding under PyTorch", (1, 1, 4), dict(padding=-1), ("padding >= 0: -1",), rules="pytorch", w_shape=(1, 1, 3)
    ),
    Refusal("weights of another rank", (1, 3, 4, 4), {}, ("w has the wrong rank", "w.ndim == 4: 3"), w_shape=(3, 4, 3)),
    Refusal("integers", (1, 1, 4), {}, ("there is no rule for int32 arrays",), dtype="int32", w_shape=(1, 1, 2)),
)
