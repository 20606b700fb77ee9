"""How MXNet writes these operators: the functions of mx.nd and mx.sym, and gluon's pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import ArgumentError
from .form import Choices, Given, Operation, Raw, alike, forms, operation, shape_of, show, unless, written

NAMES = "mx.nd's functions; the same ones are in mx.sym"
GRADIENT = True
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
_CONVENTIONS = ("valid", "full")
CHOICES = {
    "max_pool": Choices(numbers="alike", flags={"pooling_convention": _CONVENTIONS}),
    "avg_pool": Choices(
        numbers="alike",
        flags={"pooling_convention": _CONVENTIONS, "count_include_pad": (True, False), "pool_type": ("avg", "source")},
    ),
    "lp_pool": Choices(numbers="alike", flags={"pooling_convention": _CONVENTIONS}),
    "conv": Choices(numbers="alike"),
    "conv_transpose": Choices(numbers="alike", flags={"output_padding": ("source",)}),
}
TYPES = {"max": "max_pool", "avg": "avg_pool", "sum": "avg_pool", "lp": "lp_pool"}


def _pooling(given: Given, rank: int | None) -> Operation:
    kind = given["pool_type"]
    if kind not in TYPES:
        raise ArgumentError("pool_type has no such value", given={"pool_type": kind}, required="one of max, avg, sum, lp")
    if given["global_pool"]:
        raise ArgumentError(
            "global pooling has no window of its own", given={"global_pool": True}, hint="kernel= the input's size"
        )
    names = {
        "kernel": given["kernel"],
        "stride": given["stride"] or 1,
        "padding": given["pad"] or 0,
        "pooling_convention": given["pooling_convention"],
    }
    if kind in ("avg", "sum"):
        names |= {"pool_type": kind, "count_include_pad": given["count_include_pad"] is not False}
    if kind == "lp":
        names["p"] = given["p_value"]
    return operation(TYPES[kind], len(given["kernel"]), names, given)


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        group = given["num_group"]
        names = {
            "kernel": given["kernel"] or None,
            "stride": given["stride"] or 1,
            "padding": given["pad"] or 0,
            "dilation": given["dilate"] or 1,
            "groups": group,
            "out_channels": given["num_filter"],
            "output_padding": given.get("adj") or None,
            "target_shape": given.get("target_shape") or None,
        }
        w = shape_of(given["weight"])
        if w is not None:
            inner = w[1] * group if op == "conv" else w[0]
            names |= {"kernel": w[2:], "in_channels": inner}
        return operation(op, None if names["kernel"] is None else len(names["kernel"]), names, given)

    return read


def _gluon(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = {"kernel": given["pool_size"], "stride": given["strides"], "padding": given["padding"]}
        names["pooling_convention"] = "full" if given["ceil_mode"] else "valid"
        names["count_include_pad"] = given.get("count_include_pad")
        return operation(op, rank, names, given)

    return read


REST = "workspace=1024, no_bias=False, cudnn_tune=None, cudnn_off=False, layout=None"
FORMS = [
    *forms(
        "Pooling",
        "data=None, kernel=(), pool_type='max', global_pool=False, cudnn_off=False, pooling_convention='valid', stride=(), "
        "pad=(), p_value=None, count_include_pad=None, layout=None",
        _pooling,
    ),
    *forms(
        "Convolution",
        f"data=None, weight=None, bias=None, kernel=(), stride=(), dilate=(), pad=(), num_filter=None, num_group=1, {REST}",
        _conv("conv"),
    ),
    *forms(
        "Deconvolution",
        "data=None, weight=None, bias=None, kernel=(), stride=(), dilate=(), pad=(), adj=(), target_shape=(), num_filter=None, "
        f"num_group=1, {REST}",
        _conv("conv_transpose"),
    ),
    *forms("MaxPool{}D", "pool_size=2, strides=None, padding=0, layout=None, ceil_mode=False", _gluon("max_pool")),
    *forms(
        "AvgPool{}D",
        "pool_size=2, strides=None, padding=0, layout=None, ceil_mode=False, count_include_pad=True",
        _gluon("avg_pool"),
    ),
]


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """The CPU has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The call, of x (and w and b) to y."""
    a = o.arguments
    padding = alike(a.get("padding", 0), rank)
    window = dict(
        kernel=_each(o.kernel, rank),
        stride=None if a.get("stride", 1) in (1, (1,) * rank) else _each(a["stride"], rank),
        pad=None if padding == 0 else _each(padding, rank),
    )
    if not o.weighted:
        kind = {"max_pool": "max", "lp_pool": "lp"}.get(o.op) or a.get("pool_type", "avg")
        return "y = " + written(
            "mx.nd.Pooling",
            Raw("x"),
            pool_type=kind,
            **window,
            pooling_convention=unless(a.get("pooling_convention", "valid"), "valid"),
            p_value=int(a["p"]) if "p" in a else None,
            count_include_pad=unless(a.get("count_include_pad", True), True),
        )
    extra = a.get("output_padding", 0)
    return "y = " + written(
        f"mx.nd.{'Convolution' if o.op == 'conv' else 'Deconvolution'}",
        Raw("x"),
        Raw("w"),
        Raw("b"),
        **window,
        dilate=None if a.get("dilation", 1) in (1, (1,) * rank) else _each(a["dilation"], rank),
        adj=None if extra in (0, (0,) * rank) else _each(extra, rank),
        num_filter=Raw("filters") if o.out_channels is None else o.out_channels,
        num_group=unless(a.get("groups", 1), 1),
        no_bias=None if o.op == "conv" else False,
    )


def _each(value: Any, rank: int) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,) * rank


MODES = {"mirror": "reflect", "clamp": "edge"}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """x with more around it; mx.nd.pad takes images and volumes only."""
    if len(pairs) == 1 or (isinstance(fill, str) and fill not in MODES):
        return None
    amounts = show((0, 0, 0, 0, *(amount for pair in pairs for amount in pair)))
    if isinstance(fill, str):
        return f'x = mx.nd.pad(x, mode="{MODES[fill]}", pad_width={amounts})'
    value = "0" if fill == 0 else "-np.inf" if fill == float("-inf") else "np.finfo(x.dtype).min"
    return f'x = mx.nd.pad(x, mode="constant", pad_width={amounts}, constant_value={value})'
