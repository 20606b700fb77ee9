"""ncnn's answers, by its rules."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, x_of

import astride

FRAMEWORKS = ("ncnn",)


def call_of(case: dict[str, Any]) -> Call:
    params = dict(case["params"])
    pool = astride.max_pool if params.pop("type") == "max" else astride.avg_pool
    return Call(pool, (x_of(case),), {"padding": params.pop("pad", 0), **params, "rules": "ncnn"})
