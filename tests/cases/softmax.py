"""Cases of softmax."""

from __future__ import annotations

from astride.plan import SoftmaxPlan

from .dense import DenseCase, DenseRefusal


def plan(axis: int, dtype: str = "float32") -> SoftmaxPlan:
    return SoftmaxPlan(dtype=dtype, axis=axis)


CASES = (
    DenseCase("channels", plan(1), ((2, 5, 3),)),
    DenseCase("first axis", plan(0), ((4, 3),)),
    DenseCase("last axis", plan(2), ((2, 3, 4),)),
    DenseCase("one axis", plan(0), ((6,),)),
    DenseCase("one class", plan(1), ((3, 1),)),
    DenseCase("no images", plan(1), ((0, 4),)),
    DenseCase("no classes", plan(1), ((2, 0),)),
    DenseCase("double", plan(1, "float64"), ((2, 4),)),
)
REFUSALS = (
    DenseRefusal("axis", (((2, 3), "float32"),), {"axis": 2}, ("no such axis", "-2 <= axis < 2: 2")),
    DenseRefusal("negative axis", (((2, 3), "float32"),), {"axis": -3}, ("-2 <= axis < 2: -3",)),
    DenseRefusal("integers", (((2, 3), "int64"),), {}, ("float32 or float64",)),
)
