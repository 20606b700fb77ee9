"""The inner kernel of integer convolution: a tile of int32 sums of products of bytes, four by four (quads.py).

As contraction.py's, without what floating numbers need: sums are exact, so they are not cut, and every lane there is may be
computed, for sums go to scratch memory. Rows past the last one repeat it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .ir import Function, Value
from .ir_types import vector
from .machine import Machine
from .quads import dot

TILES_512: dict[int, tuple[int, ...]] = {4: (6, 2), 2: (12, 4), 1: (12, 4)}
TILES: dict[int, tuple[int, ...]] = {2: (4, 1), 1: (4, 1)}
"""Vectors side by side -> rows of tiles, by what registers hold beside the factors."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """The tiles of a machine: lanes of a vector, and rows by vectors."""

    lanes: int
    rows: dict[int, tuple[int, ...]]

    @property
    def vectors(self) -> int:
        """Vectors of the widest."""
        return max(self.rows)

    @property
    def block(self) -> int:
        """Channels of the widest."""
        return self.vectors * self.lanes

    @property
    def most(self) -> int:
        """Rows of the longest."""
        return max(rows[0] for rows in self.rows.values())


def shapes(machine: Machine) -> Shapes:
    return Shapes(max(machine.lanes("i32"), 2), TILES_512 if machine.vector_bytes >= 64 else TILES)


def tile(name: str, how: str, lanes: int, vectors: int, rows: int, block: int) -> Function:
    """The function `name(windows, b, begin, nest, sums)`: a table of the rows' places, weights of `block` channels a quad, what
    sums begin with, the loops over quads, and where the sums go, row by row."""
    f = Function(name, private=True, windows="ptr", b="ptr", begin="ptr", nest="ptr", sums="ptr")
    kind, step = vector(lanes, "i32"), lanes * 4
    a = [f.load("ptr", f.at(f.windows, 8 * m)) for m in range(rows)]
    starts = [f.load(kind, f.at(f.begin, k * step)) for k in range(vectors)]
    sums = [[f.variable(kind, start) for start in starts] for _ in range(rows)]
    counts, steps = ([f.load("i64", f.at(f.nest, 8 * (4 * part + k))) for k in range(4)] for part in range(2))
    b = f.variable("ptr", f.b)
    with f.loop(0, counts[0]) as i, f.loop(0, counts[1]) as j, f.loop(0, counts[2]) as k:
        first = i * steps[0] + j * steps[1] + k * steps[2]
        with f.loop(first, first + counts[3] * 4, 4) as offset:
            there = b.get()
            weights = [f.load(kind, f.at(there, v * step)) for v in range(vectors)]
            b.set(f.at(there, block * 4))
            for place, row in zip(a, sums, strict=True):
                x = f.splat(f.load("i32", f.at(place, offset)), lanes)
                for w, total in zip(weights, row, strict=True):
                    total.set(dot(f, how, x, w, total.get()))
    for m, row in enumerate(sums):
        for v, total in enumerate(row):
            f.store(total.get(), f.at(f.sums, (m * vectors + v) * step))
    return f


def call_tiles(f: Function, made: Shapes, vectors: int, rest: Value, *arguments: Value) -> None:
    """Compute the next `rest` rows, as many as the longest of these tiles has."""
    sizes = made.rows[vectors]
    for size, less in zip(sizes, (*sizes[1:], 0), strict=True):
        enough = (rest > less) & (rest <= size) if size != sizes[0] else rest > less
        with f.when(enough):
            f.call("void", tile_name(size, vectors), *arguments)


def tile_name(rows: int, vectors: int) -> str:
    return f"tile_{rows}_{vectors}"


def tiles(made: Shapes, how: str) -> list[Function]:
    """All of them."""
    sizes = [(rows, vectors) for vectors, all_rows in made.rows.items() for rows in all_rows]
    return [tile(tile_name(rows, vectors), how, made.lanes, vectors, rows, made.block) for rows, vectors in sizes]
