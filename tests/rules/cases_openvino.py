"""OpenVINO's answers, by its rules. `pads` is one list for begin and end."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, x_of

import astride

FRAMEWORKS = ("OpenVINO",)


def call_of(case: dict[str, Any]) -> Call:
    params = dict(case["params"])
    arguments = {"stride": params.pop("strides"), "padding": params.pop("pads", 0), **params, "rules": "openvino"}
    return Call(astride.max_pool if case["op"] == "MaxPool-14" else astride.avg_pool, (x_of(case),), arguments)
