"""The recorded cases as arrays, and a case expressed as one call."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import astride
from astride import dispatch
from astride.ops.max_pool import indices_of
from astride.plan import Plan

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Answer:
    """What a case asks for: result, indices and gradients; None where it does not."""

    y: Any
    indices: Any = None
    dx: Any = None
    dw: Any = None


@dataclass(frozen=True)
class Call:
    """One operator of astride (`fn`), its positional arrays and arguments. `flat` drops the axes that were added.

    `asks` is the argument that asks for indices; None where they always come.
    """

    fn: Callable[..., Any]
    arrays: tuple[Any, ...]
    arguments: dict[str, Any] = field(default_factory=dict)
    flat: bool = False
    shift: Callable[[Any], Any] = lambda indices: indices
    weights: Callable[[Any], Any] = lambda dw: dw
    asks: str | None = "return_indices"


@dataclass(frozen=True)
class Planned:
    """A plan that no argument describes, and its arrays."""

    plan: Plan
    arrays: tuple[Any, ...]
    flat: bool = False


def array(value: Any, dtype: str = "float32", shape: Any = None) -> Any:
    """Nested lists of numbers and the words for what JSON lacks, as an array."""
    made = np.array(value, dtype=np.float64) if not _has_words(value) else np.vectorize(float)(np.array(value, dtype=object))
    made = made.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return made.reshape(shape) if shape is not None else made


def _has_words(value: Any) -> bool:
    return any(_has_words(v) for v in value) if isinstance(value, list) else isinstance(value, str)


def x_of(case: dict[str, Any]) -> Any:
    return array(case["input"], case.get("input_dtype") or "float32", case["input_shape"])


def refused(case: dict[str, Any]) -> bool:
    return isinstance(case["output"], str) and case["output"].startswith(("ERROR", "PROCESS DIED"))


def expected(case: dict[str, Any]) -> Answer:
    """What the framework answered; indices as integers. Of a shape alone, zeros of it."""
    if isinstance(case["output"], dict):
        return Answer(np.zeros(case["output"]["output_shape"]))
    indices = case.get("indices")
    return Answer(
        array(case["output"], "float64"),
        None if indices is None else np.array(indices, np.int64),
        array(case["grad_input"], "float64") if case.get("grad_input") is not None else None,
        array(case["grad_weight"], "float64") if case.get("grad_weight") is not None else None,
    )


def answer(call: Call | Planned, case: dict[str, Any]) -> Answer:
    """What astride answers to the same question."""
    asked = expected(case) if not refused(case) else Answer(None)
    if isinstance(call, Planned):
        y, saved = dispatch.forward(call.plan, *call.arrays, save=True)
        assert saved is not None
        gradients = dispatch.backward(call.plan, np.ones_like(y), saved)
        indices = indices_of(call.plan, saved) if asked.indices is not None else None
    else:
        arguments = dict(call.arguments)
        if asked.indices is not None and call.asks is not None:
            arguments[call.asks] = True
        gradients: Any = ()
        if asked.dx is None and asked.dw is None and not refused(case):
            result = call.fn(*call.arrays, **arguments)
            y, indices = result if isinstance(result, tuple) else (result, None)
        else:
            result, pull = astride.vjp(call.fn, *call.arrays, **arguments)
            y, indices = result if isinstance(result, tuple) else (result, None)
            gradients = pull(np.ones_like(y))
        indices = None if indices is None else call.shift(np.asarray(indices))
    dx = gradients[0] if asked.dx is not None else None
    dw = gradients[1] if asked.dw is not None else None
    if dw is not None and isinstance(call, Call):
        dw = call.weights(dw)
    if call.flat:
        y, indices, dx = (None if a is None else np.asarray(a).reshape(-1) for a in (y, indices, dx))
    return Answer(y, indices, dx, dw)
