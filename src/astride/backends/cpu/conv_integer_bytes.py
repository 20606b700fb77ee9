"""Bytes moved inside kernels: runs copied and filled, matrices transposed in blocks of sixteen rows and columns.

Every function of this module turns a bit of each byte over on the way (`flip`, the same byte in all lanes): signed numbers become
unsigned ones and back by 128, others stay by 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Function, Value
from .ir_types import vector

SIDE = 16
"""Rows and columns of a block, and bytes of its vectors."""

KIND = vector(SIDE, "i8")
LONG = 64
"""Bytes that long runs are copied by."""


def copier() -> Function:
    """The function `copy_bytes(x, y, count, flip)`; reads and writes nothing outside."""
    f = Function("copy_bytes", private=True, x="ptr", y="ptr", count="i64", flip="i8")
    with f.when(f.count >= SIDE, likely=True) as few:
        long, bits = f.splat(f.flip, LONG), f.splat(f.flip, SIDE)
        whole = f.count // LONG * LONG
        with f.loop(0, whole, LONG) as at:
            f.store(f.load(long.type, f.at(f.x, at)) ^ long, f.at(f.y, at))
        with f.loop(whole, f.count, SIDE) as at:
            last = f.smaller(at, f.count - SIDE)
            f.store(f.load(KIND, f.at(f.x, last)) ^ bits, f.at(f.y, last))
        with few.otherwise(), f.loop(0, f.count) as at:
            f.store(f.load("i8", f.at(f.x, at)) ^ f.flip, f.at(f.y, at))
    return f


def filler() -> Function:
    """The function `fill_bytes(y, count, byte)`."""
    f = Function("fill_bytes", private=True, y="ptr", count="i64", byte="i8")
    with f.when(f.count >= SIDE) as few:
        wide = f.splat(f.byte, SIDE)
        with f.loop(0, f.count, SIDE) as at:
            f.store(wide, f.at(f.y, f.smaller(at, f.count - SIDE)))
        with few.otherwise(), f.loop(0, f.count) as at:
            f.store(f.byte, f.at(f.y, at))
    return f


def turner_in() -> Function:
    """The function `turn_in(x, y, rows, columns, x_row, y_row, flip, end)`: rows of y, `columns` of them, are x's columns.

    Up to a vector is read behind a row of x, but never at `end` or behind; as much is written behind a row of y, before what
    comes later in y.
    """
    f = _turner("turn_in", end="ptr")
    with f.when(f.columns >= SIDE) as few:
        with f.loop(0, f.columns, SIDE) as at:
            _strip(f, f.smaller(at, f.columns - SIDE), None)
        with few.otherwise():
            last = f.at(f.x, (f.rows - 1) * f.x_row + SIDE)
            with f.when(f.emit("i1", f"icmp ule ptr {last.text}, {f.end.text}"), likely=True) as beyond:
                _strip(f, f.value("i64", 0), f.columns)
                with beyond.otherwise():
                    _one_by_one(f, f.columns)
    return f


def _turner(name: str, **more: str) -> Function:
    steps = {"rows": "i64", "columns": "i64", "x_row": "i64", "y_row": "i64", "flip": "i8"}
    return Function(name, private=True, x="ptr", y="ptr", **steps, **more)


def _strip(f: Function, column: Value, columns: Value | None) -> None:
    """All rows of x at a block's columns. Fewer rows than a block has repeat the last one."""
    last = f.rows - 1
    with f.loop(0, f.rows, SIDE) as at:
        row = f.larger(f.smaller(at, f.rows - SIDE), 0)
        x, y = f.at(f.x, column), f.at(f.at(f.y, column * f.y_row), row)
        places = [f.at(x, f.smaller(row + k, last) * f.x_row) for k in range(SIDE)]
        for k, values in enumerate(_turned(f, places)):
            if columns is None:
                f.store(values, f.at(y, f.y_row * k))
            else:
                with f.when(columns > k):
                    f.store(values, f.at(y, f.y_row * k))


def turner_out() -> Function:
    """The function `turn_out(x, y, rows, columns, x_row, y_row, flip)`: as `turn_in`, of up to a multiple of SIDE columns that x
    has room for; y is written exactly."""
    f = _turner("turn_out")
    with f.when(f.rows >= SIDE, likely=True) as few:
        with f.loop(0, f.columns, SIDE) as column, f.loop(0, f.rows, SIDE) as at:
            row = f.smaller(at, f.rows - SIDE)
            x, y = f.at(f.at(f.x, column), row * f.x_row), f.at(f.at(f.y, column * f.y_row), row)
            values = _turned(f, [f.at(x, f.x_row * k) for k in range(SIDE)])
            left = f.columns - column
            with f.when(left >= SIDE, likely=True) as ragged:
                for k, value in enumerate(values):
                    f.store(value, f.at(y, f.y_row * k))
                with ragged.otherwise():
                    for k, value in enumerate(values):
                        with f.when(left > k):
                            f.store(value, f.at(y, f.y_row * k))
        with few.otherwise():
            _one_by_one(f, f.columns)
    return f


def _one_by_one(f: Function, columns: Value) -> None:
    with f.loop(0, columns) as column, f.loop(0, f.rows) as row:
        value = f.load("i8", f.at(f.x, row * f.x_row + column)) ^ f.flip
        f.store(value, f.at(f.y, column * f.y_row + row))


def _turned(f: Function, places: Sequence[Value]) -> list[Value]:
    """The columns of a block whose rows begin at these places. Each step weaves the first half of the rows with the second."""
    bits, rows, half = f.splat(f.flip, SIDE), [f.load(KIND, place) for place in places], SIDE // 2
    low = [k // 2 + SIDE * (k % 2) for k in range(SIDE)]
    high = [k + half for k in low]
    for _ in range(4):
        woven = []
        for a, b in zip(rows[:half], rows[half:], strict=True):
            woven += [f.shuffle(a, b, low), f.shuffle(a, b, high)]
        rows = woven
    return [row ^ bits for row in rows]
