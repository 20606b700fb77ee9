"""Functions of one number in WGSL: value and slope, for elementwise kernels and for what follows a convolution's sum.

NaN and infinities are told apart by their bits, and made of run-time values: drivers simplify constants and comparisons.
tanh, expm1 and log1p are built from exp and log, whose errors near 0 and 1 they avoid.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...plan.dense import READS, ElementwisePlan, Function
from ...plan.kinds import Nan, Tie

BITS = """
fn infinity() -> f32 { return bitcast<f32>(0x7f800000u | u32(min(params.count, 0))); }
fn not_a_number() -> f32 { return bitcast<f32>(0x7fc00000u | u32(min(params.count, 0))); }
fn is_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
"""
"""What the texts call; `params.count` is never negative, which compilers do not know."""

EXPM1 = """
fn expm1(v: f32) -> f32 {
  if (abs(v) > 0.35) { return exp(v) - 1.0; }
  return v * (1.0 + v * (0.5 + v * (1.0 / 6.0 + v * (1.0 / 24.0 + v * (1.0 / 120.0 + v * (1.0 / 720.0 + v / 5040.0))))));
}
"""
TANH = (
    EXPM1
    + """
fn tanh_of(v: f32) -> f32 {
  if (is_nan(v)) { return v; }
  let e = expm1(-2.0 * min(abs(v), 20.0));
  let t = -e / (2.0 + e);
  return select(t, -t, v < 0.0);
}
"""
)
SIGMOID = """
fn sigmoid(v: f32) -> f32 {
  if (is_nan(v)) { return v; }
  return select(1.0 / (1.0 + exp(-clamp(v, -87.0, 87.0))), 0.0, v < -87.0);
}
"""
BNLL = """
fn log1p(v: f32) -> f32 { return select(log(1.0 + v), v * (1.0 - v * (0.5 - v / 3.0)), v < 0.01); }
"""
LOG = """
fn log_of(v: f32) -> f32 {
  if (is_nan(v) || v == infinity()) { return v; }
  if (v < 0.0) { return not_a_number(); }
  if (v == 0.0) { return -infinity(); }
  return log(v);
}
"""
EXP = """
fn exp_of(v: f32) -> f32 {
  if (is_nan(v)) { return v; }
  if (v > 88.8) { return infinity(); }
  return select(exp(v), 0.0, v < -104.0);
}
"""


def needs(function: Function) -> str:
    """The WGSL functions that a function's texts call, besides BITS."""
    tables = {
        Function.ELU: EXPM1,
        Function.SIGMOID: SIGMOID,
        Function.TANH: TANH,
        Function.BNLL: BNLL,
        Function.SWISH: SIGMOID,
        Function.EXP: EXP,
        Function.LOG: LOG,
    }
    return tables.get(function, "")


def numbers(plan: ElementwisePlan) -> dict[str, float]:
    """What the texts read of `params`."""
    return {name: float(getattr(plan, name)) for name in READS.get(plan.function, ()) if name not in ("nan", "tie", "power")}


def value(plan: ElementwisePlan) -> str:
    """The function of `v`, or of `v` and `u`."""
    if plan.function is Function.POWER:
        return _power(plan.power, f"({_base(plan)})") if plan.scale else _constant(plan)
    if plan.function is Function.RELU and not plan.slope:
        return "select(select(0.0, v, is_nan(v)), v, v > 0.0)"
    if plan.function is Function.CLIP:
        odd = "params.low" if plan.nan is Nan.COMPARED else "v"
        return f"select(max(min(v, params.high), params.low), {odd}, is_nan(v))"
    if plan.function is Function.MAXIMUM:
        return _maximum(plan)
    return VALUES[plan.function]


VALUES: Mapping[Function, str] = {
    Function.RELU: "select(params.slope * v, v, v > 0.0)",
    Function.ELU: "select(select(params.slope * expm1(v), v, is_nan(v)), v, v > 0.0)",
    Function.SIGMOID: "sigmoid(v)",
    Function.TANH: "tanh_of(v)",
    Function.ABS: "abs(v)",
    Function.BNLL: "select(log1p(exp(-abs(v))) + max(v, 0.0), v, is_nan(v))",
    Function.SWISH: "v * sigmoid(params.scale * v)",
    Function.EXP: "params.factor * exp_of(params.scale * v)",
    Function.LOG: "params.factor * log_of(params.shift + params.scale * v)",
    Function.THRESHOLD: "select(0.0, 1.0, v > params.low && !is_nan(v))",
    Function.MULTIPLY: "v * u * params.scale",
    Function.DIVIDE: "v / u * params.scale",
    Function.ADD: "params.scale * v + params.z_scale * u",
}

SLOPES: Mapping[Function, str] = {
    Function.RELU: "select(params.slope, 1.0, v > 0.0)",
    Function.ELU: "select(params.slope * expm1(v) + params.slope, 1.0, v > 0.0)",
    Function.SIGMOID: "sigmoid(v) * (1.0 - sigmoid(v))",
    Function.TANH: "1.0 - tanh_of(v) * tanh_of(v)",
    Function.ABS: "select(select(0.0, -1.0, v < 0.0), 1.0, v > 0.0)",
    Function.BNLL: "1.0 - 1.0 / (exp(min(v, 50.0)) + 1.0)",
    Function.SWISH: "sigmoid(params.scale * v) * (1.0 + params.scale * v * (1.0 - sigmoid(params.scale * v)))",
    Function.EXP: "params.scale * params.factor * exp_of(params.scale * v)",
    Function.LOG: "params.factor * params.scale / (params.shift + params.scale * v)",
    Function.CLIP: "select(0.0, 1.0, v >= params.low && v <= params.high)",
    Function.THRESHOLD: "0.0",
}


def slope(plan: ElementwisePlan) -> str:
    """The derivative at `v`, for functions of one number."""
    if plan.function is Function.POWER:
        if plan.scale * plan.power == 0:
            return "0.0"
        return f"params.scale * {plan.power!r} * {_power(plan.power - 1, f'({_base(plan)})')}"
    return SLOPES[plan.function]


def shares(plan: ElementwisePlan) -> tuple[str, str]:
    """What dy is multiplied by for each of two numbers, v and u."""
    if plan.function is Function.ADD:
        return "params.scale", "params.z_scale"
    if plan.function is Function.MULTIPLY:
        return "params.scale * u", "params.scale * v"
    if plan.function is Function.DIVIDE:
        return "params.scale / u", "-params.scale * v / (u * u)"
    first = f"select(0.0, 1.0, {_first(plan)})"
    if plan.tie is Tie.EQUAL_SHARE:
        return f"select({first}, 0.5, v == u)", f"select(1.0 - {first}, 0.5, v == u)"
    return first, f"1.0 - {first}"


def _maximum(plan: ElementwisePlan) -> str:
    if plan.nan is Nan.PROPAGATED:
        return "select(select(max(v, u), u, is_nan(u)), v, is_nan(v))"
    return f"select(u, v, {_first(plan)})"


def _first(plan: ElementwisePlan) -> str:
    """Whether v wins over u."""
    above = "(v > u && !is_nan(v) && !is_nan(u))"
    below = "(u > v && !is_nan(v) && !is_nan(u))"
    if plan.nan is Nan.PROPAGATED:
        if plan.tie is Tie.FIRST:
            return f"({above} || v == u || is_nan(v))"
        return f"({above} || (is_nan(v) && !is_nan(u)))"
    return f"(!{below})" if plan.tie is Tie.FIRST else above


def _base(plan: ElementwisePlan) -> str:
    return "params.shift + params.scale * v" if plan.shift else "params.scale * v"


def _constant(plan: ElementwisePlan) -> str:
    return _power(plan.power, "(params.shift)")


def _power(power: float, base: str) -> str:
    """A number to a constant power; pow of a negative base is undefined in WGSL."""
    if power == 0:
        return "1.0"
    if power == 1:
        return base
    if power in (2, 3):
        return f"({' * '.join([base] * int(power))})"
    if power == -1:
        return f"(1.0 / {base})"
    whole = float(power).is_integer()
    sign = base if whole and power % 2 else "1.0"
    below = f"sign({sign}) * pow(abs({base}), {float(power)!r})"
    negative = below if whole else "not_a_number()"
    zero = "0.0" if power > 0 else "infinity()"
    finite = f"select({negative}, pow({base}, {float(power)!r}), {base} > 0.0)"
    return f"select(select({finite}, {zero}, {base} == 0.0), {base}, is_nan({base}))"


__all__ = ["BITS", "needs", "numbers", "shares", "slope", "value"]
