"""How OpenCV's DNN module is told of these operators: layers of a Caffe prototxt, with its own field for the rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import caffe
from .call import Written, parsed
from .form import Choices, Given, Operation, alike, forms, short, unless
from .statements import prototxt

NAMES = "layers of a prototxt for cv2.dnn.readNetFromCaffe"
GRADIENT = False
RANKS = caffe.RANKS
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
CHOICES = {
    "max_pool": Choices(numbers="alike", flags={"ceil_mode": (True, False)}),
    "avg_pool": Choices(numbers="alike", flags={"ceil_mode": (True, False)}),
    "conv": Choices(numbers="alike"),
    "conv_transpose": Choices(numbers="alike"),
}
OWN = {"max_pool": "MAX", "avg_pool": "AVE"}


def _pool(given: Given, rank: int | None) -> Operation:
    said = dict(given["pooling_param"] or {})
    ceil = said.pop("ceil_mode", True)
    found = caffe.read_pool({**caffe.FIELDS, "pooling_param": said}, rank)
    arguments = {name: value for name, value in found.arguments.items() if name != "round_mode"} | {"ceil_mode": ceil}
    return Operation(found.op, found.rank, found.kernel, arguments)


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        said = dict(given["convolution_param"] or {})
        if said.get("num_output") == "filters":
            del said["num_output"]
        found: Operation = caffe.read_conv(op)({**caffe.CONVOLUTION_DEFAULTS, "convolution_param": said}, rank)
        return found

    return read


FORMS = [
    *forms("Pooling", "bottom=None, *, pooling_param=None", _pool),
    *forms("Convolution", "bottom=None, *, convolution_param=None", _conv("conv")),
    *forms("Deconvolution", "bottom=None, *, convolution_param=None", _conv("conv_transpose")),
]


def parse(text: str) -> Written:
    """A prototxt's layer; a call of NetSpec's is one as well."""
    return prototxt(text) if text.lstrip().startswith("layer") else parsed(text)


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """OpenCV has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The layer."""
    a = o.arguments
    pad = unless(alike(a.get("padding", 0), rank), 0)
    if not o.weighted:
        fields = [("pool", OWN[o.op]), *_sides("kernel", "kernel_size", short(o.kernel))]
        fields += _sides("stride", "stride", unless(short(a.get("stride", o.kernel)), 1))
        fields += [*_sides("pad", "pad", pad), ("ceil_mode", None if a.get("ceil_mode", True) else "false")]
        return _layer("Pooling", "pooling_param", fields)
    stride, dilation = unless(short(a.get("stride", 1)), 1), unless(short(a.get("dilation", 1)), 1)
    fields = [("num_output", "filters" if o.out_channels is None else o.out_channels)]
    for name, value in (
        ("kernel_size", short(o.kernel) if rank == 2 else o.kernel),
        ("stride", stride),
        ("pad", pad),
        ("dilation", dilation),
    ):
        fields += [(name, each) for each in (value if isinstance(value, tuple) else (value,))]
    fields.append(("group", unless(a.get("groups", 1), 1)))
    return _layer("Convolution" if o.op == "conv" else "Deconvolution", "convolution_param", fields)


def _sides(name: str, square: str, value: Any) -> list[tuple[str, Any]]:
    return [(f"{name}_h", value[0]), (f"{name}_w", value[1])] if isinstance(value, tuple) else [(square, value)]


def _layer(kind: str, param: str, fields: list[tuple[str, Any]]) -> str:
    said = " ".join(f"{name}: {value}" for name, value in fields if value is not None)
    return f'layer {{ name: "y" type: "{kind}" bottom: "x" top: "y" {param} {{ {said} }} }}'


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """Caffe files have no layer that pads."""
    return None


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str | None:
    """Caffe's Crop layer, which needs a blob of the size that is left: see wording.py."""
    return None


def scale(factors: str) -> str | None:
    """Caffe's Power layer, where one number serves all places."""
    if "[" in factors:
        return None
    above, _, below = factors.strip("()").partition("/")
    number = f"{float(above) / float(below or 1):.9g}"
    return f'layer {{ name: "z" type: "Power" bottom: "y" top: "z" power_param {{ scale: {number} }} }}'
