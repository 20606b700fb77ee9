"""oneDNN's answers, by its rules: flat arrays, pads for the width alone."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, array

import astride

FRAMEWORKS = ("oneDNN",)


def call_of(case: dict[str, Any]) -> Call:
    params = case["params"]
    height, width = params["k"]
    x = array(case["input"])
    x = x.reshape(1, 1, height if height > 1 else 1, -1)
    arguments: dict[str, Any] = dict(
        kernel=(height, width),
        stride=tuple(params.get("s", (1, 1))),
        padding=((0, 0), (params.get("pad_l", 0), params.get("pad_r", 0))),
        output_size=(1, params["out_w"]) if "out_w" in params else None,
        rules="onednn",
    )
    if case["op"] == "pooling_max":
        return Call(astride.max_pool, (x,), arguments, flat=True)
    return Call(astride.avg_pool, (x,), arguments | {"include_padding": case["op"].endswith("include_padding")}, flat=True)
