"""How MLX writes these operators: mlx.nn's layers and mlx.core's convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, alike, forms, operation, pairs_of, renamed, shape_of, short, unless, written

NAMES = "nn is mlx.nn, mx is mlx.core; channels last"
GRADIENT = True
WEIGHTS = {"conv": "O*I", "conv_transpose": "O*I"}
CHOICES = {
    "max_pool": Choices(numbers="alike"),
    "avg_pool": Choices(numbers="alike"),
    "conv": Choices(numbers="pairs", flags={"input_dilation": ("source",), "flip": ("source",)}),
    "conv_transpose": Choices(numbers="alike", flags={"output_padding": ("source",)}),
}
FILTER = ("stride", "padding", "dilation", "groups", "output_padding", "in_channels", "out_channels", "input_dilation", "flip")


def _layer(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {name: given[name] for name in FILTER if name in given}
        return operation(op, rank, {"kernel": given["kernel_size"], **names}, given, channels_last=True)

    return read


def _function(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {name: given[name] for name in FILTER if name in given}
        if "kernel_dilation" in given:
            names["dilation"] = given["kernel_dilation"]
            pads = given["padding"]
            if isinstance(pads, list | tuple) and len(pads) == 2 and all(isinstance(p, list | tuple) for p in pads):
                names["padding"] = tuple(zip(*pads))
        w = shape_of(given["weight"])
        if w is not None:
            names |= {"kernel": w[1:-1], "in_channels": w[-1] * int(given.get("groups") or 1), "out_channels": w[0]}
        return operation(op, len(w) - 2 if rank is None and w is not None else rank, names, given, channels_last=True)

    return read


WINDOW = {"kernel_size": "kernel", "stride": "stride", "padding": "padding"}
FORMS = [
    *forms("MaxPool{}d", "kernel_size, stride=None, padding=0", renamed("max_pool", **WINDOW)),
    *forms("AvgPool{}d", "kernel_size, stride=None, padding=0", renamed("avg_pool", **WINDOW)),
    *forms(
        "Conv{}d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True",
        _layer("conv"),
    ),
    *forms(
        "ConvTranspose{}d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, output_padding=0, bias=True",
        _layer("conv_transpose"),
    ),
    *forms("conv{}d", "input, weight, stride=1, padding=0, dilation=1, groups=1", _function("conv")),
    *forms(
        "conv_general",
        "input, weight, stride=1, padding=0, kernel_dilation=1, input_dilation=1, groups=1, flip=False",
        _function("conv"),
    ),
    *forms(
        "conv_transpose{}d",
        "input, weight, stride=1, padding=0, dilation=1, output_padding=0, groups=1",
        _function("conv_transpose"),
    ),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """MLX has one."""
    return "channels_last"


def write(o: Operation, rank: int) -> str:
    """A layer applied to x, or a convolution of x and w."""
    a = o.arguments
    if not o.weighted:
        name = f"nn.{'MaxPool' if o.op == 'max_pool' else 'AvgPool'}{rank}d"
        stride = unless(short(a.get("stride", o.kernel)), short(o.kernel))
        return "y = " + written(name, short(o.kernel), stride=stride, padding=unless(alike(a.get("padding", 0), rank), 0)) + "(x)"
    both = pairs_of(a.get("padding", 0), rank)
    stride, dilation = unless(short(a.get("stride", 1)), 1), unless(short(a.get("dilation", 1)), 1)
    inner = unless(short(a.get("input_dilation", 1)), 1)
    if o.op == "conv" and (inner or a.get("flip") or any(lo != hi for lo, hi in both)):
        padding = [[lo for lo, _ in both], [hi for _, hi in both]]
        return "y = " + written(
            "mx.conv_general",
            Raw("x"),
            Raw("w"),
            stride=stride,
            padding=padding if any(map(any, both)) else None,
            kernel_dilation=dilation,
            input_dilation=inner,
            groups=unless(a.get("groups", 1), 1),
            flip=a.get("flip") or None,
        )
    return "y = " + written(
        f"mx.{o.op}{rank}d",
        Raw("x"),
        Raw("w"),
        stride=stride,
        padding=unless(alike(both, rank), 0),
        dilation=dilation,
        output_padding=unless(short(a.get("output_padding", 0)), 0),
        groups=unless(a.get("groups", 1), 1),
    )


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it."""
    amounts = written("", [(0, 0), *pairs, (0, 0)])[1:-1]
    if isinstance(fill, str):
        return f'x = mx.pad(x, {amounts}, mode="edge")' if fill == "clamp" else None
    value = (
        "" if fill == 0 else ", constant_values=-mx.inf" if fill == float("-inf") else ", constant_values=mx.finfo(x.dtype).min"
    )
    return f"x = mx.pad(x, {amounts}{value})"
