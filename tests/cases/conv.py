"""Convolution: groups, dilations, flips and edges, on one to three axes."""

from __future__ import annotations

from astride.plan.kinds import Edge
from tests.cases.records import Case, Refusal

EDGES = tuple(
    Case(f"edge-{edge}", (2, 2, 4, 3), dict(stride=(1, 2), padding=((3, 2), (1, 4)), edge=edge), w_shape=(3, 2, 3, 2), bias=True)
    for edge in Edge
    if edge is not Edge.CONSTANT
)

CASES = (
    *EDGES,
    Case("one axis", (2, 3, 9), dict(stride=2), w_shape=(4, 3, 3)),
    Case("one axis, channels last", (2, 9, 3), dict(stride=2, layout="channels_last"), w_shape=(4, 3, 3), bias=True),
    Case("two axes", (2, 3, 7, 6), dict(stride=(2, 1), padding=(1, 0)), w_shape=(4, 3, 3, 2), bias=True),
    Case("two axes, channels last", (2, 7, 6, 3), dict(stride=(2, 1), padding=(1, 0), layout="NHWC"), w_shape=(4, 3, 3, 2)),
    Case("three axes", (1, 2, 4, 5, 3), dict(padding=1, stride=(1, 2, 1)), w_shape=(3, 2, 2, 3, 2), bias=True),
    Case("three axes, channels last", (1, 4, 5, 3, 2), dict(padding=1, layout="NDHWC"), w_shape=(3, 2, 2, 3, 2)),
    Case("1x1", (2, 3, 4, 4), {}, w_shape=(5, 3, 1, 1), bias=True),
    Case("groups", (2, 4, 6, 5), dict(groups=2, padding=1), w_shape=(6, 2, 3, 3), bias=True),
    Case("depthwise", (2, 4, 6, 5), dict(groups=4, padding=1), w_shape=(8, 1, 3, 3)),
    Case("batch groups", (4, 2, 6, 5), dict(batch_groups=2, padding=1), w_shape=(6, 2, 3, 3), bias=True),
    Case("dilated", (1, 2, 9, 8), dict(dilation=(2, 3), padding=(2, 3)), w_shape=(3, 2, 3, 2)),
    Case("dilated and strided", (1, 2, 9, 8), dict(dilation=3, stride=2, padding=2), w_shape=(3, 2, 3, 2)),
    Case("dilated input", (1, 2, 4, 3), dict(input_dilation=(2, 3), padding=2), w_shape=(3, 2, 3, 2)),
    Case("flipped", (1, 2, 6, 5), dict(flip=True, padding=1), w_shape=(3, 2, 3, 2), bias=True),
    Case("flipped, groups", (1, 4, 6, 5), dict(flip=True, groups=2), w_shape=(4, 2, 3, 2)),
    Case("same", (1, 2, 7, 6), dict(padding="same", stride=2), w_shape=(3, 2, 3, 4)),
    Case("same, lower", (1, 2, 7, 6), dict(padding="same_lower", stride=2), w_shape=(3, 2, 3, 4)),
    Case("cropped by negative pads", (1, 2, 7, 6), dict(padding=((-1, 0), (-2, 1))), w_shape=(3, 2, 2, 2)),
    Case("pads beyond the kernel", (1, 1, 3, 3), dict(padding=4), w_shape=(2, 1, 2, 2), bias=True),
    Case("stride above kernel", (1, 2, 9, 8), dict(stride=4), w_shape=(2, 2, 2, 2)),
    Case("Caffe", (2, 4, 8, 7), dict(stride=2, padding=1, groups=2, dilation=2), rules="caffe", w_shape=(6, 2, 3, 3), bias=True),
    Case("Caffe, a kernel less than a stride too large", (1, 1, 4), dict(stride=3), rules="caffe", w_shape=(1, 1, 6)),
    Case("PyTorch, reflect", (2, 2, 8, 7), dict(padding=2, padding_mode="reflect"), rules="pytorch", w_shape=(3, 2, 3, 3)),
    Case("PyTorch, circular", (2, 2, 8, 7), dict(padding=2, padding_mode="circular"), rules="pytorch", w_shape=(3, 2, 3, 3)),
    Case("MPS, clamp", (2, 2, 8, 7), dict(stride=2, edge="clamp"), rules="mps", w_shape=(3, 2, 3, 2)),
    Case("NumPy loops", (2, 2, 8, 6), dict(padding=1), rules="numpy_loops", w_shape=(3, 2, 3, 3), bias=True),
    Case("TensorFlow, SAME", (2, 4, 8, 7), dict(stride=2, padding="same", groups=2), rules="tensorflow", w_shape=(6, 2, 3, 2)),
    Case("Keras, causal", (2, 3, 8), dict(padding="causal", dilation=2), rules="keras", w_shape=(2, 3, 3)),
    Case(
        "JAX, everything",
        (4, 2, 5, 4),
        dict(stride=(2, 1), padding=((2, -1), (0, 3)), input_dilation=2, dilation=(1, 2), batch_groups=2),
        rules="jax",
        w_shape=(4, 2, 3, 2),
    ),
    Case("JAX, no window", (1, 2, 2), {}, rules="jax", w_shape=(3, 2, 3), bias=True),
    Case("MLX, turned", (2, 2, 6), dict(flip=True, padding=((1, 2),), input_dilation=2), rules="mlx", w_shape=(3, 2, 3)),
    Case("empty batch", (0, 3, 5, 5), {}, w_shape=(2, 3, 3, 3), bias=True),
    Case("no output channels", (2, 3, 5, 5), {}, w_shape=(0, 3, 3, 3)),
    Case("float64", (2, 2, 7, 6), dict(padding=1), dtype="float64", w_shape=(3, 2, 3, 3), bias=True),
    Case("float16", (2, 2, 7, 6), dict(padding=1), dtype="float16", w_shape=(3, 2, 3, 3), bias=True),
    Case("bfloat16", (2, 2, 5, 6), dict(padding=1), dtype="bfloat16", w_shape=(3, 2, 2, 2), bias=True),
    Case("NaN and infinities in x", (2, 2, 6, 6), dict(padding=1), w_shape=(3, 2, 3, 3), fill="mixed"),
)

REFUSALS = (
    Refusal(
        "kernel larger than padded input",
        (1, 1, 4, 4),
        dict(padding=1),
        ("conv [explicit]: the kernel is larger than the padded input", "on axis H: 7 <= 4 + 2"),
        w_shape=(1, 1, 7, 7),
    ),
    Refusal(
        "kernel larger under Caffe",
        (1, 1, 4),
        {},
        ("conv [caffe]: the kernel is larger than the padded input", "6 <= 4 + 0"),
        rules="caffe",
        w_shape=(1, 1, 6),
    ),
    Refusal(
        "channels not divisible by groups",
        (1, 6, 4, 4),
        dict(groups=4),
        ("the input's channels are not divisible by groups", "channels % groups == 0: 6 % 4 = 2", "groups=2"),
        w_shape=(4, 2, 3, 3),
    ),
    Refusal(
        "filters not divisible by groups",
        (1, 6, 4, 4),
        dict(groups=3),
        ("out_channels is not divisible by groups", "4 % 3 = 1"),
        w_shape=(4, 2, 3, 3),
    ),
    Refusal("other channels than x", (1, 3, 4, 4), {}, ("w has other input channels than x", "2 * 1 == 3"), w_shape=(4, 2, 3, 3)),
    Refusal("weights of another rank", (1, 3, 4, 4), {}, ("w has the wrong rank", "w.ndim == 4: 3"), w_shape=(4, 3, 3)),
    Refusal("negative stride", (1, 1, 4), dict(stride=-2), ("stride >= 1: -2",), w_shape=(1, 1, 2)),
    Refusal("integers", (1, 1, 4), {}, ("there is no rule for int32 arrays",), dtype="int32", w_shape=(1, 1, 2)),
    Refusal(
        "same with a stride",
        (1, 1, 4),
        dict(padding="same", stride=2),
        ('padding="same" needs stride 1',),
        rules="pytorch",
        w_shape=(1, 1, 2),
    ),
    Refusal(
        "reflection past the input",
        (1, 1, 3),
        dict(padding=3, padding_mode="reflect"),
        ("reflect padding reaches past the input", "padding <= 2, on axis W: 3"),
        rules="pytorch",
        w_shape=(1, 1, 2),
    ),
    Refusal(
        "unknown padding mode",
        (1, 1, 3),
        dict(padding_mode="wrap"),
        ("padding_mode has no such value", "'circular'"),
        rules="pytorch",
        w_shape=(1, 1, 2),
    ),
    Refusal("groups under MPS", (1, 4, 4), dict(groups=2), ("multiples of four",), rules="mps", w_shape=(4, 2, 2)),
    Refusal(
        "groups under NumPy loops",
        (1, 4, 4),
        dict(groups=2),
        ("these rules have no groups",),
        rules="numpy_loops",
        w_shape=(4, 2, 1),
    ),
    Refusal("no weights' shape", (1, 4, 4), {}, ("conv needs w_shape",)),
)
