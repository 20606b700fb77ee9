"""The shapes and refusals of coremltools' type inference, through MIL's names."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.golden.semantics.reading import Call, x_of

from astride.like import coreml

FRAMEWORKS = ("Core ML (MIL type inference only)",)


def call_of(case: dict[str, Any]) -> Call:
    """One recorded case as a call; transposed convolutions were asked with a kernel of three."""
    x = x_of(case)
    if case["op"] == "conv_transpose":
        return Call(coreml.conv_transpose, (x, np.ones((1, 1, 3), np.float32)), case["params"])
    return Call(coreml.max_pool, (x,), case["params"])
