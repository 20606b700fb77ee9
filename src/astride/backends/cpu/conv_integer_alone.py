"""Integer convolution of channels that are each by themselves: four taps of a channel are a quad.

Vectors of bytes, one a tap, are woven four by four, so that each lane has a channel's four taps. Weaving stays within groups of
sixteen bytes, as instructions do: `order_of` says which channel a lane has.
"""

from __future__ import annotations

from collections.abc import Sequence

from .conv_integer_cut import QUAD, Integers
from .conv_integer_finish import GROUP, ONES, Requantiser, copy_few, order_of
from .ir import Function, Value, Variable
from .ir_types import lanes as lanes_of
from .ir_types import vector
from .machine import Machine
from .quads import dot

TOGETHER = 3
"""Windows that share the weights in registers, where there are enough of these."""

TAPS = 12
"""Where the distances of taps are in the table that kernels are given: behind the number of quads, which comes first."""


def alone_windows(spec: Integers, machine: Machine, lanes: int) -> Function:
    """The function `alone_windows(windows, places, count, lanes, shift, b, begin, scale, less, nest, words)`: a block of channels
    of `count` windows, from the tables of their places; `lanes` of them are written."""
    sizes = {"count": "i64", "lanes": "i64", "shift": "i64"}
    tables = dict.fromkeys(("b", "begin", "scale", "less", "nest", "words"), "ptr")
    f = Function("alone_windows", private=True, windows="ptr", places="ptr", **sizes, **tables)
    kind, step = vector(lanes, "i32"), lanes * 4
    quads, minus = f.load("i64", f.nest), f.emit("i1", f"icmp ne ptr {f.less.text}, null")
    begin = [f.load(kind, f.at(f.begin, k * step)) for k in range(QUAD)]
    store = _Store(f, spec, machine, lanes)
    together = TOGETHER if machine.registers >= 32 else 1
    with f.loop(0, f.count, together) as first:
        # Where one is missing the last one is computed twice, which changes nothing.
        windows = [f.smaller(first + k, f.count - 1) if k else first for k in range(together)]
        places = [f.load("ptr", f.at(f.windows, window * 8)) for window in windows]
        sums = [[f.variable(kind, value) for value in begin] for _ in windows]
        with f.loop(0, quads) as quad:
            weights = [f.load(kind, f.at(f.b, quad * (QUAD * step) + k * step)) for k in range(QUAD)]
            for x, totals in zip(places, sums, strict=True):
                for taps, w, total in zip(_taps(f, x, quad, lanes), weights, totals, strict=True):
                    total.set(dot(f, spec.dot, taps, w, total.get()))
        with f.when(minus, likely=False):
            for x, totals in zip(places, sums, strict=True):
                _less(f, spec, x, quads, totals)
        for window, totals in zip(windows, sums, strict=True):
            store([total.get() for total in totals], f.at(f.load("ptr", f.at(f.places, window * 8)), f.shift))
    return f


def _less(f: Function, spec: Integers, x: Value, quads: Value, sums: Sequence[Variable]) -> None:
    """Take away what x has in w's zero points."""
    kind, lanes = sums[0].type, lanes_of(sums[0].type)
    totals = [f.variable(kind, 0) for _ in sums]
    with f.loop(0, quads) as quad:
        ones = f.splat(f.load("i32", f.at(f.load("ptr", f.at(f.words, 8 * ONES)), quad * 4)), lanes)
        for taps, total in zip(_taps(f, x, quad, lanes), totals, strict=True):
            total.set(dot(f, spec.dot, taps, ones, total.get()))
    for k, total in enumerate(totals):
        sums[k].set(sums[k].get() - f.load(kind, f.at(f.less, k * lanes * 4)) * total.get())


def _taps(f: Function, x: Value, quad: Value, lanes: int) -> list[Value]:
    """Four taps of a window, woven: quads of a block's channels, in four vectors."""
    kind, bytes_ = vector(lanes * QUAD, "i8"), lanes * QUAD
    row = f.at(f.nest, quad * (8 * QUAD) + 8 * TAPS)
    a, b, c, d = (f.load(kind, f.at(x, f.load("i64", f.at(row, 8 * k)))) for k in range(QUAD))
    pairs = [(f.shuffle(a, b, _woven(bytes_, 1, h)), f.shuffle(c, d, _woven(bytes_, 1, h))) for h in (0, 1)]
    halves = vector(lanes * 2, "i16")
    wide = [(p.bits(halves), q.bits(halves)) for p, q in pairs]
    return [f.shuffle(p, q, _woven(bytes_, 2, h)).bits(vector(lanes, "i32")) for p, q in wide for h in (0, 1)]


def _woven(bytes_: int, size: int, half: int) -> list[int]:
    """Numbers of `size` bytes of two vectors by turns, of the lower or upper half of each group."""
    count, group = bytes_ // size, min(GROUP, bytes_) // size
    places = [start + half * (group // 2) + i for start in range(0, count, group) for i in range(group // 2)]
    return [place + other for place in places for other in (0, count)]


class _Store:
    """Writes the way of a window's sums to its place, channels in order again."""

    def __init__(self, f: Function, spec: Integers, machine: Machine, lanes: int) -> None:
        self.f, self.wide, self.bytes = f, spec.wide, lanes * QUAD
        self.room = f.scratch("i8", self.bytes * (4 if spec.wide else 1))
        self.whole = f.lanes >= self.bytes
        if not spec.wide:
            self.requantise = Requantiser(f, f.words, lanes, machine, spec.signed)
            self.scales = [f.load(vector(lanes, "float"), f.at(f.scale, k * lanes * 4)) for k in range(QUAD)]

    def __call__(self, sums: Sequence[Value], place: Value) -> None:
        f = self.f
        if self.wide:
            joined, places = f.joined(sums), order_of(self.bytes)
            done = f.shuffle(joined, joined, sorted(range(self.bytes), key=places.__getitem__))
        else:
            done = self.requantise.in_groups(self.requantise(sums, self.scales))
        with f.when(self.whole, likely=True) as ragged:
            f.store(done, place)
            with ragged.otherwise():
                f.store(done, self.room)
                copy_few(f, self.room, place, f.lanes * 4 if self.wide else f.lanes)
