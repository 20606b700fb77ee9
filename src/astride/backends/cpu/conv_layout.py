"""Between channels first and channels last: matrices transposed in registers, blocks of as many rows as a vector has lanes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..protocol import Array
from .cache import functions
from .ir import Function, Value, module
from .ir_types import BITS, vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

ROWS, COLUMNS, BANDS = range(3)
"""Fields: rows and columns of each matrix, and bands of its rows."""

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
    band = _lanes(kind, machine())
    bands = -(-rows // band)
    return address, Geometry([rows, columns, bands], []), bands, band


def _lanes(kind: str, machine: Machine) -> int:
    return max(machine.lanes(kind), 2)


def transposer(kind: str, machine: Machine) -> str:
    """The module of `transpose`: a is x, b is y; units are (matrix, band of rows). The last band and the last columns
    overlap those before, where there are any."""
    f, lanes, bytes_ = kernel_function("transpose"), _lanes(kind, machine), BITS[kind] // 8
    rows, columns, bands = (f.field(f.geometry, k) for k in (ROWS, COLUMNS, BANDS))
    with f.loop(f.begin, f.end) as unit:
        matrix, row = unit // bands * (rows * columns), unit % bands * lanes
        with f.when((rows >= lanes) & (columns >= lanes), likely=True) as small:
            row = f.smaller(row, rows - lanes)
            with f.loop(0, columns, lanes) as at:
                column = f.smaller(at, columns - lanes)
                x = f.at(f.a, (matrix + row * columns + column) * bytes_)
                y = f.at(f.b, (matrix + column * rows + row) * bytes_)
                _block(f, vector(lanes, kind), lanes, (x, columns * bytes_), (y, rows * bytes_))
            with small.otherwise():
                first = unit % bands * lanes
                with f.loop(first, f.smaller(first + lanes, rows)) as i, f.loop(0, columns) as j:
                    x = f.at(f.a, (matrix + i * columns + j) * bytes_)
                    f.store(f.load(kind, x), f.at(f.b, (matrix + j * rows + i) * bytes_))
    return module(f)


def _block(f: Function, kind: str, lanes: int, x: tuple[Value, Value], y: tuple[Value, Value]) -> None:
    """A square block: places and bytes from row to row. Halves are exchanged between rows ever closer."""
    block = [f.load(kind, f.at(x[0], x[1] * i)) for i in range(lanes)]
    apart = lanes // 2
    while apart:
        low = [lane if not lane & apart else lanes + lane - apart for lane in range(lanes)]
        high = [lane + apart if not lane & apart else lanes + lane for lane in range(lanes)]
        for i in range(lanes):
            if not i & apart:
                a, b = block[i], block[i + apart]
                block[i], block[i + apart] = f.shuffle(a, b, low), f.shuffle(a, b, high)
        apart //= 2
    for i, row in enumerate(block):
        f.store(row, f.at(y[0], y[1] * i))
