"""Other frameworks' cases as explicit choices: what each framework does, said in a plan's words.

`call_of` gives None where no single plan says it; `LEFT_OUT` has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.golden.semantics.own import fields_of
from tests.golden.semantics.reading import Call, Planned, array, x_of
from tests.golden.semantics.translate_jax import jax_call
from tests.golden.semantics.translate_onnx import onnx_call

import astride

FIRST_NEVER_NAN: dict[str, Any] = dict(start="finite", nan="compared", tie="first", unpicked="first_tap")

LEFT_OUT = {
    "ONNX Runtime": "one output: the answer for NaN and infinities depends on SIMD lanes; releases with wrong end pads",
    "ONNX reference evaluator": "raises or drops NaN taps by accident; not a model of anything",
    "TFLite": "integer averages and the XNNPACK lanes",
    "Chainer": "unpooling_2d repeats pixels, another operator",
    "Keras": "",
    "OpenCV DNN (Caffe importer)": "",
    "MXNet": "",
    "JAX": "empty outputs and gradients that JAX lacks",
    "TensorFlow": "",
    "Core ML (MIL type inference only)": "shapes alone: values need macOS",
}
"""framework -> why some of its cases have no call; an empty reason allows none."""


def call_of(case: dict[str, Any]) -> Call | Planned | None:
    """One recorded case as a call of an operator with rules="explicit", or None."""
    return TRANSLATORS[case["framework"]](case)


def _pairs(pads: Any) -> Any:
    return tuple((int(p), int(p)) for p in pads)


def _tensorflow(case: dict[str, Any]) -> Call | None:
    op, params, x = case["op"].removeprefix("tf.nn."), case["params"], x_of(case)
    if "conv" in op:
        return _tensorflow_convolution(op, case, x)
    rank = x.ndim - 2
    padding = params["padding"].lower() if isinstance(params["padding"], str) else tuple(map(tuple, params["padding"][1:-1]))
    window = dict(kernel=params.get("ksize"), stride=params["strides"], padding=padding, layout="channels_last")
    if op == "erosion2d":
        return Call(astride.min_pool, (x,), dict(window, kernel=(1, len(params["kernel"]))))
    if op.startswith("avg"):
        return Call(astride.avg_pool, (x,), window)
    if op == "max_pool3d":
        return Call(astride.max_pool, (x,), dict(window, start="finite", nan="compared", tie="recorded"))
    if op == "max_pool_with_argmax":
        per_image = int(np.prod(x.shape[1:])) if not params.get("include_batch_in_index") else 0
        image = np.arange(x.shape[0]).reshape(-1, *[1] * (rank + 1)) * per_image
        choices: dict[str, Any] = dict(start="first_tap", nan="compared", tie="first", index_base="tensor")
        return Call(astride.max_pool, (x,), window | choices, shift=lambda indices: indices - image)
    return Call(astride.max_pool, (x,), dict(window, start="finite", nan="compared", tie="leading_nan"))


def _tensorflow_convolution(op: str, case: dict[str, Any], x: Any) -> Call:
    params, w = case["params"], array(case["weight"])
    if op == "conv1d":
        return Call(
            astride.conv,
            (x, w.transpose(2, 1, 0)),
            dict(stride=params["stride"], padding=params["padding"].lower(), layout="channels_last"),
        )
    out, stride = params["output_shape"][1], params["strides"]
    return _cropped_transpose(x, w.transpose(2, 1, 0), stride, out, same=params["padding"] == "SAME")


def _cropped_transpose(x: Any, w: Any, stride: int, out: int, *, same: bool) -> Call:
    """The gradient of a SAME or VALID convolution whose input had `out` pixels."""
    full = (x.shape[1] - 1) * stride + w.shape[2]
    crop = max(full - out, 0) if same else 0
    pads = ((crop // 2, crop - crop // 2),)
    arguments = dict(stride=stride, padding=pads, output_padding=out - full + crop, layout="channels_last")
    return Call(astride.conv_transpose, (x, w), arguments)


def _keras(case: dict[str, Any]) -> Call:
    params, x = case["params"], x_of(case)
    w = array(case["weight"]).transpose(2, 1, 0)
    if case["op"].endswith("Conv1D"):
        return Call(astride.conv, (x, w), dict(padding=((w.shape[2] - 1, 0),), layout="channels_last"))
    n, k, s, more = x.shape[1], w.shape[2], params["strides"], params.get("output_padding")
    same = params["padding"] == "same"
    if more is None:
        out = n * s if same else n * s + max(k - s, 0)
    else:
        out = (n - 1) * s + k - 2 * (k // 2) + more if same else (n - 1) * s + k + more
    return _cropped_transpose(x, w, s, out, same=same)


def _tflite(case: dict[str, Any]) -> Call | None:
    params, x = case["params"], x_of(case)
    if params["quant_in"][0] or ("XNNPACK" in case["version"] and case["op"] == "MAX_POOL_2D"):
        return None
    if case["op"] == "TRANSPOSE_CONV":
        w = array(params["weight"], shape=(1, 1, 1, 3))
        full = (x.shape[2] - 1) * params["stride"][1] + 3
        crop = full - x.shape[2] * params["stride"][1]
        pads = ((0, 0), (crop // 2, crop - crop // 2))
        return Call(astride.conv_transpose, (x, w), dict(stride=params["stride"], padding=pads, layout="channels_last"))
    window = dict(kernel=params["filter"], stride=params["stride"], padding=params["padding"].lower(), layout="channels_last")
    if case["op"].startswith("AVERAGE"):
        return Call(astride.avg_pool, (x,), window)
    return Call(astride.max_pool, (x,), window | FIRST_NEVER_NAN)


def _mxnet(case: dict[str, Any]) -> Call:
    params, x = case["params"], x_of(case)
    rank, kind = len(params["kernel"]), params["pool_type"]
    if params.get("pooling_convention") == "same" or any(
        p >= k for p, k in zip(params.get("pad", ()), params["kernel"], strict=False)
    ):
        return Call(astride.max_pool, (x,), dict(kernel=params["kernel"], padding="refused by MXNet"))
    window: dict[str, Any] = dict(
        kernel=params["kernel"], stride=params.get("stride", [1] * rank), padding=_pairs(params.get("pad", [0] * rank))
    )
    if params.get("pooling_convention") == "full":
        window |= dict(rounding="ceil", clip="never")
    if kind == "max":
        return Call(astride.max_pool, (x,), window | FIRST_NEVER_NAN)
    if kind == "lp":
        return Call(astride.lp_pool, (x,), dict(window, p=params["p_value"], form="signed_root"))
    if kind == "sum":
        return Call(astride.avg_pool, (x,), dict(window, divisor_override=1))
    return Call(astride.avg_pool, (x,), dict(window, divisor="padded" if params.get("count_include_pad", True) else "valid"))


def _chainer(case: dict[str, Any]) -> Call | None:
    params, x = case["params"], x_of(case)
    if case["op"].startswith("unpooling"):
        return None
    k = params.get("ksize", 1)
    s, p = params.get("stride", k), params.get("pad", 0)
    convolution, average = case["op"].startswith("convolution"), case["op"].startswith("average")
    extra = s - 1 if params.get("cover_all", not convolution and not average) else 0
    rank = x.ndim - 2
    if convolution:
        w = array(params["weight"], shape=(1, 1, 1, 3))
        return Call(astride.conv, (x, w), dict(stride=(1, s), padding=((0, 0), (p, p + extra))))
    window = dict(kernel=k, stride=s, padding=((p, p + extra),) * rank)
    if average:
        return Call(astride.avg_pool, (x,), dict(window, divisor="kernel" if params["pad_value"] == 0 else "valid"))
    return Call(astride.max_pool, (x,), dict(window, tie="first_nan", index_base="window"))


def _mlx(case: dict[str, Any]) -> Call:
    params = case["params"]
    window = dict(kernel=params["kernel"], stride=params["stride"], padding=params.get("padding", 0), layout="channels_last")
    return Call(astride.max_pool, (x_of(case),), dict(window, tie="equal_share"))


def _darknet(case: dict[str, Any]) -> Call:
    params = case["params"]
    lo = params["padding"] // 2
    pads = ((lo, params["padding"] - lo),) * 2
    choices: dict[str, Any] = dict(FIRST_NEVER_NAN, unpicked="nowhere", index_base="tensor")
    return Call(astride.max_pool, (x_of(case),), dict(kernel=params["size"], stride=params["stride"], padding=pads) | choices)


def _openvino(case: dict[str, Any]) -> Call:
    params = case["params"]
    rounding = {"floor": {}, "ceil": dict(rounding="ceil", clip="never"), "ceil_torch": dict(rounding="ceil", clip="always")}
    window: dict[str, Any] = dict(kernel=params["kernel"], stride=params["strides"], padding=_pairs(params.get("pads", (0, 0))))
    window |= rounding[params.get("rounding_type", "floor")]
    if case["op"].startswith("Avg"):
        return Call(astride.avg_pool, (x_of(case),), dict(window, divisor="valid" if params["exclude_pad"] else "kernel"))
    base = "plane" if params.get("axis", 0) == 2 else "tensor"
    # a window of padding alone has index 0 there, -1 here
    return Call(
        astride.max_pool, (x_of(case),), dict(window, index_base=base) | FIRST_NEVER_NAN, shift=lambda i: np.maximum(i, 0)
    )


def _ncnn(case: dict[str, Any]) -> Call:
    params = case["params"]
    mode = params["pad_mode"]
    window: dict[str, Any] = dict(kernel=params["kernel"], stride=params["stride"])
    window["padding"] = {2: "same", 3: "same_lower"}.get(mode, params.get("pad", 0))
    if mode == 0:
        window |= dict(rounding="ceil", clip="never")
    if params["type"] == "avg":
        return Call(
            astride.avg_pool, (x_of(case),), dict(window, divisor=("valid", "kernel")[params["avgpool_count_include_pad"]])
        )
    return Call(astride.max_pool, (x_of(case),), dict(window, start="first_tap"))


def _onednn(case: dict[str, Any]) -> Call:
    params = case["params"]
    k = params["k"]
    shape = (1, 1, *k) if "s" not in params else (1, 1, 1, case["input_shape"][0])
    x = array(case["input"], shape=shape)
    pads = ((0, 0), (params.get("pad_l", 0), params.get("pad_r", 0)))
    window = dict(kernel=k, stride=params.get("s", k), padding=pads)
    if case["op"] == "pooling_max":
        return Call(astride.max_pool, (x,), window | FIRST_NEVER_NAN, flat=True)
    divisor = "kernel" if "include" in case["op"] else "valid"
    return Call(astride.avg_pool, (x,), dict(window, divisor=divisor), flat=True)


def _opencv(case: dict[str, Any]) -> Call:
    """As Caffe, but for `ceil_mode`, a field of forks, and 0 for a window of padding alone. It knows no `round_mode`."""
    fields = fields_of(case["params"])
    if "round_mode" in fields or fields["pool"] == "STOCHASTIC":
        return Call(astride.max_pool, (x_of(case),), dict(kernel=2, padding="refused by OpenCV"))
    k, s, p = fields["kernel_size"], fields["stride"], fields.get("pad", 0)
    window: dict[str, Any] = dict(kernel=k, stride=s, padding=p)
    window |= dict(rounding="ceil" if fields.get("ceil_mode", True) else "floor", clip="padded")
    if fields["pool"] == "AVE":
        return Call(astride.avg_pool, (x_of(case),), dict(window, divisor="caffe", empty="quotient"))
    return Call(astride.max_pool, (x_of(case),), dict(window, empty="zero") | FIRST_NEVER_NAN)


def _coreml(case: dict[str, Any]) -> None:
    return None


TRANSLATORS: dict[str, Callable[[dict[str, Any]], Call | Planned | None]] = {
    "TensorFlow": _tensorflow,
    "Keras": _keras,
    "TFLite": _tflite,
    "JAX": jax_call,
    "ONNX Runtime": onnx_call,
    "ONNX reference evaluator": onnx_call,
    "MXNet": _mxnet,
    "Chainer": _chainer,
    "MLX": _mlx,
    "DarkNet": _darknet,
    "OpenVINO": _openvino,
    "ncnn": _ncnn,
    "oneDNN": _onednn,
    "OpenCV DNN (Caffe importer)": _opencv,
    "Core ML (MIL type inference only)": _coreml,
}
