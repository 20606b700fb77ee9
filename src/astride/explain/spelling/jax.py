"""How JAX writes these operators: jax.lax's functions, and flax.linen's pools."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...errors import ArgumentError
from .call import Word
from .form import Choices, Given, Operation, Raw, forms, operation, pairs_of, plain, shape_of, short, unless, written

NAMES = "lax is jax.lax, nn is flax.linen"
GRADIENT = True
WEIGHTS = {"conv": "OI*", "conv_transpose": "*IO"}
_WORDS = ("valid", "same", "same_lower")
CHOICES = {
    "max_pool": Choices(words=_WORDS, numbers="pairs"),
    "min_pool": Choices(words=_WORDS, numbers="pairs"),
    "avg_pool": Choices(words=_WORDS, numbers="pairs", flags={"count_include_pad": (True, False), "total": (False, "source")}),
    "conv": Choices(words=_WORDS, numbers="pairs", flags={"input_dilation": ("source",)}),
    "conv_transpose": Choices(
        words=("same", "valid"), numbers="pairs", flags={"use_consistent_padding": (True,), "transpose_kernel": (False,)}
    ),
}
REDUCTIONS = {"max": ("max_pool", -math.inf), "min": ("min_pool", math.inf), "add": ("avg_pool", 0.0)}


def _reduce_window(given: Given, rank: int | None) -> Operation:
    name = given["computation"].last if isinstance(given["computation"], Word) else str(given["computation"])
    if name not in REDUCTIONS:
        raise ArgumentError(
            "this reduction is no pooling", given={"computation": name}, required="lax.max, lax.min or lax.add", hint="lax.max"
        )
    window = tuple(given["window_dimensions"])
    strides = given["window_strides"] or (1,) * len(window)
    names: dict[str, Any] = {"kernel": _spatial(window, 1), "stride": _spatial(strides, 1)}
    padding = given["padding"]
    names["padding"] = padding.lower() if isinstance(padding, str) else _spatial(plain(padding), (0, 0))
    for parameter, rule in (("window_dilation", "dilation"), ("base_dilation", "base_dilation")):
        if given[parameter] is not None:
            names[rule] = _spatial(given[parameter], 1)
    if name == "add":
        names["total"] = True
    return operation(REDUCTIONS[name][0], len(window) - 2, names, given)


def _spatial(values: Any, neutral: Any) -> Any:
    """Those of the spatial axes, batch and channels being first or around them."""
    values = tuple(values)
    if len(values) < 3 or values[0] != neutral or neutral not in (values[1], values[-1]):
        raise ArgumentError(
            "the windows lie along batch or channels",
            given={"window": values},
            required=f"{neutral} for both",
            hint="(1, 1, 3, 3), or (1, 3, 3, 1)",
        )
    return values[2:] if values[1] == neutral else values[1:-1]


def _flax(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        window = given["window_shape"]
        padding = given["padding"]
        names = {
            "kernel": window,
            "stride": given["strides"] or 1,
            "padding": padding.lower() if isinstance(padding, str) else padding,
            "count_include_pad": given.get("count_include_pad"),
        }
        return operation(op, len(window), names, given, channels_last=True)

    return read


def _conv(given: Given, rank: int | None) -> Operation:
    if given["dimension_numbers"] not in (None, ("NCHW", "OIHW", "NCHW"), ("NCW", "OIW", "NCW"), ("NCDHW", "OIDHW", "NCDHW")):
        raise ArgumentError(
            "the call is read with its default dimension_numbers",
            given={"dimension_numbers": given["dimension_numbers"]},
            hint="dimension_numbers=None, which is NCHW, OIHW, NCHW",
        )
    padding = given["padding"]
    names = {
        "stride": given["window_strides"],
        "padding": padding.lower() if isinstance(padding, str) else padding,
        "input_dilation": given["lhs_dilation"],
        "dilation": given["rhs_dilation"],
        "groups": given["feature_group_count"],
        "batch_groups": unless(given["batch_group_count"], 1),
    }
    w = shape_of(given["rhs"])
    if w is not None:
        names |= {"kernel": w[2:], "in_channels": w[1] * given["feature_group_count"], "out_channels": w[0]}
    return operation("conv", len(given["window_strides"]), names, given)


def _transpose(given: Given, rank: int | None) -> Operation:
    padding = given["padding"]
    names = {
        "stride": given["strides"],
        "padding": padding.lower() if isinstance(padding, str) else padding,
        "dilation": given["rhs_dilation"],
        "transpose_kernel": given["transpose_kernel"],
        "use_consistent_padding": given["use_consistent_padding"],
    }
    w = shape_of(given["rhs"])
    if w is not None:
        inner, outer = (w[-1], w[-2]) if given["transpose_kernel"] else (w[-2], w[-1])
        names |= {"kernel": w[:-2], "in_channels": inner, "out_channels": outer}
    return operation("conv_transpose", len(given["strides"]), names, given, channels_last=True)


FORMS = [
    *forms(
        "reduce_window",
        "operand, init_value, computation, window_dimensions, window_strides=None, padding='VALID', base_dilation=None, "
        "window_dilation=None",
        _reduce_window,
    ),
    *forms("max_pool", "inputs, window_shape, strides=None, padding='VALID'", _flax("max_pool")),
    *forms("min_pool", "inputs, window_shape, strides=None, padding='VALID'", _flax("min_pool")),
    *forms("avg_pool", "inputs, window_shape, strides=None, padding='VALID', count_include_pad=True", _flax("avg_pool")),
    *forms(
        "conv_general_dilated",
        "lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, "
        "feature_group_count=1, batch_group_count=1",
        _conv,
    ),
    *forms(
        "conv_transpose",
        "lhs, rhs, strides, padding, rhs_dilation=None, dimension_numbers=None, transpose_kernel=False, "
        "use_consistent_padding=False",
        _transpose,
    ),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """flax has channels last, and so has lax.conv_transpose by default; what is written with reduce_window has them first."""
    flax = op == "avg_pool" and not arguments.get("total")
    return "channels_last" if flax or op == "conv_transpose" else "channels_first"


def write(o: Operation, rank: int) -> str:
    """The call, of x (and w) to y."""
    a = o.arguments
    padding = a.get("padding", "valid")
    padding = padding.upper() if isinstance(padding, str) else pairs_of(padding, rank)
    stride = _each(a.get("stride", 1 if o.weighted else o.kernel), rank)
    if o.op == "conv":
        return "y = " + written(
            "lax.conv_general_dilated",
            Raw("x"),
            Raw("w"),
            stride,
            padding,
            lhs_dilation=unless(_each(a.get("input_dilation", 1), rank), 1),
            rhs_dilation=unless(_each(a.get("dilation", 1), rank), 1),
            feature_group_count=unless(a.get("groups", 1), 1),
        )
    if o.op == "conv_transpose":
        return "y = " + written(
            "lax.conv_transpose",
            Raw("x"),
            Raw("w"),
            stride,
            padding,
            rhs_dilation=unless(_each(a.get("dilation", 1), rank), 1),
            transpose_kernel=a.get("transpose_kernel") or None,
            use_consistent_padding=(a.get("use_consistent_padding") or None) if not isinstance(padding, str) else None,
        )
    if o.op == "avg_pool" and not a.get("total"):
        include = unless(a.get("count_include_pad", True), True)
        return "y = " + written(
            "nn.avg_pool", Raw("x"), _each(o.kernel, rank), strides=stride, padding=padding, count_include_pad=include
        )
    if not isinstance(padding, str):
        padding = ((0, 0), (0, 0), *padding)
    name, start = {"max_pool": ("max", "-jnp.inf"), "min_pool": ("min", "jnp.inf"), "avg_pool": ("add", "0.0")}[o.op]
    dilation = _each(a.get("dilation", 1), rank)
    return "y = " + written(
        "lax.reduce_window",
        Raw("x"),
        Raw(start),
        Raw(f"lax.{name}"),
        (1, 1, *_each(o.kernel, rank)),
        (1, 1, *stride),
        padding,
        window_dilation=None if short(dilation) == 1 else (1, 1, *dilation),
    )


def _each(value: Any, rank: int) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,) * rank


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it, in jax.numpy."""
    around = ((0, 0), (0, 0), *pairs) if place == "channels_first" else ((0, 0), *pairs, (0, 0))
    amounts = written("", around)[1:-1]
    if isinstance(fill, str):
        mode = {"mirror": "reflect", "mirror_edge": "symmetric", "clamp": "edge", "wrap": "wrap"}[fill]
        return f'x = jnp.pad(x, {amounts}, mode="{mode}")'
    value = "" if fill == 0 else ", constant_values=-jnp.inf" if fill == -math.inf else ", constant_values=jnp.finfo(x.dtype).min"
    return f"x = jnp.pad(x, {amounts}{value})"
