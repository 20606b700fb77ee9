"""Cases of lrn."""

from __future__ import annotations

from typing import Any

from astride.plan import LrnPlan

from .dense import DenseCase, DenseRefusal


def plan(dtype: str = "float32", **fields: Any) -> LrnPlan:
    return LrnPlan(dtype=dtype, **fields)


X = (2, 6, 3, 2)
CASES = (
    DenseCase("channels", plan(), (X,)),
    DenseCase("three channels", plan(before=1, after=1, alpha=0.25, k=2.0), (X,)),
    DenseCase("one channel", plan(before=0, after=0), (X,)),
    DenseCase("even", plan(before=2, after=1), (X,)),
    DenseCase("after only", plan(before=0, after=3), (X,)),
    DenseCase("window larger than the channels", plan(before=9, after=9), (X,)),
    DenseCase("another power", plan(beta=1.5, alpha=0.5), (X,)),
    DenseCase("no power", plan(beta=0.0), (X,)),
    DenseCase("within", plan(axes=(2, 3), before=1, after=1, alpha=0.1), (X,)),
    DenseCase("within, uneven", plan(axes=(2, 3), before=2, after=1, alpha=0.1), ((1, 2, 4, 5),)),
    DenseCase("last axis", plan(axes=(1,)), ((3, 5),)),
    DenseCase("first axis", plan(axes=(0,), before=1), ((5,),)),
    DenseCase("no images", plan(), ((0, 3, 2, 2),)),
    DenseCase("no channels", plan(), ((2, 0, 2, 2),)),
    DenseCase("double", plan("float64"), (X,)),
)
F = "float32"
REFUSALS = (
    DenseRefusal("size", (((2, 3), F),), {"size": 0}, ("size >= 1",)),
    DenseRefusal("axis", (((2, 3), F),), {"axes": (2,)}, ("no such axis", "-2 <= axis < 2: 2")),
    DenseRefusal("axis twice", (((2, 3), F),), {"axes": (1, -1)}, ("each once",)),
    DenseRefusal("no axis", (((2, 3), F),), {"axes": ()}, ("one axis or more",)),
    DenseRefusal("integers", (((2, 3), "int64"),), {}, ("float32 or float64",)),
)
