"""Element by element: rectifiers and other functions of one array; products, sums and maxima of two."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..plan.dense import ElementwisePlan, Function
from ..plan.kinds import Nan, Tie
from ._run import as_array, choice, run


def elementwise(
    x: Any,
    z: Any = None,
    *,
    function: str = "relu",
    slope: float = 0.0,
    scale: float = 1.0,
    z_scale: float = 1.0,
    shift: float = 0.0,
    power: float = 1.0,
    factor: float = 1.0,
    low: float = 0.0,
    high: float = 1.0,
    tie: str = "first",
    nan: str = "propagated",
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """One function of each element of x, or of x and z.

    relu      max(x, 0) + slope * min(x, 0)            sigmoid    1 / (1 + exp(-x))
    elu       x where x > 0, else slope * (exp(x)-1)   tanh       the hyperbolic tangent
    power     (shift + scale * x) ** power             abs        |x|
    exp       factor * exp(scale * x)                  bnll       log(1 + exp(x))
    log       factor * log(shift + scale * x)          swish      x * sigmoid(scale * x)
    clip      low where x < low, high where x > high   threshold  1 where x > low, else 0
    multiply  scale * x * z: a dropout mask, a gate    divide     scale * x / z
    add       scale * x + z_scale * z                  maximum    the greater of x and z

    Shapes    x and, for the last two lines and `divide`, z (any, equal) → y (the same); `broadcast` has the unequal ones
    Numbers   float32, float64 → the same; each step rounded once, a scale of 1 not at all. sigmoid is (1 + tanh(x/2)) / 2
    Edges     as floating point has it: 0 * inf, inf - inf, log of a negative number, a fraction's power of one are NaN.
              NaN stays NaN, except: threshold gives 0; with nan="compared" clip gives low, and maximum decides by one
              comparison: tie="first" takes z where z > x, else x; tie="last" takes x where x > z, else z
    Gradient  relu, elu: dy where x > 0; relu at 0 the slope. abs: 0 at 0. clip: dy on the limits too. threshold: 0.
              power: of (shift + scale * x) == 0 the derivative itself: 0 where power > 1, infinite where 0 < power < 1.
              maximum: to the greater; of equals to x ("first"), to z ("last") or half each ("equal_share").
              Kept: one byte an element for relu, abs, clip, maximum, so that x may be overwritten; y for sigmoid, tanh,
              exp, elu; x (and z) for the rest, not copied; nothing for add
    Raises    ArgumentError: no such function, tie or nan; a parameter that the function does not read; a dtype other than
              float32 and float64
              ArrayError: z missing, one too many, or of another shape or dtype than x
    Source    Caffe, src/caffe/layers/*_layer.cpp of each name, eltwise_layer.cpp, dropout_layer.cpp, split_layer.cpp;
              goldens layers/relu, elu, sigmoid, tanh, swish, clip, exp, log, power, elt_*
    Example
    >>> import numpy as np, astride
    >>> astride.elementwise(np.float32([-2, 0, 3]), slope=0.5)
    array([-1.,  0.,  3.], dtype=float32)
    >>> astride.elementwise(np.float32([1, 2]), np.float32([10, 20]), function="add", z_scale=-1.0)
    array([ -9., -18.], dtype=float32)
    """
    x = as_array(x, "x")
    plan = ElementwisePlan(
        dtype=x.dtype.name,
        function=choice(Function, function, "function", "elementwise"),
        slope=float(slope),
        scale=float(scale),
        z_scale=float(z_scale),
        shift=float(shift),
        power=float(power),
        factor=float(factor),
        low=float(low),
        high=float(high),
        tie=choice(Tie, tie, "tie", "elementwise"),
        nan=choice(Nan, nan, "nan", "elementwise"),
    )
    return run(plan, x, None if z is None else as_array(z, "z"), out=out, backend=backend)[0]
