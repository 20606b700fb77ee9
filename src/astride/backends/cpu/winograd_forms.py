"""Winograd's forms of a 3-wide window of stride 1, as matrices, and a tile transformed by one in registers.

F(m, 3) gives m outputs of a row from m + 2 inputs d and 3 weights g as A ((G g) * (B d)) with m + 2 products instead of 3 m;
over an image it is taken along both axes. Matrices: A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks (2015),
section 4. Those of F(2, 3) hold 0, 1, -1 and 1/2 alone, so whole numbers stay exact; F(4, 3) rounds even them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .contraction import fused
from .ir import Function, Value

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Form:
    """`tile` outputs of a row from `points` inputs. Transforms of d, of g, and from products to outputs."""

    tile: int
    inputs: Matrix
    weights: Matrix
    outputs: Matrix

    @property
    def points(self) -> int:
        return len(self.inputs)


FORMS = {
    2: Form(
        2,
        ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
        ((1, 1, 1, 0), (0, 1, -1, -1)),
    ),
    4: Form(
        4,
        (
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        (
            (1 / 4, 0, 0),
            (-1 / 6, -1 / 6, -1 / 6),
            (-1 / 6, 1 / 6, -1 / 6),
            (1 / 24, 1 / 12, 1 / 6),
            (1 / 24, -1 / 12, 1 / 6),
            (0, 0, 1),
        ),
        ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    ),
}
"""By the outputs of a row."""


def turned(matrix: Matrix) -> Matrix:
    """Rows as columns."""
    return tuple(zip(*matrix, strict=True))


def transformed(f: Function, matrix: Matrix, get: Callable[[int, int], Value]) -> list[list[Value]]:
    """M T M' for the square tile T of values that `get(i, j)` gives."""
    size = len(matrix[0])
    columns = [_products(f, matrix, [get(i, j) for i in range(size)]) for j in range(size)]
    return [_products(f, matrix, [column[i] for column in columns]) for i in range(len(matrix))]


def _products(f: Function, matrix: Matrix, values: Sequence[Value]) -> list[Value]:
    """A matrix times a column."""
    return [_sum(f, row, values) for row in matrix]


def _sum(f: Function, factors: Sequence[float], values: Sequence[Value]) -> Value:
    """The values times their factors, added up; what is taken once comes first, so that nothing is negated."""
    terms = sorted(((c, v) for c, v in zip(factors, values, strict=True) if c), key=lambda term: term[0] != 1)
    (first, total), rest = terms[0], terms[1:]
    if first != 1:
        total = total * first
    for factor, value in rest:
        if factor in (1, -1):
            total = total + value if factor == 1 else total - value
        else:
            total = fused(f, value, f.value(value.type, factor), total)
    return total
