"""How PyTorch writes these operators: torch.nn's modules and torch.nn.functional's functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, alike, forms, operation, renamed, shape_of, short, show, unless, written

NAMES = "F is torch.nn.functional, nn is torch.nn"
GRADIENT = True
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
_CEIL = (False, True)
CHOICES = {
    "max_pool": Choices(numbers="alike", flags={"ceil_mode": _CEIL}),
    "avg_pool": Choices(
        numbers="alike",
        flags={"ceil_mode": _CEIL, "count_include_pad": (True, False), "divisor_override": (None, "taps", "source")},
    ),
    "lp_pool": Choices(flags={"ceil_mode": _CEIL}),
    "conv": Choices(words=("same",), numbers="alike", flags={"padding_mode": ("zeros", "reflect", "replicate", "circular")}),
    "conv_transpose": Choices(numbers="alike", flags={"output_padding": ("source",)}),
}
MODES = {"mirror": "reflect", "clamp": "replicate", "wrap": "circular"}

WINDOW = {"kernel_size": "kernel", "stride": "stride", "padding": "padding", "dilation": "dilation", "ceil_mode": "ceil_mode"}
AVERAGE = {**WINDOW, "count_include_pad": "count_include_pad", "divisor_override": "divisor_override"}
NORM = {"norm_type": "p", "kernel_size": "kernel", "stride": "stride", "ceil_mode": "ceil_mode"}
FILTER = ("in_channels", "out_channels", "stride", "padding", "output_padding", "dilation", "groups", "padding_mode")


def _module(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {name: given[name] for name in FILTER if name in given}
        if op == "conv_transpose" and names.pop("padding_mode", "zeros") != "zeros":
            names["padding_mode"] = given["padding_mode"]  # the rule refuses it
        return operation(op, rank, {"kernel": given["kernel_size"], **names}, given)

    return read


def _function(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        w = shape_of(given["weight"])
        groups = int(given["groups"])
        names = {name: given[name] for name in FILTER if name in given}
        if w is not None:
            outer, inner = (w[0], w[1] * groups) if op == "conv" else (w[1] * groups, w[0])
            names |= {"kernel": w[2:], "in_channels": inner, "out_channels": outer}
        return operation(op, rank, names, given)

    return read


FORMS = [
    *forms(
        "MaxPool{}d",
        "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
        renamed("max_pool", **WINDOW),
    ),
    *forms(
        "AvgPool{}d",
        "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
        renamed("avg_pool", **AVERAGE),
        (1,),
    ),
    *forms(
        "AvgPool{}d",
        "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None",
        renamed("avg_pool", **AVERAGE),
        (2, 3),
    ),
    *forms("LPPool{}d", "norm_type, kernel_size, stride=None, ceil_mode=False", renamed("lp_pool", **NORM)),
    *forms(
        "Conv{}d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros', "
        "device=None, dtype=None",
        _module("conv"),
    ),
    *forms(
        "ConvTranspose{}d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, "
        "padding_mode='zeros', device=None, dtype=None",
        _module("conv_transpose"),
    ),
    *forms(
        "max_pool{}d",
        "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False",
        renamed("max_pool", **WINDOW),
    ),
    *forms(
        "avg_pool{}d",
        "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
        renamed("avg_pool", **AVERAGE),
        (1,),
    ),
    *forms(
        "avg_pool{}d",
        "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None",
        renamed("avg_pool", **AVERAGE),
        (2, 3),
    ),
    *forms("lp_pool{}d", "input, norm_type, kernel_size, stride=None, ceil_mode=False", renamed("lp_pool", **NORM)),
    *forms("conv{}d", "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1", _function("conv")),
    *forms(
        "conv_transpose{}d",
        "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1",
        _function("conv_transpose"),
    ),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """Where the channels are."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The call, of x (and w and b) to y."""
    a = dict(o.arguments)
    padding = a.get("padding", 0)
    padding = padding if isinstance(padding, str) else unless(alike(padding, rank), 0)
    if o.weighted:
        mode = a.get("padding_mode", "zeros")
        common = dict(
            stride=unless(short(a.get("stride", 1)), 1),
            padding=padding,
            output_padding=unless(short(a.get("output_padding", 0)), 0),
            dilation=unless(short(a.get("dilation", 1)), 1),
            groups=unless(a.get("groups", 1), 1),
        )
        if mode != "zeros":
            return (
                "y = "
                + written(f"nn.Conv{rank}d", o.in_channels, o.out_channels, short(o.kernel), **common, padding_mode=mode)
                + "(x)"
            )
        return "y = " + written(f"F.{o.op}{rank}d", Raw("x"), Raw("w"), Raw("b"), **common)
    first = [Raw("x"), a["p"]] if o.op == "lp_pool" else [Raw("x")]
    return "y = " + written(
        f"F.{o.op}{rank}d",
        *first,
        short(o.kernel),
        stride=unless(short(a.get("stride")), short(o.kernel)),
        padding=padding,
        dilation=unless(short(a.get("dilation", 1)), 1),
        ceil_mode=a.get("ceil_mode") or None,
        count_include_pad=unless(a.get("count_include_pad", True), True),
        divisor_override=a.get("divisor_override"),
    )


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it; the last axis comes first."""
    amounts = tuple(amount for pair in reversed(pairs) for amount in pair)
    if isinstance(fill, str):
        return None if fill not in MODES else f'x = F.pad(x, {show(amounts)}, mode="{MODES[fill]}")'
    value = "" if fill == 0 else ', value=float("-inf")' if fill == float("-inf") else ", value=torch.finfo(x.dtype).min"
    return f"x = F.pad(x, {show(amounts)}{value})"
