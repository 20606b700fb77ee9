"""The explicit rules' sizes and pads, any rounding, any clip, any padding; and the tie that goes with a NaN."""

from __future__ import annotations

from typing import Any

from ..plan import Shape, StridedAxis
from ..plan.kinds import Layout, Nan
from . import _sizes
from ._arguments import Pads, PerAxis, choice, pads, per_axis, spatial

WORDS = ("valid", "same", "same_lower", "causal")


def tie_of(nan: str) -> str:
    """The tie rule that goes with what a NaN does."""
    return "first_nan" if nan == Nan.PROPAGATED else "first"


def windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, rounding: str, clip: str
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    outs, both = outs_of(sizes, k, s, d, padding, rounding, clip)
    return place, _sizes.strided_axes(sizes, k, s, d, both, outs)


def outs_of(
    sizes: PerAxis, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, padding: Any, rounding: str, clip: str
) -> tuple[PerAxis, Pads]:
    """Output sizes and pads of every axis."""
    choice(rounding, "rounding", ("floor", "ceil"))
    choice(clip, "clip", ("never", "padded", "always"))
    rank = len(sizes)
    reaches = tuple(_sizes.reach(k, d) for k, d in zip(kernel, dilation, strict=True))
    word = choice(padding, "padding", WORDS) if isinstance(padding, str) else None
    if word in ("same", "same_lower"):
        solved = [_sizes.same(n, k, s, extra_at_end=word == "same") for n, k, s in zip(sizes, reaches, stride, strict=True)]
        return tuple(out for out, _ in solved), tuple(pair for _, pair in solved)
    if word == "causal":
        return tuple(-(-n // s) for n, s in zip(sizes, stride, strict=True)), tuple((k - 1, 0) for k in reaches)
    both = pads(0 if word == "valid" else padding, rank, minimum=None)
    size = _sizes.floor if rounding == "floor" else _sizes.ceil
    outs = [size(n, lo + hi, k, s) for n, (lo, hi), k, s in zip(sizes, both, reaches, stride, strict=True)]
    if rounding == "ceil" and (clip == "always" or (clip == "padded" and any(lo or hi for lo, hi in both))):
        outs = [_sizes.clipped(out, n, lo, s) for out, n, (lo, _), s in zip(outs, sizes, both, stride, strict=True)]
    return tuple(outs), both
