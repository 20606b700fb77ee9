"""Pooling forward, as WGSL: one invocation a window (four of them, side by side in their channels, where those come in fours)."""

from __future__ import annotations

from functools import lru_cache

from ...plan.kinds import Empty, Nan, Reduce, Start, Tie, Unpicked
from .pool_rule import NUMBERS, SPECIAL, Rule, better, divisor, empty_value, factor, moves, norm_functions, norm_scale
from .program import Program, flat_program
from .scan import PARTS, Scan
from .windows import Form, declarations, over_taps, window_of

NONE = "U(0xffffffffu)"
"""The offset that means no tap."""


@lru_cache(maxsize=512)
def program(form: Form, rule: Rule, save: bool) -> Program:
    """x, table, factors (averages and norms), uniform (draws) -> y, where one tap wins and `save` its offsets; state in parts."""
    picks = rule.picks and (save or rule.draws)
    inputs = [("x", form.element), ("table", "i32")]
    inputs += [("factors", "f32")] if rule.divides or rule.counts else []
    inputs += [("uniform_", form.element)] if rule.draws else []
    outputs = [("y", form.element), *([("offsets", form.integer)] if picks else [])]
    functions = form.types + SPECIAL + (norm_functions(rule) if rule.reduce is Reduce.LP and not rule.infinite else "")
    names = (*declarations(form), *NUMBERS, *tables_of(form, rule))
    body = window_of(form) + scan(form, rule, picks).text(form)
    return flat_program(f"{rule.reduce}_pool", inputs, *parted(form, outputs, body, names), functions=functions)


def parted(
    form: Form, outputs: list[tuple[str, str]], body: str, names: tuple[tuple[str, str], ...]
) -> tuple[list[tuple[str, str]], str, tuple[tuple[str, str], ...]]:
    """The outputs, body and parameters of a program, with what scans in parts need besides."""
    return ([*outputs, ("state", form.integer)], body, (*names, *PARTS)) if form.parted else (outputs, body, names)


def scan(form: Form, rule: Rule, picks: bool) -> Scan:
    """The scan over a window's taps."""
    if rule.draws:
        return _drawn(form)
    if rule.reduce is Reduce.STOCHASTIC_MEAN:
        return _weighted(form)
    if rule.extreme:
        return _extreme(form, rule, picks)
    return _average(form, rule) if rule.divides else _norm(form, rule)


def tables_of(form: Form, rule: Rule) -> tuple[tuple[str, str], ...]:
    """Parameters that say where an axis's factors begin."""
    names = ["divisors"] * rule.divides + ["counts"] * rule.counts
    return tuple((f"{name}{a}", "i32") for name in names for a in range(form.rank))


def _extreme(form: Form, rule: Rule, picks: bool) -> Scan:
    """The value and the pick are two scans in one: they differ in what starts them and in what a NaN does."""
    wins = better(rule, "v", "best")
    wins += " | odd(v)" if rule.nan is Nan.PROPAGATED else ""
    wins += " | B(!seen)" if rule.start is Start.FIRST_TAP else ""
    body = f"best = select(best, v, {wins});\n"
    variables = [("best", "T", "T(start())"), ("seen", "bool", "false")]
    finish = f"y[i] = E(select({empty_value(rule)}, best, B(seen)));\n"
    if picks:
        leads = rule.start is Start.FIRST_TAP or rule.tie in (Tie.LEADING_NAN, Tie.AFTER_NAN)
        moving = moves(rule) + (" | B(!seen)" if leads else "")
        variables += [("pick", "T", "T(start())"), ("won", "U", NONE), ("first_tap", "u32", "0xffffffffu")]
        body += f"let moved = {moving};\npick = select(pick, v, moved);\nwon = select(won, U(k), moved);\n"
        body += "if (!seen) { first_tap = k; }\n"
        missing = f"select(won, U(first_tap), won == {NONE})" if rule.unpicked is Unpicked.FIRST_TAP else "won"
        finish += f"offsets[i] = {missing};\n"
    body += "seen = true;\n"
    return Scan(tuple(variables), (("", over_taps(form, body, "abs(v)" if rule.infinite else "v")),), finish)


def _average(form: Form, rule: Rule) -> Scan:
    finish = f"var result = total / {divisor(form.rank)};\n"
    if rule.empty is not Empty.QUOTIENT:
        value = "T(nothing())" if rule.empty is Empty.NAN else "T(0.0)"
        finish += f"result = select(result, {value}, B(({factor('counts', form.rank)}) == 0.0));\n"
    return Scan((("total", "T", "T(0.0)"),), (("", over_taps(form, "total += v;\n")),), finish + "y[i] = E(result);\n")


def _norm(form: Form, rule: Rule) -> Scan:
    """Powers of v / 2^e, where 2^e is about the greatest magnitude, so that nothing overflows where the norm does not."""
    variables, steps = [("total", "T", "T(0.0)")], []
    scale = "let down = T(1.0);\nlet up = T(1.0);\n"
    if rule.lp_scaled:
        greatest = "let size = abs(v);\ngreatest = select(greatest, size, above(size, greatest) | odd(size));\n"
        variables.append(("greatest", "T", "T(0.0)"))
        steps.append(("", over_taps(form, greatest)))
        scale = (
            "var exponent = I((bitcast<U>(greatest) >> U(23u)) & U(255u)) - I(126);\n"
            "exponent = select(clamp(exponent, I(-125), I(126)), I(0), exponent == I(129));\n"
            "let down = bitcast<T>((I(127) - exponent) << U(23u));\nlet up = bitcast<T>((I(127) + exponent) << U(23u));\n"
        )
    steps.append((scale, over_taps(form, "total += powered(v * down);\n")))
    finish = f"var result = rooted(total * T({norm_scale(rule, form.rank)})) * up;\n"
    if rule.empty is Empty.NAN:
        finish += f"result = select(result, T(nothing()), B(({factor('counts', form.rank)}) == 0.0));\n"
    return Scan(tuple(variables), tuple(steps), finish + "y[i] = E(result);\n")


def _drawn(form: Form) -> Scan:
    """The first tap whose running sum reaches the threshold."""
    variables = (("total", "T", "T(0.0)"), ("running", "T", "T(0.0)"), ("result", "T", "T(0.0)"), ("won", "U", NONE))
    body = f"running += v;\nlet drawn = reaches(running, threshold) & (won == {NONE});\n"
    body += "result = select(result, v, drawn);\nwon = select(won, U(k), drawn);\n"
    threshold = "let threshold = T(uniform_[i]) * total;\n"
    steps = (("", over_taps(form, "total += v;\n")), (threshold, over_taps(form, body)))
    return Scan(variables, steps, "y[i] = E(result);\noffsets[i] = won;\n")


def _weighted(form: Form) -> Scan:
    loops = over_taps(form, "total += v;\nsquares += v * v;\n")
    finish = "y[i] = E(select(T(0.0), squares / total, above(total, T(0.0))));\n"
    return Scan((("total", "T", "T(0.0)"), ("squares", "T", "T(0.0)")), (("", loops),), finish)
