"""Numbers in a few characters."""

from __future__ import annotations

import math

import numpy as np

LIMITS = tuple(float(np.finfo(kind).max) for kind in (np.float16, np.float32, np.float64))


def number(value: float) -> str:
    """`0.6667`, `NaN`, `-inf`; the greatest finite value of a type by the name it has in C."""
    if math.isnan(value):
        return "NaN"
    if abs(value) in LIMITS:
        return f"{'-' if value < 0 else ''}FLT_MAX"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    return f"{value:.4g}"
