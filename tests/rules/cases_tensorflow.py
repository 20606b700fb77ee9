"""TensorFlow's recorded probes through tf.nn's own signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.golden.semantics.reading import Call, array, x_of

from astride.like import tensorflow as nn

FRAMEWORKS = ("TensorFlow",)


def call_of(case: dict[str, Any]) -> Call:
    """One recorded case as a call of the function it names."""
    op, params, x = case["op"].removeprefix("tf.nn."), dict(case["params"]), x_of(case)
    if op == "erosion2d":
        filters = np.array(params.pop("kernel"), np.float32).reshape(1, -1, 1)
        return Call(nn.erosion2d, (x, filters), dict(params, data_format="NHWC"))
    if "conv" in op:
        params.pop("filters")
        return Call(getattr(nn, op), (x, array(case["weight"])), params)
    return Call(getattr(nn, op), (x,), params, asks=None)
