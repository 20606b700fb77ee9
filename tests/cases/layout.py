"""Cases of layout."""

from __future__ import annotations

from typing import Any

from astride.plan import LayoutPlan
from astride.plan.layout import Move

from .dense import DenseCase, DenseRefusal


def plan(move: Move, dtype: str = "float32", **fields: Any) -> LayoutPlan:
    return LayoutPlan(dtype=dtype, move=move, **fields)


CASES = (
    DenseCase("permute", plan(Move.PERMUTE, order=(0, 2, 3, 1)), ((2, 3, 4, 5),)),
    DenseCase("permute to the same", plan(Move.PERMUTE, order=(0, 1)), ((2, 3),)),
    DenseCase("permute three in a ring", plan(Move.PERMUTE, order=(2, 0, 1)), ((2, 3, 4),)),
    DenseCase("permute a number", plan(Move.PERMUTE), ((),)),
    DenseCase("permute nothing", plan(Move.PERMUTE, order=(1, 0)), ((0, 3),)),
    DenseCase("concat channels", plan(Move.CONCAT, axis=1, pieces=3), ((2, 3, 2), (2, 1, 2), (2, 2, 2))),
    DenseCase("concat images", plan(Move.CONCAT, axis=0, pieces=2), ((2, 3), (1, 3))),
    DenseCase("concat one", plan(Move.CONCAT, axis=1, pieces=1), ((2, 3),)),
    DenseCase("concat an empty one", plan(Move.CONCAT, axis=1, pieces=2), ((2, 0), (2, 3))),
    DenseCase("concat double", plan(Move.CONCAT, "float64", axis=0, pieces=2), ((2,), (3,))),
    DenseCase("crop", plan(Move.CROP, axis=2, starts=(1, 0), sizes=(2, 3)), ((2, 2, 4, 5),)),
    DenseCase("crop one axis", plan(Move.CROP, axis=1, starts=(1,), sizes=(3,)), ((2, 5, 3),)),
    DenseCase("crop nothing away", plan(Move.CROP), ((2, 3),)),
    DenseCase("crop to nothing", plan(Move.CROP, axis=1, starts=(2,), sizes=(0,)), ((2, 3),)),
    DenseCase("tile", plan(Move.TILE, axis=1, tiles=3), ((2, 3, 2),)),
    DenseCase("tile the first axis", plan(Move.TILE, tiles=2), ((3, 2),)),
    DenseCase("tile once", plan(Move.TILE, axis=1, tiles=1), ((2, 3),)),
    DenseCase("tile nothing", plan(Move.TILE, axis=1, tiles=2), ((2, 0),)),
    DenseCase("take", plan(Move.TAKE), ((4, 3), (6,)), integers=4),
    DenseCase("take along the middle", plan(Move.TAKE, axis=1), ((2, 4, 3), (5,)), integers=4),
    DenseCase("take by a table", plan(Move.TAKE), ((4, 2), (2, 3)), integers=4),
    DenseCase("take one", plan(Move.TAKE, axis=1), ((2, 4), ()), integers=4),
    DenseCase("take none", plan(Move.TAKE), ((4, 3), (0,))),
    DenseCase("take none of none", plan(Move.TAKE), ((0, 3), (0,))),
)
F = "float32"
REFUSALS = (
    DenseRefusal("unknown move", (((2,), F),), {"move": "turn"}, ("no such move", "one of permute, concat, crop, tile, take")),
    DenseRefusal("half precision", (((2,), "float16"),), {}, ("float32 or float64",)),
    DenseRefusal("no array", (), {"move": "concat"}, ("concat takes at least one array",)),
    DenseRefusal("two to permute", (((2,), F), ((2,), F)), {}, ("permute takes one array", "arrays = 2")),
    DenseRefusal("take without indices", (((2,), F),), {"move": "take"}, ("take takes x and indices",)),
    DenseRefusal("axis", (((2, 3), F),), {"move": "tile", "axis": 2}, ("no such axis", "-2 <= axis < 2: 2")),
    DenseRefusal("an axis twice", (((2, 3), F),), {"order": (1, 1)}, ("does not name every axis once",)),
    DenseRefusal("an axis too few", (((2, 3, 4), F),), {"order": (1, 0)}, ("for another rank", "x.ndim == 2: 3"), "ArrayError"),
    DenseRefusal("no tiles", (((2, 3), F),), {"move": "tile", "tiles": 0}, ("tiles count from 1",)),
    DenseRefusal("negative start", (((3,), F),), {"move": "crop", "starts": (-1,), "sizes": (1,)}, ("none negative",)),
    DenseRefusal("no size", (((3,), F),), {"move": "crop", "starts": (1,)}, ("len(starts) == len(sizes): 1 == 0",)),
    DenseRefusal(
        "beyond the end",
        (((2, 3), F),),
        {"move": "crop", "axis": 1, "starts": (2,), "sizes": (2,)},
        ("the cut leaves x", "x.shape[1]: 2 + 2 <= 3"),
        "ArrayError",
    ),
    DenseRefusal(
        "too many axes",
        (((2, 3), F),),
        {"move": "crop", "axis": 1, "starts": (0, 0), "sizes": (1, 1)},
        ("more axes than x", "3 <= 2"),
        "ArrayError",
    ),
    DenseRefusal(
        "another size",
        (((2, 3), F), ((3, 3), F)),
        {"move": "concat", "axis": 1},
        ("x1 does not fit x0", "but for axis 1"),
        "ArrayError",
    ),
    DenseRefusal("another rank", (((2, 3), F), ((2,), F)), {"move": "concat"}, ("x1 does not fit x0",), "ArrayError"),
    DenseRefusal(
        "mixed", (((2,), F), ((2,), "float64")), {"move": "concat"}, ("x1 has another dtype", "nothing is promoted"), "ArrayError"
    ),
    DenseRefusal("fractions", (((2,), F), ((2,), F)), {"move": "take"}, ("indices are not integers",), "ArrayError"),
    DenseRefusal(
        "of nothing", (((0, 2), F), ((1,), "int64")), {"move": "take"}, ("nothing to take", "x.shape[0] >= 1"), "ArrayError"
    ),
)
