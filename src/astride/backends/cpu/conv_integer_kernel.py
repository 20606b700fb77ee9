"""The kernel of integer convolution: a unit packs the bytes it reads (conv_integer_cut.py), multiplies quads in tiles
(contraction.py), and brings the sums of each tile to where they belong while these are in the cache."""

from __future__ import annotations

from collections.abc import Iterable

from . import slots
from .conv_integer_alone import alone_windows
from .conv_integer_bytes import copier, filler, turner_in, turner_out
from .conv_integer_cut import AXES, FIELDS, QUAD, Integers
from .conv_integer_finish import BEGIN, END, FILL, FLIP, LESS, ONES, SCALE, finisher, totaller
from .conv_integer_tile import Shapes, call_tiles, shapes, tiles
from .conv_move import mover
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine
from .window import kernel_function


def integer_kernel(spec: Integers, machine: Machine) -> str:
    """The module of `integers`: a is x, b the packed weights, c the call's block, d is y. Units are (image, group, box, part of
    the group's blocks)."""
    f, made = kernel_function("integers"), shapes(machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    number, memory = slots.slot(f, f.c, get["slot"])
    sums = _Sums(f, spec, made, get, memory)
    with f.loop(f.begin, f.end) as unit:
        box = Box(f, spec, get, unit // get["parts"], memory)
        box.pack()
        count = box.places()
        first = unit % get["parts"] * get["part"]
        last = f.smaller(first + get["part"], get["blocks"])
        sums.open(first, last, count)
        with f.loop(first, last) as block:
            lanes = f.smaller(get["outputs"] - block * spec.block, f.value("i64", spec.block))
            sums.compute(box.group, block, count, lanes)
            if spec.first:
                box.unpack(block, lanes)
    slots.give_back(f, f.c, number)
    return module(f, *_used(spec, made, machine))


def _used(spec: Integers, made: Shapes, machine: Machine) -> list[Function]:
    """The functions the kernel calls."""
    used = [slots.taker(), filler(), turner_in() if spec.first else copier()]
    if spec.first:
        used.append(mover("i32", machine) if spec.wide else turner_out())
    if spec.alone:
        return [*used, alone_windows(spec, machine, spec.block // QUAD)]
    finishers = [finisher(machine, made.lanes, vectors, spec.wide, spec.signed) for vectors in made.rows]
    return [*used, *finishers, totaller(made.lanes, spec.dot), *tiles(made, spec.dot)]


def word(f: Function, which: int, kind: str = "i64") -> Value:
    """A word of the call's block."""
    return f.load(kind, f.at(f.c, 8 * which))


class Box:
    """Writes what is done once for a box of windows: where it is, its pixels and the places of its windows."""

    def __init__(self, f: Function, spec: Integers, get: dict[str, Value], rest: Value, memory: Value) -> None:
        self.f, self.spec, self.get, self.memory = f, spec, get, memory
        self.first: list[Value] = []
        self.count: list[Value] = []
        self.low: list[Value] = []
        self.high: list[Value] = []
        for k in (2, 1, 0):
            axis = {name: get[f"{name}{k}"] for name in AXES}
            first, rest = rest % axis["boxes"] * axis["windows"], rest // axis["boxes"]
            count = f.smaller(axis["windows"], axis["out"] - first)
            low = first * axis["stride"] - axis["pad"]
            self.first.insert(0, first)
            self.count.insert(0, count)
            self.low.insert(0, low)
            self.high.insert(0, low + (count - 1) * axis["stride"] + axis["reach"])
        self.group, self.image = rest % get["groups"], rest // get["groups"]
        # The last group of channels that are by themselves begins early enough to be full.
        self.x_channel = f.smaller(self.group * get["inputs"], get["x_channels"] - get["inputs"])
        self.y_channel = f.smaller(self.group * get["outputs"], get["y_channels"] - get["outputs"])
        self.source = f.at(f.a, self.image * get["x_image"] + self.x_channel * get["x_channel"])
        self.origin = f.variable("ptr", memory)

    def steps(self, name: str) -> list[Value]:
        """One field of each axis."""
        return [self.get[f"{name}{k}"] for k in range(3)]

    def pack(self) -> None:
        """The box's pixels, with padding, one after the other; or where they are in x."""
        f, get = self.f, self.get
        start = f.at(self.source, sum_of(a * b for a, b in zip(self.low, self.steps("x_step"), strict=True)))
        size, step = self.steps("size"), self.steps("step")
        with f.when(get["direct"].ne(0)) as packed:
            self.origin.set(start)
            with packed.otherwise(), f.loop(self.low[0], self.high[0]) as d, f.loop(self.low[1], self.high[1]) as h:
                place = f.at(self.memory, (d - self.low[0]) * step[0] + (h - self.low[1]) * step[1])
                with f.when(d.below(size[0]) & h.below(size[1]), likely=True) as outside:
                    self._row(place, d, h)
                    with outside.otherwise():
                        self._fill(place, self.high[2] - self.low[2])

    def _row(self, place: Value, d: Value, h: Value) -> None:
        """Pixels of one row: padding, what is in x, padding."""
        f, get = self.f, self.get
        all_, pixel = self.high[2] - self.low[2], get["step2"]
        start = f.larger(self.low[2], 0)
        inside = f.larger(f.smaller(self.high[2], get["size2"]) - start, 0)
        left = f.larger(f.smaller(-self.low[2], all_), 0)
        steps = self.steps("x_step")
        x, y = f.at(self.source, d * steps[0] + h * steps[1] + start * steps[2]), f.at(place, left * pixel)
        channels = get["inputs"]
        flip = word(f, FLIP, "i8")
        self._fill(place, left)
        with f.when((inside > 0) & (channels > 0), likely=True):
            if self.spec.first:
                sizes = (channels, inside, get["x_channel"], pixel)
                f.call("void", "turn_in", x, y, *sizes, flip, word(f, END, "ptr"))
            else:
                with f.when(pixel.eq(get["x_channels"]), likely=True) as groups:
                    f.call("void", "copy_bytes", x, y, inside * pixel, flip)
                    with groups.otherwise(), f.loop(0, inside) as w:
                        self._pixel(f.at(x, w * steps[2]), f.at(y, w * pixel), channels, flip)
        self._fill(f.at(y, inside * pixel), all_ - left - inside)

    def _pixel(self, x: Value, y: Value, channels: Value, flip: Value) -> None:
        """A group's channels of one pixel."""
        f, block = self.f, self.spec.block
        if not self.spec.alone:
            f.call("void", "copy_bytes", x, y, channels, flip)
            return
        with f.when(channels.eq(block), likely=True) as few:
            f.store(f.load(vector(block, "i8"), x) ^ f.splat(flip, block), y)
            with few.otherwise():
                f.call("void", "copy_bytes", x, y, channels, flip)

    def _fill(self, place: Value, pixels: Value) -> None:
        f = self.f
        with f.when(pixels > 0):
            f.call("void", "fill_bytes", place, pixels * self.get["step2"], word(f, FILL, "i8"))

    def places(self) -> Value:
        """Write the tables of places that windows have in what is read and in y, the last in x repeated; how many there are."""
        f, get, spec = self.f, self.get, self.spec
        windows, results = f.at(self.memory, get["windows_at"]), f.at(self.memory, get["y_places_at"])
        strides = [a * b for a, b in zip(self.steps("stride"), self.steps("step"), strict=True)]
        out = self.steps("out")
        at = f.variable("i64", 0)
        base = f.at(f.d, self.image * get["y_image"] + self.y_channel * get["y_channel"])
        own = f.at(self.memory, get["y_at"])
        with f.loop(0, self.count[0]) as d, f.loop(0, self.count[1]) as h:
            x = f.variable("ptr", f.at(self.origin.get(), d * strides[0] + h * strides[1]))
            row = (self.first[0] + d) * out[1] + (self.first[1] + h)
            y = f.variable("ptr", f.at(base, (row * out[2] + self.first[2]) * get["y_pixel"]))
            with f.loop(0, self.count[2]):
                here = at.get()
                f.store(x.get(), f.at(windows, here * 8))
                f.store(f.at(own, here * own_step(spec)) if spec.first else y.get(), f.at(results, here * 8))
                x.set(f.at(x.get(), strides[2]))
                y.set(f.at(y.get(), get["y_pixel"]))
                at.set(here + 1)
        count = at.get()
        with f.when(count > 0):
            last = f.load("ptr", f.at(windows, (count - 1) * 8))
            for k in range(spec.rows - 1):
                f.store(last, f.at(windows, (count + k) * 8))
        return count

    def unpack(self, block: Value, lanes: Value) -> None:
        """A block's results from scratch memory to its planes of y."""
        f, get, spec = self.f, self.get, self.spec
        step, bytes_ = own_step(spec), 4 if spec.wide else 1
        out, whole = self.steps("out"), self.count[2].eq(get["out2"])
        rows = f.select(whole, self.count[1] * self.count[2], self.count[2])
        y = f.at(f.d, self.image * get["y_image"] + (self.y_channel + block * spec.block) * get["y_channel"])
        with f.loop(0, self.count[0]) as d, f.loop(0, f.select(whole, 1, self.count[1])) as h:
            own = f.at(f.at(self.memory, get["y_at"]), (d * self.count[1] + h) * self.count[2] * step)
            row = (self.first[0] + d) * out[1] + (self.first[1] + h)
            place = f.at(y, (row * out[2] + self.first[2]) * bytes_)
            sizes = (rows, lanes, f.value("i64", step), get["y_channel"])
            if spec.wide:
                f.call("void", "move", own, place, *sizes, f.value("i64", 0))
            else:
                f.call("void", "turn_out", own, place, *sizes, f.value("i8", 0))


def own_step(spec: Integers) -> int:
    """Bytes of a window's results in scratch memory."""
    return spec.block * (4 if spec.wide else 1)


def sum_of(values: Iterable[Value]) -> Value:
    first, *rest = values
    for value in rest:
        first = first + value
    return first


class _Sums:
    """Writes the loop over a box's windows: tiles, and what becomes of their sums."""

    def __init__(self, f: Function, spec: Integers, made: Shapes, get: dict[str, Value], memory: Value) -> None:
        self.f, self.spec, self.made, self.get = f, spec, made, get
        self.windows, self.results = f.at(memory, get["windows_at"]), f.at(memory, get["y_places_at"])
        self.totals = f.at(memory, get["totals_at"])
        self.nest = f.at(f.geometry, 8 * len(FIELDS))
        self.sums = f.scratch("i8", max(rows[0] * v for v, rows in made.rows.items()) * made.lanes * 4, 64)

    def open(self, first: Value, last: Value, count: Value) -> None:
        """What all blocks of a box have in common: the sum of each window, if zero points of w ask for it."""
        f = self.f
        if self.spec.alone:
            return
        with f.when(word(f, LESS).ne(0) & (first < last), likely=False), f.loop(0, count) as window:
            x = f.load("ptr", f.at(self.windows, window * 8))
            total = f.call("i32", "window_total", x, self.nest, word(f, ONES, "ptr"))
            f.store(total, f.at(self.totals, window * 4))

    def compute(self, group: Value, block: Value, count: Value, lanes: Value) -> None:
        """All windows of one block of channels."""
        f, get, spec = self.f, self.get, self.spec
        place = group * get["blocks"] + block
        b, shift = f.at(f.b, place * get["panel"]), f.value("i64", 0) if spec.first else block * own_step(spec)
        begin, scale = (f.at(word(f, k, "ptr"), place * (spec.block * 4)) for k in (BEGIN, SCALE))
        less = f.select(word(f, LESS).ne(0), f.at(word(f, LESS, "ptr"), place * (spec.block * 4)), f.value("ptr", 0))
        given = f.value("i64", spec.block) if spec.first else lanes  # scratch memory has room for all
        if spec.alone:
            places = (self.windows, self.results, count, given, shift)
            f.call("void", "alone_windows", *places, b, begin, scale, less, self.nest, f.c)
            return
        sizes = sorted(self.made.rows)
        for vectors, fewer in zip(sizes, (0, *sizes), strict=False):
            with f.when((lanes > fewer * self.made.lanes) & (lanes <= vectors * self.made.lanes)):
                self._tiles(vectors, count, (b, begin), (given, shift, scale, less))

    def _tiles(self, vectors: int, count: Value, weights: tuple[Value, Value], ending: tuple[Value, ...]) -> None:
        """All windows, in tiles of so many vectors."""
        f, rows = self.f, self.made.rows[vectors][0]
        given, shift, scale, less = ending
        with f.loop(0, count, rows) as window:
            left = f.smaller(count - window, f.value("i64", rows))
            call_tiles(f, self.made, vectors, left, f.at(self.windows, window * 8), *weights, self.nest, self.sums)
            where = (f.at(self.results, window * 8), left, given, shift)
            f.call("void", f"finish_{vectors}", self.sums, *where, scale, less, f.at(self.totals, window * 4), f.c)
