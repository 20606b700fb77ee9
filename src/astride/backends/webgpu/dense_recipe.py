"""The recipes of the dense operators: forward, and gradients from the inputs themselves.

Every softmax row, normalized place or label is one invocation's; sums over more than that are products with one (`sums`).
"""

from __future__ import annotations

import math

from ...plan import Shape
from ...plan.dense import ElementwisePlan, MatmulPlan, Normalization, SoftmaxLossPlan, SoftmaxPlan
from ...plan.norms import Along, BroadcastPlan, LrnPlan
from ...plan.reduce import ReducePlan, Total
from .functions import BITS, needs, numbers, shares, slope, value
from .product import Epilogue
from .recipe import Recipe, Step, Values, each
from .sums import matrices, totals


def elementwise(plan: ElementwisePlan, shape: Shape) -> Recipe:
    """y from x, and z where the function takes two."""
    both = plan.binary
    body = _arguments(both) + f"  y[i] = {value(plan)};\n"
    return _each(f"{plan.function}", ["x", *["z"] * both], ["y"], numbers(plan), shape, body, needs(plan.function))


def elementwise_gradient(plan: ElementwisePlan, shape: Shape, index: int = 0) -> Recipe:
    """dx (index 0) or dz (index 1) from dy, x, and z where the function takes two; both must differ where it does."""
    both = plan.binary
    by = shares(plan)[index] if both else slope(plan)
    target = ("dx", "dz")[index]
    body = _arguments(both) + f"  {target}[i] = dy[i] * ({by});\n"
    return _each(
        f"{plan.function} gradient", ["dy", "x", *["z"] * both], [target], numbers(plan), shape, body, needs(plan.function)
    )


def _arguments(both: bool) -> str:
    return "  let v = x[i];\n" + "  let u = z[i];\n" * both


def epilogue(plan: ElementwisePlan | None, bias: bool) -> Epilogue:
    """A bias, and a function of one number, behind a sum."""
    if plan is None:
        return Epilogue(bias)
    text = BITS + needs(plan.function) + f"fn finish(v: f32) -> f32 {{ return {value(plan)}; }}\n"
    return Epilogue(bias, text, tuple(numbers(plan).items()))


def broadcast(plan: BroadcastPlan, x: Shape, z: Shape, bias: bool) -> Recipe:
    """y from x, z, and b where there is one."""
    forms = {
        Along.ADD: "v + u",
        Along.MULTIPLY: "v * u + b[at]" if bias else "v * u",
        Along.PRELU: "select(select(u * v, v, is_nan(v)), v, v > 0.0)",
    }
    body = f"{_AT}  let v = x[i];\n  let u = z[at];\n  y[i] = {forms[plan.function]};\n"
    return _each(f"broadcast {plan.function}", ["x", "z", *["b"] * bias], ["y"], _along(plan, x, z), x, body)


def broadcast_gradient(plan: BroadcastPlan, x: Shape, z: Shape) -> Recipe:
    """dx from dy, and x and z unless it is a sum."""
    if plan.function is Along.ADD:
        return _each("copy", ["dy"], ["dx"], {}, x, "  dx[i] = dy[i];\n")
    by = "select(z[at], 1.0, x[i] > 0.0)" if plan.function is Along.PRELU else "z[at]"
    inputs = ["dy", "x", "z"] if plan.function is Along.PRELU else ["dy", "z"]
    return _each(f"broadcast {plan.function} gradient", inputs, ["dx"], _along(plan, x, z), x, f"{_AT}  dx[i] = dy[i] * {by};\n")


def broadcast_small_gradient(plan: BroadcastPlan, x: Shape, z: Shape, *, bias: bool = False) -> Recipe:
    """dz, or with `bias` db, from dy and x: the sum over the axes that z is repeated on."""
    kept = math.prod(z)
    inner = math.prod(x[plan.axis + len(z) :])
    lead, strides = math.prod(x[: plan.axis]), (kept * inner, inner, 1)
    if bias or plan.function is Along.ADD:
        return totals("dy", "db" if bias else "dz", lead=lead, kept=kept, inner=inner, strides=strides)
    # the first array is x of the product's text, the second w
    term = "x[at] * select(w[at], 0.0, w[at] > 0.0)" if plan.function is Along.PRELU else "x[at] * w[at]"
    return totals("dy", "dz", lead=lead, kept=kept, inner=inner, strides=strides, other="x", value=term)


_AT = "  let at = (i / params.inner) % params.kept;\n"


def _along(plan: BroadcastPlan, x: Shape, z: Shape) -> dict[str, int]:
    return {"inner": math.prod(x[plan.axis + len(z) :]), "kept": math.prod(z)}


def matmul(plan: MatmulPlan, x: Shape, how: Epilogue, adapter: str = "") -> Recipe:
    """y from x, w, and b where the epilogue has a bias."""
    return matrices(
        "x",
        "w",
        "y",
        rows=math.prod(x[:-1]),
        columns=plan.columns,
        terms=plan.inner,
        x_strides=(plan.inner, 1),
        w_strides=_weight_strides(plan),
        out_strides=(plan.columns, 1),
        epilogue=how,
        adapter=adapter,
    )


def matmul_input_gradient(plan: MatmulPlan, x: Shape, adapter: str = "") -> Recipe:
    """dx from dy and w."""
    inner, outer = _weight_strides(plan)
    return matrices(
        "dy",
        "w",
        "dx",
        rows=math.prod(x[:-1]),
        columns=plan.inner,
        terms=plan.columns,
        x_strides=(plan.columns, 1),
        w_strides=(outer, inner),
        out_strides=(plan.inner, 1),
        adapter=adapter,
    )


def matmul_weights_gradient(plan: MatmulPlan, x: Shape, adapter: str = "") -> Recipe:
    """dw from x and dy."""
    rows = math.prod(x[:-1])
    a, b, m, n = ("dy", "x", plan.columns, plan.inner) if plan.transposed else ("x", "dy", plan.inner, plan.columns)
    return matrices(
        a, b, "dw", rows=m, columns=n, terms=rows, x_strides=(1, m), w_strides=(n, 1), out_strides=(n, 1), adapter=adapter
    )


def matmul_bias_gradient(plan: MatmulPlan, x: Shape) -> Recipe:
    """db from dy."""
    return totals("dy", "db", lead=1, kept=plan.columns, inner=math.prod(x[:-1]), strides=(0, 1, plan.columns))


def _weight_strides(plan: MatmulPlan) -> tuple[int, int]:
    """Of (inner, columns)."""
    return (1, plan.inner) if plan.transposed else (plan.columns, 1)


def softmax(plan: SoftmaxPlan | SoftmaxLossPlan, x: Shape, target: str = "y") -> Recipe:
    """y from x, an invocation a row. A row with a NaN, or whose greatest value is infinite, is NaN as x - max is."""
    body = f"""  let at = {_ROW};
  var top = x[at];
  for (var k = 1; k < params.classes; k++) {{
    let v = x[at + k * params.inner];
    if (v > top || is_nan(v)) {{ top = select(v, top, is_nan(top)); }}
  }}
  var sum = 0.0;
  for (var k = 0; k < params.classes; k++) {{
    let v = x[at + k * params.inner];
    let e = select(exp(v - top), not_a_number(), is_nan(top) || abs(top) == infinity());
    out[at + k * params.inner] = e;
    sum += e;
  }}
  for (var k = 0; k < params.classes; k++) {{ out[at + k * params.inner] = out[at + k * params.inner] / sum; }}
"""
    rows = _rows(x, plan.axis)
    if not rows["classes"]:
        return Recipe()
    step = each("softmax", ["x"], ["out"], rows, body, functions=BITS, names={"out": target})
    return Recipe((step,) if rows["count"] else ())


def softmax_gradient(plan: SoftmaxPlan, x: Shape) -> Recipe:
    """dx from dy and y."""
    body = f"""  let at = {_ROW};
  var sum = 0.0;
  for (var k = 0; k < params.classes; k++) {{ sum += dy[at + k * params.inner] * y[at + k * params.inner]; }}
  for (var k = 0; k < params.classes; k++) {{
    let here = at + k * params.inner;
    dx[here] = (dy[here] - sum) * y[here];
  }}
"""
    rows = _rows(x, plan.axis)
    return Recipe((each("softmax gradient", ["dy", "y"], ["dx"], rows, body),) if rows["count"] * rows["classes"] else ())


_ROW = "(i / params.inner) * params.inner * params.classes + i % params.inner"


def _rows(x: Shape, axis: int) -> dict[str, int]:
    inner = math.prod(x[axis + 1 :])
    return {"count": math.prod(x[:axis]) * inner, "classes": x[axis], "inner": max(inner, 1)}


def loss(plan: SoftmaxLossPlan, x: Shape) -> Recipe:
    """The probabilities p from x, then y, the loss, from them and the labels (i32); `counted` is how many places count."""
    rows = _rows(x, plan.axis)
    ignored = "false" if plan.ignore_label is None else f"labels[i] == {plan.ignore_label}"
    body = f"""  let at = {_ROW};
  let skip = {ignored};
  let q = p[at + select(labels[i], 0, skip) * params.inner];
  let least = select(q, params.floor, q < params.floor);
  terms[i] = select(-log(least), 0.0, skip);
  ones[i] = select(1.0, 0.0, skip);
"""
    places = {**rows, "floor": float(plan.floor)}
    each_place = each("label", ["p", "labels"], ["terms", "ones"], places, body, types={"labels": "i32"})
    count = rows["count"]
    recipe = softmax(plan, x, "p").then(Recipe((each_place,) if count else (), {"terms": max(count, 1), "ones": max(count, 1)}))
    for name, target in (("terms", "sum"), ("ones", "counted")):
        recipe = recipe.then(totals(name, target, lead=1, kept=1, inner=count, strides=(0, 0, 1)))
    last = f"  y[0] = sum[0] / {_divisor(plan, x)};\n"
    return recipe.then(Recipe((each("mean loss", ["sum", "counted"], ["y"], {"count": 1}, last),), {"sum": 1}))


def loss_gradient(plan: SoftmaxLossPlan, x: Shape) -> Recipe:
    """dx from dy (one number), p, the labels and `counted`."""
    ignored = "false" if plan.ignore_label is None else f"labels[i] == {plan.ignore_label}"
    body = f"""  let at = {_ROW};
  let by = select(dy[0] / {_divisor(plan, x)}, 0.0, {ignored});
  for (var k = 0; k < params.classes; k++) {{
    let here = at + k * params.inner;
    dx[here] = select((p[here] - select(0.0, 1.0, k == labels[i])) * by, 0.0, {ignored});
  }}
"""
    rows = _rows(x, plan.axis)
    step = each("loss gradient", ["dy", "p", "labels", "counted"], ["dx"], rows, body, types={"labels": "i32"})
    return Recipe((step,) if rows["count"] * rows["classes"] else ())


def _divisor(plan: SoftmaxLossPlan, x: Shape) -> str:
    fixed = {
        Normalization.FULL: math.prod(x) // max(x[plan.axis], 1),
        Normalization.BATCH_SIZE: math.prod(x[: plan.axis]),
        Normalization.NONE: 1,
    }
    return (
        "max(counted[0], 1.0)"
        if plan.normalization is Normalization.VALID
        else f"(max({fixed[plan.normalization]}.0, 1.0) + 0.0 * counted[0])"
    )


def reduce(plan: ReducePlan, x: Shape) -> Recipe:
    """y from x: a total a row."""
    terms = {Total.ASUM: "abs(x[at])", Total.SUMSQ: "x[at] * x[at]"}
    inner = math.prod(x[plan.axis :])
    return totals(
        "x",
        "y",
        lead=1,
        kept=math.prod(x[: plan.axis]),
        inner=inner,
        strides=(0, inner, 1),
        value=terms.get(plan.total, "x[at]"),
        scale=plan.scale(x) if inner else 1.0,
    )


def reduce_gradient(plan: ReducePlan, x: Shape) -> Recipe:
    """dx from dy and x."""
    forms = {Total.ASUM: "select(select(0.0, -1.0, x[i] < 0.0), 1.0, x[i] > 0.0)", Total.SUMSQ: "2.0 * x[i]"}
    values = {"inner": math.prod(x[plan.axis :]), "by": float(plan.scale(x)) if math.prod(x) else 1.0}
    form = forms.get(plan.total)
    body = f"  dx[i] = dy[i / params.inner] * params.by{f' * {form}' if form else ''};\n"
    return _each(f"{plan.total} gradient", ["dy", *["x"] * (form is not None)], ["dx"], values, x, body)


def lrn(plan: LrnPlan, x: Shape) -> Recipe:
    """y from x; `base`, what is raised to -beta, stays for the gradient."""
    body = _window("x[at] * x[at]", "params.before", "params.after", plan.axes, x)
    body += "  let b = params.k + params.alpha * sum;\n  base[i] = b;\n  y[i] = x[i] * pow(b, -params.beta);\n"
    return _each("lrn", ["x"], ["base", "y"], _lrn_numbers(plan), x, body)


def lrn_gradient(plan: LrnPlan, x: Shape) -> Recipe:
    """dx from dy, x and base. x lies in the windows that reach back to it, so that before and after change places."""
    body = _window("dy[at] * x[at] * pow(base[at], -params.beta - 1.0)", "params.after", "params.before", plan.axes, x)
    body += "  dx[i] = dy[i] * pow(base[i], -params.beta) - 2.0 * params.alpha * params.beta * x[i] * sum;\n"
    return _each("lrn gradient", ["dy", "x", "base"], ["dx"], _lrn_numbers(plan), x, body)


def _lrn_numbers(plan: LrnPlan) -> dict[str, int | float]:
    return {"before": plan.before, "after": plan.after, "alpha": float(plan.alpha), "beta": float(plan.beta), "k": float(plan.k)}


def _window(term: str, before: str, after: str, axes: tuple[int, ...], x: Shape) -> str:
    """The sum of a term over a window around i along axes; `at` is its index."""
    text, at, closing = "  var sum = 0.0;\n", "i", ""
    for d, axis in enumerate(axes):
        step, size = math.prod(x[axis + 1 :]), x[axis]
        text += f"  let q{d} = (i / {step}) % {size};\n"
        text += f"  for (var k{d} = max(q{d} - {before}, 0); k{d} <= min(q{d} + {after}, {size - 1}); k{d}++) {{\n"
        at += f" + (k{d} - q{d}) * {step}"
        closing += "  }\n"
    return f"{text}    let at = {at};\n    sum += {term};\n{closing}"


def accuracy(shape: Shape, axis: int, top_k: int, ignore_label: int | None) -> Recipe:
    """y, the share of counted places whose right class is among the best, from x and the labels (i32).

    A tie counts against it, and so does a NaN. Nothing counted gives 0.
    """
    rows = _rows(shape, axis)
    skip = "false" if ignore_label is None else f"labels[i] == {ignore_label}"
    body = f"""  let at = {_ROW};
  let skip = {skip};
  let own = x[at + select(labels[i], 0, skip) * params.inner];
  var better = 0;
  for (var k = 0; k < params.classes; k++) {{
    if (x[at + k * params.inner] >= own && !is_nan(x[at + k * params.inner])) {{ better++; }}
  }}
  right[i] = select(0.0, 1.0, !skip && better - 1 < {top_k} && !is_nan(own));
  ones[i] = select(1.0, 0.0, skip);
"""
    count = rows["count"]
    place = each("right", ["x", "labels"], ["right", "ones"], rows, body, functions=BITS, types={"labels": "i32"})
    recipe = Recipe((place,) if count else (), {"right": max(count, 1), "ones": max(count, 1), "sum": 1, "counted": 1})
    for name, target in (("right", "sum"), ("ones", "counted")):
        recipe = recipe.then(totals(name, target, lead=1, kept=1, inner=count, strides=(0, 0, 1)))
    last = "  y[0] = sum[0] / max(counted[0], 1.0);\n"
    return recipe.then(Recipe((each("accuracy", ["sum", "counted"], ["y"], {"count": 1}, last),)))


def piece(whole: Shape, part: Shape, axis: int, at: int, *, into: bool) -> Recipe:
    """Copy between a part and the place `at` of an axis of a whole: `into` the whole, or out of it."""
    trailing = math.prod(whole[axis + 1 :])
    values = {"inner": max(part[axis] * trailing, 1), "outer": whole[axis] * trailing, "offset": at * trailing}
    place = "whole[(i / params.inner) * params.outer + params.offset + i % params.inner]"
    if into:
        return _each("join", ["part"], ["whole"], values, part, f"  {place} = part[i];\n")
    return _each("cut", ["whole"], ["part"], values, part, f"  part[i] = {place};\n")


def accumulate(count: int, other: float = 1.0) -> Recipe:
    """out = a + other * b, all of `count` elements."""
    step = each("add", ["a", "b"], ["out"], {"count": count, "other": other}, "  out[i] = a[i] + params.other * b[i];\n")
    return Recipe((step,) if count else ())


def _each(
    name: str, inputs: list[str], outputs: list[str], values: Values, shape: Shape, body: str, functions: str = ""
) -> Recipe:
    """A step over every element, with the number functions at hand; nothing where there is none."""
    count = math.prod(shape)
    step: Step = each(name, inputs, outputs, {"count": count, **values}, body, functions=BITS + functions)
    return Recipe((step,) if count else ())
