"""What ONNX's text and ONNX Runtime share: since which opset an operator has an attribute or a type, and how auto_pad,
ceil_mode and output_shape become sizes and pads.

Source: onnx 1.23.2, onnx/defs/nn/defs.cc and old.cc.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import Shape, StridedAxis
from ..plan.kinds import Layout
from . import _sizes
from ._arguments import Pads, PerAxis, choice, on_axis, pads, per_axis, require_dtype, spatial, whole

TEXT = "onnx 1.23.2, onnx/defs/nn/defs.cc"
AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
NEWEST = 28
"""The last opset of onnx 1.23.2."""
FIRST_OPSET = {"MaxUnpool": 9, "ConvInteger": 10, "QLinearConv": 10, "DeformConv": 19}
"""Operators that opset 1 lacks."""
SINCE: dict[str, dict[str, int]] = {
    "MaxPool": {"storage_order": 8, "Indices": 8, "ceil_mode": 10, "dilations": 10, "int8": 12, "uint8": 12, "bfloat16": 22},
    "AveragePool": {"count_include_pad": 7, "ceil_mode": 10, "dilations": 19, "bfloat16": 22},
    "LpPool": {"ceil_mode": 18, "dilations": 18, "bfloat16": 22},
    "MaxUnpool": {"bfloat16": 22},
    "Conv": {"bfloat16": 22},
    "ConvTranspose": {"bfloat16": 22},
    "DeformConv": {"bfloat16": 22},
    "GlobalMaxPool": {"bfloat16": 22},
    "GlobalAveragePool": {"bfloat16": 22},
    "GlobalLpPool": {"bfloat16": 22},
}
"""operator -> attribute, output or type -> the first opset that has it."""
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def opset_of(opset: Any) -> int:
    """The default domain's version. Raises ArgumentError: no whole number, or one that no release of onnx had."""
    if whole(opset, "opset", 1) > NEWEST:
        raise ArgumentError(
            "this opset is newer than the operators known here",
            given={"opset": opset},
            required=f"1 <= opset <= {NEWEST}: {opset}",
            because=f"onnx 1.23.2 defines opsets up to {NEWEST}; a later one may change what an operator does",
            hint=f"opset={NEWEST}",
        )
    return whole(opset, "opset")


def require_opset(operator: str, opset: int, dtype: str, allowed: frozenset[str], **used: bool) -> str:
    """The dtype, if this opset's operator has it and every attribute in `used` that is set to more than its default."""
    opset_of(opset)
    first = FIRST_OPSET.get(operator, 1)
    _since(operator, "operator", opset, first)
    require_dtype(dtype, allowed, TEXT)
    for name, since in SINCE.get(operator, {}).items():
        if used.get(name, False) or name == dtype:
            _since(operator, name, opset, since)
    return dtype


def _since(operator: str, name: str, opset: int, since: int) -> None:
    if opset < since:
        raise ArgumentError(
            f"this opset has no {operator}" if name == "operator" else f"{operator} has no {name} in this opset",
            given={"opset": opset},
            required=f"opset >= {since}: {opset}",
            because="onnx 1.23.2, onnx/defs/nn/old.cc",
            hint=f"opset={since}",
        )


def windows(
    shape: Shape,
    layout: str,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: Any,
    *,
    because: str = TEXT,
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """Layout and axes of a pooling operator by the text. `padding` may be auto_pad's word; only explicit pads heed
    ceil_mode, which drops a last window that starts behind the input."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    reaches = tuple(_sizes.reach(ki, di) for ki, di in zip(k, d, strict=True))
    word, both = auto_pads(padding, sizes, reaches, s)
    ups = flag(ceil_mode, "ceil_mode") and word == "NOTSET"
    size = _sizes.ceil if ups else _sizes.floor
    if word.startswith("SAME"):
        outs = tuple(-(-n // si) for n, si in zip(sizes, s, strict=True))
    else:
        outs = tuple(size(n, lo + hi, r, si) for n, (lo, hi), r, si in zip(sizes, both, reaches, s, strict=True))
    if ups:
        outs = tuple(_sizes.clipped(out, n, lo, si) for out, n, (lo, _), si in zip(outs, sizes, both, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, d, both, outs, because=because)


def auto_pads(padding: Any, sizes: PerAxis, reaches: PerAxis, stride: PerAxis) -> tuple[str, Pads]:
    """(auto_pad, pads) of `padding`: an int, one per axis, (begin, end) pairs (NOTSET), or auto_pad's word."""
    rank = len(sizes)
    if not isinstance(padding, str):
        return "NOTSET", pads(padding, rank, minimum=None)
    word = choice(padding, "padding", AUTO_PADS)
    if not word.startswith("SAME"):
        return word, ((0, 0),) * rank
    upper = word == "SAME_UPPER"
    return word, tuple(_sizes.same(n, r, s, extra_at_end=upper)[1] for n, r, s in zip(sizes, reaches, stride, strict=True))


def transposed_axes(
    sizes: PerAxis,
    kernel: PerAxis,
    stride: PerAxis,
    dilation: PerAxis,
    padding: Any,
    output_padding: Any,
    output_shape: Any,
    *,
    same_stretches: bool = True,
) -> tuple[StridedAxis, ...]:
    """Axes of the convolution whose adjoint ConvTranspose is. Explicit pads give s*(n-1) + output_padding + K - pads.
    `output_shape`, or SAME's n*s, decides the total crop, whose odd pixel is at the end for SAME_UPPER and at the start
    otherwise (an unset auto_pad too); an output that is longer than the scatter ends in zeros (ONNX Runtime, run), which
    without `same_stretches` SAME's is not."""
    rank = len(sizes)
    extra = per_axis(output_padding, rank, "output_padding", 0)
    word = padding if isinstance(padding, str) else "NOTSET"
    choice(word, "padding", AUTO_PADS)
    wanted: PerAxis | None = None
    if output_shape is not None:
        wanted = per_axis(output_shape, rank, "output_shape")
    elif word.startswith("SAME"):
        fulls = tuple((n - 1) * s + _sizes.reach(k, d) for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True))
        wanted = tuple(
            n * s if same_stretches else min(n * s, full + more)
            for n, s, full, more in zip(sizes, stride, fulls, extra, strict=True)
        )
    if wanted is None:
        both = ((0, 0),) * rank if isinstance(padding, str) else pads(padding, rank, minimum=None)
        return _sizes.transposed_axes(sizes, kernel, stride, dilation, both, extra, because=TEXT)
    solved = []
    for n, k, s, d, more, length in zip(sizes, kernel, stride, dilation, extra, wanted, strict=True):
        full = (n - 1) * s + _sizes.reach(k, d)
        crop = max(full + more - length, 0)
        before = crop // 2 if word == "SAME_UPPER" else crop - crop // 2
        solved.append((before, full - before - length))
    return _sizes.transposed_axes(sizes, kernel, stride, dilation, tuple(solved), (0,) * rank, because=TEXT)


def flag(value: Any, name: str) -> bool:
    """ONNX's ints for true and false."""
    if value not in (0, 1):
        raise ArgumentError(f"{name} is 0 or 1", given={name: value}, required=f"{name} in (0, 1)", hint=f"{name}=1")
    return bool(value)


def norm_order(p: Any, opset: int) -> float:
    """LpPool's p: any positive number in opset 1, a whole one after."""
    if opset > 1 and not (isinstance(p, int | float) and float(p).is_integer() and p >= 1):
        raise ArgumentError(
            "p is a whole number from opset 2 on",
            given={"p": p, "opset": opset},
            required=f"p in 1, 2, 3, ...: {p}",
            because=TEXT,
            hint="p=2, or opset=1",
        )
    return float(p)


def pads_below_kernel(both: Pads, kernel: PerAxis, because: str) -> None:
    """ONNX Runtime's check when a pooling node is loaded; the text has none."""
    for i, ((lo, hi), k) in enumerate(zip(both, kernel, strict=True)):
        if max(lo, hi) >= k:
            raise ArgumentError(
                "a pad is not smaller than the kernel",
                given={"padding": both, "kernel": kernel},
                required=f"{on_axis('pad < kernel', i, len(kernel))}: {max(lo, hi)} < {k}",
                because=because,
                hint=f'padding={k - 1}, or rules="onnx"',
            )
