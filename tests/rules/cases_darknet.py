"""DarkNet's recorded probes by rules="darknet"."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, Planned, x_of

import astride

FRAMEWORKS = ("DarkNet",)


def call_of(case: dict[str, Any]) -> Call | Planned:
    """A [maxpool] section in the shared vocabulary."""
    params = case["params"]
    arguments = dict(kernel=params["size"], stride=params["stride"], padding=params["padding"], rules="darknet")
    return Call(astride.max_pool, (x_of(case),), arguments)
