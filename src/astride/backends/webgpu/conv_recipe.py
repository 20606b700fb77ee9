"""The recipes of a convolution's plan: forward, and the gradients of x, w and b."""

from __future__ import annotations

import math

from ...plan import ConvPlan, Shape
from ...plan.kinds import Edge, Layout
from .conv_link import Link, grown, link
from .conv_relation import SOURCES, gather, scatter, weights
from .product import PLAIN, Epilogue, product
from .recipe import MOST_TERMS, Recipe, each
from .sums import totals
from .tiles import Tile


def forward(
    plan: ConvPlan,
    x: Shape,
    *,
    epilogue: Epilogue = PLAIN,
    w_last: bool = False,
    adapter: str = "",
    tile: Tile | None = None,
) -> Recipe:
    """y from x, w, and b where the epilogue has a bias. `w_last`: weights are (outputs, *kernel, inputs / groups)."""
    back = plan.op == "conv_transpose"
    return _moved(link(plan, x, w_last), "x", "y", back, epilogue, adapter, tile)


def input_gradient(plan: ConvPlan, x: Shape, *, w_last: bool = False, adapter: str = "", tile: Tile | None = None) -> Recipe:
    """dx from dy and w."""
    back = plan.op != "conv_transpose"
    return _moved(link(plan, x, w_last), "dy", "dx", back, PLAIN, adapter, tile)


def weights_gradient(plan: ConvPlan, x: Shape, *, w_last: bool = False, adapter: str = "", tile: Tile | None = None) -> Recipe:
    """dw from x and dy."""
    a, b = ("dy", "x") if plan.op == "conv_transpose" else ("x", "dy")
    return product(weights(link(plan, x, w_last)), a, b, "dw", adapter=adapter, tile=tile)


def bias_gradient(plan: ConvPlan, y: Shape) -> Recipe:
    """db from dy, whose shape is y's: the sum over images and places."""
    if plan.layout is Layout.CHANNELS_LAST:
        return totals("dy", "db", lead=1, kept=plan.out_channels, inner=math.prod(y[:-1]), strides=(0, 1, plan.out_channels))
    places = math.prod(y[2:])
    return totals("dy", "db", lead=y[0], kept=plan.out_channels, inner=places, strides=(plan.out_channels * places, places, 1))


def _moved(lk: Link, source: str, target: str, back: bool, epilogue: Epilogue, adapter: str, tile: Tile | None) -> Recipe:
    """One grid from the other. An edge mode's way back goes through the grown input."""
    if not back:
        return product(gather(lk), source, "w", target, epilogue=epilogue, adapter=adapter, tile=tile)
    if lk.edge is Edge.SKIP:
        return product(scatter(lk), source, "w", target, epilogue=epilogue, adapter=adapter, tile=tile)
    wider, lows = grown(lk)
    recipe = product(scatter(wider), source, "w", "grown", adapter=adapter, tile=tile)
    sizes = Recipe((), {"grown": max(wider.a_total, 1)})
    return recipe.then(sizes).then(_folded(lk, wider, lows, target))


def fold_terms(lk: Link) -> int:
    """How many pixels of the grown input one pixel adds up, at most."""
    wider, _ = grown(lk)
    return math.prod(1 + wide.size - axis.size for axis, wide in zip(lk.axes, wider.axes, strict=True))


def _folded(lk: Link, wider: Link, lows: tuple[int, ...], target: str) -> Recipe:
    """The gradient of the input from that of the grown one: every pixel gathers the places that showed it."""
    numbers = {"count": lk.a_total, "ca": lk.a_channels, "groups": lk.groups}
    for d, (axis, wide, low) in enumerate(zip(lk.axes, wider.axes, lows, strict=True)):
        numbers |= {f"as{d}": axis.size, f"gs{d}": wide.size, f"low{d}": low}
    numbers |= dict(zip(("an", "ag", "ac", "ax0", "ax1", "ax2"), lk.a_strides, strict=True))
    body = """  var t = i;
  let q2 = t % params.as2; t /= params.as2;
  let q1 = t % params.as1; t /= params.as1;
  let q0 = t % params.as0; t /= params.as0;
  let c = t % params.ca; t /= params.ca;
  let z = t % params.groups;
  let image = t / params.groups;
  let plane = ((image * params.groups + z) * params.ca + c) * params.gs0;
  var sum = 0.0;
"""
    indent = "  "
    for d in range(3):
        # the pixel itself, then every place outside that shows it
        body += f"{indent}for (var e{d} = -1; e{d} < params.gs{d} - params.as{d}; e{d}++) {{\n"
        indent += "  "
        body += f"{indent}let out{d} = select(e{d} + params.as{d}, e{d}, e{d} < params.low{d});\n"
        body += f"{indent}let at{d} = select(out{d}, params.low{d} + q{d}, e{d} < 0);\n"
        body += f"{indent}if (shown{d}(at{d}) != q{d}) {{ continue; }}\n"
    body += f"{indent}sum += grown[((plane + at0) * params.gs1 + at1) * params.gs2 + at2];\n"
    body += "  }\n" * 3
    place = "q0 * params.ax0 + q1 * params.ax1 + q2 * params.ax2"
    body += f"  out[image * params.an + z * params.ag + c * params.ac + {place}] = sum;\n"
    functions = "".join(
        f"fn shown{d}(at: i32) -> i32 {{ let q = at - params.low{d}; let n = params.as{d}; {SOURCES[lk.edge]} }}\n"
        for d in range(3)
    )
    if not numbers["count"]:
        return Recipe()
    return Recipe((each("fold edge", ["grown"], ["out"], numbers, body, functions=functions, names={"out": target}),))


def too_long(plan: ConvPlan, lk: Link) -> bool:
    """Whether folding an edge mode back takes more terms than one invocation may add up."""
    return lk.edge is not Edge.SKIP and fold_terms(lk) > MOST_TERMS


__all__ = ["bias_gradient", "fold_terms", "forward", "input_gradient", "too_long", "weights_gradient"]
