"""What kernels of convolution do with their sums before they store them: bits, the numbers these need, and the code.

The bits are in a kernel's geometry, so that code and geometry are made once; the numbers come with each call, behind the
address that sums begin with. A call that needs none gives that address alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from ..epilogue import Epilogue
from ..protocol import Array
from .ir import Function, Value, Variable
from .ir_types import element, is_float, lanes, size, vector
from .workers import address_of

ADD, RECTIFY, LEAK, CUT, LOW_FOR_NAN, RESIDUAL = (1 << k for k in range(6))
"""Add to what is stored already; zero for what is below zero, or a fraction of it; limits; the lower one for a NaN; and before
all that another array, shaped as y, to be added."""

NUMBERS = LEAK | CUT | LOW_FOR_NAN | RESIDUAL
"""Bits that need numbers."""

SLOPE, LOW, HIGH, APART = range(4)
"""The numbers, float64; the last is the bytes from a place in y to that in the residual."""


def bits(epilogue: Epilogue | None, residual: Array | None = None) -> int:
    """What is to be done."""
    added = RESIDUAL * (residual is not None)
    if epilogue is None:
        return added
    slope = RECTIFY if epilogue.slope == 0 else LEAK if epilogue.slope != 1 else 0
    return added | slope | CUT * epilogue.limits | LOW_FOR_NAN * epilogue.nan_is_low


def words(epilogue: Epilogue | None, residual: Array | None = None, y: Array | None = None) -> tuple[int, ...]:
    """The numbers, as words of 64 bits."""
    apart = 0 if residual is None or y is None else address_of(residual) - address_of(y)
    return (*_numbers(epilogue or Epilogue()), apart)


@lru_cache(maxsize=64)
def _numbers(epilogue: Epilogue) -> tuple[int, ...]:
    return tuple(np.array([epilogue.slope, epilogue.low, epilogue.high], np.float64).view(np.int64).tolist())


def given(
    how: int, begin: Array, epilogue: Epilogue | None, residual: Array | None = None, y: Array | None = None
) -> tuple[int, tuple[Array, ...]]:
    """The address of what sums begin with, or of a block with that address and the numbers; and what must live as long."""
    if not how & NUMBERS:
        return address_of(begin), (begin,)
    made = np.array([address_of(begin), *words(epilogue, residual, y)], np.int64)
    return address_of(made), (made, begin)


def opened(f: Function, how: Value, place: Value) -> tuple[Value, Value]:
    """The place of what sums begin with, and of the numbers if there are any, from what `given` gave."""
    begin = f.variable("ptr", place)
    with f.when((how & NUMBERS).ne(0), likely=False):
        begin.set(f.load("ptr", place))
    return begin.get(), f.at(place, 8)


@contextmanager
def stored(
    f: Function,
    how: Value,
    numbers: Value,
    sums: Sequence[Variable],
    places: Callable[[], Value],
    vectors: int,
    count: Value,
) -> Iterator[None]:
    """Finish sums, and store them by the body; where numbers are needed, by the function of `finisher`, which the module must
    have: that is rare, and would be a third of every tile's code. `places` writes its table of places, and
    what follows is for it as well."""
    with f.when((how & NUMBERS).eq(0), likely=True) as rare:
        rectified(f, how, sums)
        yield
        with rare.otherwise():
            if is_float(sums[0].type):
                room = spilled(f, [total.get() for total in sums])
                counts = [f.value("i64", n) for n in (len(sums) // vectors, vectors)]
                f.call("void", "finish", room, places(), *counts, how, numbers, count)


def rectified(f: Function, how: Value, sums: Sequence[Variable]) -> None:
    """Zero for what is below zero, if that is wanted; a NaN stays one."""
    with f.when((how & RECTIFY).ne(0)):
        for total in sums:
            total.set(_greater(f, total.get(), 0))


def spilled(f: Function, values: Sequence[Value]) -> Value:
    """Values side by side in this call's frame."""
    kind = values[0].type
    room = f.scratch(kind, len(values))
    for k, value in enumerate(values):
        f.store(value, f.at(room, k * size(kind)))
    return room


def finisher(kind: str) -> Function:
    """The function `finish`: sums, `vectors` to a row, finished and stored where the row's place is, `lanes` numbers of each
    row; a residual is as far from that place as the numbers say. The place may be where the sums are."""
    counts = {"rows": "i64", "vectors": "i64", "how": "i64", "numbers": "ptr", "lanes": "i64"}
    f, width = Function("finish", private=True, sums="ptr", places="ptr", **counts), lanes(kind)
    slope, low, high = (_number(f, f.numbers, k, kind) for k in (SLOPE, LOW, HIGH))
    apart, lost = f.load("i64", f.at(f.numbers, 8 * APART)), f.splat((f.how & LOW_FOR_NAN).ne(0), width)
    with f.loop(0, f.rows) as m, f.loop(0, f.vectors) as k:
        mask = f.value(vector(width, "i64"), range(width)) < f.splat(f.lanes - k * width, width)
        place = f.at(f.load("ptr", f.at(f.places, m * 8)), k * size(kind))
        total = f.variable(kind, f.load(kind, f.at(f.sums, (m * f.vectors + k) * size(kind)), mask=mask))
        with f.when((f.how & RESIDUAL).ne(0)):
            total.set(total.get() + f.load(kind, f.at(place, apart), mask=mask))
        rectified(f, f.how, [total])
        with f.when((f.how & LEAK).ne(0)):
            value = total.get()
            total.set(_greater(f, value, 0) + slope * _less(f, value, 0))
        with f.when((f.how & CUT).ne(0)):
            value = _greater(f, _less(f, total.get(), high), low)
            total.set(f.select(value.is_nan() & lost, low, value))
        f.store(total.get(), place, mask=mask)
    return f


def finish_lines(f: Function, kind: str, how: Value, numbers: Value, place: Value, lines: tuple[Value, Value, Value]) -> None:
    """Finish what is stored already, where there is a residual: so many lines, of so many numbers, so many bytes apart."""
    count, length, step = lines
    width, table, one = lanes(kind), f.scratch("ptr", 1), f.value("i64", 1)
    with f.when((how & RESIDUAL).ne(0), likely=False), f.loop(0, count) as k:
        here = f.at(place, k * step)
        f.store(here, table)
        f.call("void", "finish", here, table, one, (length + (width - 1)) // width, how, numbers, length)


def without_residual(f: Function, how: Value) -> Value:
    """Nothing to do where there is a residual, and all is done by `finish_lines`."""
    return f.select((how & RESIDUAL).ne(0), 0, how)


def _number(f: Function, numbers: Value, which: int, kind: str) -> Value:
    """One of the numbers in every lane, rounded to the type of the sums."""
    return f.splat(f.load("double", f.at(numbers, 8 * which)).to(element(kind)), lanes(kind))


def _greater(f: Function, value: Value, other: Any) -> Value:
    """The greater; of equals, zeros of two signs, the other one, as NumPy takes it; a NaN stays."""
    return f.select(value.compare("ugt" if is_float(value.type) else "sgt", other), value, other)


def _less(f: Function, value: Value, other: Any) -> Value:
    return f.select(value.compare("ult", other), value, other)
