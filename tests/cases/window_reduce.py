"""Cases of window_reduce: functions of one window, and the geometry they are given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

import astride
from astride.ops.window_reduce import WindowOperator

from .dense import DenseCase, DenseRefusal

Array = NDArray[Any]


@astride.window_op(gradient=lambda window, y: window, compile=False, empty=-1.0)
def half_squares(window: Array) -> Any:
    """sum(x^2) / 2, whose slope by each tap is the tap."""
    return (window * window).sum() / 2


@astride.window_op(gradient="numeric", compile=False, empty=5.0)
def product(window: Array) -> Any:
    """Slopes by differences."""
    found = 1.0
    for value in window:
        found *= value
    return found


@astride.window_op(compile=False)
def rank_of_last(window: Array) -> Any:
    """How many taps are below the last: sees the order of the taps."""
    return (window < window[-1]).sum()


def case(name: str, operator: WindowOperator, shape: tuple[int, ...], dtype: str = "float32", **arguments: Any) -> DenseCase:
    return DenseCase(name, operator.plan(shape, dtype, **arguments), (shape,))


SMOOTH = (
    case("plain", half_squares, (2, 2, 5, 6), kernel=3, stride=2),
    case("one axis", half_squares, (1, 3, 8), kernel=3),
    case("three axes", half_squares, (1, 2, 3, 3, 4), kernel=2, stride=1),
    case("padded and dilated", half_squares, (1, 2, 7, 6), kernel=(3, 2), stride=2, padding=1, dilation=2),
    case("Caffe's, rounded up", half_squares, (2, 1, 6, 6), kernel=3, stride=2, padding=1, rules="caffe"),
    case("mirrored", half_squares, (1, 2, 5, 4), kernel=3, stride=1, padding=1, edge="mirror"),
    case("constant outside", half_squares, (1, 1, 4), kernel=3, stride=2, padding=2, edge="constant", edge_value=2.0),
    case("gaps", half_squares, (1, 2, 7, 7), kernel=1, stride=3),
    case("an empty window", half_squares, (1, 2, 2), kernel=2, stride=2, padding=2),
    case("channels last", half_squares, (2, 4, 5, 3), kernel=2, stride=1, layout="channels_last"),
    case("adaptive", half_squares, (1, 2, 7, 5), windows="adaptive_pool", output_size=3),
    case("no images", half_squares, (0, 2, 4, 4), kernel=2),
    case("no channels", half_squares, (2, 0, 4, 4), kernel=2),
    case("double", half_squares, (1, 2, 5), "float64", kernel=2),
    case("half", half_squares, (1, 2, 5, 4), "float16", kernel=2),
    case("by differences", product, (1, 2, 4, 4), "float64", kernel=2, stride=1),
    case("by differences, empty and padded", product, (1, 1, 3), "float64", kernel=2, stride=1, padding=2),
)
ORDERED = (
    case("the order of taps", rank_of_last, (2, 2, 5, 6), kernel=(2, 3), stride=1),
    case("whole numbers", rank_of_last, (2, 2, 5, 6), "int32", kernel=3, stride=2),
    case("bytes", rank_of_last, (1, 1, 5, 6), "int8", kernel=3, stride=2, layout="channels_first"),
)
CASES = (*SMOOTH, *ORDERED)
COMPILED = tuple(replace(case, plan=replace(case.plan, compiled=True)) for case in CASES)

F = "float32"
SHAPE = (((1, 1, 4, 4), F),)
REFUSALS = (
    DenseRefusal("no kernel", SHAPE, {}, ("the kernel is not given",)),
    DenseRefusal("too large", SHAPE, {"kernel": 5}, ("the kernel is larger than the padded input",)),
    DenseRefusal("an empty window", SHAPE, {"kernel": 1, "padding": 1}, ("no tap inside", "empty=0.0")),
    DenseRefusal("no such windows", SHAPE, {"kernel": 2, "windows": "conv"}, ("one of max_pool",)),
    DenseRefusal("no such rules", SHAPE, {"kernel": 2, "rules": "cafe"}, ("no rules of that name",)),
    DenseRefusal("a framework's refusal", SHAPE, {"kernel": 2, "padding": 2, "rules": "caffe"}, ("pad",)),
    DenseRefusal("truth values", (((1, 1, 4), "bool"),), {"kernel": 2}, ("dtype",)),
    DenseRefusal("no space", (((2, 3), F),), {"kernel": 2}, ("wrong rank",)),
    DenseRefusal("unknown keyword", SHAPE, {"kernel": 2, "size": 2}, ("there is no argument 'size'",)),
    DenseRefusal("no such rung", SHAPE, {"kernel": 2, "backend": "reference:loops3"}, ("reference:loops4",)),
)
