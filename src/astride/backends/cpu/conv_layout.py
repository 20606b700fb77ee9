"""Between channels first and channels last: matrices transposed in registers, blocks of as many rows as a vector has lanes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..protocol import Array
from .cache import functions
from .contraction import mask_below
from .ir import Function, Value, module
from .ir_types import BITS, vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

ROWS, COLUMNS, BANDS = range(3)
"""Fields: rows and columns of each matrix, and bands of its rows."""

LINE = 64
"""Bytes of a cache line."""

TAKEN = 1 << 14
"""Numbers that a thread moves at once, at least."""


def channels_last(x: Array) -> Array:
    """(N, C, *size), contiguous, as (N, *size, C)."""
    y = np.empty((x.shape[0], *x.shape[2:], x.shape[1]), x.dtype)
    transpose(x, y, x.shape[1])
    return y


def channels_first(x: Array, y: Array) -> None:
    """(N, *size, C), contiguous, into y (N, C, *size)."""
    transpose(x, y, x.size // max(x.shape[0] * x.shape[-1], 1))


def transpose(x: Array, y: Array, rows: int) -> None:
    """Each of the len(x) matrices of x, of so many rows, into y with its columns as rows. Both contiguous."""
    if not x.size:
        return
    columns = x.size // (len(x) * rows)
    if rows == 1 or columns == 1:
        y.reshape(-1)[...] = x.reshape(-1)
        return
    address, geometry, bands, band = _schedule(rows, columns, "float" if x.itemsize == 4 else "double")
    taken = max(TAKEN // (band * columns), 1)
    run(address, geometry.address, address_of(x), address_of(y), 0, 0, len(x) * bands, taken)


@lru_cache(maxsize=512)
def _schedule(rows: int, columns: int, kind: str) -> tuple[int, Geometry, int, int]:
    (address,) = functions("transpose", kind, lambda: transposer(kind, machine()), ("transpose",))
    band = _band(kind, machine())
    bands = -(-rows // band)
    return address, Geometry([rows, columns, bands], []), bands, band


def _lanes(kind: str, machine: Machine) -> int:
    return max(machine.lanes(kind), 2)


def _band(kind: str, machine: Machine) -> int:
    """Rows of one band: what is written in one go is a whole line of the cache."""
    return max(LINE // (BITS[kind] // 8), _lanes(kind, machine))


def transposer(kind: str, machine: Machine) -> str:
    """The module of `transpose`: a is x, b is y; units are (matrix, band of rows). The last band and the last columns
    overlap those before, where there are any."""
    f, lanes, bytes_ = kernel_function("transpose"), _lanes(kind, machine), BITS[kind] // 8
    rows, columns, bands = (f.field(f.geometry, k) for k in (ROWS, COLUMNS, BANDS))
    band = _band(kind, machine)
    with f.loop(f.begin, f.end) as unit:
        matrix, first = unit // bands * (rows * columns), unit % bands * band
        last = f.smaller(first + band, rows)
        with f.when((rows >= lanes) & (columns >= lanes), likely=True) as small:
            with f.loop(0, columns, lanes) as at, f.loop(first, last, lanes) as start:
                column, row = f.smaller(at, columns - lanes), f.smaller(start, rows - lanes)
                x = f.at(f.a, (matrix + row * columns + column) * bytes_)
                y = f.at(f.b, (matrix + column * rows + row) * bytes_)
                block = [f.load(vector(lanes, kind), f.at(x, columns * (i * bytes_))) for i in range(lanes)]
                for i, values in enumerate(transposed(f, block)):
                    f.store(values, f.at(y, rows * (i * bytes_)))
            with small.otherwise(), f.loop(0, columns, lanes) as column, f.loop(first, last, lanes) as row:
                x = f.at(f.a, (matrix + row * columns + column) * bytes_)
                y = f.at(f.b, (matrix + column * rows + row) * bytes_)
                ragged(f, kind, lanes, (x, y), (last - row, columns - column), (rows * bytes_, columns * bytes_))
    return module(f)


def ragged(
    f: Function, kind: str, lanes: int, places: tuple[Value, Value], left: tuple[Value, Value], steps: tuple[Value, Value]
) -> None:
    """A block of a matrix x that has fewer rows or columns than a vector has lanes: `left` are those that there are, `steps` the
    bytes of a row of y and of x. Rows past the last one repeat it."""
    (x, y), (rows, columns), (y_row, x_row) = places, left, steps
    across, down = mask_below(f, lanes, columns), mask_below(f, lanes, rows)
    starts = [f.at(x, x_row * f.smaller(rows - 1, f.value("i64", i))) for i in range(lanes)]
    for i, values in enumerate(transposed(f, [f.load(vector(lanes, kind), start, mask=across) for start in starts])):
        with f.when(columns > i):
            f.store(values, f.at(y, y_row * i), mask=down)


def transposed(f: Function, block: list[Value]) -> list[Value]:
    """The columns of a square block of rows. Halves are exchanged between rows ever closer."""
    lanes = len(block)
    apart, rows = lanes // 2, list(block)
    while apart:
        low = [lane if not lane & apart else lanes + lane - apart for lane in range(lanes)]
        high = [lane + apart if not lane & apart else lanes + lane for lane in range(lanes)]
        for i in range(lanes):
            if not i & apart:
                a, b = rows[i], rows[i + apart]
                rows[i], rows[i + apart] = f.shuffle(a, b, low), f.shuffle(a, b, high)
        apart //= 2
    return rows
