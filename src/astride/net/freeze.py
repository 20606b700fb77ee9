"""Frozen parameters: values that cannot be written to, so that what is made of them stays true."""

from __future__ import annotations

import numpy as np

from ..backends import fixed
from ..backends.protocol import Array
from ..layers import Parameter


def frozen(parameter: Parameter, data: Array | None = None) -> Parameter:
    """A parameter of these values, or of the parameter's own, that cannot be written to. What is frozen is not copied again."""
    if data is None and _is_fixed(parameter.data):
        memory = parameter.data
    else:
        memory = fixed.frozen(np.asarray(parameter.data if data is None else data, parameter.data.dtype))
        memory.flags.writeable = False  # of no numbers at all there is nothing to freeze
    kept = Parameter(memory.shape, parameter.dtype)
    kept.hold(memory)
    return kept


def _is_fixed(array: Array) -> bool:
    """Whether nobody holds memory that writes to it: every array down to the one that owns it is read-only."""
    while isinstance(array.base, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return (array.base is None or isinstance(array.base, bytes)) and not array.flags.writeable
