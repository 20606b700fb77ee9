"""Cases of argmax."""

from __future__ import annotations

from typing import Any

from astride.plan import ArgmaxPlan

from .dense import DenseCase, DenseRefusal


def plan(axis: int, dtype: str = "float32", **fields: Any) -> ArgmaxPlan:
    return ArgmaxPlan(dtype=dtype, axis=axis, **fields)


PLACES = (
    DenseCase("one", plan(1), ((3, 7, 2),)),
    DenseCase("two", plan(1, top_k=2), ((3, 7, 2),)),
    DenseCase("all", plan(0, top_k=5), ((5, 3),)),
    DenseCase("last axis", plan(2, top_k=3), ((2, 3, 6),)),
    DenseCase("of one", plan(1), ((3, 1),)),
    DenseCase("no images", plan(1, top_k=2), ((0, 3),)),
    DenseCase("double", plan(0, "float64"), ((9,),)),
)
VALUES = (
    DenseCase("the greatest", plan(1, values=True), ((2, 5),)),
    DenseCase("the three greatest", plan(1, values=True, top_k=3), ((2, 5, 2),)),
    DenseCase("the greatest of doubles", plan(0, "float64", values=True, top_k=2), ((4, 2),)),
)
REFUSALS = (
    DenseRefusal("axis", (((2, 3), "float32"),), {"axis": 2}, ("no such axis", "-2 <= axis < 2: 2")),
    DenseRefusal("none", (((2, 3), "float32"),), {"top_k": 0}, ("top_k counts from 1",)),
    DenseRefusal(
        "too many", (((2, 3), "float32"),), {"top_k": 4}, ("more than there are", "top_k <= x.shape[1]: 4 <= 3"), "ArrayError"
    ),
    DenseRefusal("of nothing", (((2, 0), "float32"),), {}, ("1 <= 0",), "ArrayError"),
    DenseRefusal("integers", (((2, 3), "int64"),), {}, ("float32 or float64",)),
)
