"""Where windows lie, for WGSL: numbers and tables that the host works out once, and the text of loops over taps and windows.

A text depends on the form of the axes alone, so that one compiled program serves every size. Forward, an invocation has one
window and loops over its taps. Backward, it has one pixel and loops over the windows that read it: nothing is scattered.
Strided axes find both by arithmetic. Axes whose windows are listed, and edge modes that read a pixel twice, have tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import Axis, ExplicitAxis, Shape, StridedAxis
from ...plan.kinds import Edge, Layout

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AxisForm:
    """What the loops over one axis look like. `listed`: windows from a table; `gathered`: so are the windows of a pixel."""

    listed: bool
    gathered: bool
    dilated: bool
    spread: bool


@dataclass(frozen=True, slots=True)
class Form:
    """What a text depends on: the axes, the edge, whether an element is four channels or one, of 16 or 32 bits.

    `parted`: the loops run over a range of the first axis's turns, from params.begin to params.stop.
    """

    axes: tuple[AxisForm, ...]
    edge: Edge
    vector: bool
    half: bool
    parted: bool = False

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def element(self) -> str:
        """WGSL's type of a stored element."""
        scalar = "f16" if self.half else "f32"
        return f"vec4<{scalar}>" if self.vector else scalar

    @property
    def integer(self) -> str:
        return "vec4<u32>" if self.vector else "u32"

    @property
    def types(self) -> str:
        """Aliases: E what is stored, T what is computed with, U, I and B integers and truth values of its width."""
        wide = "vec4<{}>" if self.vector else "{}"
        names = {"T": "f32", "U": "u32", "I": "i32", "B": "bool"}
        lines = [f"alias {name} = {wide.format(kind)};" for name, kind in names.items()]
        return "\n".join((f"alias E = {self.element};", *lines)) + "\n" + FUNCTIONS


FUNCTIONS = """fn odd(v: T) -> B { return (bitcast<U>(v) & U(0x7fffffffu)) > U(0x7f800000u); }
fn nonzero(v: T) -> B { return (bitcast<U>(v) & U(0x7fffffffu)) != U(0u); }
fn above(a: T, b: T) -> B { return (a > b) & !odd(a) & !odd(b); }
fn reaches(a: T, b: T) -> B { return (a >= b) & !odd(a) & !odd(b); }
fn same(a: T, b: T) -> B { return (a == b) & !odd(a) & !odd(b); }
"""
"""Comparisons that are false with a NaN, whatever the driver makes of one."""


def form_of(axes: tuple[Axis, ...], edge: Edge, vector: bool, half: bool, parted: bool = False) -> Form:
    """The form of these axes."""
    repeats = edge not in (Edge.SKIP, Edge.CONSTANT)
    forms = [
        AxisForm(False, repeats, a.dilation > 1, a.input_dilation > 1)
        if isinstance(a, StridedAxis)
        else AxisForm(True, True, False, False)
        for a in axes
    ]
    return Form(tuple(forms), edge, vector, half, parted)


def declarations(form: Form) -> tuple[tuple[str, str], ...]:
    """The parameters that the loops use."""
    names = [f"{name}{a}" for a in range(form.rank) for name in PER_AXIS]
    return tuple((name, "i32") for name in (*names, "inner", "x_outer", "y_outer"))


PER_AXIS = ("size", "kernel", "stride", "dilation", "pad", "reach", "out", "spread", "x", "y", "starts", "readers", "pairs")


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """The values of `declarations` for arrays of one shape, and the table of 32-bit integers they point into."""

    numbers: dict[str, int]
    table: NDArray[np.int32]


@lru_cache(maxsize=512)
def tables(axes: tuple[Axis, ...], edge: Edge) -> tuple[dict[str, int], NDArray[np.int32]]:
    """The tables of axes that need some, one after the other, and where each begins.

    `starts`: first tap of each window, then the end behind its last. `readers`: for each pixel where its pairs begin, and an end;
    `pairs`: (window, place in the kernel) of every tap that reads the pixel.
    """
    form = form_of(axes, edge, False, False)
    parts: list[Whole] = []
    places: dict[str, int] = {}
    at = 0

    def put(name: str, values: Whole) -> None:
        nonlocal at
        places[name] = at
        parts.append(values)
        at += len(values)

    for a, axis in enumerate(axes):
        if isinstance(axis, ExplicitAxis):
            put(f"starts{a}", np.array((*axis.starts, *axis.ends), np.int64))
        if form.axes[a].gathered:
            readers, pairs = _readers(axis, edge)
            put(f"readers{a}", readers)
            put(f"pairs{a}", pairs)
    return places, np.concatenate([*parts, np.zeros(1, np.int64)]).astype(np.int32)


def _readers(axis: Axis, edge: Edge) -> tuple[Whole, Whole]:
    """For each pixel the taps that read it: pointers (size + 1) and pairs (window, place) one after the other."""
    if isinstance(axis, ExplicitAxis):
        lengths = np.array(axis.ends, np.int64) - np.array(axis.starts, np.int64)
        window = np.repeat(np.arange(axis.out, dtype=np.int64), lengths)
        place = np.arange(lengths.sum(), dtype=np.int64) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        pixel = np.array(axis.starts, np.int64)[window] + place
    else:
        window = np.repeat(np.arange(axis.out, dtype=np.int64), axis.kernel)
        place = np.tile(np.arange(axis.kernel, dtype=np.int64), axis.out)
        pixel = shown(window * axis.stride - axis.pad_lo + place * axis.dilation, axis.size, edge)
    order = np.argsort(pixel, kind="stable")
    pointers = np.searchsorted(pixel[order], np.arange(axis.size + 1))
    return pointers.astype(np.int64), np.stack([window[order], place[order]], axis=1).reshape(-1)


def shown(position: Whole, size: int, edge: Edge) -> Whole:
    """The pixel that an edge mode which repeats pixels shows at each position."""
    if edge is Edge.WRAP:
        return position % size
    if edge is Edge.CLAMP:
        return np.clip(position, 0, size - 1)
    period = max(2 * size - 2, 1) if edge is Edge.MIRROR else 2 * size
    folded = position % period
    mirrored = period - folded if edge is Edge.MIRROR else period - 1 - folded
    return np.minimum(np.minimum(folded, mirrored), size - 1)


def geometry(axes: tuple[Axis, ...], edge: Edge, layout: Layout, x_shape: Shape, lanes: int) -> Geometry:
    """Numbers for x of this shape, counted in elements of `lanes` channels."""
    first = layout is Layout.CHANNELS_FIRST
    inner = 1 if first else x_shape[-1] // lanes
    places, table = tables(axes, edge)
    numbers: dict[str, int] = {
        name: 0 for a in range(len(axes)) for name in (f"starts{a}", f"readers{a}", f"pairs{a}")
    } | places
    x_step = y_step = inner
    for a in reversed(range(len(axes))):
        axis = axes[a]
        strided = axis if isinstance(axis, StridedAxis) else StridedAxis(axis.size, 1, out=axis.size)
        values: dict[str, Any] = dict(
            size=axis.size,
            kernel=axis.kernel,
            stride=strided.stride,
            dilation=strided.dilation,
            pad=strided.pad_lo,
            reach=strided.reach,
            out=axis.out,
            spread=strided.input_dilation,
            x=x_step,
            y=y_step,
        )
        numbers |= {f"{name}{a}": value for name, value in values.items()}
        x_step, y_step = x_step * axis.size, y_step * axis.out
    numbers |= {"inner": inner, "x_outer": x_step, "y_outer": y_step}
    return Geometry(numbers, table)


def window_of(form: Form) -> str:
    """Invocation i has window w0, w1, ...; its windows' pixels begin at `base` in x."""
    return _place(form, "w", "out", "base", "x_outer")


def pixel_of(form: Form) -> str:
    """Invocation i has pixel g0, g1, ...; results of its plane begin at `base` in y."""
    return _place(form, "g", "size", "base", "y_outer")


def _place(form: Form, name: str, extent: str, base: str, outer: str) -> str:
    lines = ["var rest_ = i32(i);", "let lane = rest_ % params.inner;", "rest_ = rest_ / params.inner;"]
    for a in reversed(range(form.rank)):
        lines += [f"let {name}{a} = rest_ % params.{extent}{a};", f"rest_ = rest_ / params.{extent}{a};"]
    return "\n".join((*lines, f"let {base} = rest_ * params.{outer} + lane;")) + "\n"


def over_taps(form: Form, body: str, value: str = "v") -> str:
    """Loops around `body` over the taps of a window that it reads, in row-major order.

    In it `v` is the tap's value, or what `value` makes of it, and `k` its place in the kernel.
    """
    lines: list[str] = []
    for a, axis in enumerate(form.axes):
        lines += _tap_range(form, a, axis)
        lo, hi = f"lo{a}", f"hi{a}"
        if form.parted and not a:
            lo, hi = "max(lo0, params.begin)", "min(hi0, params.stop)"
        lines.append(f"for (var j{a} = {lo}; j{a} < {hi}; j{a}++) {{")
        lines += _tap_position(form, a, axis)
        before = f"at{a - 1}" if a else "base"
        lines.append(f"let at{a} = {before} + q{a} * params.x{a};")
        lines.append(f"let k{a} = {f'k{a - 1} * params.kernel{a} + ' if a else ''}j{a};")
    last = form.rank - 1
    if form.edge is Edge.CONSTANT:
        real = " && ".join(f"real{a}" for a in range(form.rank))
        lines += ["var v = T(params.edge_value);", f"if ({real}) {{ v = T(x[at{last}]); }}"]
        lines += [f"v = {value};"] * (value != "v")
    else:
        lines.append(f"let v = {value.replace('v', f'T(x[at{last}])')};")
    lines.append(f"let k = u32(k{last});")
    return "{\n" + "\n".join(lines) + "\n" + body + "}" * form.rank + "}\n"


def _tap_range(form: Form, a: int, axis: AxisForm) -> Iterator[str]:
    if axis.listed:
        yield f"let b{a} = table[params.starts{a} + w{a}];"
        yield f"let lo{a} = 0; let hi{a} = table[params.starts{a} + params.out{a} + w{a}] - b{a};"
        return
    yield f"let b{a} = w{a} * params.stride{a} - params.pad{a};"
    if form.edge is not Edge.SKIP:
        yield f"let lo{a} = 0; let hi{a} = params.kernel{a};"
        return
    yield f"let end{a} = (params.size{a} - 1) * params.spread{a} + 1 - b{a};"
    if axis.dilated:
        yield f"let lo{a} = select((params.dilation{a} - 1 - b{a}) / params.dilation{a}, 0, b{a} >= 0);"
        yield (
            f"let hi{a} = select(min(params.kernel{a}, (end{a} + params.dilation{a} - 1) / params.dilation{a}), 0, "
            f"end{a} <= 0 || params.size{a} == 0);"
        )
    else:
        yield f"let lo{a} = max(0, -b{a}); let hi{a} = select(min(params.kernel{a}, end{a}), 0, params.size{a} == 0);"


def _tap_position(form: Form, a: int, axis: AxisForm) -> Iterator[str]:
    place = f"b{a} + j{a} * params.dilation{a}" if axis.dilated else f"b{a} + j{a}"
    if axis.spread:
        yield f"let s{a} = {place};"
        yield f"if (s{a} % params.spread{a} != 0) {{ continue; }}"
        yield f"let q{a} = s{a} / params.spread{a};"
    elif form.edge in (Edge.SKIP, Edge.CONSTANT) or axis.listed:
        yield f"let q{a} = {place};"
        if form.edge is Edge.CONSTANT:
            yield f"let real{a} = q{a} >= 0 && q{a} < params.size{a};"
    elif form.edge is Edge.CLAMP:
        yield f"let q{a} = clamp({place}, 0, params.size{a} - 1);"
    else:
        period = {Edge.WRAP: "params.size{a}", Edge.MIRROR: "max(2 * params.size{a} - 2, 1)"}.get(
            form.edge, "2 * params.size{a}"
        )
        yield f"let period{a} = {period.format(a=a)};"
        yield f"let turn{a} = (({place}) % period{a} + period{a}) % period{a};"
        if form.edge is Edge.WRAP:
            yield f"let q{a} = turn{a};"
        else:
            back = "" if form.edge is Edge.MIRROR else " - 1"
            yield f"let q{a} = min(min(turn{a}, period{a}{back} - turn{a}), params.size{a} - 1);"


def over_windows(form: Form, body: str) -> str:
    """Loops around `body` over the taps that read a pixel: `o` is the window's place in y, `k` the tap's in the kernel.

    w0, w1, ... are the window's coordinates.
    """
    lines: list[str] = []
    for a, axis in enumerate(form.axes):
        lines += _reader_range(a, axis, form.parted and not a)
        before = f"at{a - 1}" if a else "base"
        lines.append(f"let at{a} = {before} + w{a} * params.y{a};")
        lines.append(f"let k{a} = {f'k{a - 1} * params.kernel{a} + ' if a else ''}j{a};")
    last = form.rank - 1
    lines.append(f"let o = at{last}; let k = u32(k{last});")
    return "{\n" + "\n".join(lines) + "\n" + body + "}" * form.rank + "}\n"


def _reader_range(a: int, axis: AxisForm, parted: bool) -> Iterator[str]:
    if axis.gathered:
        yield f"let first{a} = table[params.readers{a} + g{a}]; let end{a} = table[params.readers{a} + g{a} + 1];"
    else:
        yield f"let q{a} = g{a} * params.spread{a} + params.pad{a};"
        yield f"let over{a} = q{a} - params.reach{a};"
        yield f"let first{a} = select(0, over{a} / params.stride{a} + 1, over{a} >= 0);"
        yield f"let end{a} = select(0, min(q{a} / params.stride{a} + 1, params.out{a}), q{a} >= 0);"
    begin, end = f"first{a}", f"end{a}"
    if parted:
        begin, end = "first0 + params.begin", "min(end0, first0 + params.stop)"
    yield f"for (var t{a} = {begin}; t{a} < {end}; t{a}++) {{"
    if axis.gathered:
        yield f"let w{a} = table[params.pairs{a} + 2 * t{a}]; let j{a} = table[params.pairs{a} + 2 * t{a} + 1];"
        return
    yield f"let w{a} = t{a};"
    if axis.dilated:
        yield f"let d{a} = q{a} - w{a} * params.stride{a};"
        yield f"if (d{a} % params.dilation{a} != 0) {{ continue; }}"
        yield f"let j{a} = d{a} / params.dilation{a};"
    else:
        yield f"let j{a} = q{a} - w{a} * params.stride{a};"


def taps_between(axis: Axis, lo: int, hi: int) -> Whole:
    """How many taps of each window lie at positions in [lo, hi) of the stretched input."""
    if isinstance(axis, ExplicitAxis):
        starts, ends = np.array(axis.starts, np.int64), np.array(axis.ends, np.int64)
        return np.asarray(np.maximum(np.minimum(ends, hi) - np.maximum(starts, lo), 0), np.int64)
    start = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo

    def before(position: int) -> Whole:
        return np.asarray(np.clip(-((start - position) // axis.dilation), 0, axis.kernel), np.int64)

    return np.asarray(before(hi) - before(lo), np.int64)


def taps_inside(axis: Axis) -> Whole:
    """How many taps of each window read a pixel of the input."""
    if isinstance(axis, ExplicitAxis) or axis.input_dilation == 1:
        return taps_between(axis, 0, axis.size)
    start = np.arange(axis.out, dtype=np.int64)[:, None] * axis.stride - axis.pad_lo
    position = start + np.arange(axis.kernel, dtype=np.int64) * axis.dilation
    inside = (position >= 0) & (position < axis.stretched) & (position % axis.input_dilation == 0)
    return np.asarray(inside.sum(1), np.int64)


def turns_over_taps(axes: tuple[Axis, ...]) -> tuple[int, int]:
    """Turns of the loops over the taps of a window: along the first axis, and for each of them in the loops inside."""
    return axes[0].kernel, turns([axis.kernel for axis in axes[1:]])


def turns_over_windows(axes: tuple[Axis, ...], edge: Edge) -> tuple[int, int]:
    """Turns of the loops over the windows of a pixel, at most: along the first axis, and for each of them in the loops inside."""
    most = []
    for axis in axes:
        if isinstance(axis, StridedAxis) and edge in (Edge.SKIP, Edge.CONSTANT):
            most.append(min(-(-axis.reach // axis.stride), axis.out))
        else:
            pointers, _ = _readers(axis, edge)
            most.append(int(np.diff(pointers).max(initial=0)))
    return most[0], turns(most[1:])


def turns(counts: list[int]) -> int:
    """Turns of loops in each other, all counted together."""
    total, product = 0, 1
    for count in counts:
        product *= count
        total += product
    return total
