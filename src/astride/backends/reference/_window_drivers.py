"""The loops around a user's function of one window, compiled with it by Numba.

A driver walks planes and windows. x is (planes, pixels); the taps of window i are pixels[ends[i-1]:ends[i]]. Each call of the
function gets a fresh copy of its window, which it may change.
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
def table(axes: tuple[Axis, ...]) -> tuple[Indices, Indices]:
    """(pixels, ends): the flat pixels of all windows' taps, window after window, and where each window's end."""
    sizes, outs = tuple(axis.size for axis in axes), tuple(axis.out for axis in axes)
    flat = np.arange(int(np.prod(sizes)), dtype=np.int64).reshape(sizes)
    every = taps(axes)
    found = np.full((len(every), *outs), -1, np.int64)
    for row, tap in zip(found, every, strict=True):
        tap.put(row, tap.read(flat))
    columns = found.reshape(len(every), -1).T
    inside = columns >= 0
    return np.ascontiguousarray(columns[inside]), np.cumsum(inside.sum(axis=1, dtype=np.int64))


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
    function = definition.function if is_jitted(definition.function) else jit(definition.function)
    if part == "gradient":
        given = definition.gradient
        return jit(_gradient(given if is_jitted(given) else jit(given)))  # type: ignore[no-any-return]
    return jit({"forward": _forward, "numeric": _numeric}[part](function))  # type: ignore[no-any-return]


def _forward(function: Any) -> Callable[..., None]:
    def forward(x: Array, pixels: Indices, ends: Indices, taps: int, y: Array) -> None:
        window = np.empty(taps, x.dtype)
        for plane in range(x.shape[0]):
            first = 0
            for i in range(len(ends)):
                count = ends[i] - first
                for j in range(count):
                    window[j] = x[plane, pixels[first + j]]
                if count > 0:
                    y[plane, i] = function(window[:count])
                first = ends[i]

    return forward


def _gradient(gradient: Any) -> Callable[..., int]:
    def backward(x: Array, pixels: Indices, ends: Indices, taps: int, y: Array, dy: Array, dx: Array) -> int:
        window = np.empty(taps, x.dtype)
        for plane in range(x.shape[0]):
            first = 0
            for i in range(len(ends)):
                count = ends[i] - first
                for j in range(count):
                    window[j] = x[plane, pixels[first + j]]
                if count > 0:
                    slopes = gradient(window[:count], y[plane, i])
                    if len(slopes) != count:
                        return i
                    for j in range(count):
                        dx[plane, pixels[first + j]] += slopes[j] * dy[plane, i]
                first = ends[i]
        return -1

    return backward


def _numeric(function: Any) -> Callable[..., int]:
    def backward(x: Array, pixels: Indices, ends: Indices, taps: int, y: Array, dy: Array, dx: Array) -> int:
        window = np.empty(taps, x.dtype)
        for plane in range(x.shape[0]):
            first = 0
            for i in range(len(ends)):
                count = ends[i] - first
                for j in range(count):
                    here = x[plane, pixels[first + j]]
                    step = STEP * max(1.0, abs(here))
                    for k in range(count):
                        window[k] = x[plane, pixels[first + k]]
                    window[j] = here + step
                    above = function(window[:count])
                    for k in range(count):
                        window[k] = x[plane, pixels[first + k]]
                    window[j] = here - step
                    slope = (above - function(window[:count])) / ((here + step) - (here - step))
                    dx[plane, pixels[first + j]] += slope * dy[plane, i]
                first = ends[i]
        return -1

    return backward
