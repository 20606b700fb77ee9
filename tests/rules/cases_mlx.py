"""MLX's recorded probes through its layers' arguments."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, x_of

from astride.like import mlx

FRAMEWORKS = ("MLX",)
FUNCTIONS = {"MaxPool1d": mlx.max_pool1d}


def call_of(case: dict[str, Any]) -> Call:
    """One recorded case as a call."""
    params = {key: value for key, value in case["params"].items() if key != "layout"}
    return Call(FUNCTIONS[case["op"]], (x_of(case), params.pop("kernel")), params)
