"""The recorded probes of OpenCV 4's Caffe reader by rules="opencv"."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.own import fields_of
from tests.golden.semantics.reading import Call, Planned, x_of

import astride

FRAMEWORKS = ("OpenCV DNN (Caffe importer)",)
OPERATORS = {"MAX": astride.max_pool, "AVE": astride.avg_pool, "STOCHASTIC": astride.stochastic_pool}


def call_of(case: dict[str, Any]) -> Call | Planned:
    """A file's fields in the shared vocabulary; what the rules do not have (round_mode, stochastic pooling) is refused."""
    fields = fields_of(case["params"])
    named = {"kernel_size": "kernel", "pad": "padding"}
    arguments = {named.get(key, key): value for key, value in fields.items() if key != "pool"}
    return Call(OPERATORS[fields["pool"]], (x_of(case),), {**arguments, "rules": "opencv"})
