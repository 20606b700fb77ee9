"""Matrices moved inside kernels, from and to rows any bytes apart: transposed, between channels first and channels last, or as
they are."""

from __future__ import annotations

from .contraction import mask_below
from .conv_layout import ragged, transposed
from .ir import Function, Value
from .ir_types import BITS, vector
from .machine import Machine

FEW = 4
"""Rows up to which they are woven together, not transposed in square blocks."""


def mover(kind: str, machine: Machine) -> Function:
    """The function `move(x, y, rows, columns, x_row, y_row, room)`: y's rows are x's columns, `x_row` and `y_row` the bytes from
    one row to the next. With `room` y may be written up to a vector behind what it has, and in front of what comes later."""
    size, lanes = BITS[kind] // 8, max(machine.lanes(kind), 2)
    f = Function("move", private=True, x="ptr", y="ptr", rows="i64", columns="i64", x_row="i64", y_row="i64", room="i64")
    enough = (f.rows >= lanes) & (f.columns >= lanes)
    # Planes are read, or written, one after the other: the next block is the next along x's rows where y may be written behind
    # what it has, and else along y's.
    along = f.room.ne(0)
    outer, inner = f.select(along, f.rows, f.columns), f.select(along, f.columns, f.rows)
    with f.when((f.rows <= FEW) & along, likely=False) as many:
        _woven(f, kind, size, lanes)
        with many.otherwise(), f.loop(0, outer, lanes) as i, f.loop(0, inner, lanes) as j:
            row, column = f.select(along, i, j), f.select(along, j, i)
            with f.when(enough) as small:
                _block(f, kind, size, lanes, (f.smaller(row, f.rows - lanes), f.smaller(column, f.columns - lanes)))
                with small.otherwise():
                    x, y = f.at(f.x, row * f.x_row + column * size), f.at(f.y, column * f.y_row + row * size)
                    ragged(f, kind, lanes, (x, y), (f.rows - row, f.columns - column), (f.y_row, f.x_row))
    return f


def _block(f: Function, kind: str, size: int, lanes: int, corner: tuple[Value, Value]) -> None:
    """A square block; the last ones begin early enough to be full."""
    row, column = corner
    x, y, block = f.at(f.x, row * f.x_row + column * size), f.at(f.y, column * f.y_row + row * size), []
    for _ in range(lanes):
        block.append(f.load(vector(lanes, kind), x))
        x = f.at(x, f.x_row)
    for values in transposed(f, block):
        f.store(values, y)
        y = f.at(y, f.y_row)


def _woven(f: Function, kind: str, size: int, lanes: int) -> None:
    """Up to FEW rows: each group of FEW numbers has one number of each row, and is stored over the end of the one before."""
    last = f.rows - 1
    starts = [f.at(f.x, f.x_row * f.smaller(last, f.value("i64", i))) for i in range(FEW)]
    whole = f.columns // lanes * lanes
    with f.loop(0, whole, lanes) as column:
        a, b, c, d = (f.load(vector(lanes, kind), f.at(start, column * size)) for start in starts)
        y = f.at(f.y, column * f.y_row)
        for k in range(lanes):
            pairs = f.shuffle(a, b, [k, lanes + k]), f.shuffle(c, d, [k, lanes + k])
            f.store(f.shuffle(*pairs, range(FEW)), f.at(y, f.y_row * k))
    with f.loop(whole, f.columns) as column, f.loop(0, f.rows) as row:
        f.store(f.load(kind, f.at(f.x, row * f.x_row + column * size)), f.at(f.y, column * f.y_row + row * size))


NEAR = 64
"""Rows that stay near while all columns are taken of them."""


def folder(kind: str, fold: int) -> Function:
    """The function `move_folded`, with the arguments of `move`, of groups of `fold` numbers side by side, which stay so: y's
    rows are columns of groups. Nothing is written behind y's rows."""
    size = BITS[kind] // 8 * fold
    f = Function("move_folded", private=True, x="ptr", y="ptr", rows="i64", columns="i64", x_row="i64", y_row="i64", room="i64")
    with f.loop(0, f.rows, NEAR) as first, f.loop(0, f.columns) as column:
        end = f.smaller(first + NEAR, f.rows)
        x, y = f.at(f.x, column * size), f.at(f.y, column * f.y_row)
        whole = first + (end - first) // 4 * 4
        for begin, step in ((first, 4), (whole, 1)):
            with f.loop(begin, whole if step > 1 else end, step) as row:
                from_, to = f.at(x, row * f.x_row), f.at(y, row * size)
                groups = [f.load(vector(fold, kind), f.at(from_, f.x_row * k)) for k in range(step)]
                for k, group in enumerate(groups):
                    f.store(group, f.at(to, k * size))
    return f


def copier(kind: str, machine: Machine) -> Function:
    """The function `copy(x, y, rows, columns, x_row, y_row)`: so many rows of so many numbers, to rows other bytes apart."""
    size, lanes = BITS[kind] // 8, max(machine.lanes(kind), 2)
    wide = vector(lanes, kind)
    f = Function("copy", private=True, x="ptr", y="ptr", rows="i64", columns="i64", x_row="i64", y_row="i64")
    whole = f.columns // lanes * lanes
    mask = mask_below(f, lanes, f.columns - whole)
    with f.loop(0, f.rows) as row:
        x, y = f.at(f.x, row * f.x_row), f.at(f.y, row * f.y_row)
        with f.loop(0, whole, lanes) as column:
            f.store(f.load(wide, f.at(x, column * size)), f.at(y, column * size))
        with f.when(whole < f.columns):
            f.store(f.load(wide, f.at(x, whole * size), mask=mask), f.at(y, whole * size), mask=mask)
    return f


def band_copier(kind: str, machine: Machine, name: str) -> Function:
    """A function with the arguments of `move`, of columns that stay columns: so many numbers of each, which are few, a vector of
    them of all columns after the other. `x_row` and `y_row` are the bytes from column to column."""
    size, lanes = BITS[kind] // 8, max(machine.lanes(kind), 2)
    wide = vector(lanes, kind)
    f = Function(name, private=True, x="ptr", y="ptr", rows="i64", columns="i64", x_row="i64", y_row="i64", room="i64")
    with f.loop(0, f.rows, lanes) as row:
        mask = mask_below(f, lanes, f.rows - row)
        x, y = f.at(f.x, row * size), f.at(f.y, row * size)
        with f.when((f.rows - row) >= lanes, likely=True) as some:
            with f.loop(0, f.columns) as column:
                f.store(f.load(wide, f.at(x, column * f.x_row)), f.at(y, column * f.y_row))
            with some.otherwise(), f.loop(0, f.columns) as column:
                f.store(f.load(wide, f.at(x, column * f.x_row), mask=mask), f.at(y, column * f.y_row), mask=mask)
    return f
