"""How DarkNet writes these operators: sections of its .cfg files, one setting a line (or all in one, when they are read)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...errors import ArgumentError
from .call import Word, Written
from .form import Choices, Given, Operation, alike, forms, operation, short
from .statements import pairs, short_enough

NAMES = "sections of a .cfg file"
GRADIENT = True
WEIGHTS = {"conv": "OI*", "conv_transpose": "IO*"}
CHOICES = {"max_pool": Choices(numbers="total"), "conv": Choices(numbers="alike")}
RANKS = dict.fromkeys(CHOICES, (2,))
LACKS = {"avg_pool": "darknet's [avgpool] averages whole planes alone"}


def _pool(given: Given, rank: int | None) -> Operation:
    size = given["stride"] if given["size"] is None else given["size"]
    total = size - 1 if given["padding"] is None else given["padding"]
    return operation("max_pool", 2, {"kernel": size, "stride": given["stride"], "padding": total}, given)


def _conv(given: Given, rank: int | None) -> Operation:
    around = given["size"] // 2 if given["pad"] else given["padding"]
    names = {"kernel": given["size"], "stride": given["stride"], "padding": around, "groups": given["groups"]}
    return operation(
        "conv", 2, names | {"out_channels": Word("filters") if given["filters"] == "filters" else given["filters"]}, given
    )


FORMS = [
    *forms("maxpool max", "size=None, stride=1, padding=None", _pool),
    *forms(
        "convolutional conv",
        "filters=1, size=1, stride=1, pad=0, padding=0, groups=1, activation='logistic', batch_normalize=0, flipped=0, "
        "binary=0, xnor=0",
        _conv,
    ),
]


def parse(text: str) -> Written:
    """One section: its name in brackets, then its settings. Raises ArgumentError: something else."""
    match = re.fullmatch(r"\s*\[(\w+)\]((?:.|\n)*)", short_enough(text))
    if match is None:
        raise ArgumentError("this is not a section of a .cfg file", given={"call": text}, hint="[maxpool] size=3 stride=2")
    settings = re.sub(r"\s*=\s*", "=", match.group(2))
    return Written(text.strip(), match.group(1), (), pairs(settings, r"\s+"))


def layout(op: str, arguments: Mapping[str, Any]) -> str:
    """DarkNet has one."""
    return "channels_first"


def write(o: Operation, rank: int) -> str | None:
    """The section; None where the axes have sizes, strides or paddings of their own, which are one number there."""
    a = o.arguments
    size, stride = short(o.kernel), short(a.get("stride", 1 if o.weighted else o.kernel))
    around = short(a["padding"]) if o.op == "max_pool" and "padding" in a else alike(a.get("padding", 0), rank)
    if not all(isinstance(value, int) for value in (size, stride, around)):
        return None
    if o.op == "max_pool":
        return "\n".join(["[maxpool]", f"size={size}", f"stride={stride}", f"padding={around}"])
    filters = "filters" if o.out_channels is None else o.out_channels
    settings = {"filters": filters, "size": size, "stride": stride, "padding": around, "groups": a.get("groups", 1)}
    kept = [f"{name}={value}" for name, value in settings.items() if name != "groups" or value != 1]
    return "\n".join(["[convolutional]", *kept, "activation=linear"])


def pad(pairs: tuple[tuple[int, int], ...], fill: float | str, place: str) -> str | None:
    """DarkNet has no layer that pads."""
    return None


def crop(begin: tuple[int, ...], end: tuple[int | None, ...]) -> str | None:
    """[crop] cuts images at random places: nothing of use here."""
    return None
