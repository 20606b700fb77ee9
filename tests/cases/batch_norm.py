"""Cases of batch_norm. Given variances are small integers, negative ones too, so that eps is large there."""

from __future__ import annotations

from typing import Any

from astride.plan import BatchNormPlan

from .dense import DenseCase, DenseRefusal


def plan(dtype: str = "float32", **fields: Any) -> BatchNormPlan:
    return BatchNormPlan(dtype=dtype, **fields)


X = (2, 3, 4, 2)
CASES = (
    DenseCase("own statistics", plan(), (X, None, None)),
    DenseCase("own statistics of rows", plan(eps=0.5), ((5, 4), None, None)),
    DenseCase("first axis", plan(axis=0), ((3, 4), None, None)),
    DenseCase("last axis", plan(axis=3), (X, None, None)),
    DenseCase("one axis", plan(axis=0, eps=0.25), ((3,), None, None)),
    DenseCase("given", plan(eps=6.0), (X, (3,), (3,))),
    DenseCase("given of rows", plan(eps=5.5), ((5, 4), (4,), (4,))),
    DenseCase("given, last axis", plan(axis=3, eps=5.5), (X, (2,), (2,))),
    DenseCase("given, no images", plan(eps=5.5), ((0, 4), (4,), (4,))),
    DenseCase("no channels", plan(), ((2, 0, 3), None, None)),
    DenseCase("double", plan("float64"), (X, None, None)),
)
F = "float32"
REFUSALS = (
    DenseRefusal("axis", (((2, 3), F),), {"axis": 2}, ("no such axis", "-2 <= axis < 2: 2")),
    DenseRefusal("eps", (((2, 3), F),), {"eps": -1.0}, ("eps >= 0: -1.0",)),
    DenseRefusal("mean alone", (((2, 3), F), ((3,), F)), {}, ("go together", "both or none"), "ArrayError"),
    DenseRefusal(
        "mean", (((2, 3), F), ((2,), F), ((3,), F)), {}, ("mean does not fit", "mean.shape == (3,): (2,)"), "ArrayError"
    ),
    DenseRefusal("variance", (((2, 3), F), ((3,), F), ((1, 3), F)), {}, ("variance.shape == (3,): (1, 3)",), "ArrayError"),
    DenseRefusal("integers", (((2, 3), "int64"),), {}, ("float32 or float64",)),
)
