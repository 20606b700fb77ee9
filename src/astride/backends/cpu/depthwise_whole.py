"""Depthwise convolution of small planes where the channels come first: a whole plane is written out, rows, columns and edges.

All of a plane's sizes are in the code: which lanes of which vector have a tap inside is known when it is written, so that nothing
is left to do but load, multiply and add. Rows of x come one after the other, each loaded once a tap for all rows of y that read
it. Lanes are columns of y; of a stretched x those of one phase, which are woven when they are stored. A unit is a plane.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ...plan import StridedAxis
from ..epilogue import Epilogue
from ..protocol import Array
from .cache import functions
from .contraction import fused, opaque
from .conv_pack import first_sums
from .conv_relation import Relation
from .edges import taps_inside
from .ending import bits, finisher, given, opened
from .ir import Function, Value, module
from .ir_types import BITS, vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

CHANNELS, HOW = range(2)
"""Fields: channels; what is done with sums."""

MOST = 640
"""Products of vectors that are written out, at most: they take a tenth of a second to compile."""

MOST_TAPS = 25
"""Taps of a window, at most: each has a register for its weight."""

TAKEN = 1 << 15
"""Products that a thread takes at once, at least."""


@dataclass(frozen=True)
class Whole:
    """All that the code depends on: height and width, and whether weights are turned."""

    kind: str
    high: StridedAxis
    wide: StridedAxis
    flip: bool

    @property
    def bytes(self) -> int:
        return BITS[self.kind] // 8

    @property
    def phases(self) -> int:
        """Kinds of columns of y, which read different taps."""
        return self.wide.input_dilation

    @property
    def planes(self) -> tuple[int, int]:
        """Bytes of a plane of x and of y."""
        return self.high.size * self.wide.size * self.bytes, self.high.out * self.wide.out * self.bytes

    @cached_property
    def readers(self) -> dict[int, list[tuple[int, int]]]:
        """For every row of x that is read the rows of y that do, each with the number of its tap along the height."""
        taps, found = taps_inside(self.high), dict[int, list[tuple[int, int]]]()
        rows = zip(*(part.tolist() for part in (taps.pixel, taps.number, taps.count)), strict=True)
        for y, (pixel, number, count) in enumerate(rows):
            for k in range(count):
                found.setdefault(pixel + k * taps.step, []).append((y, number + k * taps.skip))
        return dict(sorted(found.items()))

    def vectors(self, lanes: int) -> int:
        """Vectors of a phase of a row."""
        return -(-self.wide.out // (self.phases * lanes))

    def tap(self, tap: int, phase: int, first: int, lanes: int) -> tuple[int, list[bool]] | None:
        """The pixel of a tap of a phase's window number `first`, and which of the next windows have it inside; None if none has.
        From one window to the next it is `stride` pixels."""
        axis = self.wide
        place = (phase + self.phases * first) * axis.stride - axis.pad_lo + tap * axis.dilation
        if place % axis.input_dilation:
            return None
        pixel, last = place // axis.input_dilation, axis.out - phase
        inside = [0 <= pixel + axis.stride * k < axis.size and self.phases * (first + k) < last for k in range(lanes)]
        return (pixel, inside) if any(inside) else None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry and how many planes a thread takes."""

    address: int
    geometry: Geometry
    taken: int


def specification(relation: Relation) -> Whole:
    """What the code depends on."""
    _, high, wide = relation.volume
    return Whole(relation.spec.kind, high, wide, relation.flip)


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int = 1) -> bool:
    """Whether planes are flat and small enough to be written out."""
    if not relation.depthwise or len(relation.axes) > 2 or not 0 < relation.taps <= MOST_TAPS:
        return False
    wide = relation.axes[-1]
    return (wide.stride, wide.input_dilation) in ((1, 1), (2, 1), (1, 2)) and 0 < products(relation) <= MOST


@lru_cache(maxsize=512)
def products(relation: Relation) -> int:
    """Products of vectors in a plane, about: padding is counted."""
    lanes, axes = relation.spec.lanes(machine()), relation.axes
    rows = math.prod(-(-axis.out * axis.kernel // axis.input_dilation) for axis in axes[:-1])
    return rows * axes[-1].kernel * -(-axes[-1].out // (axes[-1].input_dilation * lanes))


def compute(
    relation: Relation,
    x: Array,
    w: Array,
    b: Array | None,
    y: Array,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """y (N, channels, *out) from x (N, channels, *size) and w (channels, 1, *kernel), all contiguous and of one dtype."""
    if not y.size:
        return
    how = bits(epilogue, residual)
    found = schedule(relation, how)
    bias = first_sums(relation, b)
    begin, memory = given(how, bias, epilogue, residual, y)
    places = (address_of(x), address_of(w), begin, address_of(y))
    run(found.address, found.geometry.address, *places, len(x) * relation.outputs, found.taken)
    del memory


@lru_cache(maxsize=512)
def schedule(relation: Relation, how: int = 0) -> Schedule:
    """How a relation is computed over any number of images; `how` is what is done with sums."""
    spec = specification(relation)
    (address,) = functions("depthwise_whole", spec, lambda: whole(spec, machine()), ("whole",))
    taken = max(TAKEN // (spec.high.out * spec.wide.out * relation.taps), 1)
    return Schedule(address, Geometry([relation.outputs, how], []), taken)


def whole(spec: Whole, machine: Machine) -> str:
    """The module of `whole`: a is x, b the weights, c the bias as `given`, d is y; units are planes."""
    f, lanes = kernel_function("whole"), max(machine.lanes(spec.kind), 2)
    channels, how = (f.field(f.geometry, k) for k in range(2))
    begin, numbers = opened(f, how, f.c)
    x_plane, y_plane = spec.planes
    taps, table = spec.high.kernel * spec.wide.kernel, f.scratch("ptr", 1)
    with f.loop(f.begin, f.end) as plane:
        channel, y = plane % channels, f.at(f.d, plane * y_plane)
        w = f.at(f.b, channel * (taps * spec.bytes))
        numbers_of = [f.load(spec.kind, f.at(w, (taps - 1 - t if spec.flip else t) * spec.bytes)) for t in range(taps)]
        weights = [f.splat(number, lanes) for number in numbers_of]
        bias = f.splat(f.load(spec.kind, f.at(begin, channel * spec.bytes)), lanes)
        _plane(f, spec, lanes, (f.at(f.a, plane * x_plane), y), weights, bias)
        with f.when(how.ne(0), likely=False):  # all of it once more, while it is near
            f.store(y, table)
            length = f.value("i64", y_plane // spec.bytes)
            vectors = f.value("i64", -(-y_plane // (lanes * spec.bytes)))
            f.call("void", "finish", y, table, f.value("i64", 1), vectors, how, numbers, length)
    return module(f, finisher(vector(lanes, spec.kind)))


def _plane(f: Function, spec: Whole, lanes: int, places: tuple[Value, Value], weights: list[Value], bias: Value) -> None:
    """One plane of y from one of x."""
    rows, readers = Pixels(f, spec, lanes, places[0]), spec.readers
    left = {y: sum(y == reader for users in readers.values() for reader, _ in users) for y in range(spec.high.out)}
    sums = {y: [bias] * (spec.phases * rows.vectors) for y in range(spec.high.out)}
    for y in (y for y, count in left.items() if not count):
        _put(f, spec, lanes, places[1], y, sums.pop(y))
    for x, users in readers.items():
        for tap in range(spec.wide.kernel):
            for nth in range(spec.phases * rows.vectors):
                found = rows.load(x, tap, nth)
                if found is None:
                    continue
                mask = None if found[1] == rows.windows(nth) else rows.mask(found[1])
                for y, above in users:
                    added = fused(f, found[0], weights[above * spec.wide.kernel + tap], sums[y][nth])
                    sums[y][nth] = added if mask is None else f.select(mask, added, sums[y][nth])
        for y, _ in users:
            left[y] -= 1
            if not left[y]:
                _put(f, spec, lanes, places[1], y, sums.pop(y))


def _put(f: Function, spec: Whole, lanes: int, y: Value, row: int, sums: list[Value]) -> None:
    """Store a row of y, whose phases are woven."""
    out, vectors = spec.wide.out, len(sums) // spec.phases
    if spec.phases == 2:
        woven = [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)]
        pairs = zip(sums[:vectors], sums[vectors:], strict=True)
        sums = [f.shuffle(even, odd, half) for even, odd in pairs for half in (woven[:lanes], woven[lanes:])]
    for k, total in enumerate(sums):
        first = k * lanes
        if first < out:
            mask = None if first + lanes <= out else f.value(vector(lanes, "i1"), [first + m < out for m in range(lanes)])
            f.store(total, f.at(y, (row * out + first) * spec.bytes), mask=mask)


class Pixels:
    """What the windows of a row have as one of their taps, a vector at a time: pixels of x, or every second one."""

    def __init__(self, f: Function, spec: Whole, lanes: int, x: Value) -> None:
        self.f, self.spec, self.lanes, self.x = f, spec, lanes, x
        self.vectors = spec.vectors(lanes)
        self._row, self._known = -1, dict[int, Value]()
        self._masks = dict[tuple[bool, ...], Value]()

    def load(self, row: int, tap: int, nth: int) -> tuple[Value, list[bool]] | None:
        """The pixels of a tap in vector number `nth` of a row, phase after phase, and which windows have one; None where none
        has. In other lanes is anything."""
        f, spec, lanes = self.f, self.spec, self.lanes
        phase, number = divmod(nth, self.vectors)
        found = spec.tap(tap, phase, number * lanes, lanes)
        if found is None:
            return None
        pixel, inside = found
        if spec.wide.stride == 1:
            return self._read(row, pixel), inside
        # Neighbouring pixels come from the same two vectors, of which one tap takes the even and one the odd ones.
        odd = (pixel + spec.wide.pad_lo) % 2
        parts = [self._read(row, pixel - odd + more) for more in (0, lanes)]
        return f.shuffle(parts[0], parts[1], range(odd, 2 * lanes, 2)), inside

    def mask(self, inside: list[bool]) -> Value:
        """These lanes, to choose by. Where vectors have 64 bytes it is a number of which LLVM knows nothing: of constants it
        makes shuffles, which take longer than masked products."""
        f, kind, key = self.f, vector(self.lanes, "i1"), tuple(inside)
        if self.lanes * self.spec.bytes < 64:
            return f.value(kind, inside)
        if key not in self._masks:
            number = opaque(f, f.value(f"i{self.lanes}", sum(there << k for k, there in enumerate(inside))))
            self._masks[key] = number.bits(kind)
        return self._masks[key]

    def windows(self, nth: int) -> list[bool]:
        """Which windows of a vector there are."""
        phase, number = divmod(nth, self.vectors)
        return [self.spec.phases * (number * self.lanes + k) + phase < self.spec.wide.out for k in range(self.lanes)]

    def _read(self, row: int, first: int) -> Value:
        """Neighbouring pixels, zeros outside the row; those of the same row are read once."""
        f, kind = self.f, vector(self.lanes, self.spec.kind)
        if row != self._row:
            self._row, self._known = row, {}
        if first not in self._known:
            inside = [0 <= first + k < self.spec.wide.size for k in range(self.lanes)]
            place = f.at(self.x, (row * self.spec.wide.size + first) * self.spec.bytes)
            mask = None if all(inside) else f.value(vector(self.lanes, "i1"), inside)
            self._known[first] = f.load(kind, place, mask=mask) if any(inside) else f.value(kind, 0)
        return self._known[first]
