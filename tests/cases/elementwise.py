"""Cases of elementwise."""

from __future__ import annotations

from typing import Any

from astride.plan import ElementwisePlan
from astride.plan.dense import TIES, Function
from astride.plan.kinds import Nan

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
    DenseCase("elu", plan(Function.ELU, slope=0.75), ((2, 3, 4), None)),
    DenseCase("elu of a negative slope", plan(Function.ELU, slope=-0.5), ((2, 3), None)),
    DenseCase("sigmoid", plan(Function.SIGMOID), ((2, 3, 4), None)),
    DenseCase("tanh", plan(Function.TANH), ((2, 3, 4), None)),
    DenseCase("abs", plan(Function.ABS), ((2, 3, 4), None)),
    DenseCase("bnll", plan(Function.BNLL), ((2, 3, 4), None)),
    DenseCase("swish", plan(Function.SWISH), ((2, 3, 4), None)),
    DenseCase("swish scaled", plan(Function.SWISH, scale=0.5), ((2, 3, 4), None)),
    DenseCase("power", plan(Function.POWER, scale=0.5, shift=3.0, power=1.5), ((2, 3, 4), None)),
    DenseCase("power one", plan(Function.POWER, scale=-0.5, shift=1.5), ((2, 3), None)),
    DenseCase("power two", plan(Function.POWER, scale=0.5, shift=1.5, power=2.0), ((2, 3), None)),
    DenseCase("power three of x itself", plan(Function.POWER, power=3.0), ((2, 3), None)),
    DenseCase("power minus one", plan(Function.POWER, shift=5.0, power=-1.0), ((2, 3), None)),
    DenseCase("power zero", plan(Function.POWER, scale=0.5, power=0.0), ((2, 3), None)),
    DenseCase("power of a constant", plan(Function.POWER, scale=0.0, shift=3.0, power=2.0), ((2, 3), None)),
    DenseCase("exp", plan(Function.EXP), ((2, 3, 4), None)),
    DenseCase("exp scaled", plan(Function.EXP, scale=0.5, factor=1.25), ((2, 3, 4), None)),
    DenseCase("log", plan(Function.LOG, shift=5.0), ((2, 3, 4), None)),
    DenseCase("log scaled", plan(Function.LOG, scale=0.5, shift=3.0, factor=0.75), ((2, 3, 4), None)),
    DenseCase("clip", plan(Function.CLIP, low=-1.0, high=2.0), ((2, 3, 4), None)),
    DenseCase("clip compared", plan(Function.CLIP, low=-1.0, high=2.0, nan=Nan.COMPARED), ((2, 3, 4), None)),
    DenseCase("threshold", plan(Function.THRESHOLD, low=1.0), ((2, 3, 4), None)),
    DenseCase("divide", plan(Function.DIVIDE), ((2, 3), (2, 3))),
    DenseCase("divide scaled", plan(Function.DIVIDE, scale=-2.0), ((2, 3), (2, 3))),
    *[
        DenseCase(f"maximum {tie} {nan}", plan(Function.MAXIMUM, tie=tie, nan=nan), ((2, 3, 4), (2, 3, 4)))
        for tie in TIES
        for nan in Nan
    ],
    DenseCase("scalar", plan(Function.ADD), ((), ())),
    *[DenseCase(f"scalar {f}", plan(f), ((), None)) for f in Function if not f.binary and f is not Function.LOG],
    DenseCase("empty", plan(Function.MULTIPLY), ((0, 3), (0, 3))),
    DenseCase("double", plan(Function.RELU, "float64", slope=0.1), ((5,), None)),
)
F = "float32"
REFUSALS = (
    DenseRefusal("unknown function", (((2,), F),), {"function": "cube"}, ("no such function", "one of relu, elu, sigmoid")),
    DenseRefusal("shapes", (((2,), F), ((3,), F)), {"function": "add"}, ("of one shape", "z.shape == (2,): (3,)"), "ArrayError"),
    DenseRefusal("z missing", (((2,), F),), {"function": "add"}, ("takes two arrays",), "ArrayError"),
    DenseRefusal("z too many", (((2,), F), ((2,), F)), {}, ("relu takes one array",), "ArrayError"),
    DenseRefusal(
        "unknown tie", (((2,), F), ((2,), F)), {"function": "maximum", "tie": "second"}, ("no such tie", "one of first, last")
    ),
    DenseRefusal(
        "a tie of windows", (((2,), F), ((2,), F)), {"function": "maximum", "tie": "all_full"}, ("first, last, equal_share",)
    ),
    DenseRefusal(
        "unknown nan", (((2,), F),), {"function": "clip", "nan": "kept"}, ("no such nan", "one of compared, propagated")
    ),
    DenseRefusal("slope unread", (((2,), F),), {"function": "sigmoid", "slope": 0.5}, ("does not read slope", "no parameters")),
    DenseRefusal(
        "power unread", (((2,), F),), {"function": "exp", "power": 2}, ("does not read power", "none but scale, factor")
    ),
    DenseRefusal("half precision", (((2,), "float16"),), {}, ("float32 or float64",)),
)
