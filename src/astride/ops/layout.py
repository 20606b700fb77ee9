"""Moving values: other orders of axes, joints, cuts and repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.layout import LayoutPlan, Move
from ._run import as_array, run
from .softmax import canonical_axis


def layout(
    *arrays: Any,
    move: str = "permute",
    axis: int = 0,
    order: Sequence[int] | None = None,
    starts: Sequence[int] = (),
    sizes: Sequence[int] = (),
    tiles: int = 1,
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """The values of x in other places; nothing is computed.

    permute   x's axes in another `order`, reversed by default
    concat    any number of arrays, one behind the other along `axis`
    crop      from `axis` on, `sizes` places from `starts` on; axes that are not named stay whole
    tile      the whole of x `tiles` times along `axis`
    take      x, indices: places of `axis` by their index, each any number of times

    Shapes    x (any) → y; concat: shapes equal but for `axis`; take: x's axis gives way to the axes of indices
    Numbers   float32, float64 → the same, exact; gradients are summed in that dtype
    Edges     sizes may be 0. Indices count from 0 and never from the end
    Gradient  back to where the value came from; summed where it went to several places, 0 where it went nowhere.
              Only shapes are kept, and the indices of a take
    Raises    ArgumentError: no such move or axis, an order that does not name every axis once, negative sizes,
              a dtype other than float32 and float64
              ArrayError: pieces that do not fit, a cut that leaves x, an index outside, the wrong number of arrays
    Source    Caffe, src/caffe/layers/{concat,slice,crop,tile,embed,batch_reindex}_layer.cpp;
              golden layers/concat, slice, crop1, tile, embed, batchreindex
    Example
    >>> import numpy as np, astride
    >>> astride.layout(np.float32([[1, 2], [3, 4]])).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    >>> astride.layout(np.float32([1, 2, 3]), [2, 0, 2], move="take").tolist()
    [3.0, 1.0, 3.0]
    """
    if move not in list(Move):
        raise ArgumentError(
            "there is no such move", given={"move": move}, required=f"one of {', '.join(Move)}", operator="layout"
        )
    kind = Move(move)
    given = _arrays(kind, arrays)
    rank = given[0].ndim
    plan = LayoutPlan(
        dtype=given[0].dtype.name,
        move=kind,
        axis=0 if kind is Move.PERMUTE else canonical_axis(axis, rank, "layout"),
        order=_order(order, rank) if kind is Move.PERMUTE else (),
        pieces=len(given) if kind is Move.CONCAT else 1,
        starts=tuple(int(n) for n in starts),
        sizes=tuple(int(n) for n in sizes),
        tiles=int(tiles),
    )
    return run(plan, *given, out=out, backend=backend)[0]


def _arrays(move: Move, arrays: tuple[Any, ...]) -> list[Array]:
    names, needed = ["x"], "one array"
    if move is Move.CONCAT:
        names, needed = [f"x{i}" for i in range(max(len(arrays), 1))], "at least one array"
    elif move is Move.TAKE:
        names, needed = ["x", "indices"], "x and indices"
    if len(arrays) != len(names):
        raise ArgumentError(f"{move} takes {needed}", given={"arrays": len(arrays)}, operator="layout")
    return [as_array(a, name) for a, name in zip(arrays, names, strict=True)]


def _order(order: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    if order is None:
        return tuple(range(rank))[::-1]
    return tuple(canonical_axis(int(a), rank, "layout") for a in order)
