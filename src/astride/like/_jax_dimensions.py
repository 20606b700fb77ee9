"""JAX's dimensions: windows along any axes of an array, and layouts spelled out axis by axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..rules._arguments import row, whole
from ..rules._sizes import reach, same
from ._views import moved

CONV = "JAX 0.10, jax/_src/lax/convolution.py"
WINDOWS = "JAX 0.10, jax/_src/lax/windowed_reductions.py"
Pads = tuple[tuple[int, int], ...]
Spec = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """The axes that windows lie along and what they are there. `layout` where those axes are a layout's spatial ones.

    `differentiable` is whether JAX has a gradient of their maximum: nothing dilated, no negative pads, on any axis.
    """

    axes: tuple[int, ...]
    others: tuple[int, ...]
    layout: str | None
    window: tuple[int, ...]
    strides: tuple[int, ...]
    pads: Pads
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]
    differentiable: bool


def windows_of(x: Array, window: Any, strides: Any, padding: Any, base_dilation: Any, window_dilation: Any) -> Windows:
    """Windows of one tap and no more are left out; three axes may keep others."""
    k = _per_axis(x, window, "window_dimensions")
    s = _per_axis(x, (1,) * x.ndim if strides is None else strides, "window_strides")
    b = _per_axis(x, (1,) * x.ndim if base_dilation is None else base_dilation, "base_dilation")
    d = _per_axis(x, (1,) * x.ndim if window_dilation is None else window_dilation, "window_dilation")
    pads = _pads(x, k, s, d, padding)
    axes = tuple(a for a in range(x.ndim) if (k[a], s[a], b[a], pads[a]) != (1, 1, 1, (0, 0)))
    layout = None
    for name, spatial in (("channels_first", range(2, x.ndim)), ("channels_last", range(1, x.ndim - 1))):
        if layout is None and 3 <= x.ndim <= 5 and axes and set(axes) <= set(spatial):
            axes, layout = tuple(spatial), name
    axes = axes or (x.ndim - 1,)
    others = tuple(a for a in range(x.ndim) if a not in axes)
    differentiable = max(d) == 1 and min(min(pair) for pair in pads) >= 0
    d = tuple(di if ki > 1 else 1 for ki, di in zip(k, d, strict=True))

    def chosen(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[a] for a in axes)

    return Windows(axes, others, layout, chosen(k), chosen(s), chosen(pads), chosen(b), chosen(d), differentiable)


def parts_of(w: Windows) -> tuple[Windows, ...]:
    """The same windows along three axes at a time: a maximum, minimum or sum is that of its parts."""
    if len(w.axes) <= 3:
        return (w,)
    every = sorted((*w.axes, *w.others))
    parts = []
    for first in range(0, len(w.axes), 3):
        some = slice(first, first + 3)
        axes = w.axes[some]
        per_axis = (w.window[some], w.strides[some], w.pads[some], w.base_dilation[some], w.dilation[some])
        parts.append(Windows(axes, tuple(a for a in every if a not in axes), None, *per_axis, w.differentiable))
    return tuple(parts)


def pads_of(padding: Any, rank: int) -> Any:
    """A word in small letters, or (low, high) pairs."""
    if isinstance(padding, str):
        return padding.lower()
    pairs = tuple(tuple(whole(p, "padding") for p in row(pair, "padding")) for pair in row(padding, "padding"))
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            "padding needs a (low, high) pair per spatial axis",
            given={"padding": padding},
            required=f"{rank} pairs: {len(pairs)}",
            because=CONV,
        )
    return pairs


def specs_of(x: Array, w: Array, dimension_numbers: Any, *, channels_last: bool = False) -> tuple[Spec, Spec, Spec]:
    """The axes of lhs, rhs and output, batch (out) and feature (in) first, then the spatial ones in rhs' order."""
    if x.ndim != w.ndim or not 3 <= x.ndim <= 5:
        raise ArgumentError(
            "lhs and rhs need one rank, 3 to 5", given={"lhs": x, "rhs": w}, required=f"{x.ndim} == {w.ndim}", because=CONV
        )
    if dimension_numbers is None and not channels_last:
        plain = tuple(range(x.ndim))
        return plain, plain, plain
    if dimension_numbers is None:
        spatial = "HWD"[: x.ndim - 2]
        dimension_numbers = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    if len(dimension_numbers) != 3:
        raise ArgumentError(
            "dimension_numbers are three",
            given={"dimension_numbers": dimension_numbers},
            because=CONV,
            hint='("NCHW", "OIHW", "NCHW")',
        )
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        lhs, rhs, out = (tuple(int(a) for a in spec) for spec in dimension_numbers)
        for name, spec in (("lhs", lhs), ("rhs", rhs), ("out", out)):
            if sorted(spec) != list(range(x.ndim)):
                raise ArgumentError(f"{name}_spec is not a permutation", given={f"{name}_spec": spec}, because=CONV)
        return lhs, rhs, out
    lhs_word, rhs_word, out_word = dimension_numbers
    letters = [c for c in rhs_word if c not in "OI"]
    for word, special in ((lhs_word, "NC"), (rhs_word, "OI"), (out_word, "NC")):
        if sorted(word) != sorted([*special, *letters]) or len(word) != x.ndim:
            raise ArgumentError(
                "dimension_numbers do not agree",
                given={"dimension_numbers": dimension_numbers},
                required=f"each of {x.ndim} letters: N and C (O and I for rhs), and the same others in all",
                because=CONV,
            )
    return (
        tuple(lhs_word.index(c) for c in ["N", "C", *letters]),
        tuple(rhs_word.index(c) for c in ["O", "I", *letters]),
        tuple(out_word.index(c) for c in ["N", "C", *letters]),
    )


def convolved(op: Callable[..., Array], x: Array, w: Array, specs: tuple[Spec, Spec, Spec], arguments: dict[str, Any]) -> Array:
    """The operator in a layout it has where lhs and output are in it, else between two views; w is canonical."""
    lhs, _, out = specs
    nd = x.ndim
    if lhs == out == tuple(range(nd)):
        return op(x, w, layout="channels_first", **arguments)
    if lhs == out == (0, nd - 1, *range(1, nd - 1)):
        return op(x, w, layout="channels_last", **arguments)
    y = op(moved(x, lhs), w, **arguments)
    return moved(y, np.argsort(out).tolist())


def _per_axis(x: Array, values: Any, name: str) -> tuple[int, ...]:
    found = tuple(int(v) for v in values)
    if len(found) != x.ndim or not x.ndim:
        raise ArgumentError(
            f"{name} needs one number per axis of operand",
            given={"operand": x, name: found},
            required=f"{x.ndim} numbers, at least 1: {len(found)}",
            because=WINDOWS,
        )
    if min(found) < 1:
        raise ArgumentError(f"{name} is below 1", given={name: found}, required=f"{name} >= 1: {min(found)}", because=WINDOWS)
    return found


def _pads(x: Array, k: Sequence[int], s: Sequence[int], d: Sequence[int], padding: Any) -> Pads:
    """Pairs for every axis; SAME counts in the dilated window, but in the operand as it is, undilated."""
    if not isinstance(padding, str):
        pairs = tuple(tuple(whole(p, "padding") for p in row(pair, "padding")) for pair in row(padding, "padding"))
        if len(pairs) != x.ndim or any(len(pair) != 2 for pair in pairs):
            raise ArgumentError(
                "padding needs a (low, high) pair per axis of operand",
                given={"operand": x, "padding": padding},
                required=f"{x.ndim} pairs: {len(pairs)}",
                because=WINDOWS,
            )
        return tuple((pair[0], pair[1]) for pair in pairs)
    word = padding.lower()
    if word not in ("valid", "same", "same_lower"):
        raise ArgumentError(
            "padding has no such value", given={"padding": padding}, required='"VALID", "SAME" or "SAME_LOWER"', because=WINDOWS
        )
    if word == "valid":
        return ((0, 0),) * x.ndim
    return tuple(
        same(n, reach(ki, di), si, extra_at_end=word == "same")[1] for n, ki, di, si in zip(x.shape, k, d, s, strict=True)
    )
