"""Functions written with the building blocks, compiled and called on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from astride.backends.cpu.compiler import compile_object, load_object
from astride.backends.cpu.ir import Function, Value, module
from astride.backends.cpu.ir_types import vector
from astride.backends.cpu.numbers import lacks

Array = NDArray[Any]

KINDS = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "half": np.float16, "float": np.float32, "double": np.float64,
}  # fmt: skip
"""Types of values, as NumPy has them."""


def skip_unread(dtype: str) -> None:
    """Skip where this CPU, or the one that ASTRIDE_CPU names, has no instructions for a dtype: kernels decline it there."""
    reason = lacks(dtype)
    if reason:
        pytest.skip(reason)


def call(f: Function, *arguments: Array | int, others: tuple[Function, ...] = ()) -> None:
    """Compile a function, and others that it calls, and call it: arrays as pointers, numbers as i64."""
    (address,) = load_object(compile_object(module(f, *others)), (f.name,))
    given = [a if isinstance(a, int) else a.ctypes.data for a in arguments]
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(given))(address)(*given)


def lanes_of(count: int, source: str, target: str, body: Callable[..., Value], *inputs: Array) -> Array:
    """What `body` makes of vectors of `count` lanes, over arrays whose length is a multiple of it.

    A body that gives lanes of i1 is stored as bytes: name "i8" as its target.
    """
    n, step = len(inputs[0]), np.dtype(KINDS[source]).itemsize
    y = np.zeros(n, KINDS[target])
    names = [f"x{k}" for k in range(len(inputs))]
    f = Function("body", y="ptr", n="i64", **dict.fromkeys(names, "ptr"))
    with f.loop(0, f.n, count) as i:
        values = [f.load(vector(count, source), f.at(getattr(f, name), i * step)) for name in names]
        result = body(f, *values)
        if result.type == vector(count, "i1"):
            result = f.select(result, f.value(vector(count, "i8"), 1), 0)
        f.store(result, f.at(f.y, i * y.itemsize))
    call(f, y, n, *[np.ascontiguousarray(x, KINDS[source]) for x in inputs])
    return y
