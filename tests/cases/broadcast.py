"""Cases of broadcast."""

from __future__ import annotations

from astride.plan import BroadcastPlan
from astride.plan.norms import Along

from .dense import DenseCase, DenseRefusal


def plan(function: Along = Along.MULTIPLY, axis: int = 1, dtype: str = "float32") -> BroadcastPlan:
    return BroadcastPlan(dtype=dtype, function=function, axis=axis)


X = (2, 3, 4, 2)
CASES = (
    *[DenseCase(f"{f} channels", plan(f), (X, (3,), None)) for f in Along],
    *[DenseCase(f"{f} two axes", plan(f, 1), (X, (3, 4), None)) for f in Along],
    *[DenseCase(f"{f} last axes", plan(f, 2), (X, (4, 2), None)) for f in Along],
    *[DenseCase(f"{f} first axis", plan(f, 0), (X, (2,), None)) for f in Along],
    *[DenseCase(f"{f} all axes", plan(f, 0), (X, X, None)) for f in Along],
    *[DenseCase(f"{f} one number", plan(f, 0), (X, (), None)) for f in Along],
    *[DenseCase(f"{f} scalars", plan(f, 0), ((), (), None)) for f in Along],
    DenseCase("scale and bias", plan(), (X, (3,), (3,))),
    DenseCase("scale and bias of two axes", plan(axis=2), (X, (4, 2), (4, 2))),
    DenseCase("scale and bias, one number", plan(axis=0), (X, (), ())),
    DenseCase("no images", plan(), ((0, 3), (3,), (3,))),
    DenseCase("double", plan(dtype="float64"), ((2, 3), (3,), (3,))),
)
F = "float32"
REFUSALS = (
    DenseRefusal(
        "unknown function", (((2, 3), F), ((3,), F)), {"function": "divide"}, ("no such function", "multiply, add, prelu")
    ),
    DenseRefusal("axis", (((2, 3), F), ((3,), F)), {"axis": 2}, ("no such axis", "-2 <= axis < 2: 2")),
    DenseRefusal(
        "size", (((2, 3), F), ((2,), F)), {}, ("z does not fit x", "z.shape == x.shape[1:2]: (2,) == (3,)"), "ArrayError"
    ),
    DenseRefusal("too many axes", (((2, 3), F), ((3, 1), F)), {}, ("more axes than x", "3 <= 2"), "ArrayError"),
    DenseRefusal("bias", (((2, 3), F), ((3,), F), ((2,), F)), {}, ("b does not fit z", "(2,) == (3,)"), "ArrayError"),
    DenseRefusal("bias of a sum", (((2, 3), F), ((3,), F), ((3,), F)), {"function": "add"}, ("add takes no b",), "ArrayError"),
    DenseRefusal("mixed", (((2, 3), F), ((3,), "float64")), {}, ("nothing is promoted",), "ArrayError"),
    DenseRefusal("integers", (((2, 3), "int32"), ((3,), "int32")), {}, ("float32 or float64",)),
)
