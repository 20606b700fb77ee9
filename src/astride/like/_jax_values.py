"""What JAX's functions take besides arrays: a start value for windows, and how a convolution is to be computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError

WINDOWS = "JAX 0.10, jax/_src/lax/windowed_reductions.py"
LAX = "JAX 0.10, jax/_src/lax/lax.py"
PRECISIONS = ("default", "fastest", "bfloat16", "high", "bfloat16_3x", "tensorfloat32", "highest", "float32")
ALGORITHMS = ("DotAlgorithm", "DotAlgorithmPreset")
PRESETS = (
    "DEFAULT",
    *(f"ANY_F8_ANY_F8_{kind}{fast}" for kind in ("F32", "ANY") for fast in ("", "_FAST_ACCUM")),
    *("F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6"),
    *("BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"),
)


def start_of(value: Any, name: str, x: Array) -> Array | None:
    """The value each window's reduction starts from, in x's type; None for an identity, which changes nothing.

    An identity may be of any type, of whose own kind it is one: False and -inf start a maximum of anything, True and inf a
    minimum, zeros a sum. Any other value must be of x's type, as JAX types it: a Python float float64, an int int64, or both
    32 bits wide where x is not 64 (JAX by default).
    """
    number = _number(value, x)
    wide = number.dtype.itemsize == 8 and number.dtype.kind in "iuf"
    narrow = number.astype(f"{number.dtype.kind}4") if wide and x.dtype.itemsize < 8 else number
    if number.dtype.kind in "iu" and narrow != number:
        narrow = number  # beyond 32 bits
    for one in (number, narrow):
        if one == identity_of(name, one.dtype):
            return None
    for one in (number, narrow):
        if one.dtype == x.dtype:
            return one
    raise ArgumentError(
        "init_value has another type than operand",
        given={"init_value": value, "operand": x},
        required=f"a number of type {x.dtype.name}, or the identity of {name}: {number.dtype.name}",
        because=WINDOWS,
        hint=f"numpy.asarray({value!r}, operand.dtype)",
    )


def identity_of(name: str, dtype: np.dtype[Any]) -> Any:
    """The number of a type that changes no maximum, minimum or sum."""
    if name == "add":
        return 0
    if dtype.kind == "b":
        return name == "min"
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if name == "max" else np.iinfo(dtype).max
    return -np.inf if name == "max" else np.inf


def _number(value: Any, x: Array) -> Array:
    try:
        number = np.asarray(value, np.int64) if type(value) is int else np.asarray(value)
    except (OverflowError, ValueError):
        number = np.asarray(None)
    if number.shape or (number.dtype.kind not in "biuf" and number.dtype.name != "bfloat16"):
        raise ArgumentError(
            "init_value is one number",
            given={"init_value": value},
            required=f"a real number of at most 64 bits, without axes: {number.dtype}{list(number.shape)}",
            because=WINDOWS,
            hint=f"numpy.zeros((), {x.dtype.name!r})",
        )
    return number


def check_precision(precision: Any) -> None:
    """Refuse what JAX refuses. What it takes changes nothing on a CPU: sums are formed in the arrays' own type at least."""
    pair = precision if isinstance(precision, list | tuple) else (precision, precision)
    enums = [type(one).__name__ == "Precision" for one in pair]
    words = [isinstance(one, str) and one in PRECISIONS for one in pair]
    preset = type(precision).__name__ in ALGORITHMS or (isinstance(precision, str) and precision in PRESETS)
    if precision is None or preset or (len(pair) == 2 and (all(enums) or all(words))):
        return
    raise ArgumentError(
        "there is no such precision",
        given={"precision": precision},
        required=f"None, one of {', '.join(PRECISIONS)}, two of them, a lax.Precision or a lax.DotAlgorithmPreset",
        because=f"{LAX} canonicalize_precision",
        hint="precision=None",
    )


def preferred_name(dtype: Any) -> str | None:
    """The name of a preferred_element_type."""
    if dtype is None:
        return None
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        raise ArgumentError(
            "there is no such preferred_element_type",
            given={"preferred_element_type": dtype},
            because=LAX,
            hint='preferred_element_type="float32"; "bfloat16" needs ml_dtypes imported',
        ) from None


def refuse_sharding(out_sharding: Any) -> None:
    """Arrays of NumPy lie on one device."""
    if out_sharding is not None:
        raise UnsupportedError(
            "NumPy arrays are not sharded",
            operator="conv_general_dilated",
            given={"out_sharding": out_sharding},
            hint="out_sharding=None",
        )
