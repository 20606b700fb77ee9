"""Frozen parameters: values that cannot be written to, so that what is made of them stays true."""

from __future__ import annotations

import numpy as np

from ..backends.protocol import Array
from ..layers import Parameter


def frozen(parameter: Parameter, data: Array | None = None) -> Parameter:
    """A parameter of these values, or of the parameter's own, that cannot be written to."""
    memory: Array = np.array(parameter.data if data is None else data, parameter.dtype, order="C")
    memory.flags.writeable = False
    kept = Parameter(memory.shape, parameter.dtype)
    kept.hold(memory)
    return kept
