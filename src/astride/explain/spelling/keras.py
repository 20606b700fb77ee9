"""How Keras writes these operators: its layers, and keras.ops' functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .form import Choices, Given, Operation, Raw, forms, operation, shape_of, short, unless, written

NAMES = "channels last, on the TensorFlow backend"
GRADIENT = True
WEIGHTS = {"conv": "*IO", "conv_transpose": "*OI"}
CHOICES = {
    "max_pool": Choices(words=("valid", "same")),
    "avg_pool": Choices(words=("valid", "same")),
    "conv": Choices(words=("valid", "same", "causal")),
    "conv_transpose": Choices(words=("valid", "same"), flags={"output_padding": (None, 0, 1, 2, 3)}),
}


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {"kernel": given["pool_size"], "stride": given["strides"], "padding": given["padding"]}
        return operation(op, _rank(names["kernel"], rank), names, given, channels_last=_last(given))

    return read


def _layer(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {
            "kernel": given["kernel_size"],
            "stride": given["strides"],
            "padding": given["padding"],
            "dilation": given["dilation_rate"],
            "groups": given.get("groups"),
            "output_padding": given.get("output_padding"),
            "out_channels": given["filters"],
        }
        return operation(op, rank, names, given, channels_last=_last(given))

    return read


def _function(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {
            "stride": given["strides"],
            "padding": given["padding"],
            "dilation": given["dilation_rate"],
            "output_padding": given.get("output_padding"),
        }
        w, x = shape_of(given["kernel"]), shape_of(given["inputs"])
        if w is not None:
            inner, outer = (w[-2], w[-1]) if op == "conv" else (w[-1], w[-2])
            held = None if x is None else x[-1 if _last(given) else 1]
            if op == "conv" and held and inner and held % inner == 0:
                names["groups"], inner = held // inner, held
            names |= {"kernel": w[:-2], "in_channels": inner, "out_channels": outer}
        return operation(op, None if w is None else len(w) - 2, names, given, channels_last=_last(given))

    return read


def _rank(kernel: Any, rank: int | None) -> int | None:
    return len(kernel) if rank is None and isinstance(kernel, tuple | list) and len(kernel) > 1 else rank


def _last(given: Given) -> bool:
    return bool(given["data_format"] != "channels_first")


REST = (
    "use_bias=True, kernel_initializer=None, bias_initializer=None, kernel_regularizer=None, bias_regularizer=None, "
    "activity_regularizer=None, kernel_constraint=None, bias_constraint=None, name=None"
)
POOL = "pool_size={}, strides=None, padding='valid', data_format=None, name=None"
FORMS = [
    *forms("MaxPool{}D MaxPooling{}D", POOL.format("2"), _pool("max_pool")),
    *forms("AvgPool{}D AveragePooling{}D", POOL.format("2"), _pool("avg_pool")),
    *forms(
        "Conv{}D Convolution{}D",
        "filters, kernel_size, strides=1, padding='valid', data_format=None, dilation_rate=1, groups=1, activation=None, " + REST,
        _layer("conv"),
    ),
    *forms(
        "Conv{}DTranspose",
        "filters, kernel_size, strides=1, padding='valid', output_padding=None, data_format=None, dilation_rate=1, "
        "activation=None, " + REST,
        _layer("conv_transpose"),
    ),
    *forms("max_pool", "inputs, pool_size, strides=None, padding='valid', data_format=None", _pool("max_pool")),
    *forms("average_pool", "inputs, pool_size, strides=None, padding='valid', data_format=None", _pool("avg_pool")),
    *forms("conv", "inputs, kernel, strides=1, padding='valid', data_format=None, dilation_rate=1", _function("conv")),
    *forms(
        "conv_transpose",
        "inputs, kernel, strides=1, padding='valid', output_padding=None, data_format=None, dilation_rate=1",
        _function("conv_transpose"),
    ),
]
LAYERS = {"max_pool": "MaxPooling{}D", "avg_pool": "AveragePooling{}D", "conv": "Conv{}D", "conv_transpose": "Conv{}DTranspose"}


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """Keras' default."""
    return "channels_last"


def write(o: Operation, rank: int) -> str:
    """A layer, applied to x."""
    a = o.arguments
    layer = f"keras.layers.{LAYERS[o.op].format(rank)}"
    padding = unless(a.get("padding", "valid"), "valid")
    if not o.weighted:
        stride = unless(short(a.get("stride", o.kernel)), short(o.kernel))
        return "y = " + written(layer, short(o.kernel), strides=stride, padding=padding) + "(x)"
    return (
        "y = "
        + written(
            layer,
            Raw("filters") if o.out_channels is None else o.out_channels,
            short(o.kernel),
            strides=unless(short(a.get("stride", 1)), 1),
            padding=padding,
            output_padding=short(a.get("output_padding")),
            dilation_rate=unless(short(a.get("dilation", 1)), 1),
            groups=unless(a.get("groups", 1), 1),
        )
        + "(x)"
    )


MODES = {"mirror": "reflect", "mirror_edge": "symmetric"}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it."""
    amounts = written("", ((0, 0), *pairs, (0, 0)))[1:-1]
    if isinstance(fill, str):
        return None if fill not in MODES else f'x = keras.ops.pad(x, {amounts}, mode="{MODES[fill]}")'
    value = (
        ""
        if fill == 0
        else ', constant_values=float("-inf")'
        if fill == float("-inf")
        else ", constant_values=np.finfo(x.dtype).min"
    )
    return f"x = keras.ops.pad(x, {amounts}{value})"
