"""The relation of a convolution in WGSL: where a row of each product finds its numbers.

A plan relates two grids, a (the greater side, `size`) and b (`out`): a[i*stride - pad + j*dilation] meets b[i] over w[j].

    gather   b from a and w     rows: images and places of b; columns: b's channels; terms: taps and a's channels
    scatter  a from b and w     rows: images and places of a; columns: a's channels; terms: taps and b's channels
    weights  w from a and b     rows: taps and a's channels; columns: b's channels; terms: images and places of b

Along an axis of stride s only every s-th tap reaches a given place of a. Places are therefore taken in s phases, each with
its own taps, so that a transposed convolution multiplies no gaps. Kernel, stride and dilation stand in the text; sizes, pads,
channels and strides in memory are numbers, so that another image costs no compilation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...plan import StridedAxis
from ...plan.kinds import Edge
from .axis_text import AXES, all_of, any_of, listed, summed, unravel
from .conv_link import Link, everywhere_inside
from .product import Factors


def gather(lk: Link) -> Factors:
    """b from x = a and w."""
    text = "".join(_inside(axis, d, lk.edge) for d, axis in enumerate(lk.axes)) + _taps(lk) + READ_A
    text += f"""
fn row_of(z: i32, m: i32) -> Row {{
{unravel("m", "i", "bs", rest="image")}
  return Row(image * params.an + z * params.ag, {listed("i# * S# - params.pad#")}, m < params.rows);
}}
fn term_of(z: i32, k: i32) -> Term {{
  let c = k % params.ca;
{unravel("(k / params.ca)", "j", "K")}
  return Term(c * params.ac, {listed("j# * D#")});
}}
fn place(z: i32, m: i32, n: i32) -> i32 {{
{unravel("m", "i", "bs", rest="image")}
  return image * params.bn + z * params.bg + n * params.bc + {summed("i# * params.bx#")};
}}
fn channel(z: i32, n: i32) -> i32 {{ return z * params.cb + n; }}
"""
    right = f"""
const TAPS = {lk.taps};
fn right(z: i32, n: i32, k: i32) -> f32 {{
  let tap = k / params.ca;
  return w[{_weight("z", "n", "(k % params.ca)", lk)}];
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
{unravel("(m / params.ca)", "j", "K")}
  return Row((m % params.ca) * params.ac + z * params.ag, {listed("j# * D# - params.pad#")}, m < params.rows);
}}
fn term_of(z: i32, k: i32) -> Term {{
{unravel("k", "i", "bs", rest="image")}
  return Term(image * params.an, {listed("i# * S#")});
}}
fn place(z: i32, m: i32, n: i32) -> i32 {{
  let tap = m / params.ca;
  return {_weight("z", "n", "(m % params.ca)", lk)};
}}
fn channel(z: i32, n: i32) -> i32 {{ return 0; }}
"""
    right = f"""
fn right(z: i32, n: i32, k: i32) -> f32 {{
{unravel("k", "i", "bs", rest="image")}
  return w[image * params.bn + z * params.bg + n * params.bc + {summed("i# * params.bx#")}];
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
    text = "".join(
        f"const F{d} = {phases[d]}; const T{d} = {turns[d]}; const D{d} = {a.dilation};\n" for d, a in enumerate(lk.axes)
    )
    text += "".join(f"const K{d} = {axis.kernel};\n{_beside(axis, d, phases[d])}" for d, axis in enumerate(lk.axes))
    phase = unravel("(z / params.groups)", "f", "F")
    text += f"""
struct Row {{ base: i32, {listed("u#: i32")}, {listed("j#: i32")}, ok: bool }}
struct Term {{ offset: i32, {listed("t#: i32")} }}
fn row_of(z: i32, m: i32) -> Row {{
{phase}
{unravel("m", "r", "rs", rest="image")}
  let ok = m < params.rows && {all_of("r# * F# + f# < params.as#")};
  let base = image * params.bn + (z % params.groups) * params.bg;
  return Row(base, {listed("first#(r#, f#)")}, {listed("tap#(f#)")}, ok);
}}
fn term_of(z: i32, k: i32) -> Term {{
{unravel("(k / params.cb)", "t", "T")}
  return Term((k % params.cb) * params.bc, {listed("t#")});
}}
fn has(r: Row, t: Term) -> bool {{
  return r.ok && {all_of("r.j# + F# * t.t# < K#")} && {all_of("beside#(r.u#, t.t#) >= 0")};
}}
fn place(z: i32, m: i32, n: i32) -> i32 {{
{phase}
{unravel("m", "r", "rs", rest="image")}
  if ({any_of("r# * F# + f# >= params.as#")}) {{ return -1; }}
  return image * params.an + (z % params.groups) * params.ag + n * params.ac + {summed("(r# * F# + f#) * params.ax#")};
}}
fn channel(z: i32, n: i32) -> i32 {{ return (z % params.groups) * params.ca + n; }}
"""
    pack = "".join(
        f"const F{d} = {phases[d]}; const T{d} = {turns[d]}; const K{d} = {a.kernel};\n" for d, a in enumerate(lk.axes)
    )
    right = f"""
const TAPS = {lk.taps};
fn right(z: i32, n: i32, k: i32) -> f32 {{
{phase}
{unravel("(k / params.cb)", "t", "T")}
{"".join(f"  let j{d} = tap{d}(f{d}) + F{d} * t{d};" for d in AXES)}
  if ({any_of("j# >= K#")}) {{ return 0.0; }}
  let tap = (j0 * K1 + j1) * K2 + j2;
  return w[{_weight("(z % params.groups)", "(k % params.cb)", "n", lk)}];
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
    call = summed("beside#(r.u#, t.t#) * params.bx#")
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


def _source(edge: Edge, d: int, size: str) -> str:
    """fn at<d>(q): the pixel of a at a position, by an edge mode; -1 on an axis without pixels."""
    return f"fn at{d}(q: i32) -> i32 {{ let n = {size}; if (n == 0) {{ return -1; }} {SOURCES[edge]} }}\n"


def _inside(axis: StridedAxis, d: int, edge: Edge) -> str:
    """fn at<d>(q): the pixel of a at a position of the stretched input, or -1."""
    if edge is not Edge.SKIP:
        return _source(edge, d, f"params.as{d}")
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
    return "".join(
        f"const K{d} = {a.kernel}; const S{d} = {a.stride}; const D{d} = {a.dilation};\n" for d, a in enumerate(lk.axes)
    )


def _weight(group: str, b: str, a: str, lk: Link) -> str:
    """Where the weight between two channels lies at `tap`, or at the one that is turned to its place."""
    tap = "(TAPS - 1 - tap)" if lk.flip else "tap"
    return f"{group} * params.wg + {b} * params.wb + {a} * params.wa + {tap} * params.wt"


def _quads(strides: tuple[int, ...], channels: int) -> bool:
    """Whether four channels from a multiple of four on are neighbours, everywhere at a multiple of four."""
    return strides[2] == 1 and channels % 4 == 0 and all(s % 4 == 0 for i, s in enumerate(strides) if i != 2)


def _b_channels(lk: Link, strides: tuple[int, ...], channels: int) -> Mapping[str, int]:
    """How a bias's channel follows from an index of the output: (index / inner) % channels."""
    return {"inner": strides[2], "channels": lk.groups * channels}


def _numbers(lk: Link) -> dict[str, int]:
    a = dict(zip(("an", "ag", "ac", "ax0", "ax1", "ax2"), lk.a_strides, strict=True))
    b = dict(zip(("bn", "bg", "bc", "bx0", "bx1", "bx2"), lk.b_strides, strict=True))
    w = dict(zip(("wg", "wb", "wa", "wt"), lk.w_strides, strict=True))
    along: dict[str, int] = {}
    for d, axis in enumerate(lk.axes):
        along |= {f"as{d}": axis.size, f"bs{d}": axis.out, f"pad{d}": axis.pad_lo}
    return {"ca": lk.a_channels, "cb": lk.b_channels, **a, **b, **w, **along}


__all__ = ["SOURCES", "gather", "scatter", "weights"]
