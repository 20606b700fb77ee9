"""Average pooling: every divisor, empty window and edge mode."""

from __future__ import annotations

from astride.plan import ExplicitAxis, StridedAxis
from astride.plan.kinds import Divisor, Edge, Empty
from tests.cases.records import Case, Refusal

DIVISORS = tuple(
    Case(
        f"{divisor}-{empty}",
        (2, 2, 5, 4),
        dict(
            kernel=2,
            stride=2,
            padding=((3, 3), (1, 4)),
            empty=empty,
            rounding="ceil",
            clip="never",
            divisor="valid" if divisor is Divisor.OVERRIDE else divisor,
            divisor_override=4 if divisor is Divisor.OVERRIDE else None,
        ),
    )
    for divisor in Divisor
    for empty in (Empty.QUOTIENT, Empty.ZERO, Empty.NAN)
)

EDGES = tuple(
    Case(
        f"edge-{edge}",
        (2, 3, 4, 3),
        dict(kernel=(4, 2), stride=(1, 2), padding=((3, 2), (1, 4)), edge=edge, edge_value=8.0, divisor="kernel"),
    )
    for edge in Edge
)

CASES = (
    *DIVISORS,
    *EDGES,
    Case("one axis", (2, 3, 9), dict(kernel=3, stride=2)),
    Case("one axis, channels last", (2, 9, 3), dict(kernel=4, stride=2, layout="channels_last")),
    Case("two axes", (2, 3, 7, 6), dict(kernel=(3, 2), stride=(2, 1))),
    Case("two axes, channels last", (2, 7, 6, 3), dict(kernel=(4, 2), stride=(2, 1), layout="NHWC")),
    Case("three axes", (1, 2, 4, 5, 3), dict(kernel=2, stride=(1, 2, 1), padding=1)),
    Case("three axes, channels last", (1, 4, 5, 3, 2), dict(kernel=2, stride=(1, 2, 1), padding=1, layout="NDHWC")),
    Case("dilated", (1, 2, 9, 8), dict(kernel=2, stride=1, dilation=(2, 3), padding=(2, 3), divisor="padded")),
    Case("NaN and infinities", (2, 2, 6, 6), dict(kernel=3, stride=1, padding=1), fill="mixed"),
    Case("cropped by negative pads", (1, 2, 7, 6), dict(kernel=2, stride=1, padding=((-1, 0), (-2, 1)))),
    Case("a divisor pad of its own", (1, 2, 6), dict(kernel=3, stride=1, padding=2, divisor="padded", divisor_pad=1)),
    Case("a divisor of -4", (1, 2, 6), dict(kernel=3, stride=1, divisor_override=-4)),
    Case("Caffe", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1), rules="caffe"),
    Case("Caffe, windows behind the input", (1, 1, 6, 6), dict(kernel=1, stride=4), rules="caffe"),
    Case("PyTorch", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1, ceil_mode=True), rules="pytorch"),
    Case("MPS, clamp", (2, 3, 8, 7), dict(kernel=3, stride=2, edge="clamp"), rules="mps"),
    Case("MPS, zero pad size", (2, 3, 8, 7), dict(kernel=3, stride=2, edge="clamp", zero_pad_size=1), rules="mps"),
    Case("NumPy loops", (2, 3, 8, 6), dict(kernel=2), rules="numpy_loops"),
    Case("TensorFlow, SAME", (2, 3, 8, 7), dict(kernel=3, stride=2, padding="same"), rules="tensorflow"),
    Case("TFLite, int8", (2, 3, 8, 7), dict(kernel=3, stride=2, padding="same"), rules="tflite", dtype="int8"),
    Case("TFLite, uint8", (2, 3, 8, 7), dict(kernel=(2, 3), padding="same"), rules="tflite", dtype="uint8", fill="limits"),
    Case("TFLite, int16 to its limits", (2, 3, 8, 7), dict(kernel=3), rules="tflite", dtype="int16", fill="limits"),
    Case("PyTorch, int64", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1), rules="pytorch", dtype="int64"),
    Case("PyTorch, int64 by -4", (2, 3, 8, 7), dict(kernel=3, divisor_override=-4), rules="pytorch", dtype="int64"),
    Case("JAX, sums that wrap around", (2, 3, 8), dict(kernel=3, total=True), rules="jax", dtype="int8", fill="limits"),
    Case("JAX, no window", (1, 2, 2), dict(kernel=3), rules="jax"),
    Case("Core ML, overhang", (1, 2, 7, 7), dict(kernel=2, stride=3, ceil_mode=True), rules="coreml"),
    Case("ONNX", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1, ceil_mode=1, count_include_pad=1), rules="onnx"),
    Case("ONNX, dilated on one side", (2, 3, 8, 7), dict(kernel=2, stride=1, dilation=2, padding=((0, 3), (0, 3))), rules="onnx"),
    Case(
        "ONNX Runtime 1.24, wrong end pads",
        (2, 3, 4, 5),
        dict(kernel=2, stride=1, padding=((0, 1), (0, 1)), count_include_pad=1, version="1.24"),
        rules="onnxruntime",
    ),
    Case("OpenVINO", (2, 3, 8, 7), dict(kernel=2, padding=1, rounding_type="ceil", exclude_pad=False), rules="openvino"),
    Case("oneDNN", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=((1, 2), (0, 2)), include_padding=True), rules="onednn"),
    Case("ncnn", (2, 3, 8, 7), dict(kernel=1, stride=2), rules="ncnn"),
    Case("MLX", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1), rules="mlx"),
    Case("empty batch", (0, 3, 5, 5), dict(kernel=2)),
    Case("float64", (2, 2, 7, 6), dict(kernel=3, stride=2, padding=1), dtype="float64"),
    Case("float16", (2, 2, 7, 6), dict(kernel=3, stride=2, padding=1), dtype="float16"),
    Case("bfloat16", (2, 2, 7, 6), dict(kernel=2, stride=2, padding=1), dtype="bfloat16"),
    Case(
        "explicit windows: adaptive",
        (2, 2, 7, 5),
        dict(kernel=2),
        axes=(ExplicitAxis(7, (0, 2, 4), (3, 5, 7)), ExplicitAxis(5, (0, 1, 1, 3), (2, 4, 1, 5))),
    ),
    Case(
        "dilated input",
        (2, 2, 5),
        dict(kernel=2),
        axes=(StridedAxis(size=5, kernel=2, stride=1, pad_lo=1, pad_hi=2, out=11, input_dilation=2),),
    ),
)

REFUSALS = (
    Refusal(
        "kernel larger than padded input",
        (1, 1, 4, 4),
        dict(kernel=7, padding=1),
        ("avg_pool [explicit]: the kernel is larger than the padded input",),
    ),
    Refusal(
        "pad not smaller than kernel",
        (1, 1, 8, 8),
        dict(kernel=2, padding=2),
        ("avg_pool [caffe]", "pad < kernel, on axis H: 2 < 2"),
        rules="caffe",
    ),
    Refusal(
        "integers",
        (1, 1, 4),
        dict(kernel=2),
        (
            "avg_pool [explicit]: there is no rule for int32 arrays",
            "bfloat16, float16, float32, float64",
            "try       x.astype('float32')",
        ),
        dtype="int32",
    ),
    Refusal(
        "integers under PyTorch",
        (1, 1, 4),
        dict(kernel=2),
        ("there is no rule for int32 arrays",),
        rules="pytorch",
        dtype="int32",
    ),
    Refusal("dilation under PyTorch", (1, 1, 9), dict(kernel=2, dilation=2), ("these rules have no dilation",), rules="pytorch"),
    Refusal(
        "three axes smaller than the kernel",
        (1, 1, 1, 2, 2),
        dict(kernel=(1, 3, 3), stride=2, padding=(0, 1, 1)),
        ("the kernel is larger than the input", "on axis H: 3 <= 2", "avg_pool3d"),
        rules="pytorch",
    ),
    Refusal(
        "an override on one axis",
        (1, 1, 4),
        dict(kernel=2, divisor_override=2),
        ("avg_pool1d has no divisor_override",),
        rules="pytorch",
    ),
    Refusal("a divisor of 0", (1, 1, 4, 4), dict(kernel=2, divisor_override=0), ("the divisor is zero", "divisor_override=1")),
    Refusal(
        "Caffe's divisor of dilated windows",
        (1, 1, 8),
        dict(kernel=2, dilation=2, divisor="caffe"),
        ("Caffe's divisor is defined for undilated",),
    ),
    Refusal("unknown divisor", (1, 1, 4), dict(kernel=2, divisor="taps"), ("divisor has no such value", "'kernel'", "'caffe'")),
)
