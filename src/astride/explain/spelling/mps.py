"""How Metal Performance Shaders writes these operators: MPSCNN classes in Swift, and the properties that are set on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .call import Word, Written
from .form import Choices, Given, Operation, forms, operation, short
from .statements import swift

NAMES = "MetalPerformanceShaders in Swift; k is encoded from x to y"
GRADIENT = True
WEIGHTS = {"conv": "O*I", "conv_transpose": "O*I"}
_PLACE = {"offset": ("source",), "size": ("source",)}
CHOICES = {
    "max_pool": Choices(numbers="placed", flags={"edge": ("zero", "clamp"), **_PLACE}),
    "avg_pool": Choices(numbers="placed", flags={"edge": ("zero", "clamp"), **_PLACE}),
    "lp_pool": Choices(numbers="placed", flags={"edge": ("zero", "clamp"), **_PLACE}),
    "conv": Choices(numbers="placed", flags={"edge": ("zero", "clamp"), **_PLACE}),
    "conv_transpose": Choices(numbers="placed", flags={"kernel_offset": ("source",), "size": ("source",)}),
}
RANKS = dict.fromkeys(CHOICES, (2,))
METHODS = {"sizeSame": "same", "sizeValidOnly": "valid", "sizeFull": "full"}

POLICIES = {
    "addRemainderToBottomRight": {"remainder": "bottom_right"},
    "alignTopLeft": {"align": "top_left"},
    "alignBottomRight": {"align": "bottom_right"},
}


def _common(given: Given) -> dict[str, Any]:
    """`offset` and `size` in the order of the axes; a padding method's words."""
    found: dict[str, Any] = {"stride": (given["strideInPixelsY"] or 1, given["strideInPixelsX"] or 1)}
    offset, size, mode = given["offset"], given["size"], given["edgeMode"]
    found["offset"] = None if offset is None else (offset["y"], offset["x"])
    found["size"] = None if size is None else (size["height"], size["width"])
    found["edge"] = None if mode is None else _word(mode)
    method = given["padding"]
    if method is not None:
        words = method["method"] if isinstance(method, dict) else method
        names = [_word(word) for word in (words if isinstance(words, tuple | list) else (words,))]
        for name in names:
            found |= {"padding": METHODS[name]} if name in METHODS else POLICIES.get(name, {})
    return found


def _word(value: Any) -> str:
    return value.last if isinstance(value, Word) else str(value)


def _pool(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _common(given) | {"kernel": (given["kernelHeight"], given["kernelWidth"])}
        rates = given.get("dilationRateY"), given.get("dilationRateX")
        names["dilation"] = None if rates == (None, None) else rates
        return operation(op, 2, names | ({"p": 2.0} if op == "lp_pool" else {}), given, channels_last=True)

    return read


def _conv(op: str) -> Any:
    def read(given: Given, rank: int | None) -> Operation:
        names = _common(given) | {"kernel": (given["kernelHeight"], given["kernelWidth"]), "groups": given["groups"]}
        names |= {"in_channels": given["inputFeatureChannels"], "out_channels": given["outputFeatureChannels"]}
        if op == "conv":
            names["dilation"] = (given["dilationRateY"] or 1, given["dilationRateX"] or 1)
        else:
            names |= {"offset": names["offset"] or 0, "edge": None}
            names["kernel_offset"] = (given["kernelOffsetY"] or 0, given["kernelOffsetX"] or 0)
        return operation(op, 2, names, given, channels_last=True)

    return read


STEPS = "strideInPixelsX=None, strideInPixelsY=None, offset=None, size=None, edgeMode=None, padding=None"
POOL = f"*, kernelWidth, kernelHeight, {STEPS}, device=None"
FILTER = (
    f"*, kernelWidth, kernelHeight, inputFeatureChannels=None, outputFeatureChannels=None, {STEPS}, groups=1, "
    "dilationRateX=None, dilationRateY=None, kernelOffsetX=None, kernelOffsetY=None"
)
FORMS = [
    *forms("MPSCNNPoolingMax", POOL, _pool("max_pool")),
    *forms("MPSCNNDilatedPoolingMax", f"{POOL}, dilationRateX=1, dilationRateY=1", _pool("max_pool")),
    *forms("MPSCNNPoolingAverage", f"{POOL}, zeroPadSizeX=0, zeroPadSizeY=0", _pool("avg_pool")),
    *forms("MPSCNNPoolingL2Norm", POOL, _pool("lp_pool")),
    *forms("MPSCNNConvolution", FILTER, _conv("conv")),
    *forms("MPSCNNConvolutionTranspose", FILTER, _conv("conv_transpose")),
]
CLASSES = {
    "max_pool": "MPSCNNPoolingMax",
    "avg_pool": "MPSCNNPoolingAverage",
    "lp_pool": "MPSCNNPoolingL2Norm",
    "conv": "MPSCNNConvolution",
    "conv_transpose": "MPSCNNConvolutionTranspose",
}


def parse(text: str) -> Written:
    """Swift's statements."""
    return swift(text)


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """Images hold their channels last."""
    return "channels_last"


def write(o: Operation, rank: int) -> str:
    """The class made, and where its windows lie."""
    a = o.arguments
    (kh, kw), (sh, sw) = _each(o.kernel), _each(a.get("stride", 1 if o.weighted else o.kernel))
    dh, dw = _each(a.get("dilation", 1))
    steps = f"strideInPixelsX: {sw}, strideInPixelsY: {sh}"
    if not o.weighted:
        name, rates = CLASSES[o.op], ""
        if (dh, dw) != (1, 1):
            name, rates = "MPSCNNDilatedPoolingMax", f", dilationRateX: {dw}, dilationRateY: {dh}"
        lines = [f"let k = {name}(device: device, kernelWidth: {kw}, kernelHeight: {kh}{rates}, {steps})"]
    else:
        channels = "inputFeatureChannels: {}, outputFeatureChannels: {}".format(
            *("n" if n is None else n for n in (o.in_channels, o.out_channels))
        )
        lines = [f"let d = MPSCNNConvolutionDescriptor(kernelWidth: {kw}, kernelHeight: {kh}, {channels})"]
        said = {"strideInPixelsX": (sw, 1), "strideInPixelsY": (sh, 1), "groups": (a.get("groups", 1), 1)}
        said |= {"dilationRateX": (dw, 1), "dilationRateY": (dh, 1)} if o.op == "conv" else {}
        lines += [f"d.{name} = {value}" for name, (value, usual) in said.items() if value != usual]
        lines.append(f"let k = {CLASSES[o.op]}(device: device, weights: w)")
    if a.get("edge", "zero") != "zero":
        lines.append(f"k.edgeMode = .{a['edge']}")
    return "\n".join([*lines, *_place(a, o.op)])


def _place(a: Mapping[str, Any], op: str) -> list[str]:
    """Where the first window lies, and how many there are; or the padding method that says so."""
    lines = []
    if a.get("offset") is not None and not (op == "conv_transpose" and short(a["offset"]) == 0):
        y, x = _each(a["offset"])
        lines.append(f"k.offset = MPSOffset(x: {x}, y: {y}, z: 0)")
    if a.get("kernel_offset") is not None:
        y, x = _each(a["kernel_offset"])
        lines += [f"k.kernelOffsetX = {x}", f"k.kernelOffsetY = {y}"]
    if a.get("size") is not None:
        height, width = _each(a["size"])
        lines.append(f"k.clipRect.size = MTLSize(width: {width}, height: {height}, depth: 1)")
    return lines or [f"k.padding = MPSNNDefaultPadding(method: [{', '.join(_method(a))}])"]


def _method(a: Mapping[str, Any]) -> list[str]:
    words = [f".{name}" for name, word in METHODS.items() if word == a.get("padding", "same")]
    words += {"top_left": [".alignTopLeft"], "bottom_right": [".alignBottomRight"]}.get(str(a.get("align")), [])
    return [*words, ".addRemainderToBottomRight"] if a.get("remainder") == "bottom_right" else words


def _each(value: Any) -> tuple[int, int]:
    return (value[0], value[1]) if isinstance(value, tuple | list) else (value, value)


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """The windows' places pad and crop."""
    return None


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str | None:
    """As padding."""
    return None


def scale(factors: str) -> str | None:
    """A linear neuron on y, where one number serves all places."""
    if "[" in factors:
        return None
    return f"let s = MPSCNNNeuron(device: device, neuronDescriptor: .cnnNeuronDescriptor(with: .linear, a: {factors}, b: 0))"
