"""What becomes of int32 sums inside the kernels of integer convolution: x's part of w's zero point is taken away, and they are
scaled, rounded, moved and clipped to bytes.

    y = clip(round(float(sum) * scale) + zero)    in float32, halves to the even number; a NaN gives 0

Sums are clipped to what the type holds less the zero point before they are rounded, which changes nothing since the limits are whole
numbers; what is left is small enough that adding ROUNDING leaves the nearest whole number, halves to the even one, in the
lowest bits.
"""

from __future__ import annotations

import numpy as np

from .contraction import mask_below
from .ir import Function, Value
from .ir_types import vector
from .quads import dot
from .slots import FIRST_FREE

BEGIN, SCALE, LESS, ONES, END, FLIP, FILL, LOW, HIGH, ZERO = range(FIRST_FREE, FIRST_FREE + 10)
"""Words of a call's block: the addresses of what sums begin with, of scales, of w's zero points (0 if all are 0) and of quads of
ones; the end of x; the bit to turn over in x's bytes, and what its padding holds; limits, float64, and y's zero point."""

ROUNDING = 3.0 * 2.0**22
"""Float32 numbers of this size are whole."""

ROUNDED = int(np.float32(ROUNDING).view(np.int32))


def finisher(lanes: int, vectors: int, wide: bool) -> Function:
    """The function `finish_VECTORS(sums, places, rows, lanes, shift, scale, less, totals, words)`: rows of a tile's sums to the places in
    a table, `shift` bytes further; where lanes are fewer than a tile has, y is written exactly. `less` has a zero point a lane, or
    is null, and `totals` the sum of each row's window."""
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
        _as_bytes(f, kind, vectors)
    return f


def _as_they_are(f: Function, kind: str, vectors: int) -> None:
    count, step = _lanes(kind), _lanes(kind) * 4
    masks = [mask_below(f, count, f.lanes - k * count) for k in range(vectors)]
    with f.loop(0, f.rows) as row:
        place = f.at(f.load("ptr", f.at(f.places, row * 8)), f.shift)
        for k, mask in enumerate(masks):
            f.store(f.load(kind, f.at(f.sums, row * (vectors * step) + k * step)), f.at(place, k * step), mask=mask)


def _as_bytes(f: Function, kind: str, vectors: int) -> None:
    count, step = _lanes(kind), _lanes(kind) * 4
    requantise = Requantiser(f, f.words, count)
    scales = [f.load(vector(count, "float"), f.at(f.scale, k * step)) for k in range(vectors)]
    room = f.scratch("i8", vectors * count)
    whole = f.lanes >= vectors * count
    with f.loop(0, f.rows) as row:
        place = f.at(f.load("ptr", f.at(f.places, row * 8)), f.shift)
        sums = [f.load(kind, f.at(f.sums, row * (vectors * step) + k * step)) for k in range(vectors)]
        done = [requantise(total, scale) for total, scale in zip(sums, scales, strict=True)]
        with f.when(whole, likely=True) as ragged:
            for k, value in enumerate(done):
                f.store(value, f.at(place, k * count))
            with ragged.otherwise():
                for k, value in enumerate(done):
                    f.store(value, f.at(room, k * count))
                copy_few(f, room, place, f.lanes)


def copy_few(f: Function, source: Value, place: Value, count: Value) -> None:
    """Some bytes, by fours and one by one."""
    fours = count // 4 * 4
    with f.loop(0, fours, 4) as at:
        f.store(f.load("i32", f.at(source, at)), f.at(place, at))
    with f.loop(fours, count) as at:
        f.store(f.load("i8", f.at(source, at)), f.at(place, at))


def _lanes(kind: str) -> int:
    from .ir_types import lanes

    return lanes(kind)


class Requantiser:
    """Writes the way from a vector of sums to bytes."""

    def __init__(self, f: Function, words: Value, lanes: int) -> None:
        self.f, self.lanes = f, lanes
        zero = f.load("i64", f.at(words, 8 * ZERO))
        self.low, self.high = (f.splat(f.load("double", f.at(words, 8 * k)).to("float"), lanes) for k in (LOW, HIGH))
        self.nothing = f.splat((-zero).to("float"), lanes)
        self.moved = f.splat((zero - ROUNDED).to("i32"), lanes)

    def __call__(self, total: Value, scale: Value) -> Value:
        """Bytes of int32 sums."""
        f = self.f
        scaled = total.to("float") * scale
        value = f.select(scaled.is_nan(), self.nothing, scaled)
        value = f.select(value < self.high, value, self.high)
        value = f.select(value > self.low, value, self.low)
        return ((value + ROUNDING).bits(total.type) + self.moved).to("i8")


def totaller(lanes: int, how: str) -> Function:
    """The function `window_total(x, nest, ones)`: the sum of the bytes that a window reads, by the nest of its quads. `ones` has a
    quad of ones for each of a run, zeros where the run ends."""
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
    value = total.get()
    while lanes > 1:
        lanes //= 2
        value = f.shuffle(value, value, range(lanes)) + f.shuffle(value, value, range(lanes, 2 * lanes))
    f.give(value)
    return f
