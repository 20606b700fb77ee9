"""How ncnn writes these operators: lines of a .param file, whose settings have numbers for names (developer guide, operators)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...errors import ArgumentError
from .call import Word, Written
from .form import Choices, Given, Operation, forms, operation, pairs_of
from .statements import pairs, short_enough

NAMES = "lines of a .param file"
GRADIENT = False
WEIGHTS = {"conv": "OI*", "conv_transpose": "OI*"}
_WORDS = ("SAME_UPPER", "SAME_LOWER")
CHOICES = {
    "max_pool": Choices(numbers="pairs", flags={"pad_mode": (1, 0, 2, 3)}),
    "avg_pool": Choices(numbers="pairs", flags={"pad_mode": (1, 0, 2, 3), "avgpool_count_include_pad": (0, 1)}),
    "conv": Choices(words=_WORDS, numbers="pairs"),
    "conv_transpose": Choices(numbers="pairs", flags={"output_padding": ("source",)}),
}
# Settings in the order of the axes: width, height, depth. What is not said is the width's.
KERNEL = (1, 11, 21)
POOLING = {"stride": (2, 12, 22), "begin": (3, 13, 23), "end": (14, 15, 16)}
FILTER = {"dilation": (2, 12, 22), "stride": (3, 13, 23), "begin": (4, 14, 24), "end": (15, 16, 17)}
OUTPUT_PADDING = (18, 19, 20)
LOWEST = -3.402823466e38
SAME = {-233: "SAME_UPPER", -234: "SAME_LOWER"}
KINDS = {"Pooling": "pool", "Convolution": "conv", "Deconvolution": "conv_transpose"}


def _pool(rank: int) -> Any:
    def read(given: Given, _: int | None) -> Operation:
        said = given["settings"]
        if said.get(4) or said.get(7):
            raise ArgumentError("global and adaptive pooling have no window of their own", given={"settings": said})
        names = _window(said, rank, POOLING) | {"pad_mode": said.get(5, 0)}
        if said.get(0, 0) == 1:
            names["avgpool_count_include_pad"] = said.get(6, 0)
        return operation("avg_pool" if said.get(0, 0) == 1 else "max_pool", rank, names, {})

    return read


def _conv(op: str, rank: int) -> Any:
    def read(given: Given, _: int | None) -> Operation:
        said = given["settings"]
        names = _window(said, rank, FILTER) | {"dilation": _axes(said, FILTER["dilation"], rank, 1)}
        if said.get(FILTER["begin"][0]) in SAME:
            names["padding"] = SAME[said[FILTER["begin"][0]]]
        names |= {"groups": said.get(7, 1), "out_channels": Word("filters") if said.get(0) == "filters" else said.get(0)}
        if op == "conv_transpose":
            names["output_padding"] = _axes(said, OUTPUT_PADDING, rank, 0)
        return operation(op, rank, names, {})

    return read


def _window(said: dict[int, Any], rank: int, ids: dict[str, tuple[int, int, int]]) -> dict[str, Any]:
    if KERNEL[0] not in said:
        raise ArgumentError("the kernel is not given", given={"settings": said}, hint="1=3")
    begin = _axes(said, ids["begin"], rank, 0)
    end = tuple(said.get(ids["end"][rank - 1 - a], begin[a]) for a in range(rank))
    stride, kernel = _axes(said, ids["stride"], rank, 1), _axes(said, KERNEL, rank, 1)
    return {"kernel": kernel, "stride": stride, "padding": tuple(zip(begin, end))}


def _axes(said: dict[int, Any], ids: tuple[int, int, int], rank: int, usual: int) -> tuple[int, ...]:
    """Depth, height, width of settings that default to the width's."""
    width = said.get(ids[0], usual)
    return tuple(said.get(i, width) for i in reversed(ids[:rank]))


FORMS = [
    form
    for rank, ending in ((1, "1D"), (2, ""), (3, "3D"))
    for form in (
        *forms(f"Pooling{ending}", "settings", _pool(rank)),
        *forms(f"Convolution{ending} ConvolutionDepthWise{ending}", "settings", _conv("conv", rank)),
        *forms(f"Deconvolution{ending} DeconvolutionDepthWise{ending}", "settings", _conv("conv_transpose", rank)),
    )
]


def parse(text: str) -> Written:
    """`Pooling name 1 1 x y 0=0 1=3`; the names may be left out. Raises ArgumentError: something else."""
    words = short_enough(text).split()
    settings = " ".join(word for word in words[1:] if "=" in word)
    if not words or not re.fullmatch(r"[A-Za-z]\w*", words[0]) or not re.fullmatch(r"(-?\d+=\S+ ?)*", settings):
        raise ArgumentError("this is not a line of a .param file", given={"call": text}, hint="Pooling pool 1 1 x y 0=0 1=3 2=2")
    numbered = {int(name): value for name, value in pairs(settings, r"\s+").items()}
    return Written(text.strip(), words[0], (), {"settings": numbered})


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """ncnn has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str:
    """The layer, with the settings that are not the usual."""
    a, ending = o.arguments, {1: "1D", 2: "", 3: "3D"}[rank]
    padding = a.get("padding", 0)
    both = ((0, 0),) * rank if isinstance(padding, str) else pairs_of(padding, rank)
    ids = FILTER if o.weighted else POOLING
    said: dict[int, Any] = {}
    _set(said, KERNEL, _each(o.kernel, rank))
    _set(said, ids["stride"], _each(a.get("stride", 1 if o.weighted else o.kernel), rank))
    _set(said, ids["begin"], tuple(lo for lo, _ in both))
    for (lo, hi), i in zip(reversed(both), ids["end"]):
        if hi != lo:
            said[i] = hi
    if not o.weighted:
        said |= {0: 0 if o.op == "max_pool" else 1, 5: a.get("pad_mode", 0), 6: a.get("avgpool_count_include_pad", 0)}
        kept = {i: value for i, value in sorted(said.items()) if value or i not in (3, 5, 6)}
        return f"Pooling{ending} pool 1 1 x y {_settings(kept)}"
    _set(said, FILTER["dilation"], _each(a.get("dilation", 1), rank))
    if isinstance(padding, str):
        said[FILTER["begin"][0]] = next(code for code, word in SAME.items() if word == padding)
    if a.get("output_padding"):
        for more, i in zip(reversed(_each(a["output_padding"], rank)), OUTPUT_PADDING):
            said[i] = more
    said |= {0: "filters" if o.out_channels is None else o.out_channels, 5: 1, 7: a.get("groups", 1)}
    usual = dict.fromkeys((*FILTER["dilation"], *FILTER["stride"], 7), 1) | dict.fromkeys((*FILTER["begin"][:1],), 0)
    first = {i[0] for i in FILTER.values()}
    kept = {i: v for i, v in sorted(said.items()) if not (i in usual and v == usual[i] and (i in first or i == 7))}
    name = f"{'Convolution' if o.op == 'conv' else 'Deconvolution'}{'DepthWise' if a.get('groups', 1) > 1 else ''}{ending}"
    return f"{name} conv 1 1 x y {_settings(kept)}"


def _set(said: dict[int, Any], ids: tuple[int, int, int], values: tuple[int, ...]) -> None:
    """The width's, and those of other axes that differ from it."""
    width = values[-1]
    said[ids[0]] = width
    said |= {i: value for i, value in zip(ids[1:], reversed(values[:-1])) if value != width}


def _settings(said: Mapping[int, Any]) -> str:
    return " ".join(f"{i}={value}" for i, value in said.items())


def _each(value: Any, rank: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * rank


MODES = {"mirror": 2, "clamp": 1}


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """A Padding layer before it: top, bottom, left, right, front, behind."""
    ids = [(2, 3), (0, 1), (7, 8)]
    said = {i: amount for both, two in zip(reversed(pairs), ids) for i, amount in zip(two, both) if amount}
    if isinstance(fill, str):
        return None if fill not in MODES else f"Padding pad 1 1 x x {_settings(dict(sorted(said.items())) | {4: MODES[fill]})}"
    if fill == float("-inf"):
        return None  # no number of a .param file
    value = {} if fill == 0 else {5: LOWEST if fill < 0 else -LOWEST}
    return f"Padding pad 1 1 x x {_settings(dict(sorted((said | value).items())))}"


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str | None:
    """A Crop layer behind it, along the axes of a plane behind the channels."""
    ends = [2147483647 if e is None else e for e in end]
    kept = f"-23309={len(begin)},{','.join(map(str, begin))} -23310={len(ends)},{','.join(map(str, ends))}"
    return f"Crop crop 1 1 y y {kept} -23311={len(begin)},{','.join(str(i + 1) for i in range(len(begin)))}"


def scale(factors: str) -> str | None:
    """A product with one number; none with one for each place."""
    if "[" in factors:
        return None
    above, _, below = factors.strip("()").partition("/")
    return f"BinaryOp scale 1 1 y y 0=2 1=1 2={float(above) / float(below or 1):.9g}"
