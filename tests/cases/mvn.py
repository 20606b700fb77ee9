"""Cases of mvn."""

from __future__ import annotations

from typing import Any

from astride.plan import MvnPlan

from .dense import DenseCase, DenseRefusal


def plan(dtype: str = "float32", **fields: Any) -> MvnPlan:
    return MvnPlan(dtype=dtype, **fields)


X = (2, 3, 4, 2)
CASES = (
    DenseCase("channels", plan(), (X,)),
    DenseCase("images", plan(axis=1), (X,)),
    DenseCase("everything", plan(axis=0, eps=0.5), (X,)),
    DenseCase("large eps", plan(eps=0.5), (X,)),
    DenseCase("mean only", plan(normalize_variance=False), (X,)),
    DenseCase("mean of images", plan(axis=1, normalize_variance=False), (X,)),
    DenseCase("one value a row", plan(axis=2, eps=1.0), ((2, 3),)),
    DenseCase("no images", plan(), ((0, 3, 2),)),
    DenseCase("no places", plan(), ((2, 3, 0),)),
    DenseCase("double", plan("float64"), (X,)),
)
F = "float32"
REFUSALS = (
    DenseRefusal("axis", (((2, 3), F),), {"axis": 3}, ("no such axis", "-2 <= axis < 2: 3")),
    DenseRefusal("eps", (((2, 3, 4), F),), {"eps": -1.0}, ("eps >= 0: -1.0",)),
    DenseRefusal("integers", (((2, 3, 4), "int64"),), {}, ("float32 or float64",)),
)
