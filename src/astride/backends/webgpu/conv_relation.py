"""The relation of a convolution in WGSL: where a row of each product finds its numbers.

A plan relates two grids, a (the greater side, `size`) and b (`out`): a[i*stride - pad + j*dilation] meets b[i] over w[j].

    gather   b from a and w     rows: images and places of b; columns: b's channels; terms: taps and a's channels
    scatter  a from b and w     rows: images and places of a; columns: a's channels; terms: taps and b's channels
    weights  w from a and b     rows: taps and a's channels; columns: b's channels; terms: images and places of b

Along an axis of stride s only every s-th tap reaches a given place of a. Places are therefore taken in s phases, each with its own
taps, so that a transposed convolution multiplies no gaps. Kernel, stride and dilation stand in the text; sizes, pads, channels and
strides in memory are numbers, so that another image costs no compilation. Every plan has three axes here, leading ones of size 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...plan import ConvPlan, Shape, StridedAxis
from ...plan.kinds import Edge, Layout
from .product import Factors

AXES = range(3)


@dataclass(frozen=True, slots=True)
class Link:
    """Both grids: axes, groups, channels a group, images, and the strides of a and b as (image, group, channel, *axes)."""

    axes: tuple[StridedAxis, ...]
    edge: Edge
    flip: bool
    groups: int
    images: int
    a_channels: int
    b_channels: int
    a_strides: tuple[int, ...]
    b_strides: tuple[int, ...]

    @property
    def taps(self) -> int:
        return math.prod(axis.kernel for axis in self.axes)

    @property
    def a_total(self) -> int:
        """Elements of a, all of its images and channels."""
        return self.images * self.groups * self.a_channels * math.prod(axis.size for axis in self.axes)

    @property
    def b_total(self) -> int:
        return self.images * self.groups * self.b_channels * math.prod(axis.out for axis in self.axes)

    @property
    def w_total(self) -> int:
        return self.groups * self.b_channels * self.a_channels * self.taps

    @property
    def channels_last(self) -> bool:
        return self.b_strides[2] == 1


def link(plan: ConvPlan, x: Shape) -> Link:
    """The relation of a plan on an x of this shape. Groups of the batch are groups whose images lie apart."""
    axes = (*[StridedAxis(1, 1)] * (3 - len(plan.axes)), *plan.axes)
    transposed = plan.op == "conv_transpose"
    a, b = (plan.out_channels, plan.in_channels) if transposed else (plan.in_channels, plan.out_channels)
    groups = plan.groups * plan.batch_groups
    images = x[0] // plan.batch_groups
    a_inner = a // plan.groups
    last = plan.layout is Layout.CHANNELS_LAST
    apart = images if plan.batch_groups > 1 else 0
    return Link(
        axes,
        plan.edge,
        plan.flip,
        groups,
        images,
        a_inner,
        b // groups,
        _strides([axis.size for axis in axes], a, a_inner, last, apart),
        _strides([axis.out for axis in axes], b, b // groups, last, 0),
    )


def _strides(sizes: list[int], channels: int, inner: int, last: bool, apart: int) -> tuple[int, ...]:
    """(image, group, channel, *axes); groups are `inner` channels apart, or `apart` images."""
    step = channels if last else 1
    along = []
    for size in reversed(sizes):
        along.insert(0, step)
        step *= size
    channel = 1 if last else step
    image = step if last else step * channels
    return (image, apart * image if apart else inner * channel, channel, *along)


def gather(lk: Link) -> Factors:
    """b from x = a and w."""
    text = "".join(_inside(axis, d, lk.edge) for d, axis in enumerate(lk.axes)) + _taps(lk) + READ_A
    text += f"""
fn row_of(z: i32, m: i32) -> Row {{
{_unravel("m", "i", "bs", rest="image")}
  return Row(image * params.an + z * params.ag, {_each("i# * S# - params.pad#")}, m < params.rows);
}}
fn term_of(z: i32, k: i32) -> Term {{
  let c = k % params.ca;
{_unravel("(k / params.ca)", "j", "K")}
  return Term(c * params.ac, {_each("j# * D#")});
}}
fn place(z: i32, m: i32, n: i32) -> i32 {{
{_unravel("m", "i", "bs", rest="image")}
  return image * params.bn + z * params.bg + n * params.bc + {_sum("i# * params.bx#")};
}}
fn channel(z: i32, n: i32) -> i32 {{ return z * params.cb + n; }}
"""
    right = f"""
const TAPS = {lk.taps};
fn right(z: i32, n: i32, k: i32) -> f32 {{
  let tap = k / params.ca;
  return w[((z * params.cb + n) * params.ca + k % params.ca) * TAPS + {_turned(lk)}];
}}
"""
    sizes = {
        "products": lk.groups,
        "rows": lk.images * math.prod(axis.out for axis in lk.axes),
        "columns": lk.b_channels,
        "terms": lk.taps * lk.a_channels,
        "total": lk.b_total,
        **_b_channels(lk, lk.b_strides, lk.b_channels),
        **_numbers(lk),
    }
    return Factors(
        name="convolve",
        geometry=text,
        left=LEFT_A.format(name="left", kind="f32", index=""),
        left4=LEFT_A.format(name="left4", kind="vec4<f32>", index=" / 4"),
        right=right,
        sizes=sizes,
        holes=not everywhere_inside(lk),
        wide=_quads(lk.a_strides, lk.a_channels),
        columns_first=lk.channels_last,
    )


def weights(lk: Link) -> Factors:
    """w from x = a and w = b."""
    text = "".join(_inside(axis, d, lk.edge) for d, axis in enumerate(lk.axes)) + _taps(lk) + READ_A
    text += f"""
const TAPS = {lk.taps};
fn row_of(z: i32, m: i32) -> Row {{
{_unravel("(m / params.ca)", "j", "K")}
  return Row((m % params.ca) * params.ac + z * params.ag, {_each("j# * D# - params.pad#")}, m < params.rows);
}}
fn term_of(z: i32, k: i32) -> Term {{
{_unravel("k", "i", "bs", rest="image")}
  return Term(image * params.an, {_each("i# * S#")});
}}
fn place(z: i32, m: i32, n: i32) -> i32 {{
  let tap = m / params.ca;
  return ((z * params.cb + n) * params.ca + m % params.ca) * TAPS + {_turned(lk)};
}}
fn channel(z: i32, n: i32) -> i32 {{ return 0; }}
"""
    right = f"""
fn right(z: i32, n: i32, k: i32) -> f32 {{
{_unravel("k", "i", "bs", rest="image")}
  return w[image * params.bn + z * params.bg + n * params.bc + {_sum("i# * params.bx#")}];
}}
"""
    sizes = {
        "products": lk.groups,
        "rows": lk.taps * lk.a_channels,
        "columns": lk.b_channels,
        "terms": lk.images * math.prod(axis.out for axis in lk.axes),
        "total": lk.w_total,
        **_numbers(lk),
    }
    return Factors(
        name="convolve weights",
        geometry=text,
        left=LEFT_A.format(name="left", kind="f32", index=""),
        right=right,
        sizes=sizes,
        holes=not everywhere_inside(lk),
    )


def scatter(lk: Link) -> Factors:
    """a from x = b and w."""
    phases = [_phases(axis) for axis in lk.axes]
    turns = [-(-axis.kernel // f) for axis, f in zip(lk.axes, phases, strict=True)]
    steps = [-(-axis.size // f) for axis, f in zip(lk.axes, phases, strict=True)]
    text = "".join(f"const F{d} = {phases[d]}; const T{d} = {turns[d]}; const D{d} = {a.dilation};\n" for d, a in enumerate(lk.axes))
    text += "".join(f"const K{d} = {axis.kernel};\n{_beside(axis, d, phases[d])}" for d, axis in enumerate(lk.axes))
    phase = _unravel("(z / params.groups)", "f", "F")
    text += f"""
struct Row {{ base: i32, {_each("u#: i32")}, {_each("j#: i32")}, ok: bool }}
struct Term {{ offset: i32, {_each("t#: i32")} }}
fn row_of(z: i32, m: i32) -> Row {{
{phase}
{_unravel("m", "r", "rs", rest="image")}
  let ok = m < params.rows && {_and("r# * F# + f# < params.as#")};
  let base = image * params.bn + (z % params.groups) * params.bg;
  return Row(base, {_each("first#(r#, f#)")}, {_each("tap#(f#)")}, ok);
}}
fn term_of(z: i32, k: i32) -> Term {{
{_unravel("(k / params.cb)", "t", "T")}
  return Term((k % params.cb) * params.bc, {_each("t#")});
}}
fn has(r: Row, t: Term) -> bool {{
  return r.ok && {_and("r.j# + F# * t.t# < K#")} && {_and("beside#(r.u#, t.t#) >= 0")};
}}
fn place(z: i32, m: i32, n: i32) -> i32 {{
{phase}
{_unravel("m", "r", "rs", rest="image")}
  if ({_or("r# * F# + f# >= params.as#")}) {{ return -1; }}
  return image * params.an + (z % params.groups) * params.ag + n * params.ac + {_sum("(r# * F# + f#) * params.ax#")};
}}
fn channel(z: i32, n: i32) -> i32 {{ return (z % params.groups) * params.ca + n; }}
"""
    pack = "".join(f"const F{d} = {phases[d]}; const T{d} = {turns[d]}; const K{d} = {a.kernel};\n" for d, a in enumerate(lk.axes))
    right = f"""
const TAPS = {lk.taps};
fn right(z: i32, n: i32, k: i32) -> f32 {{
{phase}
{_unravel("(k / params.cb)", "t", "T")}
{"".join(f"  let j{d} = tap{d}(f{d}) + F{d} * t{d};" for d in AXES)}
  if ({_or("j# >= K#")}) {{ return 0.0; }}
  let tap = (j0 * K1 + j1) * K2 + j2;
  return w[(((z % params.groups) * params.cb + k % params.cb) * params.ca + n) * TAPS + {_turned(lk)}];
}}
"""
    taps = "".join(_first_tap(axis, d, phases[d]) for d, axis in enumerate(lk.axes))
    sizes = {
        "products": math.prod(phases) * lk.groups,
        "rows": lk.images * math.prod(steps),
        "columns": lk.a_channels,
        "terms": math.prod(turns) * lk.b_channels,
        "total": lk.a_total,
        "groups": lk.groups,
        **{f"rs{d}": steps[d] for d in AXES},
        **_b_channels(lk, lk.a_strides, lk.a_channels),
        **_numbers(lk),
    }
    call = _sum("beside#(r.u#, t.t#) * params.bx#")
    return Factors(
        name="convolve back",
        geometry=taps + text,
        left=f"fn left(r: Row, t: Term) -> f32 {{ return x[r.base + t.offset + {call}]; }}\n",
        left4=f"fn left4(r: Row, t: Term) -> vec4<f32> {{ return x[(r.base + t.offset + {call}) / 4]; }}\n",
        right=right,
        packing=pack + taps,
        sizes=sizes,
        holes=True,
        wide=_quads(lk.b_strides, lk.b_channels),
        columns_first=lk.channels_last,
    )


def grown(lk: Link) -> tuple[Link, tuple[int, ...]]:
    """The relation on an input that an edge mode has grown, channels first, and how far it grew below each axis."""
    lows, axes = [], []
    for axis in lk.axes:
        low = max(axis.pad_lo, 0)
        high = max(axis.start(axis.out - 1) + axis.reach - axis.size, 0) if axis.out else 0
        lows.append(low)
        axes.append(replace(axis, size=axis.size + low + high, pad_lo=axis.pad_lo - low, pad_hi=min(axis.pad_hi - high, 0)))
    channels = lk.groups * lk.a_channels
    strides = _strides([axis.size for axis in axes], channels, lk.a_channels, False, 0)
    return replace(lk, axes=tuple(axes), edge=Edge.SKIP, a_strides=strides), tuple(lows)


def everywhere_inside(lk: Link) -> bool:
    """Whether no tap of any window is a hole."""
    if lk.edge is not Edge.SKIP:
        return all(axis.size > 0 for axis in lk.axes)
    return all(
        axis.input_dilation == 1 and axis.pad_lo <= 0 and (not axis.out or axis.start(axis.out - 1) + axis.reach <= axis.size)
        for axis in lk.axes
    )


READ_A = """
struct Row { base: i32, q0: i32, q1: i32, q2: i32, ok: bool }
struct Term { offset: i32, d0: i32, d1: i32, d2: i32 }
fn has(r: Row, t: Term) -> bool {
  return r.ok && at0(r.q0 + t.d0) >= 0 && at1(r.q1 + t.d1) >= 0 && at2(r.q2 + t.d2) >= 0;
}
"""

LEFT_A = """
fn {name}(r: Row, t: Term) -> {kind} {{
  return x[(r.base + t.offset + at0(r.q0 + t.d0) * params.ax0 + at1(r.q1 + t.d1) * params.ax1
    + at2(r.q2 + t.d2) * params.ax2){index}];
}}
"""

SOURCES = {
    Edge.CLAMP: "return clamp(q, 0, n - 1);",
    Edge.WRAP: "return ((q % n) + n) % n;",
    Edge.MIRROR: "let period = max(2 * (n - 1), 1); let f = abs(q) % period; return select(0, min(f, period - f), n > 1);",
    Edge.MIRROR_EDGE: "let f = ((q % (2 * n)) + 2 * n) % (2 * n); return min(f, 2 * n - 1 - f);",
}
"""The pixel that an edge mode shows at a position q of an axis of n pixels."""


def source(edge: Edge, d: int, size: str) -> str:
    """fn at<d>(q): the pixel of a at a position, by an edge mode; -1 on an axis without pixels."""
    return f"fn at{d}(q: i32) -> i32 {{ let n = {size}; if (n == 0) {{ return -1; }} {SOURCES[edge]} }}\n"


def _inside(axis: StridedAxis, d: int, edge: Edge) -> str:
    """fn at<d>(q): the pixel of a at a position of the stretched input, or -1."""
    if edge is not Edge.SKIP:
        return source(edge, d, f"params.as{d}")
    inside = f"q >= 0 && q < params.as{d}"
    if axis.input_dilation > 1:
        i = axis.input_dilation
        return f"fn at{d}(q: i32) -> i32 {{ return select(-1, q / {i}, q >= 0 && q % {i} == 0 && q / {i} < params.as{d}); }}\n"
    return f"fn at{d}(q: i32) -> i32 {{ return select(-1, q, {inside}); }}\n"


def _phases(axis: StridedAxis) -> int:
    """How many phases an axis is taken in: its stride, where that and the dilation allow it."""
    return axis.stride if axis.input_dilation == 1 and math.gcd(axis.stride, axis.dilation) == 1 else 1


def _first_tap(axis: StridedAxis, d: int, phases: int) -> str:
    """fn tap<d>(f): the first tap that reaches the places of phase f; every phases-th after it does too."""
    if phases == 1:
        return f"fn tap{d}(f: i32) -> i32 {{ return 0; }}\n"
    inverse = pow(axis.dilation, -1, phases)
    return (
        f"fn tap{d}(f: i32) -> i32 {{ let s = (f + params.pad{d}) % {phases};"
        f" return (select(s, s + {phases}, s < 0) * {inverse}) % {phases}; }}\n"
    )


def _beside(axis: StridedAxis, d: int, phases: int) -> str:
    """fn first<d>(r, f): where the windows of place r of phase f begin; fn beside<d>(u, t): the one at turn t, or -1."""
    s, dilation = axis.stride, axis.dilation
    if phases == s and axis.input_dilation == 1:
        return (
            f"fn first{d}(r: i32, f: i32) -> i32 {{ return r + (f + params.pad{d} - tap{d}(f) * {dilation}) / {s}; }}\n"
            f"fn beside{d}(u: i32, t: i32) -> i32 {{ let v = u - t * {dilation};"
            f" return select(-1, v, v >= 0 && v < params.bs{d}); }}\n"
        )
    return (
        f"fn first{d}(r: i32, f: i32) -> i32 {{ return r * {axis.input_dilation} + params.pad{d}; }}\n"
        f"fn beside{d}(u: i32, t: i32) -> i32 {{ let v = u - t * {dilation};"
        f" return select(-1, v / {s}, v >= 0 && v % {s} == 0 && v / {s} < params.bs{d}); }}\n"
    )


def _taps(lk: Link) -> str:
    return "".join(f"const K{d} = {a.kernel}; const S{d} = {a.stride}; const D{d} = {a.dilation};\n" for d, a in enumerate(lk.axes))


def _turned(lk: Link) -> str:
    return "(TAPS - 1 - tap)" if lk.flip else "tap"


def _quads(strides: tuple[int, ...], channels: int) -> bool:
    """Whether four channels from a multiple of four on are neighbours, everywhere at a multiple of four."""
    return strides[2] == 1 and channels % 4 == 0 and all(s % 4 == 0 for i, s in enumerate(strides) if i != 2)


def _b_channels(lk: Link, strides: tuple[int, ...], channels: int) -> Mapping[str, int]:
    """How a bias's channel follows from an index of the output: (index / inner) % channels."""
    return {"inner": strides[2], "channels": lk.groups * channels}


def _numbers(lk: Link) -> dict[str, int]:
    a = dict(zip(("an", "ag", "ac", "ax0", "ax1", "ax2"), lk.a_strides, strict=True))
    b = dict(zip(("bn", "bg", "bc", "bx0", "bx1", "bx2"), lk.b_strides, strict=True))
    along = {}
    for d, axis in enumerate(lk.axes):
        along |= {f"as{d}": axis.size, f"bs{d}": axis.out, f"pad{d}": axis.pad_lo}
    return {"ca": lk.a_channels, "cb": lk.b_channels, **a, **b, **along}


def _unravel(value: str, letter: str, size: str, rest: str = "") -> str:
    """Lines that take a row-major index of three axes apart; what is left over is named `rest`."""
    sizes = [f"params.{size}{d}" if size.islower() else f"{size}{d}" for d in AXES]
    lines = [f"  let {letter}2 = {value} % {sizes[2]};", f"  let {letter}1 = ({value} / {sizes[2]}) % {sizes[1]};"]
    above = f"({value} / ({sizes[1]} * {sizes[2]}))"
    lines.append(f"  let {letter}0 = {above} % {sizes[0]};")
    if rest:
        lines.append(f"  let {rest} = {above} / {sizes[0]};")
    return "\n".join(lines)


def _each(text: str) -> str:
    return ", ".join(text.replace("#", str(d)) for d in AXES)


def _sum(text: str) -> str:
    return " + ".join(text.replace("#", str(d)) for d in AXES)


def _and(text: str) -> str:
    return " && ".join(f"({text.replace('#', str(d))})" for d in AXES)


def _or(text: str) -> str:
    return " || ".join(f"({text.replace('#', str(d))})" for d in AXES)


__all__ = ["Link", "everywhere_inside", "gather", "grown", "link", "scatter", "source", "weights"]
