"""Chainer's recorded probes through astride.like.chainer."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, Planned, array, x_of

from astride.like import chainer

FRAMEWORKS = ("Chainer",)


def call_of(case: dict[str, Any]) -> Call | Planned:
    """One recorded case as the call that was made."""
    arguments = dict(case["params"])
    weights = (array(arguments.pop("weight"), shape=(1, 1, 1, 3)),) if "weight" in arguments else ()
    return Call(getattr(chainer, case["op"]), (x_of(case), *weights), arguments)
