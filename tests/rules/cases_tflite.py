"""TFLite's recorded probes through its operators' option names."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, array, x_of

from astride.like import tflite

FRAMEWORKS = ("TFLite",)
FUNCTIONS = {"AVERAGE_POOL_2D": tflite.average_pool_2d, "MAX_POOL_2D": tflite.max_pool_2d}


def call_of(case: dict[str, Any]) -> Call:
    """One recorded case as a call; the delegate by its name in the version."""
    params, x = case["params"], x_of(case)
    height, width = params["stride"]
    options: dict[str, Any] = dict(stride_h=height, stride_w=width, padding=params["padding"])
    if case["op"] == "TRANSPOSE_CONV":
        shape = array(case["output"]).shape
        return Call(tflite.transpose_conv, (shape, array(params["weight"], shape=(1, 1, 3, 1)), x), options)
    options |= dict(filter_height=params["filter"][0], filter_width=params["filter"][1])
    if case["op"] == "MAX_POOL_2D":
        options["xnnpack"] = "XNNPACK" in case["version"]
    return Call(FUNCTIONS[case["op"]], (x,), options)
