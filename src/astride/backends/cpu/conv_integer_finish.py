"""What becomes of int32 sums inside the kernels of integer convolution: x's part of w's zero point is taken away, and they are
scaled, rounded, moved and clipped to bytes.

    y = clip(round(float(sum) * scale) + zero)    in float32, halves to the even number, scales finite

On x86 four vectors of numbers are rounded by a conversion and clipped by the instructions that pack them, in groups of sixteen
bytes. Elsewhere they are clipped before they are rounded, which changes nothing since limits are whole numbers; what is left is
small enough that adding ROUNDING leaves the nearest whole number, halves to the even one, in the lowest bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .contraction import added_up, mask_below
from .ir import Function, Value
from .ir_types import lanes as lanes_of
from .ir_types import vector
from .machine import Machine
from .quads import dot
from .slots import FIRST_FREE

BEGIN, SCALE, LESS, ONES, FLIP, FILL, LOW, HIGH, ZERO, END = range(FIRST_FREE, FIRST_FREE + 10)
"""Words of a call's block: the addresses of what sums begin with, of scales, of w's zero points (0 if all are 0) and of quads of
ones; the bit to turn over in x's bytes, and what its padding holds; limits, float64, and y's zero point; the end of x."""

ROUNDING = 3.0 * 2.0**22
"""Float32 numbers of this size are whole."""

LARGE = 2.0**30
"""More than any byte, and less than int32 holds."""

FOUR, GROUP = 4, 16
"""Vectors that are packed together, and bytes within which instructions pack and weave."""

ROUNDED = int(np.float32(ROUNDING).view(np.int32))


def finisher(machine: Machine, lanes: int, vectors: int, wide: bool, signed: bool) -> Function:
    """The function `finish_VECTORS(sums, places, rows, lanes, shift, scale, less, totals, words)`: rows of a tile's sums to the
    places in a table, `shift` bytes further; where lanes are fewer than a tile has, y is written exactly. `less` has a zero
    point a lane, or is null, and `totals` the sum of each row's window."""
    numbers = {"rows": "i64", "lanes": "i64", "shift": "i64"}
    tables = {"scale": "ptr", "less": "ptr", "totals": "ptr", "words": "ptr"}
    f = Function(f"finish_{vectors}", private=True, sums="ptr", places="ptr", **numbers, **tables)
    kind, step = vector(lanes, "i32"), lanes * 4
    with f.when(f.emit("i1", f"icmp ne ptr {f.less.text}, null"), likely=False):
        less = [f.load(kind, f.at(f.less, k * step)) for k in range(vectors)]
        with f.loop(0, f.rows) as row:
            total = f.splat(f.load("i32", f.at(f.totals, row * 4)), lanes)
            for k in range(vectors):
                place = f.at(f.sums, row * (vectors * step) + k * step)
                f.store(f.load(kind, place) - less[k] * total, place)
    if wide:
        _as_they_are(f, kind, vectors)
    else:
        _as_bytes(f, kind, vectors, machine, signed)
    return f


def _as_they_are(f: Function, kind: str, vectors: int) -> None:
    count, step = lanes_of(kind), lanes_of(kind) * 4
    masks = [mask_below(f, count, f.lanes - k * count) for k in range(vectors)]
    with f.loop(0, f.rows) as row:
        place = f.at(f.load("ptr", f.at(f.places, row * 8)), f.shift)
        for k, mask in enumerate(masks):
            f.store(f.load(kind, f.at(f.sums, row * (vectors * step) + k * step)), f.at(place, k * step), mask=mask)


def _as_bytes(f: Function, kind: str, vectors: int, machine: Machine, signed: bool) -> None:
    """Four vectors at a time: a row, two or four."""
    count, step = lanes_of(kind), lanes_of(kind) * 4
    requantise = Requantiser(f, f.words, count, machine, signed)
    scales = [f.load(vector(count, "float"), f.at(f.scale, k * step)) for k in range(vectors)]
    room, whole, together = f.scratch("i8", vectors * count), f.lanes >= vectors * count, FOUR // vectors
    with f.loop(0, f.rows, together) as row:
        sums = [f.load(kind, f.at(f.sums, row * (vectors * step) + k * step)) for k in range(FOUR)]
        done = requantise.in_rows(requantise(sums, scales * together))
        for r in range(together):
            value = f.shuffle(done, done, range(r * vectors * count, (r + 1) * vectors * count))
            with f.when((row + r) < f.rows):
                place = f.at(f.load("ptr", f.at(f.places, (row + r) * 8)), f.shift)
                with f.when(whole, likely=True) as ragged:
                    f.store(value, place)
                    with ragged.otherwise():
                        f.store(value, room)
                        copy_few(f, room, place, f.lanes)


def copy_few(f: Function, source: Value, place: Value, count: Value) -> None:
    """Some bytes, by fours and one by one."""
    fours = count // 4 * 4
    with f.loop(0, fours, 4) as at:
        f.store(f.load("i32", f.at(source, at)), f.at(place, at))
    with f.loop(fours, count) as at:
        f.store(f.load("i8", f.at(source, at)), f.at(place, at))


class Requantiser:
    """Writes the way from four vectors of sums to bytes."""

    def __init__(self, f: Function, words: Value, lanes: int, machine: Machine, signed: bool) -> None:
        self.f, self.lanes, self.signed = f, lanes, signed
        x86 = machine.triple.startswith("x86_64")
        self.packs = {16: "avx512", 8: "avx2"}.get(lanes, "") if x86 else ""
        zero = f.load("i64", f.at(words, 8 * ZERO))
        if self.packs:
            self.moved = f.splat(zero.to("i16"), 2 * lanes)
        else:
            self.low, self.high = (f.splat(f.load("double", f.at(words, 8 * k)).to("float"), lanes) for k in (LOW, HIGH))
            self.moved = f.splat((zero - ROUNDED).to("i32"), lanes)

    def __call__(self, totals: Sequence[Value], scales: Sequence[Value]) -> Value:
        """Bytes of four vectors of sums: sixteen at a time, four of each vector, where instructions pack; else one vector after
        the other."""
        f = self.f
        scaled = [total.to("float") * scale for total, scale in zip(totals, scales, strict=True)]
        if not self.packs:
            return f.joined([self._clipped(value) for value in scaled])
        a, b, c, d = (self._whole(value) for value in scaled)
        halves = [self._pack("packssdw", *pair) for pair in ((a, b), (c, d))]
        moved = [f.binary("sadd.sat", half, self.moved) for half in halves]
        return self._pack("packsswb" if self.signed else "packuswb", *moved)

    def in_rows(self, packed: Value) -> Value:
        """One vector after the other."""
        if not self.packs:
            return packed
        f, parts = self.f, self.lanes // FOUR
        words = packed.bits(vector(self.lanes, "i32"))
        order = [j * FOUR + k for k in range(FOUR) for j in range(parts)]
        return f.shuffle(words, words, order).bits(packed.type)

    def in_groups(self, packed: Value) -> Value:
        """Sixteen bytes at a time, four of each vector; fewer where vectors are shorter."""
        if self.packs:
            return packed
        places = order_of(self.lanes * FOUR)
        return self.f.shuffle(packed, packed, sorted(range(len(places)), key=places.__getitem__))

    def _clipped(self, value: Value) -> Value:
        f = self.f
        value = f.select(value < self.high, value, self.high)
        value = f.select(value > self.low, value, self.low)
        return ((value + ROUNDING).bits(vector(self.lanes, "i32")) + self.moved).to("i8")

    def _whole(self, value: Value) -> Value:
        """The nearest whole number; the lowest, if it is too low, and something above all bytes, if it is too high."""
        f, kind = self.f, vector(self.lanes, "i32")
        value = f.select(value < LARGE, value, LARGE)
        if self.packs == "avx2":
            return f.call(kind, "llvm.x86.avx.cvt.ps2dq.256", value)
        more = (f.value(kind, 0), f.value("i16", -1), f.value("i32", 4))
        return f.call(kind, "llvm.x86.avx512.mask.cvtps2dq.512", value, *more)

    def _pack(self, name: str, a: Value, b: Value) -> Value:
        """Numbers half as wide, those of a and b by turns in groups of sixteen bytes, clipped."""
        kind = vector(lanes_of(a.type) * 2, "i16" if name == "packssdw" else "i8")
        suffix = ".512" if self.packs == "avx512" else ""
        return self.f.call(kind, f"llvm.x86.{self.packs}.{name}{suffix}", a, b)


def order_of(bytes_: int) -> list[int]:
    """The number in each place of four vectors that lie one after the other, if they were woven in groups of sixteen bytes, or of
    all there are: the first quarter of each group is in the first vector."""
    group = min(GROUP, bytes_)
    part = group // FOUR
    return [start + k * part + i for k in range(FOUR) for start in range(0, bytes_, group) for i in range(part)]


def totaller(lanes: int, how: str) -> Function:
    """The function `window_total(x, nest, ones)`: the sum of the bytes that a window reads, by the nest of its quads. `ones` has
    a quad of ones for each of a run, zeros where the run ends."""
    f = Function("window_total", private=True, result="i32", x="ptr", nest="ptr", ones="ptr")
    kind = vector(lanes, "i32")
    counts, steps = ([f.load("i64", f.at(f.nest, 8 * (4 * part + k))) for k in range(4)] for part in range(2))
    total = f.variable(kind, 0)
    with f.loop(0, counts[0]) as i, f.loop(0, counts[1]) as j, f.loop(0, counts[2]) as k:
        run = f.at(f.x, i * steps[0] + j * steps[1] + k * steps[2])
        with f.loop(0, counts[3], lanes) as at:
            mask = mask_below(f, lanes, counts[3] - at)
            x, ones = (f.load(kind, f.at(place, at * 4), mask=mask) for place in (run, f.ones))
            total.set(dot(f, how, x, ones, total.get()))
    f.give(added_up(f, total.get(), lanes))
    return f
