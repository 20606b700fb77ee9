"""How NumPy teaching code writes these operators: course assignments' forward functions, their parameters in a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .explicit import pad as pad
from .form import Choices, Given, Operation, Raw, alike, forms, operation, shape_of, short, written

NAMES = "the functions of course assignments, in NumPy"
GRADIENT = True
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
CHOICES = {
    "max_pool": Choices(),
    "avg_pool": Choices(),
    "conv": Choices(numbers="alike"),
    "conv_transpose": Choices(numbers="alike"),
}
RANKS = dict.fromkeys(CHOICES, (2,))


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        said = _dictionary(given["pool_param"], "pool_height", "pool_width", "stride")
        kernel = (said["pool_height"], said["pool_width"])
        return operation(op, 2, {"kernel": kernel, "stride": said["stride"]}, given)

    return read


def _square(given: Given, rank: int | None) -> Operation:
    """`pool_forward(A_prev, {"f": 3, "stride": 2}, mode="max")`, channels last."""
    said, mode = _dictionary(given["hparameters"], "f", "stride"), given["mode"]
    kinds = {"max": "max_pool", "average": "avg_pool"}
    return operation(kinds[mode], 2, {"kernel": said["f"], "stride": said["stride"]}, given, channels_last=True)


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        said = _dictionary(given["conv_param"], "stride", "pad")
        names: dict[str, Any] = {"stride": said["stride"], "padding": said["pad"]}
        w = shape_of(given["w"])
        if w is not None:
            outer, inner = (w[0], w[1]) if op == "conv" else (w[1], w[0])
            names |= {"kernel": w[2:], "in_channels": inner, "out_channels": outer}
        return operation(op, 2, names, given)

    return read


def _dictionary(value: Any, *names: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError(f"parameters are a dictionary of {', '.join(names)}")
    return value


FORMS = [
    *forms("max_pool_forward_naive max_pool_forward", "x, pool_param", _pool("max_pool")),
    *forms("avg_pool_forward_naive avg_pool_forward", "x, pool_param", _pool("avg_pool")),
    *forms("pool_forward", "A_prev, hparameters, mode='max'", _square),
    *forms("conv_forward_naive conv_forward", "x, w, b, conv_param", _conv("conv")),
    *forms("conv_transpose_forward_naive conv_transpose_forward", "x, w, b, conv_param", _conv("conv_transpose")),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """Channels first, as the functions that are written have them."""
    return "channels_first"


def write(o: Operation, rank: int) -> str | None:
    """The call; None where the strides or pads of the axes differ, which have one number."""
    a = o.arguments
    stride = short(a.get("stride", 1 if o.weighted else o.kernel))
    around = alike(a.get("padding", 0), rank)
    if not isinstance(stride, int) or not isinstance(around, int):
        return None
    if not o.weighted:
        height, width = o.kernel if isinstance(o.kernel, tuple) else (o.kernel, o.kernel)
        said = Raw(f'{{"pool_height": {height}, "pool_width": {width}, "stride": {stride}}}')
        return "y = " + written(f"{o.op}_forward_naive", Raw("x"), said)
    said = Raw(f'{{"stride": {stride}, "pad": {around}}}')
    return "y = " + written(f"{o.op}_forward_naive", Raw("x"), Raw("w"), Raw("b"), said)
