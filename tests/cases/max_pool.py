"""Max pooling: every combination of its choices on every window of six values, and every kind of geometry."""

from __future__ import annotations

import itertools

from astride.plan import ExplicitAxis, StridedAxis
from astride.plan.kinds import Edge, Empty, Nan, Start, Tie, Unpicked
from tests.cases.records import Case, Refusal

CHOICES = tuple(itertools.product(Tie, Start, Nan, Unpicked))

COMBINATIONS = tuple(
    Case(
        f"{tie}-{start}-{nan}-{unpicked}",
        (216, 1, 3),
        dict(kernel=3, stride=1, padding=1, tie=tie, start=start, nan=nan, unpicked=unpicked),
        fill="every",
    )
    for tie, start, nan, unpicked in CHOICES
)

EDGES = tuple(
    Case(
        f"edge-{edge}-{tie}",
        (2, 3, 4, 3),
        dict(kernel=(3, 2), stride=(1, 2), padding=((3, 2), (1, 4)), edge=edge, edge_value=1.0, tie=tie),
        fill=fill,
    )
    for edge in Edge
    for tie, fill in ((Tie.FIRST, "ties"), (Tie.EQUAL_SHARE, "mixed"), (Tie.ALL_FULL, "negatives"))
)

EMPTY = tuple(
    Case(
        f"empty-{empty}-{start}",
        (2, 2, 4, 3),
        dict(kernel=2, stride=2, padding=((3, 3), (2, 4)), empty=empty, start=start, unpicked=unpicked),
    )
    for empty in (Empty.START, Empty.ZERO, Empty.NAN)
    for start in Start
    for unpicked in (Unpicked.NOWHERE,)
)

GEOMETRY = (
    Case("one axis", (2, 3, 9), dict(kernel=3, stride=2), fill="ties"),
    Case("one axis, channels last", (2, 9, 3), dict(kernel=3, stride=2, layout="channels_last"), fill="ties"),
    Case("two axes", (2, 3, 7, 6), dict(kernel=(3, 2), stride=(2, 1)), fill="ties"),
    Case("two axes, channels last", (2, 7, 6, 3), dict(kernel=(3, 2), stride=(2, 1), layout="NHWC"), fill="ties"),
    Case("three axes", (1, 2, 4, 5, 3), dict(kernel=(2, 3, 2), stride=(1, 2, 1), padding=1), fill="ties"),
    Case(
        "three axes, channels last",
        (1, 4, 5, 3, 2),
        dict(kernel=(2, 3, 2), stride=(1, 2, 1), padding=1, layout="NDHWC"),
        fill="ties",
    ),
    Case("overlapping", (2, 2, 6, 6), dict(kernel=3, stride=1, padding=1), fill="mixed"),
    Case("gaps between windows", (1, 2, 9, 8), dict(kernel=2, stride=3)),
    Case("dilated", (1, 2, 9, 8), dict(kernel=3, stride=1, dilation=(2, 3), padding=(2, 3))),
    Case(
        "ceil, unclipped, windows behind the input",
        (1, 2, 6, 5),
        dict(kernel=1, stride=2, rounding="ceil", clip="never", unpicked="nowhere"),
    ),
    Case("ceil, clipped", (1, 2, 6, 5), dict(kernel=2, stride=2, padding=1, rounding="ceil")),
    Case("same", (1, 2, 7, 6), dict(kernel=3, stride=2, padding="same")),
    Case("same, lower", (1, 2, 7, 6), dict(kernel=3, stride=2, padding="same_lower")),
    Case("cropped by negative pads", (1, 2, 7, 6), dict(kernel=2, stride=1, padding=((-1, 0), (-2, 1)))),
    Case("pads beyond the kernel", (1, 1, 3, 3), dict(kernel=2, stride=1, padding=4, unpicked="nowhere")),
    Case("all NaN", (1, 2, 5, 5), dict(kernel=3, stride=2, padding=1), fill="all_nan"),
    Case("all NaN under Caffe", (1, 2, 5, 5), dict(kernel=3, stride=2, padding=1), rules="caffe", fill="all_nan"),
    Case("all -inf under Caffe", (1, 2, 5, 5), dict(kernel=3, stride=2, padding=1), rules="caffe", fill="all_negative_infinity"),
    Case("all +inf", (1, 2, 5, 5), dict(kernel=3, stride=2, padding=1), fill="all_infinity"),
    Case("Caffe", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1), rules="caffe", fill="mixed"),
    Case("PyTorch", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1, dilation=2, ceil_mode=True), rules="pytorch", fill="mixed"),
    Case("MPS", (2, 3, 8, 7), dict(kernel=3, stride=2), rules="mps", fill="negatives"),
    Case("MPS, clamp", (2, 3, 8, 7), dict(kernel=2, stride=2, edge="clamp"), rules="mps", fill="mixed"),
    Case("NumPy mask", (2, 3, 8, 6), dict(kernel=2), rules="numpy_loops", fill="mixed"),
    Case("NumPy share", (2, 3, 8, 6), dict(kernel=2, gradient="share"), rules="numpy_loops", fill="mixed"),
    Case("TensorFlow, two axes", (2, 3, 8, 7), dict(kernel=3, stride=2, padding="same"), rules="tensorflow", fill="mixed"),
    Case("TensorFlow, three axes", (2, 2, 5, 4, 3), dict(kernel=2, padding="same"), rules="tensorflow", fill="mixed"),
    Case("TensorFlow, with argmax", (2, 3, 8, 7), dict(kernel=3, with_argmax=True), rules="tensorflow", fill="mixed"),
    Case("JAX, padded", (2, 3, 8, 7), dict(kernel=3, stride=2, padding="same_lower"), rules="jax", fill="mixed"),
    Case("JAX, holes", (2, 3, 5), dict(kernel=2, stride=1, base_dilation=2, padding=((1, -1),)), rules="jax", fill="mixed"),
    Case("JAX, no pixel", (2, 3, 0), dict(kernel=2, stride=1, padding=1), rules="jax"),
    Case("JAX, int8", (2, 3, 8), dict(kernel=3, stride=2, padding="same"), rules="jax", dtype="int8", fill="limits"),
    Case("TFLite", (2, 8, 7, 3), dict(kernel=3, stride=2, layout="NHWC"), rules="tflite", dtype="uint8", fill="limits"),
    Case("Core ML", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1, ceil_mode=True), rules="coreml", fill="mixed"),
    Case("MLX", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1), rules="mlx", fill="mixed"),
    Case("MLX, one tap", (2, 3, 8), dict(kernel=1, stride=2), rules="mlx", fill="mixed"),
    Case("ONNX", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=((0, 1), (2, 4)), ceil_mode=1), rules="onnx", fill="mixed"),
    Case("ONNX, column-major", (2, 3, 4, 5, 3), dict(kernel=2, storage_order=1), rules="onnx", fill="ties"),
    Case(
        "ONNX Runtime 1.20", (2, 3, 6), dict(kernel=1, stride=2, ceil_mode=1, version="1.20"), rules="onnxruntime", fill="mixed"
    ),
    Case(
        "ONNX Runtime, cropped by SAME", (2, 3, 6), dict(kernel=1, stride=3, padding="SAME_UPPER", outputs=2), rules="onnxruntime"
    ),
    Case("OpenVINO", (2, 3, 8, 7), dict(kernel=2, stride=2, padding=1, rounding_type="ceil"), rules="openvino", fill="mixed"),
    Case("oneDNN", (2, 3, 8, 7), dict(kernel=2, stride=1, padding=2), rules="onednn", fill="mixed"),
    Case("ncnn", (2, 3, 8, 7), dict(kernel=3, stride=2, padding=1), rules="ncnn", fill="mixed"),
    Case("a kernel of 300 taps", (1, 1, 22, 21), dict(kernel=(20, 15), stride=1), fill="ties"),
    Case("empty batch", (0, 3, 5, 5), dict(kernel=2)),
    Case(
        "explicit windows: adaptive",
        (2, 2, 7, 5),
        dict(kernel=2, unpicked="nowhere"),
        axes=(ExplicitAxis(7, (0, 2, 4), (3, 5, 7)), ExplicitAxis(5, (0, 1, 1, 3), (2, 4, 1, 5))),
        fill="mixed",
    ),
    Case(
        "explicit beside strided",
        (2, 2, 7, 5),
        dict(kernel=2),
        axes=(ExplicitAxis(7, (0, 2, 4), (3, 5, 7)), StridedAxis(size=5, kernel=2, stride=2, out=2)),
    ),
    Case(
        "dilated input",
        (2, 2, 5),
        dict(kernel=2, unpicked="nowhere"),
        axes=(StridedAxis(size=5, kernel=2, stride=1, pad_lo=1, pad_hi=2, out=11, input_dilation=2),),
        fill="mixed",
    ),
)

DTYPES = tuple(
    Case(f"{dtype}", (2, 2, 7, 6), dict(kernel=3, stride=2, padding=1), dtype=dtype, fill=fill)
    for dtype, fill in (
        ("float64", "mixed"),
        ("float16", "mixed"),
        ("bfloat16", "mixed"),
        ("int8", "limits"),
        ("uint8", "limits"),
        ("int64", "integers"),
    )
)

CASES = (*COMBINATIONS, *EDGES, *EMPTY, *GEOMETRY, *DTYPES)

REFUSALS = (
    Refusal(
        "kernel larger than padded input",
        (1, 1, 4, 4),
        dict(kernel=7, padding=1),
        (
            "max_pool [explicit]: the kernel is larger than the padded input",
            "on axis H: 7 <= 4 + 2",
            "try       kernel=6 on axis H",
        ),
    ),
    Refusal(
        "pad not smaller than kernel",
        (1, 1, 8, 8),
        dict(kernel=2, stride=2, padding=2),
        (
            "max_pool [caffe]: the pad is not smaller than the kernel",
            "pad < kernel, on axis H: 2 < 2",
            "Caffe, src/caffe/layers/pooling_layer.cpp",
            "padding=1",
        ),
        rules="caffe",
    ),
    Refusal(
        "padding above half the kernel",
        (1, 1, 8, 8),
        dict(kernel=(3, 5), padding=(1, 3)),
        ("max_pool [pytorch]: the padding is more than half the kernel", "on axis W: 3 <= 2", "PyTorch 2.13", "padding=2"),
        rules="pytorch",
    ),
    Refusal(
        "padding above half the kernel, dilated",
        (1, 1, 9),
        dict(kernel=3, padding=2, dilation=2),
        ("on axis W: 2 <= 1",),
        rules="pytorch",
    ),
    Refusal(
        "negative stride", (1, 1, 8), dict(kernel=2, stride=-1), ("stride is below 1", "stride >= 1: -1", "try       stride=1")
    ),
    Refusal("stride 0", (1, 1, 8), dict(kernel=2, stride=0), ("stride >= 1: 0",), rules="caffe"),
    Refusal("kernel 0", (1, 1, 8), dict(kernel=0), ("kernel >= 1: 0",)),
    Refusal("no kernel", (1, 1, 8), {}, ("the kernel is not given",)),
    Refusal("a kernel that is no number", (1, 1, 8), dict(kernel="3"), ("kernel is not a whole number", "kernel = '3'")),
    Refusal("a fractional kernel", (1, 1, 8), dict(kernel=2.5), ("kernel is not a whole number", "kernel = 2.5")),
    Refusal("a true kernel", (1, 1, 8), dict(kernel=True), ("kernel is not a whole number",)),
    Refusal(
        "three kernels for two axes",
        (1, 1, 8, 8),
        dict(kernel=(2, 2, 2)),
        ("kernel needs one value per axis", "2 values, or one for all: 3"),
    ),
    Refusal("wrong rank", (8, 8), dict(kernel=2), ("x has the wrong rank", "x.ndim is 3 or 4 or 5: 2")),
    Refusal("too many axes", (1, 1, 2, 2, 2, 2), dict(kernel=2), ("x.ndim is 3 or 4 or 5: 6",)),
    Refusal("empty plane", (1, 1, 0, 4), dict(kernel=2), ("x has an empty spatial axis",)),
    Refusal("no channels", (1, 0, 4, 4), dict(kernel=2), ("x has no channels",), rules="pytorch"),
    Refusal("unknown layout", (1, 1, 4, 4), dict(kernel=2, layout="CNHW"), ("there is no layout of that name", "channels_first")),
    Refusal(
        "a layout of another rank", (1, 1, 4), dict(kernel=2, layout="NHWC"), ("another number of axes than x", "3 letters: 4")
    ),
    Refusal(
        "unknown rules",
        (1, 1, 4),
        dict(kernel=2),
        ("max_pool [cafe]: there are no rules of that name", "one of explicit, caffe, pytorch, "),
        rules="cafe",
    ),
    Refusal(
        "an argument of other rules",
        (1, 1, 4),
        dict(kernel=2, ceil_mode=True),
        ("there is no argument 'ceil_mode'", "round_mode"),
        rules="caffe",
    ),
    Refusal("unknown tie rule", (1, 1, 4), dict(kernel=2, tie="random"), ("tie has no such value", "'first'", "'equal_share'")),
    Refusal(
        "unequal pads under PyTorch",
        (1, 1, 4),
        dict(kernel=2, padding=((0, 1),)),
        ("PyTorch pads both sides of an axis alike",),
        rules="pytorch",
    ),
    Refusal(
        "dilation under Caffe",
        (1, 1, 8),
        dict(kernel=2, dilation=2),
        ("these rules have no dilation", "dilation=1"),
        rules="caffe",
    ),
    Refusal("padding amounts under MPS", (1, 1, 8), dict(kernel=2, padding=1), ("MPS has no padding amounts",), rules="mps"),
    Refusal(
        "a remainder under NumPy loops",
        (1, 1, 5),
        dict(kernel=2),
        ("the windows do not fill the input exactly", "(5 + 0 - 2) % 2 = 1"),
        rules="numpy_loops",
    ),
    Refusal(
        "padding under NumPy loops", (1, 1, 4), dict(kernel=2, padding=1), ("these rules have no padding",), rules="numpy_loops"
    ),
    Refusal(
        "integers under Caffe",
        (1, 1, 4),
        dict(kernel=2),
        ("there is no rule for int32 arrays", "float32, float64", "x.astype('float32')"),
        rules="caffe",
        dtype="int32",
    ),
    Refusal(
        "half floats under Caffe",
        (1, 1, 4),
        dict(kernel=2),
        ("there is no rule for float16 arrays",),
        rules="caffe",
        dtype="float16",
    ),
    Refusal(
        "a dilation beyond 2^61",
        (1, 1, 8),
        dict(kernel=2, dilation=2**61 - 1, padding=2**60),
        ("the axis counts further than 2^61 - 1", "(kernel - 1) * dilation + 1 <= 2^61 - 1"),
    ),
    Refusal(
        "a padding beyond 2^61",
        (1, 1, 8),
        dict(kernel=2, padding=2**61),
        ("the axis counts further than 2^61 - 1", "size + |pad_lo| + |pad_hi| <= 2^61 - 1", "less padding"),
    ),
    Refusal("a stride beyond 2^61", (1, 1, 8), dict(kernel=2, stride=2**70), ("stride <= 2^61 - 1", "try       stride=8")),
    Refusal(
        "a fractional dilation where there is none",
        (1, 1, 8),
        dict(kernel=2, dilation=1.5),
        ("dilation is not a whole number",),
        rules="caffe",
    ),
    Refusal(
        "a dilation of one axis where there is none",
        (1, 1, 8, 8),
        dict(kernel=2, dilation=(1, -1)),
        ("these rules have no dilation", "dilation = (1, -1)"),
        rules="numpy_loops",
    ),
    Refusal("every spatial tap outside", (1, 1, 8), dict(kernel=4, padding=-3), ("the kernel is larger than the padded input",)),
)
