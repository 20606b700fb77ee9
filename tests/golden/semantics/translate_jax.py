"""JAX's window reductions and convolutions as explicit choices."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, Planned, array, refused, x_of

import astride
from astride.plan import PoolPlan, StridedAxis
from astride.plan.kinds import Reduce, Tie


def jax_call(case: dict[str, Any]) -> Call | Planned | None:
    """None for empty outputs and for gradients that JAX itself lacks."""
    if refused(case) or case["output"] == []:
        return None
    if case["op"] == "lax.conv_general_dilated":
        return _convolution(case)
    if case["op"] == "lax.conv_transpose":
        return _transposed(case)
    return _reduction(case)


def _pads(padding: Any) -> Any:
    words = {"VALID": "valid", "SAME": "same", "SAME_LOWER": "same_lower"}
    return words[padding] if isinstance(padding, str) else tuple(map(tuple, padding))


def _reduction(case: dict[str, Any]) -> Call | Planned:
    params, x = case["params"], array(case["input"], shape=(1, 1, *case["input_shape"]))
    if "base_dilation" in params:
        (n,), (k,), (s,), (inner,) = case["input_shape"], params["window"], params["strides"], params["base_dilation"]
        stretched = (n - 1) * inner + 1
        axis = StridedAxis(size=n, kernel=k, stride=s, out=(stretched - k) // s + 1, input_dilation=inner)
        return Planned(PoolPlan(dtype="float32", axes=(axis,), reduce=Reduce.MAX, tie=Tie.AFTER_NAN), (x,), flat=True)
    window: dict[str, Any] = dict(kernel=params["window"], stride=params["strides"], padding=_pads(params["padding"]))
    window["dilation"] = params.get("window_dilation", 1)
    if case["op"].endswith("add"):
        return Call(astride.avg_pool, (x,), dict(window, divisor_override=1), flat=True)
    fn = astride.max_pool if case["op"].endswith("max") else astride.min_pool
    return Call(fn, (x,), dict(window, tie="after_nan"), flat=True)


def _convolution(case: dict[str, Any]) -> Call:
    params = case["params"]
    arguments = dict(stride=params["strides"], padding=_pads(params["padding"]), input_dilation=params.get("lhs_dilation", 1))
    return Call(astride.conv, (x_of(case), array(case["weight"])), arguments)


def _transposed(case: dict[str, Any]) -> Call:
    """The kernel as it is over a stretched input, or turned, which makes it the adjoint."""
    params, x = case["params"], x_of(case)
    (s,) = params["strides"]
    w = array(case["weight"]).transpose(2, 1, 0)
    k = w.shape[2]
    if params["padding"] == "SAME":
        total = k + s - 2
        before = k - 1 if s > k - 1 else -(-total // 2)
    else:
        total = k + s - 2 + max(k - s, 0)
        before = k - 1
    arguments = dict(input_dilation=s, padding=((before, total - before),), layout="channels_last")
    return Call(astride.conv, (x, w), dict(arguments, flip=params["transpose_kernel"]))
