"""The same poolings in other libraries, as calls that allocate their results: the pooling benchmark times them beside astride's.

A library is a function (case, layout, what, x, dy) -> call, or None where the library has no such pooling. `what` is
"forward", "argmax" (forward, keeping what backward needs) or "backward". A call returns y, or dx, in the layout it was given.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .field import Call
from .pooling_cases import Case
from .race import threads


def plan_of(case: Case, layout: str) -> Any:
    """The plan of a case."""
    from ..ops._run import plan

    return plan(case.op, case.shape(layout), layout=layout, **case.options)


def out_shape(case: Case, layout: str) -> tuple[int, ...]:
    """The shape of y in a layout."""
    shape: tuple[int, ...] = plan_of(case, layout).output_shape(case.shape(layout))
    return shape


def astride(case: Case, layout: str, what: str, x: Any, dy: Any) -> Call:
    """This package, through its dispatcher."""
    return _through(case, layout, what, x, dy, "cpu")


def im2col(case: Case, layout: str, what: str, x: Any, dy: Any) -> Call | None:
    """The ladder's rung below the kernels, where it takes seconds at most."""
    return _through(case, layout, what, x, dy, "reference:im2col") if x.size <= 1 << 20 else None


def _through(case: Case, layout: str, what: str, x: Any, dy: Any, backend: str) -> Call:
    from .. import dispatch

    plan = plan_of(case, layout)
    if what != "backward":
        return lambda: dispatch.forward(plan, x, save=what == "argmax", backend=backend)[0]
    _, saved = dispatch.forward(plan, x, save=True, backend=backend)
    assert saved is not None
    kept = saved
    return lambda: dispatch.backward(plan, dy, kept)[0]


def torch(case: Case, layout: str, what: str, x: Any, dy: Any) -> Call | None:
    """PyTorch, in the memory format of the layout."""
    library: Any = import_module("torch")

    functional = library.nn.functional
    rank, last = len(case.size), layout == "channels_last"
    if any(low > high or high - low > 1 for low, high in case.padding) or (rank == 1 and last):
        return None
    ceil = not case.same_padding
    common: dict[str, Any] = {"stride": case.stride, "ceil_mode": ceil}
    kernel, low = case.kernel, tuple(pair[0] for pair in case.padding)
    if case.op == "max_pool":
        function = getattr(functional, f"max_pool{rank}d")
        common |= {"padding": low, "return_indices": what == "argmax"}
    elif case.op == "avg_pool":
        function = getattr(functional, f"avg_pool{rank}d")
        common |= {"padding": low, "count_include_pad": False}
    else:
        if any(low) or rank != 2:
            return None
        function = lambda t, k, **more: functional.lp_pool2d(t, 2.0, k, **more)  # noqa: E731
    to_first, to_last = (0, rank + 1, *range(1, rank + 1)), (0, *range(2, rank + 2), 1)

    def tensor(array: Any) -> Any:
        given = library.from_numpy(array)
        return given.permute(to_first) if last else given

    def back(result: Any) -> Any:
        result = result[0] if isinstance(result, tuple) else result
        return (result.permute(to_last) if last else result).detach().numpy()

    given = tensor(x)
    if what != "backward":

        def forward() -> Any:
            with library.no_grad():
                return back(function(given, kernel, **common))

        return forward
    given = given.detach().requires_grad_()
    y, arriving = function(given, kernel, **common), tensor(dy)
    return lambda: back(library.autograd.grad(y, given, arriving, retain_graph=True)[0])


def onnxruntime(case: Case, layout: str, what: str, x: Any, dy: Any) -> Call | None:
    """ONNX Runtime: channels first, forward."""
    if layout != "channels_first" or what == "backward":
        return None
    library: Any = import_module("onnxruntime")
    onnx: Any = import_module("onnx")

    kinds = {"max_pool": "MaxPool", "avg_pool": "AveragePool", "lp_pool": "LpPool"}
    pads = [pair[0] for pair in case.padding] + [pair[1] for pair in case.padding]
    more = {"p": 2} if case.op == "lp_pool" else {}
    outputs = ["y", "i"] if what == "argmax" else ["y"]
    make = onnx.helper
    node = make.make_node(kinds[case.op], ["x"], outputs, kernel_shape=case.kernel, strides=case.stride, pads=pads, **more)
    kind = onnx.TensorProto.FLOAT
    results = [make.make_tensor_value_info("y", kind, None)]
    if what == "argmax":
        results.append(make.make_tensor_value_info("i", onnx.TensorProto.INT64, None))
    graph = make.make_graph([node], "pooling", [make.make_tensor_value_info("x", kind, x.shape)], results)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=10)
    options = library.SessionOptions()
    options.intra_op_num_threads = threads()
    session = library.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})[0]


def openvino(case: Case, layout: str, what: str, x: Any, dy: Any) -> Call | None:
    """OpenVINO: channels first, forward, extremes and averages."""
    if layout != "channels_first" or what != "forward" or case.op == "lp_pool" or len(case.size) == 1:
        return None
    library: Any = import_module("openvino")
    ops: Any = import_module("openvino.opset8")

    given = ops.parameter(x.shape, np.float32)
    low, high = [pair[0] for pair in case.padding], [pair[1] for pair in case.padding]
    if case.op == "max_pool":
        node = ops.max_pool(given, list(case.stride), [1] * len(low), low, high, list(case.kernel)).output(0)
    else:
        node = ops.avg_pool(given, list(case.stride), low, high, list(case.kernel), True).output(0)
    hints = {"INFERENCE_NUM_THREADS": threads(), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = library.Core().compile_model(library.Model([node], [given], "pooling"), "CPU", hints)
    request = compiled.create_infer_request()
    # Its own output buffer is used again and again, which is its way; the copy that makes it the caller's is not timed.
    return lambda: request.infer({0: x}, share_inputs=True, share_outputs=True)[0]


def jax(case: Case, layout: str, what: str, x: Any, dy: Any) -> Call | None:
    """JAX, jitted, its arrays ready."""
    if what == "argmax":
        return None
    library: Any = import_module("jax")

    lax, rank = library.lax, len(case.size)

    def full(values: Any, fill: Any) -> tuple[Any, ...]:
        return (fill, fill, *values) if layout == "channels_first" else (fill, *values, fill)

    window, stride, pads = full(case.kernel, 1), full(case.stride, 1), full(case.padding, (0, 0))

    def pooled(a: Any) -> Any:
        if case.op == "max_pool":
            return lax.reduce_window(a, -np.inf, lax.max, window, stride, pads)
        if case.op == "lp_pool":
            return library.numpy.sqrt(lax.reduce_window(a * a, 0.0, lax.add, window, stride, pads))
        inside = lax.reduce_window(np.ones(full(case.size, 1), np.float32), 0.0, lax.add, window, stride, pads)
        return lax.reduce_window(a, 0.0, lax.add, window, stride, pads) / inside

    assert rank == len(case.padding)
    given, arriving = library.numpy.asarray(x), library.numpy.asarray(dy)
    if what == "forward":
        forward = library.jit(pooled)
        return lambda: np.asarray(forward(given).block_until_ready())
    backward = library.jit(lambda a, d: library.vjp(pooled, a)[1](d)[0])
    return lambda: np.asarray(backward(given, arriving).block_until_ready())


def opencv(case: Case, layout: str, what: str, x: Any, dy: Any) -> Call | None:
    """OpenCV's Caffe importer, whose poolings round up: channels first, two axes, forward, where the sizes agree."""
    if layout != "channels_first" or what != "forward" or len(case.size) != 2 or case.op == "lp_pool":
        return None
    library: Any = import_module("cv2")

    word = "MAX" if case.op == "max_pool" else "AVE"
    (kh, kw), (sh, sw), (ph, pw) = case.kernel, case.stride, [pair[0] for pair in case.padding]
    text = f"""
    input: "x" {" ".join(f"input_dim: {n}" for n in x.shape)}
    layer {{ name: "y" type: "Pooling" bottom: "x" top: "y" pooling_param {{ pool: {word} kernel_h: {kh} kernel_w: {kw}
      stride_h: {sh} stride_w: {sw} pad_h: {ph} pad_w: {pw} }} }}"""
    net = library.dnn.readNetFromCaffe(np.frombuffer(text.encode(), np.uint8))
    library.setNumThreads(threads())

    def call() -> Any:
        net.setInput(x)
        return net.forward()

    return call


LIBRARIES = {
    "astride": astride,
    "im2col": im2col,
    "torch": torch,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "jax": jax,
    "opencv": opencv,
}
MODULES = {"opencv": "cv2"}
"""Where a library's module has another name."""
