"""What the text of a pooling kernel depends on besides the axes, and the arithmetic of single taps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...plan import PoolPlan
from ...plan.kinds import Empty, LpForm, LpScale, Nan, Reduce, Start, Tie, Unpicked, ZeroWindow

MULTIPLIED = 16
"""Whole powers up to this one are products, exact where the numbers are small integers."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The fields of a plan that choose a text. Those that an operator does not read have one value, so that texts are shared."""

    reduce: Reduce
    start: Start = Start.INFINITY
    nan: Nan = Nan.PROPAGATED
    tie: Tie = Tie.FIRST
    unpicked: Unpicked = Unpicked.FIRST_TAP
    empty: Empty = Empty.START
    p: float = 2.0
    lp_form: LpForm = LpForm.ABSOLUTE
    lp_scale: LpScale = LpScale.SUM
    lp_scaled: bool = True
    zero_window: ZeroWindow = ZeroWindow.ZERO

    @property
    def extreme(self) -> bool:
        return self.reduce in (Reduce.MAX, Reduce.MIN) or self.infinite

    @property
    def infinite(self) -> bool:
        """The norm that is the greatest magnitude."""
        return self.reduce is Reduce.LP and math.isinf(self.p)

    @property
    def picks(self) -> bool:
        return self.reduce is Reduce.STOCHASTIC or (self.extreme and (self.infinite or self.tie.picks_one))

    @property
    def draws(self) -> bool:
        return self.reduce is Reduce.STOCHASTIC

    @property
    def twofold(self) -> bool:
        """Whether it goes over a window's taps twice."""
        return self.draws or (self.reduce is Reduce.LP and not self.infinite and self.lp_scaled)

    @property
    def divides(self) -> bool:
        return self.reduce is Reduce.AVERAGE

    @property
    def counts(self) -> bool:
        """Whether it needs the number of a window's taps inside the input."""
        norm = self.reduce is Reduce.LP and not self.infinite and (self.lp_scale is not LpScale.SUM or self.empty is Empty.NAN)
        return norm or (self.divides and self.empty is not Empty.QUOTIENT)


def rule_of(plan: PoolPlan) -> Rule:
    """The rule of a plan."""
    if plan.reduce is Reduce.AVERAGE:
        return Rule(plan.reduce, empty=plan.empty)
    if plan.reduce in (Reduce.STOCHASTIC, Reduce.STOCHASTIC_MEAN):
        return Rule(plan.reduce)
    if plan.reduce is Reduce.LP and not math.isinf(plan.p):
        forms = dict(
            p=plan.p, lp_form=plan.lp_form, lp_scale=plan.lp_scale, lp_scaled=plan.lp_scaled, zero_window=plan.zero_window
        )
        return Rule(plan.reduce, empty=plan.empty, **forms)  # type: ignore[arg-type]
    order = math.inf if plan.reduce is Reduce.LP else 2.0
    return Rule(plan.reduce, plan.start, plan.nan, plan.tie, plan.unpicked, plan.empty, order)


NUMBERS = (("infinity", "u32"), ("not_a_number", "u32"), ("start", "u32"), ("edge_value", "f32"), ("taps", "f32"))
"""Parameters of every pooling kernel: bits of numbers that WGSL has no literals for, the edge's value, taps of a whole window."""

SPECIAL = """fn infinity() -> f32 { return bitcast<f32>(params.infinity); }
fn nothing() -> f32 { return bitcast<f32>(params.not_a_number); }
fn positive_zero(v: f32) -> f32 { return select(v, 0.0, v == 0.0); }
fn start() -> f32 { return bitcast<f32>(params.start); }
"""


def numbers_of(plan: PoolPlan) -> dict[str, float | int]:
    """Values of `NUMBERS`."""
    finite = 0x477FE000 if plan.dtype == "float16" else 0x7F7FFFFF
    worst = finite if plan.start is Start.FINITE else 0x7F800000
    sign = 0 if plan.reduce is Reduce.MIN else 0x80000000
    return {
        "infinity": 0x7F800000,
        "not_a_number": 0x7FC00000,
        "start": worst | sign,
        "edge_value": plan.edge_value,
        "taps": float(plan.taps),
    }


def empty_value(rule: Rule) -> str:
    """What an extreme gives for a window with no tap inside the input."""
    return {Empty.ZERO: "T(0.0)", Empty.NAN: "T(nothing())"}.get(rule.empty, "T(start())")


def better(rule: Rule, a: str, b: str) -> str:
    """Whether a beats b."""
    return f"above({b}, {a})" if rule.reduce is Reduce.MIN else f"above({a}, {b})"


def no_worse(rule: Rule, a: str, b: str) -> str:
    """Whether a beats or equals b."""
    return f"reaches({b}, {a})" if rule.reduce is Reduce.MIN else f"reaches({a}, {b})"


def moves(rule: Rule) -> str:
    """Whether the pick moves on to the tap `v`."""
    wins = better(rule, "v", "pick")
    return {
        Tie.AFTER_NAN: f"!({no_worse(rule, 'pick', 'v')})",
        Tie.LAST: no_worse(rule, "v", "pick"),
        Tie.FIRST: wins,
        Tie.LEADING_NAN: wins,
        Tie.LAST_NAN: f"{wins} | odd(v)",
    }.get(rule.tie, f"{wins} | (odd(v) & !odd(pick))")


def power(name: str, p: float) -> str:
    """A WGSL function of that name: v^p as floating point has it, NaN for a negative v unless p is whole."""
    if p == int(p) and 1 <= p <= MULTIPLIED:
        return f"fn {name}(v: T) -> T {{ return {' * '.join(['v'] * int(p))}; }}\n"
    if p == 0:
        return f"fn {name}(v: T) -> T {{ return T(1.0); }}\n"
    if p == 0.5:
        return f"fn {name}(v: T) -> T {{ return select(sqrt(max(v, T(0.0))), T(nothing()), (v < T(0.0)) | odd(v)); }}\n"
    at_zero, at_infinity = ("T(0.0)", "T(infinity())") if p > 0 else ("T(infinity())", "T(0.0)")
    negative = "T(nothing())" if p != int(p) else ("-r" if int(p) % 2 else "r")
    return f"""fn {name}(v: T) -> T {{
let size = abs(v);
var r = pow(size, T({p!r}));
r = select(r, {at_zero}, size == T(0.0));
r = select(r, {at_infinity}, size == T(infinity()));
r = select(r, {negative}, v < T(0.0));
return select(r, T(nothing()), odd(v));
}}
"""


def norm_functions(rule: Rule) -> str:
    """`powered(v)`, `rooted(t)` and `slope(v, y)` of a norm of finite order."""
    p = rule.p
    absolute = rule.lp_form is LpForm.ABSOLUTE
    text = power("power_p", p) + power("root_p", 1 / p) + power("power_less", p - 1)
    base = "abs(v)" if absolute else "v"
    text += f"fn powered(v: T) -> T {{ return power_p({base}); }}\n"
    if p == 1:
        root = "t"
    elif p != 2 and rule.lp_form is LpForm.SIGNED_ROOT:
        root = "select(root_p(abs(t)), -root_p(abs(t)), t < T(0.0))"
    else:
        root = "root_p(t)"
    text += f"fn rooted(t: T) -> T {{ return {root}; }}\n"
    sign = "select(select(select(T(0.0), T(1.0), v > T(0.0)), T(-1.0), v < T(0.0)), v, odd(v))"
    text += f"fn sign_of(v: T) -> T {{ return {sign}; }}\n"
    if p == 2:
        slope = "v / y"
    elif absolute:
        sized = "select(power_less(abs(v / y)), -power_less(abs(v / y)), v < T(0.0))"
        slope = "sign_of(v)" if p == 1 else f"select({sized}, v / y, v == T(0.0))"
    else:
        slope = "T(1.0)" if p == 1 else "power_less(v / y)"
    at_zero = "T(0.0)" if rule.zero_window is ZeroWindow.ZERO else ("T(1.0)" if p == 1 and not absolute else "T(nothing())")
    return text + f"fn slope(v: T, y: T) -> T {{ return select({slope}, {at_zero}, y == T(0.0)); }}\n"


def factor(name: str, rank: int) -> str:
    """The product of a window's factors from the table `factors`, one an axis."""
    return " * ".join(f"factors[params.{name}{a} + w{a}]" for a in range(rank))


def divisor(rank: int) -> str:
    """What a window's sum is divided by; a zero is positive, whatever the signs of its factors."""
    return f"T(positive_zero({factor('divisors', rank)}))"


def norm_scale(rule: Rule, rank: int) -> str:
    """What a sum of powers is multiplied by before the root."""
    if rule.lp_scale is LpScale.SUM:
        return "1.0"
    whole = "1.0" if rule.lp_scale is LpScale.MEAN else "params.taps"
    return f"{whole} / max({factor('counts', rank)}, 1.0)"
