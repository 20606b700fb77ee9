"""How ONNX writes these operators: nodes, their inputs by position and their attributes by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, forms, operation, pairs_of, shape_of, show, unless, written

NAMES = "nodes of opset 22 as calls: inputs by position, attributes by name"
GRADIENT = False
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
_WORDS = ("valid", "same_upper", "same_lower")
CHOICES = {
    "max_pool": Choices(words=_WORDS[1:], numbers="pairs", flags={"ceil_mode": (0, 1)}),
    "avg_pool": Choices(words=_WORDS[1:], numbers="pairs", flags={"ceil_mode": (0, 1), "count_include_pad": (0, 1)}),
    "lp_pool": Choices(words=_WORDS[1:], numbers="pairs", flags={"ceil_mode": (0, 1)}),
    "conv": Choices(words=_WORDS[1:], numbers="pairs"),
    "conv_transpose": Choices(words=_WORDS[1:], numbers="pairs", flags={"output_padding": ("source",)}),
}


def _common(given: Given) -> dict[str, Any]:
    word, pads = given["auto_pad"], given["pads"]
    padding: Any = 0
    if word != "NOTSET":
        padding = word
    elif pads is not None:
        half = len(pads) // 2
        padding = tuple(zip(pads[:half], pads[half:]))
    return {"kernel": given["kernel_shape"], "stride": given["strides"] or 1, "padding": padding, "dilation": given["dilations"]}


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _common(given) | {name: given.get(name) for name in ("ceil_mode", "count_include_pad", "storage_order", "p")}
        return operation(op, len(given["kernel_shape"]), names, given)

    return read


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        group = given["group"]
        names = _common(given) | {"groups": group, "output_padding": given.get("output_padding")}
        w = shape_of(given["W"])
        if w is not None:
            outer, inner = (w[0], w[1] * group) if op == "conv" else (w[1] * group, w[0])
            names |= {"kernel": w[2:], "in_channels": inner, "out_channels": outer}
        if given.get("output_shape") is not None:
            names["output_shape"] = given["output_shape"]
        return operation(op, None if names["kernel"] is None else len(names["kernel"]), names, given)

    return read


WINDOW = "auto_pad='NOTSET', dilations=None, pads=None, strides=None"
FORMS = [
    *forms("MaxPool", f"X=None, *, kernel_shape, {WINDOW}, ceil_mode=0, storage_order=0", _pool("max_pool")),
    *forms("AveragePool", f"X=None, *, kernel_shape, {WINDOW}, ceil_mode=0, count_include_pad=0", _pool("avg_pool")),
    *forms("LpPool", f"X=None, *, kernel_shape, {WINDOW}, ceil_mode=0, p=2", _pool("lp_pool")),
    *forms("Conv", f"X=None, W=None, B=None, *, kernel_shape=None, {WINDOW}, group=1", _conv("conv")),
    *forms(
        "ConvTranspose",
        f"X=None, W=None, B=None, *, kernel_shape=None, {WINDOW}, group=1, output_padding=None, output_shape=None",
        _conv("conv_transpose"),
    ),
]
NODES = {"max_pool": "MaxPool", "avg_pool": "AveragePool", "lp_pool": "LpPool", "conv": "Conv", "conv_transpose": "ConvTranspose"}


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """ONNX has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The node."""
    a = o.arguments
    padding = a.get("padding", 0)
    auto, pads = None, None
    if isinstance(padding, str):
        auto = padding.upper()
    else:
        both = pairs_of(padding, rank)
        flat = [lo for lo, _ in both] + [hi for _, hi in both]
        pads = flat if any(flat) else None
    return "y = " + written(
        NODES[o.op],
        *[Raw(name) for name in (("x", "w", "b") if o.weighted else ("x",))],
        kernel_shape=_each(o.kernel, rank),
        auto_pad=auto,
        pads=pads,
        strides=None if a.get("stride", 1) in (1, (1,) * rank) else _each(a["stride"], rank),
        dilations=None if a.get("dilation", 1) in (1, (1,) * rank) else _each(a["dilation"], rank),
        group=unless(a.get("groups", 1), 1),
        output_padding=None if a.get("output_padding") in (None, 0, (0,) * rank) else _each(a["output_padding"], rank),
        ceil_mode=a.get("ceil_mode") or None,
        count_include_pad=a.get("count_include_pad") or None,
        p=None if "p" not in a else int(a["p"]) if float(a["p"]).is_integer() else a["p"],
    )


def _each(value: Any, rank: int) -> list[int]:
    return list(value) if isinstance(value, tuple) else [value] * rank


MODES = {"mirror": "reflect", "clamp": "edge", "wrap": "wrap"}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """A Pad node before it; its pads are an input, all beginnings first."""
    amounts = show([0, 0, *(lo for lo, _ in pairs), 0, 0, *(hi for _, hi in pairs)])
    if isinstance(fill, str):
        return None if fill not in MODES else f'x = Pad(x, {amounts}, mode="{MODES[fill]}")'
    value = "" if fill == 0 else ', float("-inf")' if fill == float("-inf") else ", np.finfo(np.float32).min"
    return f"x = Pad(x, {amounts}{value})"


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str:
    """A Slice node behind it; an end that is not cut is the greatest number."""
    ends = [2**63 - 1 if e is None else e for e in end]
    return f"y = Slice(y, {show(list(begin))}, {show(ends)}, {show(list(range(2, 2 + len(begin))))})"


def scale(factors: str) -> str:
    """A Mul node behind it."""
    return f"y = Mul(y, {factors})"
