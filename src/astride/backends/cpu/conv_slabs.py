"""Convolution where the channels come first, without whole arrays moved: a unit packs the part of x that it reads channels
last, and unpacks what it has of y. Where they come last, a unit may pack as well, to have the pixels other distances apart.

A unit is a slab, some images or some of one image's outermost windows, times some blocks of one group's output channels. What
it packs and the block of y that it computes stay in the cache; tiles see them as conv_gather.py's do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...plan import StridedAxis
from ..epilogue import Epilogue
from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import Contraction, Tiles
from .conv_gather import B_FIRST, CLASS, TAKEN, WINDOWS, Pixels, classes_table
from .conv_move import copier, folder, mover
from .conv_relation import Relation
from .conv_windows import classes_of
from .edges import taps_inside
from .ending import bits, finish_lines, without_residual, words
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine, machine
from .slots import MOST
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

Numbers = NDArray[np.int64]

FIELDS = (
    *("images", "parts", "part", "blocks", "groups", "slabs", "together", "inputs", "outputs"),
    *("x_channel", "x_pixel", "y_channel", "x_image", "x_inner", "y_image", "y_inner", "panel", "slot", "y_slot", "how"),
    "x_whole",
)
"""Fields: images; parts that a group's blocks are taken in, and blocks of one; blocks of a group; groups; slabs of an image, and
images of a slab; channels of a group; bytes of a plane of x, of a packed pixel and of a plane of y; of a packed image and of one
outermost step of it, and the same of a block of y; bytes of a block's weights, of a thread's scratch and of its packed x;
what tiles do with their sums; bytes of an image of x. Where channels come last `x_channel` is the bytes of a pixel of x, and
`y_image` those of an image of y. Then tables: slabs, jobs and classes."""

SLAB, JOB = 6, 3
"""Numbers of a slab: its outermost steps of x and of y, from and to, and its jobs, from and to. A job is a class, its first pixel
and how many it has in each of the slab's images."""

BIAS = slots.FIRST_FREE
"""The word of a call's block with the packed bias's address; those behind it are the numbers of ending.py."""

X_BYTES, Y_BYTES = 3 << 17, 1 << 17
"""About as much packed x and y as a slab has."""

BUDGETS, REPEATED = (1, 2, 3), 1.5
"""Times these bytes that are tried until no more than so many times x is packed: windows of neighbouring slabs share pixels, and
where taps lie far apart, nearly all of them."""

UNITS = 8
"""Units that a call has at least, if that does not mean packing the same for too few products."""

TOGETHER = 2
"""How much more that may be where whole images lie in one slab: the more they are, the fuller the tiles."""

WORTH, LEAST = 512, 2
"""Products for each number that is packed, at least, where blocks are taken in parts; but for so many units of a call."""

ALIAS, APART, OUTPUTS = 2048, 4096, 128
"""Bytes of which a packed pixel had better not be a multiple: places of the cache would be few. Bytes of which the distance from
window to window is a multiple, and output channels of a group, from which it was measured that pixels had better be copied where
channels come last: products then take 0.88 of the time."""


Slab = tuple[int, int, int, int]


class Cut(NamedTuple):
    """Slabs of one image as (from, to) of the outermost axis in x and y, and how many images a slab has."""

    axis: int
    slabs: list[Slab]
    together: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, units, how many a thread takes, and its scratch."""

    address: int
    geometry: Geometry
    units: int
    taken: int
    slot: int


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int, first: bool = True) -> bool:
    """Whether the least that is packed at once fits into scratch memory."""
    if relation.depthwise or not images:
        return False
    relation, images = (relation, images) if first else line(relation, images)
    return sum(_slot(relation, _cut(relation, images, first), first)) <= MOST


def crowded(relation: Relation) -> bool:
    """Whether neighbouring windows, channels last, begin in so few places of the cache that they drive each other out, and tiles
    do not copy x themselves: the stride brings them there."""
    axis = relation.axes[-1] if relation.axes else StridedAxis(1, 1)
    step = relation.inputs * relation.spec.bytes * axis.stride // math.gcd(axis.stride, axis.input_dilation)
    return step % APART == 0 and relation.outputs // relation.groups >= OUTPUTS and not relation.spreads


def compute(
    relation: Relation,
    x: Array,
    packed: Array,
    bias: Array,
    y: Array,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
    fold: int = 1,
    first: bool = True,
) -> None:
    """y (N, outputs, *out) from x (N, inputs, *size), contiguous and of the relation's dtype; weights and bias are packed. With
    `fold` y is (N, outputs / fold, *out * fold): a pixel's channels are so many columns of one (conv_subpixel.py). Without
    `first` y is (N, *out, outputs) and x (N, *size, inputs)."""
    if not y.size:
        return
    how = bits(epilogue, residual)
    found = schedule(*((relation, len(x)) if first else line(relation, len(x))), how, fold, first)
    block, memory = slots.block(found.slot, -(-found.units // found.taken), address_of(bias), *words(epilogue, residual, y))
    places = (address_of(x), address_of(packed), address_of(block), address_of(y))
    run(found.address, found.geometry.address, *places, found.units, found.taken)
    del memory


@lru_cache(maxsize=512)
def line(relation: Relation, images: int) -> tuple[Relation, int]:
    """A relation, channels last, and how many images it has: all pixels as one axis of one image where windows are just those."""
    if any(axis != StridedAxis(axis.size, 1, out=axis.size) for axis in relation.axes):
        return relation, images
    pixels = images * math.prod(axis.size for axis in relation.axes)
    return replace(relation, axes=(StridedAxis(pixels, 1, out=pixels),)), 1


def _inner(relation: Relation, axis: int) -> tuple[int, int]:
    """Pixels of x and of y in one step of an axis."""
    axes = relation.volume[axis + 1 :]
    return math.prod(a.size for a in axes), math.prod(a.out for a in axes)


def _x_pixel(relation: Relation) -> int:
    """Bytes of a packed pixel."""
    bytes_ = relation.parts[1] * relation.spec.bytes
    return bytes_ + (64 if bytes_ % ALIAS == 0 else 0)


def _y_pixel(relation: Relation) -> int:
    return relation.spec.block(machine()) * relation.spec.bytes


@lru_cache(maxsize=512)
def _cut(relation: Relation, images: int, first: bool = True) -> Cut:
    axes = relation.volume
    number = next((k for k, axis in enumerate(axes) if axis.size > 1 or axis.out > 1), 2)
    axis, (x_inner, y_inner) = axes[number], _inner(relation, number)
    x_step, y_step = x_inner * _x_pixel(relation), first * y_inner * _y_pixel(relation)
    spans = _spans(axis)
    found = [_slabs(spans, x_step, y_step, times) for times in BUDGETS]
    read = [sum(high - low for low, high, _, _ in slabs) for slabs in found]
    slabs = found[next((k for k, n in enumerate(read) if n <= REPEATED * axis.size), read.index(min(read)))]
    if len(slabs) != 1:
        return Cut(number, _even(slabs, spans, relation.spec.rows(machine())[0] if y_inner == 1 else 1), 1)
    low, high, _, end = slabs[0]
    room = TOGETHER * min(X_BYTES // max((high - low) * x_step, 1), Y_BYTES // max(end * y_step, 1))
    return Cut(number, slabs, -(-images // -(-images // max(room, 1))))


def _slabs(spans: list[tuple[int, int]], x_step: int, y_step: int, times: int) -> list[Slab]:
    """Slabs of as many windows as so many times the bytes allow, from the bytes of a step of x and of y."""
    slabs, start = [], 0
    while start < len(spans):
        end = start + 1
        low, high = spans[start]
        while end < len(spans):
            a, b = min(low, spans[end][0]), max(high, spans[end][1])
            if (b - a) * x_step > times * X_BYTES or (end + 1 - start) * y_step > times * Y_BYTES:
                break
            low, high, end = a, b, end + 1
        slabs.append((min(low, high), high, start, end))
        start = end
    return slabs


def _spans(axis: StridedAxis) -> list[tuple[int, int]]:
    """The pixels that each window reads, from and to; (size, 0) for one that reads none."""
    taps = taps_inside(axis)
    ends = taps.pixel + (taps.count - 1) * taps.step + 1
    there = taps.count > 0
    return list(zip(np.where(there, taps.pixel, axis.size).tolist(), np.where(there, ends, 0).tolist(), strict=True))


def _even(slabs: list[Slab], spans: list[tuple[int, int]], step: int) -> list[Slab]:
    """As many slabs, of about the same number of windows, a multiple of `step` but for the last."""
    bounds = [k * len(spans) // len(slabs) // step * step for k in range(len(slabs))]
    found = []
    for start, end in zip(bounds, [*bounds[1:], len(spans)], strict=True):
        if start < end:
            low, high = min(s[0] for s in spans[start:end]), max(s[1] for s in spans[start:end])
            found.append((min(low, high), high, start, end))
    return found


def _slot(relation: Relation, cut: Cut, first: bool) -> tuple[int, int]:
    """Bytes of scratch for packed x and for a block of y; what weaves rows writes a little behind them."""
    x_inner, y_inner = _inner(relation, cut.axis)
    x = cut.together * max(high - low for low, high, _, _ in cut.slabs) * x_inner * _x_pixel(relation) + 128
    y = first * cut.together * max(end - start for _, _, start, end in cut.slabs) * y_inner * _y_pixel(relation)
    return -(-x // 64) * 64, -(-y // 64) * 64


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, how: int = 0, fold: int = 1, first: bool = True) -> Schedule:
    """How a relation is computed over so many images; `how` is for the tiles, `fold` for unpacking."""
    spec = replace(relation.spec, tail=relation.spec.ending(relation.parts[2], machine()))
    cut = _cut(relation, images, first)
    (address,) = functions("conv_slabs", (spec, fold, first), lambda: slabs_kernel(spec, machine(), fold, first), ("slabs",))
    groups, inputs, outputs = relation.parts
    (x_inner, y_inner), block = _inner(relation, cut.axis), spec.block(machine())
    x_pixel, y_pixel = _x_pixel(relation), _y_pixel(relation) if first else relation.outputs * spec.bytes
    span = [max(s[1] - s[0] for s in cut.slabs), max(s[3] - s[2] for s in cut.slabs)]
    table = classes_table(relation, x_pixel, y_pixel)
    # Images of a slab lie behind each other in scratch memory, as many steps apart as it has.
    table[:, A_IMAGE] = span[0] * x_inner * x_pixel
    if first:
        table[:, C_IMAGE] = span[1] * y_inner * y_pixel
    jobs = [_jobs(relation, table, cut.axis, start, end) for _, _, start, end in cut.slabs]
    bounds = np.cumsum([0, *map(len, jobs)])
    slabs = np.array([(*slab, bounds[k], bounds[k + 1]) for k, slab in enumerate(cut.slabs)], np.int64)
    pixels = cut.together * span[1] * y_inner
    packed = cut.together * span[0] * x_inner * inputs
    block_products = pixels * block * relation.taps * inputs
    units = -(-images // cut.together) * groups * len(cut.slabs)
    least = -(-WORTH * packed // max(block_products, 1))
    part = max(relation.blocks // max(-(-UNITS // units), 1), min(least, -(-relation.blocks // -(-LEAST // units))), 1)
    parts = -(-relation.blocks // part)
    x_slot, y_slot = _slot(relation, cut, first)
    size, out = relation.pixels
    fields = [images, parts, part, relation.blocks, groups, len(slabs), cut.together, inputs, outputs]
    x_channel = (size if first else relation.inputs) * spec.bytes
    fields += [x_channel, x_pixel, out * spec.bytes, int(table[0, A_IMAGE]), x_inner * x_pixel]
    fields += [int(table[0, C_IMAGE]), y_inner * y_pixel, relation.taps * inputs * block * spec.bytes, x_slot + y_slot, x_slot]
    fields += [how, size * relation.inputs * spec.bytes]
    taken = max(TAKEN // max(block_products * part, 1), 1)
    return Schedule(address, Geometry(fields, [slabs, np.concatenate(jobs), table]), units * parts, taken, x_slot + y_slot)


A_IMAGE, C_IMAGE = 4, 9
"""Where a class has its steps from image to image."""


def _jobs(relation: Relation, table: Numbers, axis: int, start: int, end: int) -> Numbers:
    """The pixels of each class whose windows along an axis are from `start` to `end`."""
    c = [classes_of(a) for a in relation.volume]
    kinds = np.indices([len(k.taps) for k in c]).reshape(3, -1)[axis]
    first, step, windows = c[axis].window[kinds], np.maximum(c[axis].window_step[kinds], 1), c[axis].windows[kinds]
    low, high = (np.clip(-((first - place) // step), 0, windows) for place in (start, end))
    inner = table[:, WINDOWS + axis + 1 : WINDOWS + 3].prod(1)
    jobs = np.stack([np.arange(len(table)), low * inner, (high - low) * inner], 1)
    return jobs[jobs[:, 2] > 0].astype(np.int64)


def slabs_kernel(spec: Contraction, machine: Machine, fold: int = 1, channels_first: bool = True) -> str:
    """The module of `slabs`: a is x, b the packed weights, c the call's block, d is y, whose columns are `fold` a pixel."""
    f, tiles = kernel_function("slabs"), Tiles(spec, machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    slabs, jobs, classes = (f.at(f.geometry, f.field(f.geometry, len(FIELDS) + k)) for k in range(3))
    number, memory = slots.slot(f, f.c, get["slot"])
    how = without_residual(f, get["how"]) if channels_first else get["how"]
    pixels, ending = Pixels(f, tiles), (how, f.at(f.c, 8 * (BIAS + 1)))
    with f.loop(f.begin, f.end) as unit:
        rest, part = unit // get["parts"], unit % get["parts"]
        rest, slab = rest // get["slabs"], f.at(slabs, rest % get["slabs"] * (8 * SLAB))
        group, image = rest % get["groups"], rest // get["groups"] * get["together"]
        images = f.smaller(get["images"] - image, get["together"])
        numbers = [f.load("i64", f.at(slab, 8 * k)) for k in range(SLAB)]
        kind_of = _Unit if channels_first else _UnitLast
        whole = kind_of(f, spec, tiles.block * spec.bytes, get, numbers, (image, images, group), fold)
        whole.pack(memory)
        first = part * get["part"]
        with f.loop(first, f.smaller(first + get["part"], get["blocks"])) as block:
            lanes = f.smaller(get["outputs"] - block * tiles.block, f.value("i64", tiles.block))
            place = group * get["blocks"] + block
            bias = f.at(f.load("ptr", f.at(f.c, 8 * BIAS)), place * (tiles.block * spec.bytes))
            x, y = whole.origins(memory, block * tiles.block)
            with f.loop(*whole.jobs) as job:
                kind, start, count = (f.load("i64", f.at(f.at(jobs, job * (8 * JOB)), 8 * k)) for k in range(JOB))
                row = f.at(classes, kind * (8 * CLASS))
                b = f.at(f.b, place * get["panel"] + f.load("i64", f.at(row, 8 * B_FIRST)))
                pixels.compute(row, (start, start + count * images), (x, b, bias, y), lanes, ending)
            whole.unpack(memory, block * tiles.block, lanes)
    slots.give_back(f, f.c, number)
    movers = [mover(spec.kind, machine) if channels_first else copier(spec.kind, machine)]
    movers += [folder(spec.kind, fold)] if fold > 1 else []
    return module(f, slots.taker(), *movers, *tiles.functions)


class _Unit:
    """Writes what is done once for a unit, before and after its tiles."""

    def __init__(
        self,
        f: Function,
        spec: Contraction,
        width: int,
        get: dict[str, Value],
        slab: list[Value],
        place: tuple[Value, Value, Value],
        fold: int,
    ) -> None:
        """`width` is the bytes of a pixel of a block of y; the place is the first image, how many there are, and the group."""
        self.fold = fold
        self.f, self.get, self.bytes, self.width = f, get, spec.bytes, width
        self.kind = vector(spec.lanes(machine()), spec.kind)
        self.low, self.high, self.start, self.end = slab[:4]
        self.jobs = (slab[4], slab[5])
        self.image, self.images, self.group = place

    def pack(self, memory: Value) -> None:
        """This group's channels of x, images one behind the other."""
        f, get = self.f, self.get
        inner = get["x_inner"] // get["x_pixel"]
        with f.loop(0, self.images) as nth:
            plane = ((self.image + nth) * get["groups"] + self.group) * get["inputs"]
            x = f.at(f.a, plane * get["x_channel"] + self.low * inner * self.bytes)
            columns, room = (self.high - self.low) * inner, f.value("i64", 1)
            to = f.at(memory, nth * get["x_image"])
            f.call("void", "move", x, to, get["inputs"], columns, get["x_channel"], get["x_pixel"], room)

    def origins(self, memory: Value, channel: Value) -> tuple[Value, Value]:
        """Where pixel 0 and window 0 of the first image would be, of a block's first channel."""
        f, get = self.f, self.get
        x = f.at(memory, -(self.low * get["x_inner"]))
        return x, f.at(f.at(memory, get["y_slot"]), -(self.start * get["y_inner"]))

    def unpack(self, memory: Value, channel: Value, lanes: Value) -> None:
        """A block of output channels into y."""
        f, get = self.f, self.get
        inner = get["y_inner"] // self.width
        with f.loop(0, self.images) as nth:
            plane = ((self.image + nth) * get["groups"] + self.group) * get["outputs"] + channel
            y = f.at(f.d, plane * get["y_channel"] + self.start * inner * (self.bytes * self.fold))
            of, rows = f.at(f.at(memory, get["y_slot"]), nth * get["y_image"]), (self.end - self.start) * inner
            channels, apart = lanes // self.fold, get["y_channel"] * self.fold
            move = "move" if self.fold == 1 else "move_folded"
            f.call("void", move, of, y, rows, channels, f.value("i64", self.width), apart, f.value("i64", 0))
            finish_lines(f, self.kind, get["how"], f.at(f.c, 8 * (BIAS + 1)), y, (channels, rows * self.fold, apart))


class _UnitLast(_Unit):
    """The same where channels come last: tiles write to y itself."""

    def pack(self, memory: Value) -> None:
        """This group's channels of x, images one behind the other."""
        f, get = self.f, self.get
        inner, channels = get["x_inner"] // get["x_pixel"], get["inputs"] * self.bytes
        with f.loop(0, self.images) as nth:
            x = f.at(f.a, (self.image + nth) * get["x_whole"] + self.low * inner * get["x_channel"] + self.group * channels)
            to, pixels = f.at(memory, nth * get["x_image"]), (self.high - self.low) * inner
            f.call("void", "copy", x, to, pixels, get["inputs"], get["x_channel"], get["x_pixel"])

    def origins(self, memory: Value, channel: Value) -> tuple[Value, Value]:
        """Where pixel 0 and window 0 of the first image would be, of a block's first channel."""
        f, get = self.f, self.get
        y = f.at(f.d, self.image * get["y_image"] + (self.group * get["outputs"] + channel) * self.bytes)
        return f.at(memory, -(self.low * get["x_inner"])), y

    def unpack(self, memory: Value, channel: Value, lanes: Value) -> None:
        """Nothing: it lies where it belongs."""
