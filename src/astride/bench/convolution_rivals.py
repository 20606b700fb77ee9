"""The same convolutions in other libraries, as calls that allocate their results.

A library is a function (case, layout, what, arrays) -> entrant, or None where it has no such convolution. `what` is
"forward", "data" or "weights" (the gradients). `arrays` have channels first; what a library needs otherwise is made before it
is timed. A call returns its result as it is; an entrant's `answer` brings it to channels first, to be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from .convolution_cases import Case
from .field import Entrant
from .race import threads


@dataclass(frozen=True, slots=True)
class Arrays:
    """x, w and the gradient of y, channels first."""

    x: Any
    w: Any
    dy: Any


def to_last(array: Any) -> Any:
    """Channels last, contiguous."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def to_first(array: Any) -> Any:
    """Channels first."""
    return np.moveaxis(np.asarray(array), -1, 1)


def plan_of(case: Case, layout: str) -> Any:
    """The plan of a case."""
    from ..ops._run import plan

    last = layout == "channels_last"
    shape = (case.images, *case.size, case.inputs) if last else case.x_shape
    return plan(case.op, shape, w_shape=case.w_shape, layout=layout, **case.options)


def astride(case: Case, layout: str, what: str, arrays: Arrays) -> Entrant | None:
    """This package, through its dispatcher; weights are frozen forward, and packed in every call for gradients."""
    from .. import dispatch
    from ..backends.fixed import frozen

    last, plan = layout == "channels_last", plan_of(case, layout)
    x, dy = (to_last(a) if last else a for a in (arrays.x, arrays.dy))
    if what == "forward":
        w = frozen(arrays.w)
        return Entrant(lambda: dispatch.forward(plan, x, w, None, backend="cpu")[0], to_first if last else np.asarray)
    _, saved = dispatch.forward(plan, x, arrays.w, None, save=True, backend="cpu")
    assert saved is not None
    kept, wanted = saved, (what == "data", what == "weights", False)
    index = wanted.index(True)
    first = to_first if last and what == "data" else np.asarray
    return Entrant(lambda: dispatch.backward(plan, dy, kept, want=wanted)[index], first)


def _torch(case: Case, what: str, arrays: Arrays, last: bool) -> Entrant | None:
    library: Any = import_module("torch")
    rank = len(case.size)
    if last and rank == 1:
        return None
    formats = {2: library.channels_last, 3: library.channels_last_3d}
    form = formats[rank] if last else library.contiguous_format
    x, w, dy = (library.from_numpy(a).contiguous(memory_format=form) for a in (arrays.x, arrays.w, arrays.dy))
    low = [pair[0] for pair in case.padding]
    if not case.same_padding:
        if case.transposed:
            return None
        x = library.nn.functional.pad(x, [n for pair in reversed(case.padding) for n in pair]).contiguous(memory_format=form)
        low = [0] * rank
    settings = (list(case.stride), low, list(case.dilation))
    more = (case.transposed, [0] * rank, case.groups)
    if what == "forward":

        def forward() -> Any:
            with library.inference_mode():
                return library.ops.aten.convolution(x, w, None, *settings, *more)

        return Entrant(forward)
    wanted = [what == "data", what == "weights", False]
    index, cut = wanted.index(True), (lambda a: a)
    if not case.same_padding and what == "data":
        inner = tuple(slice(lo, n + lo) for (lo, _), n in zip(case.padding, case.size, strict=True))
        cut = lambda a: np.asarray(a)[(slice(None), slice(None), *inner)]  # noqa: E731
    run = library.ops.aten.convolution_backward
    return Entrant(lambda: run(dy, x, w, None, *settings, *more, wanted)[index], cut)


def torch(case: Case, layout: str, what: str, arrays: Arrays) -> Entrant | None:
    """PyTorch. Padding that differs between the ends is in the array before time begins."""
    return _torch(case, what, arrays, False)


def torch_last(case: Case, layout: str, what: str, arrays: Arrays) -> Entrant | None:
    """PyTorch in its channels-last memory format."""
    return _torch(case, what, arrays, True)


def onnxruntime(case: Case, layout: str, what: str, arrays: Arrays) -> Entrant | None:
    """ONNX Runtime: forward, weights constant, into an array that is there."""
    if what != "forward":
        return None
    library: Any = import_module("onnxruntime")
    onnx: Any = import_module("onnx")
    make = onnx.helper
    pads = [pair[0] for pair in case.padding] + [pair[1] for pair in case.padding]
    node = make.make_node(
        "ConvTranspose" if case.transposed else "Conv",
        ["x", "w"],
        ["y"],
        kernel_shape=case.kernel,
        strides=case.stride,
        pads=pads,
        dilations=case.dilation,
        group=case.groups,
    )
    kind = onnx.TensorProto.FLOAT
    values = [make.make_tensor_value_info(n, kind, a.shape) for n, a in (("x", arrays.x), ("y", arrays.dy))]
    graph = make.make_graph([node], "g", values[:1], values[1:], [onnx.numpy_helper.from_array(arrays.w, "w")])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    options = library.SessionOptions()
    options.intra_op_num_threads = threads()
    session = library.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    bound, y = session.io_binding(), np.empty_like(arrays.dy)
    bound.bind_cpu_input("x", arrays.x)
    bound.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)

    def call() -> Any:
        session.run_with_iobinding(bound)
        return y

    return Entrant(call, reads=arrays)


def openvino(case: Case, layout: str, what: str, arrays: Arrays) -> Entrant | None:
    """OpenVINO: forward, weights constant, into its own array."""
    if what != "forward" or len(case.size) == 1:
        return None
    library: Any = import_module("openvino")
    ops: Any = import_module("openvino.opset13")
    given = ops.parameter(list(arrays.x.shape), np.float32)
    low, high = ([pair[k] for pair in case.padding] for k in range(2))
    steps, rates, groups = list(case.stride), list(case.dilation), case.groups
    w = arrays.w
    if case.transposed:
        node = ops.convolution_backprop_data(given, ops.constant(w), steps, pads_begin=low, pads_end=high, dilations=rates)
    elif groups > 1:
        w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        node = ops.group_convolution(given, ops.constant(w), steps, low, high, rates)
    else:
        node = ops.convolution(given, ops.constant(w), steps, low, high, rates)
    hints = {"INFERENCE_NUM_THREADS": threads(), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = library.Core().compile_model(library.Model([node], [given], "g"), "CPU", {**hints, "NUM_STREAMS": 1})
    request = compiled.create_infer_request()
    request.set_input_tensor(library.Tensor(arrays.x, shared_memory=True))

    def call() -> Any:
        request.infer()
        return request

    return Entrant(call, lambda found: found.get_output_tensor(0).data.copy(), arrays)


def jax(case: Case, layout: str, what: str, arrays: Arrays) -> Entrant | None:
    """JAX, jitted, in the layout of the row."""
    library: Any = import_module("jax")
    if case.transposed and case.groups > 1:
        return None
    last, axes = layout == "channels_last", "DHW"[3 - len(case.size) :]
    numbers = (f"N{axes}C", f"{axes}IO", f"N{axes}C") if last else (f"NC{axes}", f"OI{axes}", f"NC{axes}")
    w = arrays.w
    pads, step, stretch = list(case.padding), case.stride, (1,) * len(axes)
    if case.transposed:
        w = np.ascontiguousarray(np.flip(w.swapaxes(0, 1), tuple(range(2, w.ndim))))
        reach = [(k - 1) * d for k, d in zip(case.kernel, case.dilation, strict=True)]
        pads = [(r - lo, r - hi) for r, (lo, hi) in zip(reach, pads, strict=True)]
        step, stretch = stretch, step
    if last:
        w = np.ascontiguousarray(np.moveaxis(w, (0, 1), (-1, -2)))
    x, dy, w = (library.numpy.asarray(a) for a in (*((to_last(a) if last else a) for a in (arrays.x, arrays.dy)), w))

    def compute(x: Any, w: Any) -> Any:
        return library.lax.conv_general_dilated(
            x, w, step, pads, stretch, case.dilation, library.lax.ConvDimensionNumbers(*_places(numbers)), case.groups
        )

    ready = library.block_until_ready
    if what == "forward":
        forward = library.jit(compute)
        return Entrant(lambda: ready(forward(x, w)), to_first if last else np.asarray)
    if what == "data":
        back = library.jit(lambda x, w, dy: library.vjp(lambda a: compute(a, w), x)[1](dy)[0])
        return Entrant(lambda: ready(back(x, w, dy)), to_first if last else np.asarray)
    weigh = library.jit(lambda x, w, dy: library.vjp(lambda a: compute(x, a), w)[1](dy)[0])

    def unturned(dw: Any) -> Any:
        dw = np.asarray(dw)
        if last:
            dw = np.moveaxis(dw, (-1, -2), (0, 1))
        return np.flip(dw, tuple(range(2, dw.ndim))).swapaxes(0, 1) if case.transposed else dw

    return Entrant(lambda: ready(weigh(x, w, dy)), unturned)


def _places(numbers: tuple[str, str, str]) -> list[tuple[int, ...]]:
    """Letters as JAX counts them: batch or outputs first, then features or inputs, then the axes."""
    heads = ("NC", "OI", "NC")
    return [
        tuple(word.index(letter) for letter in (*head, *(a for a in "DHW" if a in word)))
        for word, head in zip(numbers, heads, strict=True)
    ]


LIBRARIES: dict[str, Callable[[Case, str, str, Arrays], Entrant | None]] = {
    "astride": astride,
    "torch": torch,
    "torch_last": torch_last,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "jax": jax,
}
MODULES = {"torch_last": "torch"}
"""Where a rival's module has another name."""
