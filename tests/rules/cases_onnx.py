"""The reference evaluator's answers, by the rules of ONNX's text."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.golden.semantics.reading import Call, array, x_of

from astride.like import onnx

FRAMEWORKS = ("ONNX reference evaluator",)


def call_of(case: dict[str, Any]) -> Call:
    """A node's inputs and attributes as astride.like.onnx takes them."""
    others = [np.array(a) if case["op"] == "MaxUnpool" else array(a) for a in case.get("other_inputs") or ()]
    return Call(getattr(onnx, case["op"]), (x_of(case), *others), dict(case["params"]))
