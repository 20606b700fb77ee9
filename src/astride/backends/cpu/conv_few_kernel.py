"""The code of conv_few.py: a block of columns, in one or several rows of y, of all output channels.

Sums are vectors of columns, one for each row, phase of the row, output channel and vector of the block; they stay in registers
over a loop over input channels. A vector of x is loaded once for all sums that have it as a tap, weights are the same in
every lane. Phases, and where channels come last the channels, are woven into rows of y when they are stored.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from . import slots
from .contraction import LINE, fused, mask_below, mask_inside, prefetch
from .conv_move import mover
from .ending import finisher, spilled, stored
from .ir import Function, Value, Variable, module
from .ir_types import BITS, lanes, vector
from .machine import Machine
from .window import kernel_function

FIELDS = (
    *("boxes", "inputs", "piece", "columns", "width", "start"),
    *("x_image", "x_channel", "x_depth", "x_row", "high_step", "deep_step", "w_channel", "w_high", "w_deep"),
    *("y_image", "y_channel", "from_image", "from_depth", "from_row", "whole", "slot", "how"),
)
"""Fields: boxes of an image; input channels, and how many are summed before sums are put aside; columns of y and of x; the
pixel of the leftmost tap of column 0. Bytes of an image, channel, depth and row of x as it is read, and from tap to tap along
height and depth; of a channel's weights, and from tap to tap; of an image and a channel of y; of an image, depth and row of x
that is packed, and whether packed rows lie as close; bytes of a thread's scratch; what is done with sums. Then tables: boxes,
depths, groups of rows and blocks of columns."""

BOX, DEPTH, GROUP, BLOCK = 12, 4, 7, 2
"""Numbers of a box: depths, groups and blocks, then depths, rows and columns of x that they read, each from and to. Of a depth:
the byte of its first tap in x, how many taps, the byte of the first in the weights, and its byte in y. Of a group: how many
rows it has, the same of the first, and the bytes from one to the next in x and in y. Of a block: its first column over phases,
and the variant that computes it."""

PIXELS, AHEAD = 16, 1 << 12
"""Pixels that are packed at once: what they have is in the nearest cache when the next of their channels are read; and the
bytes ahead of them that are asked for, since what comes next often lies on another page."""

BIAS = slots.FIRST_FREE
"""The word of a call's block with the bias's address; those behind it are the numbers of ending.py."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A block of so many vectors. `masked` are the (shift, vector) that may have pixels outside of x; with `ragged`, lanes may
    lie behind y's last column."""

    vectors: int
    masked: tuple[tuple[int, int], ...]
    ragged: bool


@dataclass(frozen=True, slots=True)
class Few:
    """All that the code depends on: the type; output channels; phases of a row; for each tap along the width how far it is
    right of the leftmost, and its phase; rows of a group that has several; variants. With `last`, channels come last."""

    kind: str
    outputs: int
    phases: int
    taps: tuple[tuple[int, int], ...]
    rows: int
    variants: tuple[Variant, ...]
    last: bool

    @property
    def bytes(self) -> int:
        return BITS[self.kind] // 8

    @property
    def shifts(self) -> tuple[int, ...]:
        return tuple(sorted({shift for shift, _ in self.taps}))


def few(spec: Few, machine: Machine) -> str:
    """The module of `few`: a is x, b the weights (inputs, depth, height, width, outputs), c the call's block, d is y; units are
    (image, box)."""
    f, blocks = kernel_function("few"), Blocks(spec, machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    boxes, depths, groups, columns = (f.at(f.geometry, f.field(f.geometry, len(FIELDS) + k)) for k in range(4))
    number, memory = slots.slot(f, f.c, get["slot"]) if spec.last else (None, f.a)
    bias, numbers = f.load("ptr", f.at(f.c, 8 * BIAS)), f.at(f.c, 8 * (BIAS + 1))
    with f.loop(f.begin, f.end) as unit:
        image, box = unit // get["boxes"], f.at(boxes, unit % get["boxes"] * (8 * BOX))
        ends = [f.load("i64", f.at(box, 8 * k)) for k in range(BOX)]
        x, y = f.at(f.a, image * get["x_image"]), f.at(f.d, image * get["y_image"])
        if spec.last:
            x = _packed(f, spec, get, image, ends[6:], memory)
        with f.loop(ends[0], ends[1]) as deep, f.loop(ends[2], ends[3]) as group:
            depth = [f.load("i64", f.at(f.at(depths, deep * (8 * DEPTH)), 8 * k)) for k in range(DEPTH)]
            row = [f.load("i64", f.at(f.at(groups, group * (8 * GROUP)), 8 * k)) for k in range(GROUP)]
            places = (f.at(x, depth[0] + row[1]), f.at(f.b, depth[2] + row[3]), f.at(y, depth[3] + row[4]))
            with f.loop(ends[4], ends[5]) as k:
                block = f.at(columns, k * (8 * BLOCK))
                first, variant = f.load("i64", block), f.load("i64", f.at(block, 8))
                blocks.call(f, row[0], variant, (*places, bias, numbers, f.geometry, first, depth[1], row[2], *row[5:]))
    helpers = []
    if number is not None:
        slots.give_back(f, f.c, number)
        helpers = [slots.taker(), mover(spec.kind, machine)]
    return module(f, *helpers, *blocks.functions)


def _packed(f: Function, spec: Few, get: dict[str, Value], image: Value, ends: list[Value], memory: Value) -> Value:
    """Bring a box of x to scratch memory, channels first: where pixel 0 of it would be."""
    pixel = get["inputs"] * spec.bytes
    deep, high, wide = ((a, b) for a, b in zip(ends[::2], ends[1::2], strict=True))
    rows, columns, whole = high[1] - high[0], wide[1] - wide[0], get["whole"].ne(0)
    count, length = f.select(whole, 1, rows), f.select(whole, rows * columns, columns)
    corner = f.at(f.a, image * get["from_image"] + high[0] * get["from_row"] + wide[0] * pixel)
    with f.loop(deep[0], deep[1]) as d, f.loop(0, count) as row, f.loop(0, length, PIXELS) as first:
        x = f.at(corner, d * get["from_depth"] + row * get["from_row"] + first * pixel)
        y = f.at(memory, (d - deep[0]) * get["x_depth"] + row * get["x_row"] + first * spec.bytes)
        some = f.smaller(length - first, f.value("i64", PIXELS))
        with f.loop(0, some * pixel, LINE) as line:
            prefetch(f, f.at(x, line + AHEAD))
        f.call("void", "move", x, y, some, get["inputs"], pixel, get["x_channel"], f.value("i64", 0))
    return f.at(memory, -(deep[0] * get["x_depth"] + high[0] * get["x_row"] + wide[0] * spec.bytes))


class Blocks:
    """The functions of one module that compute a block of columns in one or several rows."""

    def __init__(self, spec: Few, machine: Machine) -> None:
        self.spec, self.lanes = spec, max(machine.lanes(spec.kind), 2)
        self.kind = vector(self.lanes, spec.kind)
        self.functions = [finisher(self.kind)]

    def call(self, f: Function, rows: Value, variant: Value, given: tuple[Value, ...]) -> None:
        """Compute as many rows as a group has, by the variant of a block."""
        for count in sorted({self.spec.rows, 1}):
            with f.when(rows.eq(count)):
                for k, shape in enumerate(self.spec.variants):
                    name = f"few_{count}_{k}"
                    self.functions.append(self._block(name, count, shape))
                    with f.when(variant.eq(k)):
                        f.call("void", name, *given)

    def _block(self, name: str, rows: int, shape: Variant) -> Function:
        """x, w and y are at the first tap of the first row; `deep` and `high` count taps; rows are so many bytes apart."""
        given = {"bias": "ptr", "numbers": "ptr", "geometry": "ptr"}
        counts = dict.fromkeys(("first", "deep", "high", "x_apart", "y_apart"), "i64")
        f, spec = Function(name, private=True, x="ptr", w="ptr", y="ptr", **given, **counts), self.spec
        get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
        sums = Sums(f, spec, self.kind, rows, shape, get)
        with f.loop(0, get["inputs"], get["piece"]) as begin:
            with f.when(begin > 0):
                sums.put_aside()
            with f.loop(begin, f.smaller(begin + get["piece"], get["inputs"])) as channel, f.loop(0, f.deep) as z:
                x = f.at(f.x, channel * get["x_channel"] + z * get["deep_step"])
                w = f.at(f.w, channel * get["w_channel"] + z * get["w_deep"])
                with f.loop(0, f.high) as tap:
                    sums.add(f.at(x, tap * get["high_step"]), f.at(w, tap * get["w_high"]))
                if not spec.last:
                    sums.bring(f.at(x, f.high * get["high_step"] + f.x_apart * (rows - 1)))
        sums.store()
        return f


Key = tuple[int, int, int, int]
"""Of a sum: row, phase, output channel and vector."""


class Sums:
    """The sums of a block, and how rows of x are added to them."""

    def __init__(self, f: Function, spec: Few, kind: str, rows: int, shape: Variant, get: dict[str, Value]) -> None:
        self.f, self.spec, self.kind, self.get, self.rows = f, spec, kind, get, rows
        self.vectors, self.ragged = shape.vectors, shape.ragged
        self.width, self.step = lanes(kind), lanes(kind) * spec.bytes
        self.first = f.first + get["start"]
        biases = [f.splat(f.load(spec.kind, f.at(f.bias, o * spec.bytes)), self.width) for o in range(spec.outputs)]
        sizes = (rows, spec.phases, spec.outputs, shape.vectors)
        keys = itertools.product(*map(range, sizes))
        self.sums: dict[Key, Variable] = {(m, p, o, v): f.variable(kind, biases[o]) for m, p, o, v in keys}
        self.aside = f.scratch(kind, len(self.sums), 64)
        for k in range(len(self.sums)):  # zeros to which anything can be added without a trace
            f.store(f.value(kind, -0.0), f.at(self.aside, k * self.step))
        places = {(shift, v): self.first + (shift + v * self.width) for shift, v in shape.masked}
        self.inside = {key: mask_inside(f, self.width, pixel, get["width"]) for key, pixel in places.items()}

    def put_aside(self) -> None:
        """Add sums to those of the pieces before, and begin anew."""
        for k, total in enumerate(self.sums.values()):
            place = self.f.at(self.aside, k * self.step)
            self.f.store(self.f.load(self.kind, place) + total.get(), place)
            total.set(0.0)

    def add(self, x: Value, w: Value) -> None:
        """Add the taps of a row of x, and of those that other rows have there, times a row of weights."""
        f, spec = self.f, self.spec
        starts = [f.at(x, f.x_apart * m + self.first * spec.bytes) for m in range(self.rows)]
        held: dict[Key, Value] = {key: total.get() for key, total in self.sums.items()}
        places = list(itertools.product(range(self.rows), range(self.vectors)))
        for shift in spec.shifts:
            taps = [(k, phase) for k, (s, phase) in enumerate(spec.taps) if s == shift]
            factors = [(p, o, f.at(w, (k * spec.outputs + o) * spec.bytes)) for k, p in taps for o in range(spec.outputs)]
            if len(places) > len(factors):  # what is fewer stays in registers
                weights = [(p, o, self._weight(there)) for p, o, there in factors]
                for m, v in places:
                    value = self._pixels(starts[m], shift, v)
                    for p, o, weight in weights:
                        self._multiply(held, (m, p, o, v), shift, value, weight)
                continue
            values = [(m, v, self._pixels(starts[m], shift, v)) for m, v in places]
            for p, o, there in factors:
                weight = self._weight(there)
                for m, v, value in values:
                    self._multiply(held, (m, p, o, v), shift, value, weight)
        for key, value in held.items():
            self.sums[key].set(value)

    def _multiply(self, held: dict[Key, Value], key: Key, shift: int, value: Value, weight: Value) -> None:
        added, inside = fused(self.f, value, weight, held[key]), self.inside.get((shift, key[3]))
        held[key] = added if inside is None else self.f.select(inside, added, held[key])

    def _weight(self, place: Value) -> Value:
        return self.f.splat(self.f.load(self.spec.kind, place), self.width)

    def _pixels(self, x: Value, shift: int, v: int) -> Value:
        place = self.f.at(x, shift * self.spec.bytes + v * self.step)
        return self.f.load(self.kind, place, mask=self.inside.get((shift, v)))

    def bring(self, row: Value) -> None:
        """Ask for what the next rows read of a row of x."""
        place = self.f.at(row, self.first * self.spec.bytes)
        for at in range(0, self.vectors * self.step + LINE, LINE):
            prefetch(self.f, self.f.at(place, at))

    def store(self) -> None:
        """Weave what lies side by side in y, finish and store it."""
        f, spec = self.f, self.spec
        for k, total in enumerate(self.sums.values()):
            total.set(f.load(self.kind, f.at(self.aside, k * self.step)) + total.get())
        together, apart = (spec.outputs, 1) if spec.last else (1, spec.outputs)
        each = spec.phases * together
        lines = [self._line(m, range(spec.outputs) if spec.last else [o]) for m in range(self.rows) for o in range(apart)]
        pixel, rest = together * spec.bytes, (self.get["columns"] - f.first * spec.phases) * together
        masks = [mask_below(f, self.width, rest - k * self.width) if self.ragged else None for k in range(each * self.vectors)]

        def place(number: int) -> Value:
            row, channel = f.y_apart * (number // apart), self.get["y_channel"] * (number % apart)
            return f.at(f.y, row + channel + f.first * (spec.phases * pixel))

        def places() -> Value:
            return spilled(f, [place(k) for k in range(len(lines))])

        finished = [f.variable(self.kind, value) for line in lines for value in line]
        with stored(f, self.get["how"], f.numbers, finished, places, each * self.vectors, rest):
            for k, total in enumerate(finished):
                number, v = divmod(k, each * self.vectors)
                f.store(total.get(), f.at(place(number), v * self.step), mask=masks[v])

    def _line(self, m: int, channels: range | list[int]) -> list[Value]:
        """One row of y, of one channel or of all."""
        line: list[Value] = []
        for v in range(self.vectors):
            streams = [self.sums[m, p, o, v].get() for p in range(self.spec.phases) for o in channels]
            line += woven(self.f, streams)
        return line


def woven(f: Function, streams: list[Value]) -> list[Value]:
    """The first numbers of all vectors, then the second ones, and so on: as many vectors."""
    count = len(streams)
    if count == 1:
        return streams
    by = next(k for k in range(2, count + 1) if count % k == 0)
    if by < count:
        parts = [woven(f, streams[k::by]) for k in range(by)]
        return [value for group in zip(*parts, strict=True) for value in woven(f, list(group))]
    width, made = lanes(streams[0].type), []
    for vector_ in range(by):
        owner = [divmod(vector_ * width + lane, by)[::-1] for lane in range(width)]
        value = f.shuffle(streams[0], streams[1], [at + width * k if k < 2 else -1 for k, at in owner])
        for k in range(2, by):
            value = f.shuffle(value, streams[k], [width + at if o == k else lane for lane, (o, at) in enumerate(owner)])
        made.append(value)
    return made
