"""JAX's recorded probes through jax.lax's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.golden.semantics.reading import Call, array, x_of

from astride.like import jax as lax

FRAMEWORKS = ("JAX",)
IDENTITY = {"max": -np.inf, "min": np.inf, "add": 0}


def call_of(case: dict[str, Any]) -> Call:
    """One recorded case as a call of the function it names; rows without `init` use the identity."""
    op, params, x = case["op"].removeprefix("lax."), dict(case["params"]), x_of(case)
    if op.startswith("reduce_window"):
        name = op.split()[1]
        start = float(params.pop("init", IDENTITY[name]))
        params = {{"window": "window_dimensions", "strides": "window_strides"}.get(key, key): v for key, v in params.items()}
        return Call(lax.reduce_window, (x, start, getattr(lax, name)), params)
    if op == "conv_general_dilated":
        return Call(lax.conv_general_dilated, (x, array(case["weight"])), dict(params, window_strides=params.pop("strides")))
    assert params.pop("layout") == "NHC/HIO"
    return Call(lax.conv_transpose, (x, array(case["weight"])), params)
