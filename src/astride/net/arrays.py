"""What callers hand in, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.protocol import Array
from ..errors import ArrayError


def real(name: str, value: Any) -> Array:
    """The value as an array of real numbers. Raises ArrayError for anything else."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArrayError(
            f"{name} is masked, and no layer knows masks", given={name: value}, hint="array.filled(0), or another value"
        )
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise ArrayError(f"{name} is not an array of real numbers", given={name: array}, hint="numpy.asarray(x, dtype='float32')")
    return array


__all__ = ["real"]
