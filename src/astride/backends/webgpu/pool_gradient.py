"""Pooling backward, as WGSL: one invocation a pixel, which adds up what the windows that read it send. No atomics.

Where all taps that equal an extreme have a part, or the mean is weighted, a pass over the windows comes first.
"""

from __future__ import annotations

from functools import lru_cache

from ...plan.kinds import NEARNESS, LpForm, Nan, Reduce, Tie, ZeroWindow
from .pool_forward import parted, tables_of
from .pool_rule import NUMBERS, SPECIAL, Rule, better, divisor, norm_functions, norm_scale
from .program import Program, flat_program
from .scan import Scan
from .windows import Form, declarations, over_taps, over_windows, pixel_of, window_of

SIGN = "fn sign_of(v: T) -> T { return select(select(select(T(0.0), T(1.0), v > T(0.0)), T(-1.0), v < T(0.0)), v, odd(v)); }\n"


def needs_x(rule: Rule) -> bool:
    """Whether the gradient depends on x beyond the offsets."""
    return rule.reduce is Reduce.LP or rule.reduce is Reduce.STOCHASTIC_MEAN or (rule.extreme and not rule.picks)


def needs_y(rule: Rule) -> bool:
    """Whether it depends on y."""
    finite = rule.reduce is Reduce.LP and not rule.infinite
    return finite or rule.reduce is Reduce.STOCHASTIC_MEAN or (rule.extreme and rule.tie in (Tie.RECORDED, Tie.NEAR))


def prepares(rule: Rule) -> bool:
    """Whether a pass over the windows comes first."""
    return rule.reduce is Reduce.STOCHASTIC_MEAN or (
        rule.extreme and not rule.picks and rule.tie in (Tie.ALL_FULL, Tie.EQUAL_SHARE)
    )


@lru_cache(maxsize=512)
def preparation(form: Form, rule: Rule) -> Program:
    """x, table, dy -> `best` of each window and its `share`: dy, divided among equals where it is; the sum of a weighted mean."""
    wide = "vec4<f32>" if form.vector else "f32"
    inputs, outputs = [("x", form.element), ("table", "i32"), ("dy", form.element)], [("best", wide), ("share", wide)]
    body = window_of(form) + preparing(form, rule).text(form)
    names = (*declarations(form), *NUMBERS)
    return flat_program("pool_windows", inputs, *parted(form, outputs, body, names), functions=form.types + SPECIAL)


def preparing(form: Form, rule: Rule) -> Scan:
    """The scan of `preparation`."""
    if rule.reduce is Reduce.STOCHASTIC_MEAN:
        loops = over_taps(form, "total += v;\n")
        return Scan((("total", "T", "T(0.0)"),), (("", loops),), "best[i] = total;\nshare[i] = T(dy[i]);\n")
    wins = better(rule, "v", "found") + (" | odd(v)" if rule.nan is Nan.PROPAGATED else " | odd(found)")
    worst = "infinity()" if rule.reduce is Reduce.MIN else "-infinity()"
    begin = worst if rule.nan is Nan.PROPAGATED else "nothing()"
    variables, part = [("found", "T", f"T({begin})")], "T(dy[i])"
    steps = [("", over_taps(form, f"found = select(found, v, {wins});\n"))]
    if rule.tie is Tie.EQUAL_SHARE:
        variables.append(("equals", "T", "T(0.0)"))
        steps.append(("", over_taps(form, "equals += select(T(0.0), T(1.0), same(v, found));\n")))
        part = f"select({part} / equals, T(nothing()), equals == T(0.0))"
    return Scan(tuple(variables), tuple(steps), f"best[i] = found;\nshare[i] = {part};\n")


@lru_cache(maxsize=512)
def program(form: Form, rule: Rule) -> Program:
    """dy or `share`, table, and what the rule needs of factors, offsets, x, y and `best` -> dx; state in parts."""
    wide = "vec4<f32>" if form.vector else "f32"
    first = prepares(rule)
    inputs = [("share", wide) if first else ("dy", form.element), ("table", "i32")]
    inputs += [("factors", "f32")] if rule.divides or rule.counts else []
    inputs += [("offsets", form.integer)] if rule.picks else []
    inputs += [("x", form.element)] if needs_x(rule) else []
    inputs += [("y", form.element)] if needs_y(rule) else []
    inputs += [("best", wide)] if first else []
    functions = form.types + SPECIAL
    if rule.reduce is Reduce.LP:
        functions += SIGN if rule.infinite else norm_functions(rule)
    body, names = pixel_of(form) + gathering(form, rule).text(form), (*declarations(form), *NUMBERS, *tables_of(form, rule))
    parts = parted(form, [("dx", form.element)], body, names)
    return flat_program(f"{rule.reduce}_pool_gradient", inputs, *parts, functions=functions)


def gathering(form: Form, rule: Rule) -> Scan:
    """The scan over the windows that read a pixel."""
    here, each, end = _terms(form, rule)
    variables = [("total", "T", "T(0.0)"), *([("sent", "B", "B(false)")] if "sent" in each else [])]
    return Scan(tuple(variables), ((here, over_windows(form, each)),), end + "dx[i] = E(total);\n")


def _terms(form: Form, rule: Rule) -> tuple[str, str, str]:
    """What stands before the loops, in them and after them."""
    here = "let here = T(x[i]);\n"
    if rule.picks:
        sent = "T(dy[o]) * sign" if rule.infinite else "T(dy[o])"
        begin = here + "let sign = sign_of(here);\n" if rule.infinite else ""
        return begin, f"total += select(T(0.0), {sent}, offsets[o] == U(k));\n", ""
    if rule.divides:
        return "", f"total += T(dy[o]) / {divisor(form.rank)};\n", ""
    if rule.reduce is Reduce.STOCHASTIC_MEAN:
        slope = "select(T(0.0), (T(2.0) * here - T(y[o])) / best[o], above(best[o], T(0.0)))"
        return here, f"total += {slope} * share[o];\n", ""
    if rule.extreme:
        return here, _matched(rule), ""
    return _norm(form, rule, here)


def _matched(rule: Rule) -> str:
    """Every tap that equals the extreme, or the output, has a part."""
    if rule.tie is Tie.EQUAL_SHARE:
        return "total += select(T(0.0), share[o], same(here, best[o]) | odd(share[o]));\n"
    if rule.tie is Tie.ALL_FULL:
        return "total += select(T(0.0), share[o], same(here, best[o]));\n"
    if rule.tie is Tie.RECORDED:
        return "total += select(T(0.0), T(dy[o]), same(here, T(y[o])));\n"
    return f"total += select(T(0.0), T(dy[o]), above(T({NEARNESS!r}), abs(here - T(y[o]))));\n"


def _norm(form: Form, rule: Rule, here: str) -> tuple[str, str, str]:
    """dy times the slope; where powers are formed as they are, a pixel that nothing is sent to has 0 times its power's slope."""
    each = f"let norm = T(y[o]);\ntotal += slope(here, norm) * (T(dy[o]) * T({norm_scale(rule, form.rank)}));\n"
    if rule.lp_scaled:
        return here, each, ""
    each += "sent = sent | B(true);\n" if rule.zero_window is ZeroWindow.FORMULA else "sent = sent | nonzero(norm);\n"
    base = "abs(here)" if rule.lp_form is LpForm.ABSOLUTE else "here"
    # 0 * x is 0 for some compilers, whatever x is
    bare = (
        f"let left = power_less({base});\nlet bare = select(T(0.0), T(nothing()), odd(left) | (abs(left) == T(infinity())));\n"
    )
    return here, each, bare + "total = select(bare, total, sent);\n"
