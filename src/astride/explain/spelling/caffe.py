"""How Caffe writes these operators: the layers of pycaffe's NetSpec, in the fields of the prototxt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import ArgumentError
from .call import Word, Written, parsed
from .form import Choices, Given, Operation, Raw, alike, forms, operation, short, unless, written
from .statements import prototxt

NAMES = "L is caffe.layers, P caffe.params; arrays are blobs, x and y bottom and top"
GRADIENT = True
RANKS = {"max_pool": (2,), "avg_pool": (2,)}
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
CHOICES = {
    "max_pool": Choices(numbers="alike", flags={"round_mode": ("CEIL", "FLOOR")}),
    "avg_pool": Choices(numbers="alike", flags={"round_mode": ("CEIL", "FLOOR")}),
    "conv": Choices(numbers="alike"),
    "conv_transpose": Choices(numbers="alike"),
}
POOLS = {"MAX": "max_pool", "AVE": "avg_pool", 0: "max_pool", 1: "avg_pool"}


def read_pool(given: Given, rank: int | None) -> Operation:
    """A pooling layer's fields. Raises ArgumentError: neither MAX nor AVE, or the whole plane."""
    given = {**given, **(given["pooling_param"] or {})}
    kind = _word(given["pool"])
    if kind not in POOLS:
        raise ArgumentError("only MAX and AVE pooling can be told elsewhere", given={"pool": kind}, hint='pool="MAX"')
    if given["global_pooling"]:
        raise ArgumentError(
            "global pooling has no window of its own", given={"global_pooling": True}, hint="kernel_size= the input's size"
        )
    names = {
        "kernel": _field(given, "kernel", "kernel_size"),
        "stride": _field(given, "stride", "stride") or 1,
        "padding": _field(given, "pad", "pad") or 0,
        "round_mode": _word(given["round_mode"]),
    }
    return operation(POOLS[kind], 2, names, given)


def read_conv(op: str) -> Any:
    """The reader of a convolution's fields."""

    def read(given: Given, rank: int | None) -> Operation:
        given = {**given, **(given["convolution_param"] or {})}
        names = {
            "kernel": _field(given, "kernel", "kernel_size"),
            "stride": _field(given, "stride", "stride") or 1,
            "padding": _field(given, "pad", "pad") or 0,
            "dilation": given["dilation"] or 1,
            "groups": given["group"],
            "out_channels": given["num_output"],
        }
        kernel = names["kernel"]
        several = isinstance(kernel, tuple | list) and len(kernel) > 1
        return operation(op, len(kernel) if several else rank or 2, names, given)

    return read


def _field(given: Given, name: str, square: str) -> Any:
    """`kernel_size`, or `kernel_h` and `kernel_w`."""
    if given[f"{name}_h"] is not None or given[f"{name}_w"] is not None:
        return given[f"{name}_h"], given[f"{name}_w"]
    value = given[square]
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _word(value: Any) -> Any:
    """`MAX` of "MAX" and of P.Pooling.MAX; FLOOR of 1."""
    return value.last if isinstance(value, Word) else value


FIELDS = {
    "pool": "MAX", "kernel_size": None, "stride": None, "pad": None, "kernel_h": None, "kernel_w": None, "stride_h": None,
    "stride_w": None, "pad_h": None, "pad_w": None, "global_pooling": False, "round_mode": "CEIL",
}  # fmt: skip
"""A pooling layer's fields with their defaults, and a convolution's."""
CONVOLUTION_DEFAULTS = {**FIELDS, "num_output": None, "dilation": None, "group": 1}
SIDES = "kernel_h=None, kernel_w=None, stride_h=None, stride_w=None, pad_h=None, pad_w=None"
POOLING = (
    f"bottom=None, *, pool='MAX', kernel_size=None, stride=None, pad=None, {SIDES}, global_pooling=False, round_mode='CEIL', "
    "pooling_param=None, name=None"
)
CONVOLUTION = (
    f"bottom=None, *, num_output=None, kernel_size=None, stride=None, pad=None, {SIDES}, dilation=None, group=1, "
    "bias_term=True, weight_filler=None, bias_filler=None, param=None, convolution_param=None, name=None"
)
FORMS = [
    *forms("Pooling pooling", POOLING, read_pool),
    *forms("Convolution convolution", CONVOLUTION, read_conv("conv")),
    *forms("Deconvolution deconvolution", CONVOLUTION, read_conv("conv_transpose")),
]


def parse(text: str) -> Written:
    """A call of NetSpec's, or a prototxt's layer."""
    return prototxt(text) if text.lstrip().startswith("layer") else parsed(text)


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """Caffe has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The layer."""
    a = o.arguments
    pad = unless(alike(a.get("padding", 0), rank), 0)
    if not o.weighted:
        fields: dict[str, Any] = {"pool": Raw("P.Pooling.MAX" if o.op == "max_pool" else "P.Pooling.AVE")}
        fields |= _sides("kernel", "kernel_size", short(o.kernel))
        fields |= _sides("stride", "stride", unless(short(a.get("stride", o.kernel)), 1))
        fields |= _sides("pad", "pad", pad)
        if a.get("round_mode", "CEIL") == "FLOOR":
            fields["round_mode"] = Raw("P.Pooling.FLOOR")
        return "y = " + written("L.Pooling", Raw("x"), **fields)
    fields = {
        "num_output": Raw("filters") if o.out_channels is None else o.out_channels,
        "kernel_size": _listed(short(o.kernel) if rank == 2 else o.kernel),
        "stride": _listed(unless(short(a.get("stride", 1)), 1)),
        "pad": _listed(pad),
        "dilation": _listed(unless(short(a.get("dilation", 1)), 1)),
        "group": unless(a.get("groups", 1), 1),
    }
    if o.op == "conv":
        return "y = " + written("L.Convolution", Raw("x"), **fields)
    return "y = " + written("L.Deconvolution", Raw("x"), convolution_param=Raw(written("dict", **fields)))


def _sides(name: str, square: str, value: Any) -> dict[str, Any]:
    return {f"{name}_h": value[0], f"{name}_w": value[1]} if isinstance(value, tuple) else {square: value}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """Caffe has no layer that pads."""
    return None


def scale(factors: str) -> str | None:
    """A Power layer, where one number serves all places."""
    return None if "[" in factors else f"y = L.Power(y, scale={factors.strip('()')})"
