"""Convolution of quantised numbers beside ONNX Runtime: QLinearConv, layers of ResNet and MobileNet.

x and y are unsigned bytes, w signed ones with a scale for each output channel, b int32; all but x is constant. ONNX Runtime
takes part in each layout with the operator it has for it: ONNX's, whose channels come first, and its own with channels last.
Rounding is the same everywhere; scales are multiplied in another order, so answers may differ by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from .convolution_cases import UP, Case, conv
from .convolution_rivals import to_first, to_last
from .field import Entrant, Field
from .race import LAYOUTS, Benchmark, Row, beside, head, library_version, rounded, tail, threads

LEAST = 0.95
"""A row below this ratio fails."""

CASES = [
    conv("ResNet 7x7/2 N1", 1, 3, 224, 64, 7, 2, 3),
    conv("ResNet 3x3 64 N1", 1, 64, 56, 64, 3, 1, 1),
    conv("ResNet 3x3 64", 8, 64, 56, 64, 3, 1, 1),
    conv("ResNet 3x3/2 128 N1", 1, 128, 56, 128, 3, 2, 1),
    conv("ResNet 3x3 256 N1", 1, 256, 14, 256, 3, 1, 1),
    conv("ResNet 3x3 512 N1", 1, 512, 7, 512, 3, 1, 1),
    conv("ResNet 1x1 64>256 N1", 1, 64, 56, 256, 1),
    conv("ResNet 1x1 256>64 N1", 1, 256, 56, 64, 1),
    conv("ResNet 1x1/2 256>512 N1", 1, 256, 56, 512, 1, 2),
    conv("ResNet 1x1 1024>256", 8, 1024, 14, 256, 1),
    conv("ResNet 1x1 2048>512 N1", 1, 2048, 7, 512, 1),
    conv("MobileNet conv1 N1", 1, 3, 224, 32, 3, 2, UP),
    conv("MobileNet 1x1 32>16 N1", 1, 32, 112, 16, 1),
    conv("MobileNet 1x1 24>144 N1", 1, 24, 56, 144, 1),
    conv("MobileNet 1x1 144>32 N1", 1, 144, 28, 32, 1),
    conv("MobileNet 1x1 160>960 N1", 1, 160, 7, 960, 1),
    conv("MobileNet dw 32 of 112 N1", 1, 32, 112, 32, 3, 1, 1, 32),
    conv("MobileNet dw 144 of 56 N1", 1, 144, 56, 144, 3, 1, 1, 144),
    conv("MobileNet dw/2 144 N1", 1, 144, 56, 144, 3, 2, UP, 144),
    conv("MobileNet dw 960 of 7 N1", 1, 960, 7, 960, 3, 1, 1, 960),
    conv("ResNeXt 3x3 g32 N1", 1, 128, 56, 128, 3, 1, 1, 32),
]


@dataclass(frozen=True, slots=True)
class Numbers:
    """x with channels first, w, b, and the scales of w and of y; x's scale is one."""

    x: Any
    w: Any
    b: Any
    w_scale: Any
    y_scale: Any


X_ZERO, Y_ZERO = 114, 128
ONE = np.float32(1)


def filled(case: Case) -> Numbers:
    """Bytes over their whole range; scales that bring most results inside it."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 256, case.x_shape).astype(np.uint8), rng.integers(-128, 128, case.w_shape).astype(np.int8)
    b = rng.integers(-5000, 5000, case.outputs).astype(np.int32)
    w_scale = rng.uniform(0.5, 1.5, case.outputs).astype(np.float32)
    return Numbers(x, w, b, w_scale, np.asarray(np.float32(150 * np.sqrt(w[0].size))))


def astride(case: Case, layout: str, given: Numbers) -> Entrant:
    """This package, through its dispatcher, weights frozen."""
    from .. import dispatch
    from ..backends.fixed import frozen
    from ..ops._run import plan

    last = layout == "channels_last"
    x, w = to_last(given.x) if last else given.x, frozen(given.w)
    kinds = {"dtype": "uint8", "w_dtype": "int8", "y_dtype": "uint8"}
    made = plan("conv_integer", x.shape, w_shape=w.shape, layout=layout, **kinds, **case.options)
    zeros = (np.array(X_ZERO, np.uint8), np.array(0, np.int8))
    more = (*zeros, given.b, np.asarray(ONE), given.w_scale, given.y_scale, np.array(Y_ZERO, np.uint8))
    return Entrant(lambda: dispatch.forward(made, x, w, *more, backend="cpu")[0], to_first if last else np.asarray)


def onnxruntime(case: Case, layout: str, given: Numbers) -> Entrant:
    """ONNX Runtime, into an array that is there."""
    library: Any = import_module("onnxruntime")
    onnx: Any = import_module("onnx")
    make, last = onnx.helper, layout == "channels_last"
    x = to_last(given.x) if last else given.x
    y = np.empty((case.images, *case.out, case.outputs) if last else (case.images, case.outputs, *case.out), np.uint8)
    constants = {
        "xs": ONE, "xz": np.uint8(X_ZERO), "w": given.w, "ws": given.w_scale, "wz": np.zeros(case.outputs, np.int8),
        "ys": given.y_scale, "yz": np.uint8(Y_ZERO), "b": given.b,
    }  # fmt: skip
    pads = [pair[0] for pair in case.padding] + [pair[1] for pair in case.padding]
    options: dict[str, Any] = {"kernel_shape": case.kernel, "strides": case.stride, "pads": pads}
    options |= {"dilations": case.dilation, "group": case.groups}
    if last:
        options |= {"channels_last": 1, "domain": "com.microsoft"}
    node = make.make_node("QLinearConv", ["x", *constants], ["y"], **options)
    kind = onnx.TensorProto.UINT8
    values = [make.make_tensor_value_info(n, kind, a.shape) for n, a in (("x", x), ("y", y))]
    held = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = make.make_graph([node], "g", values[:1], values[1:], held)
    sets = [make.make_opsetid("", 17), make.make_opsetid("com.microsoft", 1)]
    model = make.make_model(graph, opset_imports=sets, ir_version=8)
    about = library.SessionOptions()
    about.intra_op_num_threads = threads()
    session = library.InferenceSession(model.SerializeToString(), about, providers=["CPUExecutionProvider"])
    bound = session.io_binding()
    bound.bind_cpu_input("x", x)
    bound.bind_output("y", "cpu", 0, np.uint8, y.shape, y.ctypes.data)

    def call() -> Any:
        session.run_with_iobinding(bound)
        return y

    return Entrant(call, to_first if last else np.asarray, reads=x)


LIBRARIES = {"astride": astride, "onnxruntime": onnxruntime}


def entrants(library: str, case: Case, layouts: Sequence[str], what: str) -> dict[str, Entrant]:
    """Everyone in each layout."""
    given = filled(case)
    return {layout: LIBRARIES[library](case, LAYOUTS[layout], given) for layout in layouts}


def same(answer: Any, expected: Any) -> bool:
    """Whether two answers agree within one."""
    apart = np.abs(np.asarray(answer).astype(np.int16) - expected)
    return answer.shape == expected.shape and int(apart.max()) <= 1


def timed(case: Case, layouts: Sequence[str], what: str, field: Field, seconds: float) -> dict[str, Row]:
    """The rows of one case, by layout."""
    times = field.turns(field.enter(case, layouts, what), seconds)
    found = {}
    for layout in layouts:
        others = {library: one for (library, name), one in times.items() if library != "astride" and name == layout}
        row = beside(times["astride", layout], others)
        speed = case.flops / row["ms"] / 1e6
        found[layout] = rounded(row | {"GOP_per_s": speed, "differing": field.differing})
    return found


def takes(case: Case, what: str) -> bool:
    """Whether a case has that row: all have."""
    return True


def fails(row: Row) -> bool:
    """Whether the best rival was clearly faster, or the answer another."""
    return "astride" in row["differing"] or (row["ratio"] is not None and row["ratio"] < LEAST)


def line(row: Row) -> str:
    """A row for people."""
    return f"{head(row)}  {row['GOP_per_s']:5.0f} GOP/s  {tail(row)}"


BENCHMARK = Benchmark(
    name="integer",
    whats=("forward",),
    cases=CASES,
    seconds=0.5,
    libraries=tuple(LIBRARIES),
    version=partial(library_version, {}),
    entrants=entrants,
    same=same,
    takes=takes,
    timed=timed,
    fails=fails,
    line=line,
)
