"""How these operators are written here, under the rules that leave every choice to the caller: astride's own functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, forms, operation, pairs_of, shape_of, short, show, unless, written

NAMES = "arrays are NumPy's"
GRADIENT = True
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
_WORDS = ("same", "same_lower")
_SIZES: dict[str, tuple[Any, ...]] = {"rounding": ("floor", "ceil"), "clip": ("always", "padded", "never")}
_WINDOW = {"edge": ("source",), "edge_value": ("source",), "empty": ("source",)}
CHOICES = {
    "max_pool": Choices(
        words=_WORDS,
        numbers="pairs",
        flags={**_SIZES, **dict.fromkeys(("start", "nan", "tie", "unpicked"), ("source",)), **_WINDOW},
    ),
    "avg_pool": Choices(
        words=_WORDS,
        numbers="pairs",
        flags={**_SIZES, **dict.fromkeys(("divisor", "divisor_override", "divisor_pad"), ("source",)), **_WINDOW},
    ),
    "lp_pool": Choices(
        words=_WORDS,
        numbers="pairs",
        flags={**_SIZES, **dict.fromkeys(("form", "scale", "scaled", "zero_window", "edge"), ("source",))},
    ),
    "conv": Choices(words=_WORDS, numbers="pairs", flags=dict.fromkeys(("input_dilation", "edge", "flip"), ("source",))),
    "conv_transpose": Choices(numbers="pairs", flags={"output_padding": ("source",), "flip": ("source",)}),
}


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        return operation(op, rank, {name: value for name, value in given.items() if name != "x"}, given)

    return read


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {name: value for name, value in given.items() if name not in ("x", "w", "b")}
        w, groups = shape_of(given["w"]), int(given["groups"])
        if w is not None:
            outer, inner = (w[0], w[1] * groups) if op == "conv" else (w[1] * groups, w[0])
            names |= {"kernel": w[2:], "in_channels": inner, "out_channels": outer}
        return operation(op, len(w) - 2 if rank is None and w is not None else rank, names, given)

    return read


WINDOW = "x=None, *, kernel, stride=None, padding=None, dilation=None, rounding=None, clip=None, edge=None, empty=None"
FILTER = "x=None, w=None, b=None, *, stride=None, padding=None, dilation=None, groups=1, flip=None"
FORMS = [
    *forms(
        "max_pool",
        f"{WINDOW}, edge_value=None, start=None, nan=None, tie=None, unpicked=None, index_base=None",
        _pool("max_pool"),
    ),
    *forms("avg_pool", f"{WINDOW}, edge_value=None, divisor=None, divisor_override=None, divisor_pad=None", _pool("avg_pool")),
    *forms(
        "lp_pool",
        f"{WINDOW.removesuffix(', empty=None')}, p=2.0, form=None, scale=None, scaled=None, zero_window=None",
        _pool("lp_pool"),
    ),
    *forms("conv", f"{FILTER}, input_dilation=None, edge=None", _conv("conv")),
    *forms("conv_transpose", f"{FILTER}, output_padding=None", _conv("conv_transpose")),
]
USUAL: dict[str, Any] = {
    "rounding": "floor", "clip": "always", "edge": "skip", "edge_value": 0.0, "start": "infinity", "nan": "propagated",
    "unpicked": "first_tap", "divisor": "valid", "form": "absolute", "scale": "sum", "scaled": True, "zero_window": "zero",
    "flip": False, "groups": 1, "dilation": 1, "padding": 0, "output_padding": 0, "input_dilation": 1,
}  # fmt: skip
"""What the rules take where nothing is said; not written."""


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """The usual one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The call."""
    a = dict(o.arguments)
    usual = USUAL | {"empty": "start" if o.op == "max_pool" else "zero", "tie": _tie(a), "stride": 1 if o.weighted else o.kernel}
    if not isinstance(a.get("padding", 0), str):
        both = pairs_of(a.get("padding", 0), rank)
        a["padding"] = short(tuple(lo for lo, _ in both)) if all(lo == hi for lo, hi in both) else both
    if a.get("clip") and a.get("rounding", "floor") == "floor":
        del a["clip"]
    said = {name: unless(short(value), short(usual.get(name))) for name, value in a.items()}
    first = [Raw(name) for name in (("x", "w", "b") if o.weighted else ("x",))]
    return "y = " + written(f"astride.{o.op}", *first, **({} if o.weighted else {"kernel": short(o.kernel)}), **said)


def _tie(arguments: Mapping[str, Any]) -> str:
    return "first_nan" if arguments.get("nan", "propagated") == "propagated" else "first"


MODES = {"mirror": "reflect", "mirror_edge": "symmetric", "clamp": "edge", "wrap": "wrap"}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it."""
    amounts = show(((0, 0), (0, 0), *pairs))
    if isinstance(fill, str):
        return None if fill not in MODES else f'x = np.pad(x, {amounts}, mode="{MODES[fill]}")'
    value = (
        "" if fill == 0 else ", constant_values=-np.inf" if fill == float("-inf") else ", constant_values=np.finfo(x.dtype).min"
    )
    return f"x = np.pad(x, {amounts}{value})"
