"""ONNX Runtime's answers, by the rules of the release that gave them."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.golden.semantics.reading import Call, array, x_of

import astride

FRAMEWORKS = ("ONNX Runtime",)
OPERATORS = {
    "MaxPool": astride.max_pool,
    "AveragePool": astride.avg_pool,
    "LpPool": astride.lp_pool,
    "MaxUnpool": astride.max_unpool,
    "Conv": astride.conv,
    "ConvTranspose": astride.conv_transpose,
}
NAMES = {"kernel_shape": "kernel", "strides": "stride", "dilations": "dilation", "group": "groups"}


def call_of(case: dict[str, Any]) -> Call:
    """A node's attributes in the shared vocabulary, with ONNX's default of 1 for strides."""
    x, params = x_of(case), dict(case["params"])
    rank = x.ndim - 2
    pads = params.pop("pads", [0] * 2 * rank)
    word = params.pop("auto_pad", "NOTSET")
    arguments = {"padding": word if word != "NOTSET" else tuple(zip(pads[:rank], pads[rank:], strict=True)), "stride": 1}
    arguments |= {NAMES.get(name, name): value for name, value in params.items()}
    others = [np.array(a) if case["op"] == "MaxUnpool" else array(a) for a in case.get("other_inputs") or ()]
    if case["op"] == "MaxUnpool" and len(others) > 1:
        arguments["output_size"] = tuple(others.pop().tolist())[2:]
    if case["op"] == "MaxPool" and case.get("indices") is not None:
        arguments["outputs"] = 2
    arguments |= {"rules": "onnxruntime", "version": case["version"].removesuffix(" CPU EP")}
    return Call(OPERATORS[case["op"]], (x, *others), arguments)
