"""ONNX Runtime's releases, and the reference evaluator where it is a model of the text, as explicit choices."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.golden.semantics.reading import Call, array, refused, x_of

import astride

SAME = {"SAME_UPPER": "same", "SAME_LOWER": "same_lower"}


def onnx_call(case: dict[str, Any]) -> Call | None:
    """None where an answer depends on SIMD lanes, is a known fault of a release, or (evaluator) is an accident."""
    if refused(case) or (case["framework"] != "ONNX Runtime" and case["op"] in ("MaxPool", "AveragePool", "MaxUnpool")):
        return None
    calls = {
        "MaxPool": _max,
        "AveragePool": _average,
        "LpPool": _lp,
        "Conv": _conv,
        "ConvTranspose": _transpose,
        "MaxUnpool": _unpool,
    }
    return calls[case["op"]](case)


def release(case: dict[str, Any]) -> tuple[int, int]:
    major, minor = case["version"].split(".")[:2]
    return int(major), int(minor)


def _window(case: dict[str, Any]) -> dict[str, Any]:
    """Kernel, stride (1 by default), dilation and pads; ceil windows are clipped from 1.21 on."""
    params = case["params"]
    rank = len(params["kernel_shape"])
    flat = params.get("pads", [0] * 2 * rank)
    window: dict[str, Any] = dict(
        kernel=params["kernel_shape"],
        stride=params.get("strides", [1] * rank),
        dilation=params.get("dilations", [1] * rank),
        padding=SAME.get(params.get("auto_pad", ""), tuple(zip(flat[:rank], flat[rank:], strict=True))),
    )
    if params.get("ceil_mode"):
        clipped = case["framework"] != "ONNX Runtime" or release(case) >= (1, 21)
        window |= dict(rounding="ceil", clip="always" if clipped else "never")
    return window


def _max(case: dict[str, Any]) -> Call | None:
    x, params = x_of(case), case["params"]
    if params.get("storage_order"):
        return None
    if case.get("indices") is None and not np.isfinite(x).all():
        return None
    negative = case.get("indices") is not None and min(np.array(case["indices"]).reshape(-1)) < 0
    if negative and release(case) < (1, 29):
        case.pop("indices")  # no tap won: the index is not defined
    start = dict(start="first_tap", nan="compared") if release(case) >= (1, 29) else dict(start="finite", nan="compared")
    return Call(astride.max_pool, (x,), dict(_window(case), index_base="tensor", unpicked="nowhere") | start)


def _average(case: dict[str, Any]) -> Call | None:
    params, version, opset = case["params"], release(case), case["params"]["opset"]
    unequal = params.get("pads") and len(set(params["pads"])) > 1
    if unequal and opset >= 19 and (1, 21) <= version < (1, 25):
        return None  # these releases took the wrong end pads
    divisor = "valid"
    if params.get("count_include_pad"):
        right = version >= (1, 29) or (version >= (1, 21) and opset >= 19)
        divisor = "padded" if right or not params.get("ceil_mode") else "kernel"
    empty = "quotient" if opset <= 18 else "zero"
    return Call(astride.avg_pool, (x_of(case),), dict(_window(case), divisor=divisor, empty=empty))


def _lp(case: dict[str, Any]) -> Call:
    rescaled = case["framework"] != "ONNX Runtime" and case["params"].get("ceil_mode")
    return Call(
        astride.lp_pool, (x_of(case),), dict(_window(case), p=case["params"]["p"], scale="rescaled" if rescaled else "sum")
    )


def _conv(case: dict[str, Any]) -> Call:
    params, w = case["params"], array(case["other_inputs"][0])
    padding = SAME.get(
        params.get("auto_pad", ""), tuple(zip(*np.reshape(params.get("pads", [0, 0]), (2, -1)).tolist(), strict=True))
    )
    return Call(astride.conv, (x_of(case), w), dict(stride=params.get("strides", 1), padding=padding))


def _transpose(case: dict[str, Any]) -> Call:
    """SAME gives n*s pixels, or what the kernel reaches where that is less; an odd crop is at the start unless SAME_UPPER;
    `output_shape` decides where it is given."""
    params, x, w = case["params"], x_of(case), array(case["other_inputs"][0])
    (s,) = params.get("strides", [1])
    (more,) = params.get("output_padding", [0])
    full = (x.shape[2] - 1) * s + w.shape[2] + more
    auto = params.get("auto_pad", "NOTSET")
    wanted = params.get("output_shape", [min(x.shape[2] * s, full) if auto in SAME else full])[0]
    crop = full - wanted
    before = crop // 2 if auto == "SAME_UPPER" else crop - crop // 2
    return Call(astride.conv_transpose, (x, w), dict(stride=s, padding=((before, crop - before),), output_padding=more))


def _unpool(case: dict[str, Any]) -> Call:
    params, indices = case["params"], np.array(case["other_inputs"][0], np.int64)
    arguments: dict[str, Any] = dict(kernel=params["kernel_shape"], stride=params["strides"], index_base="tensor")
    if len(case["other_inputs"]) > 1:
        arguments["output_size"] = tuple(case["other_inputs"][1][2:])
    return Call(astride.max_unpool, (x_of(case), indices), arguments)
