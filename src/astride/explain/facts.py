"""What a plan's choices mean, in words: the rows of a comparison."""

from __future__ import annotations

import math

from ..plan import (
    ConvPlan,
    DeformPlan,
    FractionalPlan,
    IntegerConvPlan,
    Plan,
    PoolPlan,
    StridedAxis,
    UnfoldPlan,
    UnpoolPlan,
    WindowPlan,
)
from ..plan.base import axis_names
from ..plan.kinds import Divisor, Edge, Empty, IndexBase, LpForm, LpScale, Nan, Reduce, Start, Tie, Unpicked, ZeroWindow

Facts = dict[str, str]

TIES = {
    Tie.FIRST: "gradient to the first",
    Tie.LAST: "gradient to the last",
    Tie.FIRST_NAN: "gradient to the first (the first NaN, if any)",
    Tie.LAST_NAN: "gradient to the first (the last NaN, if any)",
    Tie.LEADING_NAN: "gradient to the first (a leading NaN keeps it)",
    Tie.AFTER_NAN: "gradient to the first after the last NaN",
    Tie.ALL_FULL: "the whole gradient to each",
    Tie.EQUAL_SHARE: "the gradient shared equally",
    Tie.RECORDED: "the whole gradient to all that equal the output",
    Tie.NEAR: "the whole gradient to all within 1e-5 of the output",
}
NANS = {Nan.COMPARED: "a NaN never wins", Nan.PROPAGATED: "a NaN wins"}
UNPICKED = {
    Unpicked.NOWHERE: "dropped, index -1",
    Unpicked.FIRST_TAP: "to the first tap",
    Unpicked.ORIGIN: "dropped, index of the plane's first pixel",
}
DIVISORS = {
    Divisor.KERNEL: "all taps of the kernel",
    Divisor.VALID: "taps inside the input",
    Divisor.PADDED: "taps inside input and padding",
    Divisor.CAFFE: "the window cut at input and padding",
}
EMPTIES = {
    Empty.START: "the start value",
    Empty.QUOTIENT: "0 / divisor (NaN for 0)",
    Empty.ZERO: "0",
    Empty.NAN: "NaN",
}
EDGES = {
    Edge.SKIP: "skipped",
    Edge.CLAMP: "reads the nearest pixel",
    Edge.MIRROR: "reads the mirror image, edge pixel once",
    Edge.MIRROR_EDGE: "reads the mirror image, edge pixel twice",
    Edge.WRAP: "reads from the other side",
}
LP_FORMS = {
    LpForm.ABSOLUTE: "(sum |x|^p)^(1/p)",
    LpForm.SIGNED: "(sum x^p)^(1/p), NaN if the sum is negative",
    LpForm.SIGNED_ROOT: "(sum x^p)^(1/p), with the real root",
}
LP_SCALES = {
    LpScale.SUM: "as it is",
    LpScale.MEAN: "divided by the taps inside",
    LpScale.RESCALED: "scaled up to the whole kernel",
}
ZERO_WINDOWS = {ZeroWindow.ZERO: "0", ZeroWindow.FORMULA: "x / y = NaN"}
BASES = {
    IndexBase.PLANE: "row-major in one channel's plane",
    IndexBase.TENSOR: "over the whole input",
    IndexBase.TENSOR_COLUMN: "over the whole input, each plane column-major",
    IndexBase.IMAGE: "over one image, as it lies",
    IndexBase.WINDOW: "inside the window",
}


def facts(plan: Plan) -> Facts:
    """The plan's choices in words, in an order that is the same for all plans of an operator."""
    if isinstance(plan, PoolPlan):
        return {"output": sizes(tuple(axis.out for axis in plan.axes)), "padding": _pads(plan), **_pooling(plan)}
    if isinstance(plan, ConvPlan):
        return {"output": sizes(plan.output_sizes), "padding": _pads(plan), **_convolution(plan)}
    if isinstance(plan, UnpoolPlan):
        counted = {} if plan.index_size is None else {"indices count in planes of": sizes(plan.index_size)}
        indices = {"indices": BASES[plan.index_base], **counted}
        return {"output": sizes(plan.out), **indices, "two values, one place": "the later stays"}
    if isinstance(plan, FractionalPlan):
        order = ", ".join(axis_names(len(plan.size))[plan.sample_axes.index(i)] for i in range(len(plan.size)))
        return {"output": sizes(plan.out), "samples of a plane": order, "NaN": "the last one wins", "ties": TIES[Tie.FIRST]}
    if isinstance(plan, UnfoldPlan | WindowPlan):
        return {"output": _out(plan), "padding": _pads(plan), **_columns(plan)}
    if isinstance(plan, DeformPlan | IntegerConvPlan):
        return {"output": sizes(tuple(axis.out for axis in plan.axes)), "padding": _pads(plan), **_special(plan)}
    return {}


def _out(plan: UnfoldPlan | WindowPlan) -> str:
    """Columns are a window each; an image is as large as the axes."""
    outs, whole = tuple(axis.out for axis in plan.axes), tuple(axis.size for axis in plan.axes)
    if isinstance(plan, WindowPlan):
        return sizes(outs)
    return f"{plan.taps} rows a channel, {sizes(outs)} columns" if plan.op == "unfold" else sizes(whole)


def _columns(plan: UnfoldPlan | WindowPlan) -> Facts:
    if isinstance(plan, UnfoldPlan):
        if plan.op == "unfold":
            return {
                "outside the input": "0" if plan.edge is Edge.SKIP else EDGES[plan.edge],
                "rows": "channel, then tap in row-major order",
            }
        return {
            "outside the output": "dropped" if plan.edge is Edge.SKIP else EDGES[plan.edge],
            "pixel of several windows": "their sum",
        }
    empty = "refused" if plan.empty is None else f"{plan.empty:g}"
    function = plan.function.rsplit(".", 1)[-1].split("#")[0]
    return {
        "outside the input": _outside(plan),
        "function": f"{function} of the taps, row-major",
        "window without a pixel": empty,
    }


def sizes(values: tuple[int, ...]) -> str:
    """8x6"""
    return "x".join(map(str, values))


def _pads(plan: PoolPlan | ConvPlan | DeformPlan | IntegerConvPlan | UnfoldPlan | WindowPlan) -> str:
    """Before and after each axis, once where all axes agree."""
    pairs = [(axis.pad_lo, axis.pad_hi) if isinstance(axis, StridedAxis) else (0, 0) for axis in plan.axes]
    shown = [str(lo) if lo == hi else f"{lo} before, {hi} after" for lo, hi in pairs]
    return shown[0] if len(set(pairs)) == 1 else "; ".join(shown)


def _outside(plan: PoolPlan | ConvPlan | WindowPlan) -> str:
    if plan.edge is Edge.CONSTANT:
        value = 0.0 if isinstance(plan, ConvPlan) else plan.edge_value
        named = {-math.inf: "-infinity", math.inf: "infinity"}.get(value, "-FLT_MAX" if value < -3e38 else f"{value:g}")
        return f"a {named} that takes part"
    return EDGES[plan.edge]


def _pooling(plan: PoolPlan) -> Facts:
    found = {"outside the input": _outside(plan)}
    extreme = plan.reduce in (Reduce.MAX, Reduce.MIN) or (plan.reduce is Reduce.LP and math.isinf(plan.p))
    if extreme:
        found |= {"equal values": TIES[plan.tie], "NaN": NANS[plan.nan]}
        if plan.reduce is not Reduce.LP:
            found |= {"starts from": _start(plan), "nothing won": UNPICKED[plan.unpicked]}
    elif plan.reduce is Reduce.AVERAGE:
        override = plan.divisor is Divisor.OVERRIDE
        found["divides by"] = str(plan.divisor_override) if override else DIVISORS[plan.divisor]
    elif plan.reduce is Reduce.LP:
        found |= {
            "norm": f"p = {plan.p:g}: {LP_FORMS[plan.lp_form]}",
            "partial windows": LP_SCALES[plan.lp_scale],
            "huge and tiny values": "kept in range" if plan.lp_scaled else "overflow as in the formula",
            "gradient where y = 0": ZERO_WINDOWS[plan.zero_window],
        }
    elif plan.reduce is Reduce.STOCHASTIC:
        found |= {"drawn": "a tap, in proportion to its value", "threshold formed in": plan.threshold}
    else:
        found |= {"computes": "sum x^2 / sum x, the expected draw"}
    found["window without a pixel"] = EMPTIES[plan.empty]
    return found


def _start(plan: PoolPlan) -> str:
    sign = "-" if plan.reduce is Reduce.MAX else "+"
    return {
        Start.INFINITY: f"{sign}infinity",
        Start.FINITE: f"{sign}FLT_MAX, so {sign}infinity never wins",
        Start.FIRST_TAP: "the first tap",
    }[plan.start]


def _convolution(plan: ConvPlan) -> Facts:
    transposed = plan.op == "conv_transpose"
    return {
        "outside the output" if transposed else "outside the input": "dropped" if transposed else _outside(plan),
        "kernel": "turned by 180 degrees" if plan.flip else "as it is",
        "weights": str(plan.weight_shape),
        "groups": str(plan.groups),
    }


def _special(plan: DeformPlan | IntegerConvPlan) -> Facts:
    if isinstance(plan, DeformPlan):
        own = {"outside the input": "0, and a share of 0 beside the edge", "groups of offsets": str(plan.offset_groups)}
    else:
        rounding = "to the even number" if plan.quantised else "no rounding"
        own = {"outside the input": "skipped: x's zero point", "result": plan.y_dtype, "halves": rounding}
    return {**own, "weights": str(plan.weight_shape), "groups": str(plan.groups)}
