"""Cases of reduce."""

from __future__ import annotations

from typing import Any

from astride.plan import ReducePlan
from astride.plan.reduce import Total

from .dense import DenseCase, DenseRefusal


def plan(total: Total, dtype: str = "float32", **fields: Any) -> ReducePlan:
    return ReducePlan(dtype=dtype, total=total, **fields)


CASES = tuple(
    DenseCase(f"{total} {name}", plan(total, **fields), (shape,))
    for total in Total
    for name, fields, shape in (
        ("of everything", {}, (2, 3, 4)),
        ("of rows", {"axis": 1, "coeff": 1.5}, (2, 3, 4)),
        ("of the last axis", {"axis": 2, "coeff": -2.0}, (2, 3, 4)),
        ("of no axis", {"axis": 2, "coeff": 0.5}, (2, 3)),
        ("of a number", {}, ()),
        ("for no rows", {"axis": 1}, (0, 3)),
    )
) + (
    DenseCase("double", plan(Total.SUM, "float64", axis=1), ((2, 3),)),
    DenseCase("sum of nothing", plan(Total.SUM, axis=1), ((2, 0),)),
)
REFUSALS = (
    DenseRefusal("unknown total", (((2,), "float32"),), {"total": "max"}, ("no such total", "one of sum, mean, asum, sumsq")),
    DenseRefusal("axis", (((2, 3), "float32"),), {"axis": 2}, ("no such axis", "-2 <= axis < 2: 2")),
    DenseRefusal("integers", (((2, 3), "int64"),), {}, ("float32 or float64",)),
)
