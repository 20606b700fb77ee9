"""The loops around a user's function of one window, compiled with it by Numba.

A driver walks planes and windows; x is (planes, pixels), y (planes, windows). Each call of the function gets a fresh copy of
its window, which it may change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import ArgumentError, BackendUnavailable
from ...plan import Axis
from .._definitions import Definition
from ..protocol import Array
from ._windows import Indices, taps

Axes = tuple[tuple[Indices, Indices], ...]

STEP = 2.0**-17
"""The numeric gradient's step, relative to a tap's magnitude where that is above 1: about the cube root of float64's eps."""


def driver(definition: Definition, part: str) -> Callable[..., Any]:
    """The compiled `forward`, `gradient` or `numeric` loop of a definition; compiled for each dtype at its first call.

    Raises BackendUnavailable: Numba is not installed.
    """
    if part not in definition.drivers:
        definition.drivers[part] = _make(definition, part)
    return definition.drivers[part]


def compiled_call(definition: Definition, part: str, *arguments: Any) -> Any:
    """Call a driver. Raises ArgumentError: Numba cannot compile the function, with Numba's reason."""
    call = driver(definition, part)
    from numba.core.errors import NumbaError

    try:
        return call(*arguments)
    except NumbaError as error:
        reason = " ".join(str(error).split())
        raise ArgumentError(
            f"Numba cannot compile {definition.name}",
            because=reason if len(reason) < 400 else reason[:400] + " ...",
            hint="compile=False runs it as plain Python",
        ) from error


@lru_cache(maxsize=64)
def tables(axes: tuple[Axis, ...]) -> tuple[tuple[Indices, Indices], ...]:
    """For each of three axes (pixels, ends): the taps of window i are pixels[ends[i-1]:ends[i]]. Absent axes go first."""
    one = (np.zeros(1, np.int64), np.ones(1, np.int64))
    return (*[one] * (3 - len(axes)), *map(_table, axes))


def _table(axis: Axis) -> tuple[Indices, Indices]:
    every, pixels = taps((axis,)), np.arange(axis.size, dtype=np.int64)
    found = np.full((len(every), axis.out), -1, np.int64)
    for row, tap in zip(found, every, strict=True):
        tap.put(row, tap.read(pixels))
    inside = found.T >= 0
    return np.ascontiguousarray(found.T[inside]), np.cumsum(inside.sum(axis=1, dtype=np.int64))


def _make(definition: Definition, part: str) -> Callable[..., Any]:
    try:
        import numba
        from numba.extending import is_jitted
    except ImportError as error:
        raise BackendUnavailable(
            f"{definition.name} is to be compiled, and Numba is not installed",
            hint='pip install "astride[window]", or compile=False, which runs it as plain Python',
        ) from error
    # as NumPy has it: a division by zero is infinite, not an exception
    jit = numba.njit(nogil=True, error_model="numpy")
    function, gather = definition.function, jit(_gather)
    function = function if is_jitted(function) else jit(function)
    if part == "gradient":
        given = definition.gradient
        return jit(_gradient(given if is_jitted(given) else jit(given), gather))  # type: ignore[no-any-return]
    return jit({"forward": _forward, "numeric": _numeric}[part](function, gather))  # type: ignore[no-any-return]


def _gather(axes: Axes, sizes: tuple[int, int, int], i: int, where: Indices) -> int:
    """The flat pixels of window i's taps, into `where`; how many there are."""
    (rows, row_ends), (columns, column_ends), (slices, slice_ends) = axes
    above, k = divmod(i, len(slice_ends))
    h, j = divmod(above, len(column_ends))
    count = 0
    for a in range(row_ends[h - 1] if h > 0 else 0, row_ends[h]):
        for b in range(column_ends[j - 1] if j > 0 else 0, column_ends[j]):
            for c in range(slice_ends[k - 1] if k > 0 else 0, slice_ends[k]):
                where[count] = (rows[a] * sizes[1] + columns[b]) * sizes[2] + slices[c]
                count += 1
    return count


def _forward(function: Any, gather: Any) -> Callable[..., None]:
    def forward(x: Array, axes: Axes, sizes: tuple[int, int, int], taps: int, y: Array) -> None:
        window, where = np.empty(taps, x.dtype), np.empty(taps, np.int64)
        for plane in range(x.shape[0]):
            for i in range(y.shape[1]):
                count = gather(axes, sizes, i, where)
                for j in range(count):
                    window[j] = x[plane, where[j]]
                if count > 0:
                    y[plane, i] = function(window[:count])

    return forward


def _gradient(gradient: Any, gather: Any) -> Callable[..., int]:
    def backward(x: Array, axes: Axes, sizes: tuple[int, int, int], taps: int, y: Array, dy: Array, dx: Array) -> int:
        window, where = np.empty(taps, x.dtype), np.empty(taps, np.int64)
        for plane in range(x.shape[0]):
            for i in range(y.shape[1]):
                count = gather(axes, sizes, i, where)
                for j in range(count):
                    window[j] = x[plane, where[j]]
                if count > 0:
                    slopes = gradient(window[:count], y[plane, i])
                    if len(slopes) != count:
                        return i
                    for j in range(count):
                        dx[plane, where[j]] += slopes[j] * dy[plane, i]
        return -1

    return backward


def _numeric(function: Any, gather: Any) -> Callable[..., int]:
    def backward(x: Array, axes: Axes, sizes: tuple[int, int, int], taps: int, y: Array, dy: Array, dx: Array) -> int:
        window, where = np.empty(taps, x.dtype), np.empty(taps, np.int64)
        for plane in range(x.shape[0]):
            for i in range(y.shape[1]):
                count = gather(axes, sizes, i, where)
                for j in range(count):
                    here = x[plane, where[j]]
                    step = STEP * max(1.0, abs(here))
                    for k in range(count):
                        window[k] = x[plane, where[k]]
                    window[j] = here + step
                    above = function(window[:count])
                    for k in range(count):
                        window[k] = x[plane, where[k]]
                    window[j] = here - step
                    slope = (above - function(window[:count])) / ((here + step) - (here - step))
                    dx[plane, where[j]] += slope * dy[plane, i]
        return -1

    return backward
