"""How TensorFlow writes these operators: tf.nn's functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...like import _tensorflow_arguments as arguments
from .form import Choices, Given, Operation, Raw, forms, operation, output_sizes, pairs_of, shape_of, short, unless, written

NAMES = "channels last"
GRADIENT = True
WEIGHTS = {"conv": "*IO", "conv_transpose": "*OI"}
CHOICES = {
    "max_pool": Choices(words=("valid", "same"), numbers="pairs"),
    "avg_pool": Choices(words=("valid", "same")),
    "conv": Choices(words=("valid", "same"), numbers="pairs"),
    "conv_transpose": Choices(words=("valid", "same"), numbers="pairs", flags={"output_size": ("source",)}),
}


def _rank(given: Given, rank: int | None, *, weights: str | None = None) -> int | None:
    if rank is None and weights is not None:
        w = shape_of(given[weights])
        rank = None if w is None else len(w) - 2
    if rank is None:
        x = shape_of(given["input"])
        return None if x is None else len(x) - 2
    return rank


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        rank = _rank(given, rank)
        names, first = _common(given, rank)
        for name, rule in (("ksize", "kernel"), ("strides", "stride")):
            value = given[name]
            names[rule] = value if rank is None else arguments.along(value, rank, first, name)
        return operation(op, rank, names, given, channels_last=not first)

    return read


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        rank = _rank(given, rank, weights="filters")
        names, first = _common(given, rank)
        strides = given["strides"] if "strides" in given else given["stride"]
        names["stride"] = 1 if strides is None else strides if rank is None else arguments.along(strides, rank, first, "strides")
        dilations = given["dilations"]
        names["dilation"] = (
            1 if dilations is None else dilations if rank is None else arguments.along(dilations, rank, first, "dilations")
        )
        w, x = shape_of(given["filters"]), shape_of(given["input"])
        if w is not None:
            inner, outer = (w[-2], w[-1]) if op == "conv" else (w[-1], w[-2])
            if op == "conv" and x is not None and inner and x[1 if first else -1] % inner == 0:
                names["groups"] = x[1 if first else -1] // inner
                inner = x[1 if first else -1]
            names |= {"kernel": w[:-2], "in_channels": inner, "out_channels": outer}
        names["output_size"] = output_sizes(given.get("output_shape"), rank, channels_last=not first)
        return operation(op, rank, names, given, channels_last=not first)

    return read


def _common(given: Given, rank: int | None) -> tuple[dict[str, Any], bool]:
    """Padding, and whether channels come first."""
    first = str(given.get("data_format") or "N").startswith("NC")
    padding = given["padding"]
    if isinstance(padding, str) or rank is not None:
        padding = arguments.padding_of(padding, rank or 1, first)
    return {"padding": padding}, first


POOL = "input, ksize, strides, padding, data_format=None, name=None"
FILTERS = "input, filters, strides, padding, data_format=None, dilations=None, name=None"
FILTERS_1D = "input, filters, stride, padding, data_format=None, dilations=None, name=None"
TRANSPOSED = "input, filters, output_shape, strides, padding='SAME', data_format=None, dilations=None, name=None"
FORMS = [
    *forms("max_pool{}d max_pool", POOL, _pool("max_pool")),
    *forms("avg_pool{}d avg_pool", POOL, _pool("avg_pool")),
    *forms("conv{}d", FILTERS_1D, _conv("conv"), (1,)),
    *forms("conv{}d", FILTERS, _conv("conv"), (2, 3)),
    *forms(
        "convolution",
        "input, filters, strides=None, padding='VALID', data_format=None, dilations=None, name=None",
        _conv("conv"),
    ),
    *forms("conv{}d_transpose conv_transpose", TRANSPOSED, _conv("conv_transpose")),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """tf.nn's own, which its CPU kernels ask for."""
    return "channels_last"


def write(o: Operation, rank: int) -> str:
    """The call, of x (and w) to y."""
    a = o.arguments
    padding = a.get("padding", "valid")
    if isinstance(padding, str):
        padding = padding.upper()
    else:
        padding = [[0, 0], *map(list, pairs_of(padding, rank)), [0, 0]]
    stride = a.get("stride", 1 if o.weighted else o.kernel)
    if not o.weighted:
        return "y = " + written(f"tf.nn.{o.op}{rank}d", Raw("x"), short(o.kernel), short(stride), padding)
    dilations = unless(short(a.get("dilation", 1)), 1)
    if o.op == "conv":
        return "y = " + written(f"tf.nn.conv{rank}d", Raw("x"), Raw("w"), short(stride), padding, dilations=dilations)
    size = Raw(f"[N, {', '.join(map(str, a['output_size']))}, C]")
    return "y = " + written(f"tf.nn.conv{rank}d_transpose", Raw("x"), Raw("w"), size, short(stride), padding, dilations=dilations)


MODES = {"mirror": "REFLECT", "mirror_edge": "SYMMETRIC"}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it."""
    amounts = written("", [[0, 0], *map(list, pairs), [0, 0]])[1:-1]
    if isinstance(fill, str):
        return None if fill not in MODES else f'x = tf.pad(x, {amounts}, mode="{MODES[fill]}")'
    value = "" if fill == 0 else ', constant_values=float("-inf")' if fill == float("-inf") else ", constant_values=x.dtype.min"
    return f"x = tf.pad(x, {amounts}{value})"
