"""Rows of a matrix that lie so far apart that they share few places of the cache, copied to a better distance."""

from __future__ import annotations

import math
from functools import lru_cache

from .. import memory
from ..protocol import Array
from .cache import functions
from .ir import module
from .ir_types import size, vector
from .machine import machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

ALIAS = 4096
"""Bytes from row to row of which multiples are the same place of the nearest cache."""

MORE = 64
"""Bytes that rows are moved apart."""

BYTES, PITCH, ROWS, COUNT = range(4)
"""Fields: bytes of a row, a multiple of MORE; from one to the next in the copy; rows of a unit, and of all."""

UNIT = 1 << 16
"""About the bytes of a unit."""


def pitch(bytes_: int) -> int:
    """The bytes from row to row that rows of so many had better have."""
    return bytes_ + MORE if bytes_ and bytes_ % ALIAS == 0 else bytes_


def spread(x: Array) -> Array:
    """A contiguous array whose last axis has a multiple of ALIAS bytes, with rows `pitch` apart: a view of what has no gaps."""
    count, row = math.prod(x.shape[:-1]), x.shape[-1] * x.itemsize
    apart = pitch(row)
    whole = memory.empty((*x.shape[:-1], apart // x.itemsize), x.dtype)
    (address,) = functions("conv_spread", (), copy_rows, ("copy_rows",))
    geometry, units = _geometry(count, row)
    run(address, geometry.address, address_of(x), address_of(whole), 0, 0, units, 1)
    return whole[..., : x.shape[-1]]


@lru_cache(maxsize=512)
def _geometry(count: int, row: int) -> tuple[Geometry, int]:
    rows = max(UNIT // row, 1)
    return Geometry([row, pitch(row), rows, count], []), -(-count // rows)


def copy_rows() -> str:
    """The module of `copy_rows`: a is the matrix, b the copy."""
    f, lanes = kernel_function("copy_rows"), max(machine().lanes("float"), 2)
    rows, kind = f.field(f.geometry, ROWS), vector(lanes, "float")
    with f.loop(f.begin, f.end) as unit:
        end = f.smaller((unit + 1) * rows, f.field(f.geometry, COUNT))
        with f.loop(unit * rows, end) as row:
            x, y = f.at(f.a, row * f.field(f.geometry, BYTES)), f.at(f.b, row * f.field(f.geometry, PITCH))
            with f.loop(0, f.field(f.geometry, BYTES), size(kind)) as at:
                f.store(f.load(kind, f.at(x, at)), f.at(y, at))
    return module(f)
