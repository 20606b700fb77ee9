"""Pooling forward, as WGSL: one invocation a window (four of them, side by side in their channels, where those come in fours)."""

from __future__ import annotations

from functools import lru_cache

from ...plan.kinds import Empty, Nan, Reduce, Start, Tie, Unpicked
from .pool_rule import NUMBERS, SPECIAL, Rule, better, empty_value, factor, moves, norm_functions, norm_scale
from .program import Program, flat_program
from .windows import Form, declarations, over_taps, window_of

NONE = "U(0xffffffffu)"
"""The offset that means no tap."""


@lru_cache(maxsize=512)
def program(form: Form, rule: Rule, save: bool) -> Program:
    """x, table, factors (averages and norms), uniform (draws) -> y, and with `save` where one tap wins its offsets."""
    picks = rule.picks and (save or rule.draws)
    inputs = [("x", form.element), ("table", "i32")]
    inputs += [("factors", "f32")] if rule.divides or rule.counts else []
    inputs += [("uniform_", form.element)] if rule.draws else []
    outputs = [("y", form.element), *([("offsets", form.integer)] if picks else [])]
    if rule.draws:
        body = _drawn(form)
    elif rule.reduce is Reduce.STOCHASTIC_MEAN:
        body = _weighted(form)
    elif rule.extreme:
        body = _extreme(form, rule, picks)
    else:
        body = _average(form, rule) if rule.divides else _norm(form, rule)
    functions = form.types + SPECIAL + (norm_functions(rule) if rule.reduce is Reduce.LP and not rule.infinite else "")
    names = (*declarations(form), *NUMBERS, *tables_of(form, rule))
    return flat_program(f"{rule.reduce}_pool", inputs, outputs, window_of(form) + body, names, functions=functions)


def tables_of(form: Form, rule: Rule) -> tuple[tuple[str, str], ...]:
    """Parameters that say where an axis's factors begin."""
    names = ["divisors"] * rule.divides + ["counts"] * rule.counts
    return tuple((f"{name}{a}", "i32") for name in names for a in range(form.rank))


def _extreme(form: Form, rule: Rule, picks: bool) -> str:
    """The value and the pick are two scans in one: they differ in what starts them and in what a NaN does."""
    wins = better(rule, "v", "best")
    wins += " | odd(v)" if rule.nan is Nan.PROPAGATED else ""
    wins += " | B(!seen)" if rule.start is Start.FIRST_TAP else ""
    body = f"best = select(best, v, {wins});\n"
    text = "var best = T(start());\nvar seen = false;\n"
    if picks:
        leads = rule.start is Start.FIRST_TAP or rule.tie in (Tie.LEADING_NAN, Tie.AFTER_NAN)
        moving = moves(rule) + (" | B(!seen)" if leads else "")
        text += f"var pick = T(start());\nvar won = {NONE};\nvar first_tap = 0xffffffffu;\n"
        body += f"let moved = {moving};\npick = select(pick, v, moved);\nwon = select(won, U(k), moved);\n"
        body += "if (!seen) { first_tap = k; }\n"
    body += "seen = true;\n"
    text += over_taps(form, body, "abs(v)" if rule.infinite else "v")
    text += f"y[i] = E(select({empty_value(rule)}, best, B(seen)));\n"
    if picks:
        missing = "select(won, U(first_tap), won == " + NONE + ")" if rule.unpicked is Unpicked.FIRST_TAP else "won"
        text += f"offsets[i] = {missing};\n"
    return text


def _average(form: Form, rule: Rule) -> str:
    text = "var total = T(0.0);\n" + over_taps(form, "total += v;\n")
    text += f"var result = total / T({factor('divisors', form.rank)});\n"
    if rule.empty is not Empty.QUOTIENT:
        value = "T(nothing())" if rule.empty is Empty.NAN else "T(0.0)"
        text += f"result = select(result, {value}, B(({factor('counts', form.rank)}) == 0.0));\n"
    return text + "y[i] = E(result);\n"


def _norm(form: Form, rule: Rule) -> str:
    """Powers of v / 2^e, where 2^e is about the greatest magnitude, so that nothing overflows where the norm does not."""
    if rule.lp_scaled:
        greatest = "let size = abs(v);\ngreatest = select(greatest, size, above(size, greatest) | odd(size));\n"
        text = "var greatest = T(0.0);\n" + over_taps(form, greatest)
        text += (
            "var exponent = I((bitcast<U>(greatest) >> U(23u)) & U(255u)) - I(126);\n"
            "exponent = select(clamp(exponent, I(-125), I(126)), I(0), exponent == I(129));\n"
            "let down = bitcast<T>((I(127) - exponent) << U(23u));\nlet up = bitcast<T>((I(127) + exponent) << U(23u));\n"
        )
    else:
        text = "let down = T(1.0);\nlet up = T(1.0);\n"
    text += "var total = T(0.0);\n" + over_taps(form, "total += powered(v * down);\n")
    text += f"var result = rooted(total * T({norm_scale(rule, form.rank)})) * up;\n"
    if rule.empty is Empty.NAN:
        text += f"result = select(result, T(nothing()), B(({factor('counts', form.rank)}) == 0.0));\n"
    return text + "y[i] = E(result);\n"


def _drawn(form: Form) -> str:
    """The first tap whose running sum reaches the threshold."""
    text = "var total = T(0.0);\n" + over_taps(form, "total += v;\n")
    text += f"let threshold = T(uniform_[i]) * total;\nvar running = T(0.0);\nvar result = T(0.0);\nvar won = {NONE};\n"
    body = f"running += v;\nlet drawn = reaches(running, threshold) & (won == {NONE});\n"
    body += "result = select(result, v, drawn);\nwon = select(won, U(k), drawn);\n"
    return text + over_taps(form, body) + "y[i] = E(result);\noffsets[i] = won;\n"


def _weighted(form: Form) -> str:
    text = "var total = T(0.0);\nvar squares = T(0.0);\n" + over_taps(form, "total += v;\nsquares += v * v;\n")
    return text + "y[i] = E(select(T(0.0), squares / total, above(total, T(0.0))));\n"
