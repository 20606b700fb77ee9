"""Cases of elementwise."""

from __future__ import annotations

from typing import Any

from astride.plan import ElementwisePlan
from astride.plan.dense import Function

from .dense import DenseCase, DenseRefusal


def plan(function: Function, dtype: str = "float32", **fields: Any) -> ElementwisePlan:
    return ElementwisePlan(dtype=dtype, function=function, **fields)


CASES = (
    DenseCase("relu", plan(Function.RELU), ((2, 3, 4), None)),
    DenseCase("leaky relu", plan(Function.RELU, slope=0.25), ((2, 3, 4), None)),
    DenseCase("relu of a negative slope", plan(Function.RELU, slope=-0.5), ((2, 3), None)),
    DenseCase("multiply", plan(Function.MULTIPLY), ((2, 3), (2, 3))),
    DenseCase("multiply scaled", plan(Function.MULTIPLY, scale=2.0), ((2, 3), (2, 3))),
    DenseCase("add", plan(Function.ADD), ((2, 3), (2, 3))),
    DenseCase("add scaled", plan(Function.ADD, scale=0.5, z_scale=-2.0), ((2, 3), (2, 3))),
    DenseCase("scalar", plan(Function.ADD), ((), ())),
    DenseCase("empty", plan(Function.MULTIPLY), ((0, 3), (0, 3))),
    DenseCase("double", plan(Function.RELU, "float64", slope=0.1), ((5,), None)),
)
F = "float32"
REFUSALS = (
    DenseRefusal("unknown function", (((2,), F),), {"function": "tanh"}, ("no such function", "one of relu, multiply, add")),
    DenseRefusal("shapes", (((2,), F), ((3,), F)), {"function": "add"}, ("of one shape", "z.shape == (2,): (3,)"), "ArrayError"),
    DenseRefusal("z missing", (((2,), F),), {"function": "add"}, ("takes two arrays",), "ArrayError"),
    DenseRefusal("z too many", (((2,), F), ((2,), F)), {}, ("relu takes one array",), "ArrayError"),
    DenseRefusal("half precision", (((2,), "float16"),), {}, ("float32 or float64",)),
)
