"""What kernels of convolution do with their sums before they store them: bits, the numbers these need, and the code.

The bits are in a kernel's geometry, so that code and geometry are made once; the numbers come with each call, behind the
address that sums begin with. A call that needs none gives that address alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..epilogue import Epilogue
from ..protocol import Array
from .ir import Function, Value, Variable
from .ir_types import element, is_float, lanes, size
from .workers import address_of

ADD, RECTIFY, LEAK, CUT, LOW_FOR_NAN = (1 << k for k in range(5))
"""Add to what is stored already; zero for what is below zero, or a fraction of it; limits; the lower one for a NaN."""

NUMBERS = LEAK | CUT | LOW_FOR_NAN
"""Bits that need numbers."""

SLOPE, LOW, HIGH = range(3)
"""The numbers, float64."""


def bits(epilogue: Epilogue | None) -> int:
    """What is to be done."""
    if epilogue is None:
        return 0
    slope = RECTIFY if epilogue.slope == 0 else LEAK if epilogue.slope != 1 else 0
    return slope | CUT * epilogue.limits | LOW_FOR_NAN * epilogue.nan_is_low


@lru_cache(maxsize=64)
def words(epilogue: Epilogue | None) -> tuple[int, ...]:
    """The numbers, as words of 64 bits."""
    one = epilogue or Epilogue()
    return tuple(np.array([one.slope, one.low, one.high], np.float64).view(np.int64).tolist())


def given(how: int, begin: Array, epilogue: Epilogue | None) -> tuple[int, Array]:
    """The address of what sums begin with, or of a block with that address and the numbers; and what must live as long."""
    if not how & NUMBERS:
        return address_of(begin), begin
    made = np.array([address_of(begin), *words(epilogue)], np.int64)
    return address_of(made), made


def opened(f: Function, how: Value, place: Value) -> tuple[Value, Value]:
    """The place of what sums begin with, and of the numbers if there are any, from what `given` gave."""
    begin = f.variable("ptr", place)
    with f.when((how & NUMBERS).ne(0), likely=False):
        begin.set(f.load("ptr", place))
    return begin.get(), f.at(place, 8)


def finish(f: Function, how: Value, numbers: Value, sums: list[Variable]) -> None:
    """Do with sums what is to be done before they are stored. A NaN stays one; whole numbers are rectified at most.

    What is rare is done by the function of `finisher`, which the module must have: it would be a third of every tile's code.
    """
    kind, step = sums[0].type, size(sums[0].type)
    with f.when((how & ~ADD).ne(0)):
        with f.when((how & RECTIFY).ne(0)):
            for total in sums:
                total.set(_greater(f, total.get(), 0))
        if is_float(kind):
            with f.when((how & NUMBERS).ne(0), likely=False):
                room = f.scratch(kind, len(sums))
                for k, total in enumerate(sums):
                    f.store(total.get(), f.at(room, k * step))
                f.call("void", "finish", room, f.value("i64", len(sums)), how, numbers)
                for k, total in enumerate(sums):
                    total.set(f.load(kind, f.at(room, k * step)))


def finisher(kind: str) -> Function:
    """The function `finish`: a slope and limits for so many vectors of sums side by side."""
    f = Function("finish", private=True, sums="ptr", count="i64", how="i64", numbers="ptr")
    slope, low, high = (_number(f, f.numbers, k, kind) for k in (SLOPE, LOW, HIGH))
    lost = f.splat((f.how & LOW_FOR_NAN).ne(0), lanes(kind))
    with f.loop(0, f.count) as k:
        place = f.at(f.sums, k * size(kind))
        total = f.variable(kind, f.load(kind, place))
        with f.when((f.how & LEAK).ne(0)):
            value = total.get()
            total.set(_greater(f, value, 0) + slope * _less(f, value, 0))
        with f.when((f.how & CUT).ne(0)):
            value = _greater(f, _less(f, total.get(), high), low)
            total.set(f.select(value.is_nan() & lost, low, value))
        f.store(total.get(), place)
    return f


def _number(f: Function, numbers: Value, which: int, kind: str) -> Value:
    """One of the numbers in every lane, rounded to the type of the sums."""
    return f.splat(f.load("double", f.at(numbers, 8 * which)).to(element(kind)), lanes(kind))


def _greater(f: Function, value: Value, other: Any) -> Value:
    """The greater; of equals, zeros of two signs, the other one, as NumPy takes it; a NaN stays."""
    return f.select(value.compare("ugt" if is_float(value.type) else "sgt", other), value, other)


def _less(f: Function, value: Value, other: Any) -> Value:
    return f.select(value.compare("ult", other), value, other)
