"""The kernel of conv_planar.py: packs what a unit reads, and computes tiles of output channels times vectors of columns.

A tile's vectors lie anywhere in the unit: each has an entry, its place in packed x and in y. A tap is an offset that holds for
all of them, so that the loop over taps is one over a table. The sums of `rows` output channels and `vectors` vectors stay in
registers; long ones are cut every PIECE terms, as in contraction.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import slots
from .contraction import PIECE, fused, mask_below, mask_inside
from .ending import NUMBERS, finisher, rectified, spilled
from .ir import Function, Value, Variable, module
from .ir_types import BITS, lanes, size, vector
from .machine import Machine
from .window import kernel_function

PLACES = (
    *("groups", "inputs", "outputs", "x_channel", "x_depth", "x_row", "y_channel", "y_depth", "y_row"),
    *("z_size", "z_stride", "z_step", "z_pad", "z_taps", "r_size", "r_stride", "r_pad", "r_reach"),
    *("c_size", "c_stride", "c_pad", "c_over", "p_row", "p_phase", "p_plane", "taps", "slot"),
)
"""Fields that say where x and y lie and how x is packed: groups and channels of one; bytes from a channel, depth and row of x and
of y to the next; then of depth (z), height (r) and width (c) the size of x, stride, padding before, pixels from tap to tap, taps,
pixels of a window, and packed numbers that windows reach over; bytes of a packed row, of one phase of it, and of the rows of one
depth and channel; taps times input channels; bytes of scratch."""

FIELDS = (*PLACES, "parts", "part", "depths", "row_chunks", "rows", "r_out", "column_chunks", "blocks", "panel", "lanes", "how")
"""Fields of this kernel: parts that output channels are taken in, and how many one has; depths of y, parts of its rows, rows of
one, all rows, parts of its columns; blocks of a group's weights, and bytes of one; columns of y that a vector has; what is done
with sums. Then tables: chunks of columns, entries and taps."""

CHUNK, ENTRY = 4, 2
"""Numbers of a chunk of columns: the first, how many, its first entry, and its entries in each row; and of an entry."""

BIAS = slots.FIRST_FREE
"""The word of a call's block with the packed bias's address; those behind it are the numbers of ending.py."""

NUMBERS_AT = BIAS + 1

PHASES = (1, 2, 3, 4, 5)
"""Strides along the width whose phases are taken apart by shuffles."""


@dataclass(frozen=True, slots=True)
class Planar:
    """All that the code depends on: the type, and the stride along the width, 0 for one that is not written out."""

    kind: str
    stride: int

    @property
    def bytes(self) -> int:
        return BITS[self.kind] // 8


def tiles_of(machine: Machine) -> tuple[tuple[int, int], ...]:
    """(output channels, vectors) of tiles, the one with the most channels first."""
    return ((8, 3), (4, 6)) if machine.registers >= 32 else ((4, 3),)


def planar(spec: Planar, block: int, machine: Machine) -> str:
    """The module of `planar`: a is x, b the packed weights in blocks of so many channels, c the call's block, d is y; units are
    (image, group, depth, rows, columns, part of channels)."""
    f, width = kernel_function("planar"), max(machine.lanes(spec.kind), 2)
    shapes = tiles_of(machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    chunks, entries, offsets = (f.at(f.geometry, f.field(f.geometry, len(FIELDS) + k)) for k in range(3))
    number, memory = slots.slot(f, f.c, get["slot"])
    with f.loop(f.begin, f.end) as unit:
        rest, part = unit // get["parts"], unit % get["parts"]
        rest, chunk = rest // get["column_chunks"], f.at(chunks, rest % get["column_chunks"] * (8 * CHUNK))
        rest, row = rest // get["row_chunks"], rest % get["row_chunks"] * get["rows"]
        rest, depth = rest // get["depths"], rest % get["depths"]
        group = rest % get["groups"]
        rows = f.smaller(get["r_out"] - row, get["rows"])
        column, columns, first, each = (f.load("i64", f.at(chunk, 8 * k)) for k in range(CHUNK))
        length = f.larger(columns, get["lanes"]) + get["c_over"]
        pack_rows(f, get, memory, rest * get["inputs"], depth, (row, rows), (column, length))
        y = f.at(f.d, rest * get["outputs"] * get["y_channel"] + depth * get["y_depth"])
        y = f.at(y, row * get["y_row"] + column * spec.bytes)
        start = part * get["part"]
        end, table = f.smaller(start + get["part"], get["outputs"]), f.at(entries, first * (8 * ENTRY))
        weights = f.at(f.b, group * get["blocks"] * get["panel"])
        bias = f.at(f.load("ptr", f.at(f.c, 8 * BIAS)), group * get["blocks"] * (block * spec.bytes))
        at = f.variable("i64", start)
        for channels, vectors in shapes:
            last = (channels, vectors) == shapes[-1]
            below = end if last else end - (channels // 2)  # half a tile's channels or fewer are left to the next shape
            with f.loop(at.get(), below, channels) as output:
                left = f.smaller(end - output, f.value("i64", channels))
                w = f.at(weights, output // block * get["panel"] + output % block * spec.bytes)
                sent = (w, f.at(bias, output * spec.bytes), f.at(y, output * get["y_channel"]), left)
                with f.loop(0, rows * each, vectors) as k:
                    place = f.at(table, k * (8 * ENTRY))
                    f.call("void", f"tile_{channels}", memory, *sent, place, rows * each - k, offsets, f.geometry, f.c)
                at.set(output + channels)
    slots.give_back(f, f.c, number)
    tiles = [_tile(f"tile_{shape[0]}", spec, width, block, *shape) for shape in shapes]
    return module(f, slots.taker(), finisher(vector(width, spec.kind)), row_packer(spec, width), *tiles)


def pack_rows(
    f: Function,
    get: dict[str, Value],
    memory: Value,
    plane: Value,
    depth: Value,
    rows: tuple[Value, Value],
    columns: tuple[Value, Value],
) -> None:
    """Pack what some rows of y at one depth read of every channel: `plane` is the first channel's in x; the first row and how
    many, the first column and how many packed numbers a phase of a row has."""
    first_row, first = rows[0] * get["r_stride"] - get["r_pad"], columns[0] * get["c_stride"] - get["c_pad"]
    count = (rows[1] - 1) * get["r_stride"] + get["r_reach"]
    with f.loop(0, get["inputs"]) as channel, f.loop(0, get["z_taps"]) as tap:
        z = depth * get["z_stride"] - get["z_pad"] + tap * get["z_step"]
        x = f.at(f.a, (plane + channel) * get["x_channel"] + z * get["x_depth"])
        there = f.at(memory, (channel * get["z_taps"] + tap) * get["p_plane"])
        with f.loop(0, count) as k:
            line = first_row + k
            inside = z.below(get["z_size"]) & line.below(get["r_size"])
            pixels = f.select(inside, get["c_size"], 0)
            given = (f.at(x, line * get["x_row"]), f.at(there, k * get["p_row"]), first, pixels, columns[1])
            f.call("void", "pack_row", *given, get["p_phase"], get["c_stride"])


def row_packer(spec: Planar, width: int) -> Function:
    """Pixels from `first` on of a row of x of so many pixels, zeros where there are none, into `length` numbers of each phase;
    the last vector of each is filled."""
    counts = {"first": "i64", "size": "i64", "length": "i64", "phase": "i64", "stride": "i64"}
    f, kind = Function("pack_row", private=True, x="ptr", place="ptr", **counts), vector(width, spec.kind)
    if not spec.stride:
        with f.loop(0, f.stride) as p:
            start, place = f.first + p, f.at(f.place, p * f.phase)
            low = f.smaller(f.larger(f.stride - 1 - start, 0) // f.stride, f.length)  # of the numbers, the first that is a pixel
            high = f.larger(f.smaller((f.size - start + f.stride - 1) // f.stride, f.length), low)
            for begin, end in ((f.value("i64", 0), low), (high, f.length)):
                with f.loop(begin, end) as k:
                    f.store(f.value(spec.kind, 0), f.at(place, k * spec.bytes))
            with f.loop(low, high) as k:
                f.store(f.load(spec.kind, f.at(f.x, (start + k * f.stride) * spec.bytes)), f.at(place, k * spec.bytes))
        return f
    with f.loop(0, f.length, width) as k:
        parts = []
        for part in range(spec.stride):
            pixel = f.first + k * spec.stride + part * width
            parts.append(f.load(kind, f.at(f.x, pixel * spec.bytes), mask=mask_inside(f, width, pixel, f.size)))
        together = f.joined(parts)
        for nth in range(spec.stride):
            picked = range(nth, spec.stride * width, spec.stride)
            values = f.shuffle(together, together, picked) if spec.stride > 1 else together
            f.store(values, f.at(f.place, f.phase * nth + k * spec.bytes))
    return f


def _tile(name: str, spec: Planar, width: int, block: int, rows: int, vectors: int) -> Function:
    """The sums of `left` of these output channels and of the vectors of the next `rest` entries; those past the last repeat it.
    x is the unit's scratch, w the weights of the first channel, y that channel's plane at the unit's first column."""
    arguments = {"bias": "ptr", "y": "ptr", "left": "i64", "table": "ptr", "rest": "i64", "offsets": "ptr"}
    f = Function(name, private=True, x="ptr", w="ptr", **arguments, geometry="ptr", call_block="ptr")
    get = {word: f.field(f.geometry, FIELDS.index(word)) for word in ("taps", "y_channel", "lanes", "how")}
    kind = vector(width, spec.kind)
    entries = [f.at(f.table, f.smaller(f.value("i64", v), f.rest - 1) * (8 * ENTRY)) for v in range(vectors)]
    x = [f.at(f.x, f.load("i64", entry)) for entry in entries]
    y = [f.at(f.y, f.load("i64", f.at(entry, 8))) for entry in entries]
    begin = [f.splat(f.load(spec.kind, f.at(f.bias, m * spec.bytes)), width) for m in range(rows)]
    sums = [[f.variable(kind, begin[m]) for _ in x] for m in range(rows)]
    before = f.scratch(kind, rows * vectors, align=64)
    with f.loop(0, get["taps"], PIECE) as first:
        with f.when(first > 0, likely=False):
            _set_aside(f, sums, before, first.eq(PIECE))
        with f.loop(first, f.smaller(first + PIECE, get["taps"])) as tap:
            offset, w = f.load("i64", f.at(f.offsets, tap * 8)), f.at(f.w, tap * (block * spec.bytes))
            values = [f.load(kind, f.at(place, offset)) for place in x]
            for m, row in enumerate(sums):
                weight = f.splat(f.load(spec.kind, f.at(w, m * spec.bytes)), width)
                for value, total in zip(values, row, strict=True):
                    total.set(fused(f, weight, value, total.get()))
    with f.when(get["taps"] > PIECE):
        for k, total in enumerate(total for row in sums for total in row):
            total.set(f.load(kind, f.at(before, k * width * spec.bytes)) + total.get())
    _store(f, spec, get, sums, y)
    return f


def _set_aside(f: Function, sums: list[list[Variable]], before: Value, first: Value) -> None:
    """Add sums to what was set aside, or begin that with them, and begin them anew with zero."""
    for k, total in enumerate(total for row in sums for total in row):
        place, value = f.at(before, k * size(total.type)), total.get()
        f.store(f.select(first, value, f.load(total.type, place) + value), place)
        total.set(0)


def _store(f: Function, spec: Planar, get: dict[str, Value], sums: list[list[Variable]], y: list[Value]) -> None:
    """Finish the sums of the channels that there are, and store them."""
    width, how, vectors = lanes(sums[0][0].type), get["how"], len(y)
    every = [total for row in sums for total in row]
    with f.when((how & NUMBERS).eq(0), likely=True) as rare:
        rectified(f, how, every)
        with f.when(get["lanes"].eq(width), likely=True) as short:
            _put(f, get, sums, y, None)
            with short.otherwise():
                _put(f, get, sums, y, mask_below(f, width, get["lanes"]))
        with rare.otherwise():
            places = [f.at(place, get["y_channel"] * m) for m in range(len(sums)) for place in y]
            given = (spilled(f, [total.get() for total in every]), spilled(f, places), f.left * vectors, f.value("i64", 1))
            f.call("void", "finish", *given, how, f.at(f.call_block, 8 * NUMBERS_AT), get["lanes"])


def _put(f: Function, get: dict[str, Value], sums: list[list[Variable]], y: list[Value], mask: Value | None) -> None:
    for m, row in enumerate(sums):
        with f.when(f.left > m, likely=True):
            for place, total in zip(y, row, strict=True):
                f.store(total.get(), f.at(place, get["y_channel"] * m), mask=mask)
