"""Keras' recorded probes through keras.ops' signatures; the causal layer through the rules it stands for."""

from __future__ import annotations

from typing import Any

from tests.golden.semantics.reading import Call, array, x_of

import astride
from astride.like import keras

FRAMEWORKS = ("Keras",)


def call_of(case: dict[str, Any]) -> Call:
    """One recorded case as a call."""
    x, w = x_of(case), array(case["weight"])
    if case["op"].startswith("keras.layers"):
        return Call(astride.conv, (x, w.transpose(2, 1, 0)), dict(case["params"], layout="channels_last", rules="keras"))
    return Call(getattr(keras, case["op"].removeprefix("keras.ops.")), (x, w), case["params"])
