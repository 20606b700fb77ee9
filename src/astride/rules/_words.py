"""What the frameworks that pad by words share: "valid" and "same", and refusing what they lack."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import StridedAxis
from . import _sizes
from ._arguments import Pads, PerAxis, choice, pads

WORDS = ("valid", "same")


def word(padding: str) -> str:
    """ "valid" or "same", in small or capital letters."""
    return choice(padding.lower(), "padding", WORDS)


def words_only(padding: Any, because: str) -> str:
    """Refuse padding amounts other than none, which is "valid"."""
    if isinstance(padding, str):
        return word(padding)
    if any(value != 0 for value in flat(padding)):
        raise ArgumentError(
            'these rules pad by "valid" and "same" only', given={"padding": padding}, because=because, hint='padding="same"'
        )
    return "valid"


def flat(value: Any) -> list[Any]:
    """The numbers of nested sequences."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return [value]
    return [number for item in value for number in flat(item)]


def padded_axes(
    sizes: PerAxis, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, padding: Any, *, because: str
) -> tuple[StridedAxis, ...]:
    """VALID: ceil((n - K + 1) / s) windows; SAME: ceil(n / s); explicit: floor((n + pads - K) / s) + 1."""
    reaches = tuple(_sizes.reach(k, d) for k, d in zip(kernel, dilation, strict=True))
    both: Pads
    if isinstance(padding, str) and word(padding) == "same":
        found = tuple(_sizes.same(n, r, s) for n, r, s in zip(sizes, reaches, stride, strict=True))
        outs, both = tuple(out for out, _ in found), tuple(pair for _, pair in found)
    else:
        both = ((0, 0),) * len(sizes) if isinstance(padding, str) else pads(padding, len(sizes))
        outs = tuple(_sizes.floor(n, lo + hi, r, s) for n, (lo, hi), r, s in zip(sizes, both, reaches, stride, strict=True))
    return _sizes.strided_axes(sizes, kernel, stride, dilation, both, outs, because=because)
