"""Cases of unfold."""

from __future__ import annotations

from typing import Any

import astride
from astride.plan import UnfoldPlan

from .dense import DenseCase, DenseRefusal


def plan(
    shape: tuple[int, ...], kernel: tuple[int, ...], rules: str = "explicit", dtype: str = "float32", **more: Any
) -> UnfoldPlan:
    """The windows of these rules' convolution."""
    channels = shape[1] if more.get("layout", "channels_first") == "channels_first" else shape[-1]
    windows = astride.plan("conv", shape, rules=rules, dtype=dtype, w_shape=(1, channels, *kernel), **more)
    return UnfoldPlan(dtype=dtype, axes=windows.axes, edge=windows.edge, layout=windows.layout, accumulate=windows.accumulate)


def case(name: str, shape: tuple[int, ...], kernel: tuple[int, ...], **more: Any) -> DenseCase:
    return DenseCase(name, plan(shape, kernel, **more), (shape,))


CASES = (
    case("plain", (2, 2, 4, 5), (2, 3)),
    case("one axis", (2, 3, 6), (3,)),
    case("three axes", (1, 2, 3, 3, 3), (2, 2, 2)),
    case("strided and padded", (1, 2, 5, 6), (3, 2), stride=2, padding=1),
    case("dilated", (1, 1, 7, 7), (3, 2), dilation=2, padding=1),
    case("one pixel", (2, 3, 2, 2), (1, 1)),
    case("gaps between windows", (1, 1, 7), (2,), stride=3),
    case("reflected", (1, 2, 4, 4), (3, 3), padding=1, edge="mirror"),
    case("repeated", (1, 1, 4), (3,), padding=2, edge="clamp"),
    case("Caffe's", (1, 2, 5, 5), (2, 2), rules="caffe", stride=2, padding=1),
    case("Caffe's, larger than the image", (1, 1, 2, 4), (3, 3), rules="caffe", stride=2),
    case("no images", (0, 2, 4, 4), (2, 2)),
    case("double", (1, 2, 4), (2,), dtype="float64"),
    case("half", (1, 2, 4, 3), (2, 2), dtype="float16", padding=1),
    case("channels last", (2, 4, 5, 3), (3, 2), stride=2, padding=1, layout="channels_last"),
    case("three axes, channels last", (1, 3, 3, 3, 2), (2, 2, 2), layout="NDHWC"),
)
F = "float32"
REFUSALS = (
    DenseRefusal("no space", (((2, 3), F),), {"kernel": 2}, ("one to three spatial axes", "<= 3: 0"), "ArrayError"),
    DenseRefusal("too large", (((1, 1, 2), F),), {"kernel": 3}, ("the kernel is larger than the padded input",)),
    DenseRefusal("a layout nobody knows", (((1, 3, 1), F),), {"kernel": 2, "layout": "channels"}, ("no layout of that name",)),
    DenseRefusal("integers", (((1, 1, 3), "int64"),), {"kernel": 2, "rules": "caffe"}, ("dtype",)),
    DenseRefusal("unknown keyword", (((1, 1, 3), F),), {"kernel": 2, "size": 2}, ("there is no argument 'size'",)),
)
