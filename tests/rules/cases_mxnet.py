"""MXNet's recorded probes through astride.like.mxnet."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, Planned, x_of

from astride.like import mxnet

FRAMEWORKS = ("MXNet",)


def call_of(case: dict[str, Any]) -> Call | Planned:
    """One recorded case as the call that was made."""
    return Call(mxnet.Pooling, (x_of(case),), case["params"])
