"""How an integer convolution is cut into units: boxes of windows, whose pixels a unit packs, times some blocks of channels.

A packed box is unsigned bytes, channels last, with its padding, which holds x's zero point: every window is like every other,
and a window's taps along the last axis are one run of bytes. Quads are cut from the run, and what the last one reads behind it
has zeros as weights. Where x lies so already, nothing is packed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ...plan import StridedAxis
from ...plan.integer import IntegerConvPlan
from ...plan.kinds import Layout
from .cache import functions
from .contraction import NEST
from .conv_integer_tile import shapes
from .machine import machine
from .quads import way
from .tables import Geometry

AXES = ("size", "out", "stride", "pad", "reach", "windows", "boxes", "x_step", "step")
"""Fields of each axis: pixels of x and of y; as in the plan; windows of a box and how many boxes there are; and bytes from a
pixel to the next in x, and in what windows read."""

FIELDS = (
    *("groups", "parts", "part", "blocks", "inputs", "outputs", "x_channels", "y_channels", "direct", "x_image", "x_channel"),
    *("y_image", "y_channel", "y_pixel", "panel", "slot", "windows_at", "y_places_at", "totals_at", "y_at"),
    *(f"{name}{k}" for name in AXES for k in range(3)),
)
"""Fields: groups; parts that a group's blocks are taken in and blocks of one, and blocks of a group; channels of a group, and
all of them; whether x is read where it lies; bytes from an image and from a channel to the next in x, in y also from a pixel;
bytes of a block's weights and of a thread's scratch, and where in it tables and results are; and of each axis, depth first.
Behind them is the nest of tiles, or the number of quads and, behind that, the distances of their taps."""

QUAD, GROUP = 4, 16
"""Bytes of one lane, and of the narrowest vectors that are worth it."""

X_BYTES = 1 << 17
"""About as many bytes as a packed box has."""

WINDOWS = 1 << 10
"""Windows of a box, at most."""

LINE, FEW = 64, 96
"""Bytes of a line of the cache; windows of a box that is not made smaller for the sake of threads."""

MOST = 1 << 28
"""Bytes of scratch that a thread may need, whatever a single window reads."""

SPARE = 128
"""Bytes behind what is packed: the last quads, and the ends of blocks, reach there."""

WORTH = 32
"""Products for each byte that is packed, at least, where blocks of channels are taken in parts."""

TAKEN = 1 << 20
"""Products that a thread takes at once, at least."""


@dataclass(frozen=True, slots=True)
class Integers:
    """What a kernel is written for: channels first or last, int32 results or bytes, and whether these are signed; where every
    channel is by itself, how many are taken at once, else 0; and how bytes are multiplied (quads.py)."""

    first: bool
    wide: bool
    signed: bool
    alone: int
    dot: str

    @property
    def rows(self) -> int:
        """Windows of a tile, at most."""
        return shapes(machine()).most

    @property
    def block(self) -> int:
        """Channels of a block."""
        return self.alone or shapes(machine()).block


@dataclass(frozen=True, slots=True)
class Box:
    """One axis of the boxes: windows of one, how many boxes there are, and pixels of one with its padding."""

    windows: int
    count: int
    pixels: int


@dataclass(frozen=True, slots=True)
class Cut:
    """`axes` are depth, height and width, one where pixels are windows; `direct` says that x is read where it lies; `run` is
    whether the taps of the last axis are one run. `units` counts boxes of all images and groups."""

    axes: tuple[StridedAxis, StridedAxis, StridedAxis]
    boxes: tuple[Box, Box, Box]
    groups: int
    inputs: int
    outputs: int
    direct: bool
    run: bool

    @property
    def kernel(self) -> tuple[int, int, int]:
        """Counts of the loops over taps."""
        d, h, w = (axis.kernel for axis in self.axes)
        return (d, h, 1 if self.run else w)

    @property
    def quads(self) -> int:
        """Quads of one run."""
        return -(-self.inputs * (self.axes[2].kernel if self.run else 1) // QUAD)

    @property
    def windows(self) -> int:
        """Windows of a box, at most."""
        return math.prod(box.windows for box in self.boxes)

    @property
    def pixels(self) -> int:
        return math.prod(box.pixels for box in self.boxes)

    @property
    def count(self) -> int:
        """Boxes of an image."""
        return math.prod(box.count for box in self.boxes)


def _alone(plan: IntegerConvPlan) -> int:
    """The channels that are taken at once where each has its own window and no other reads it; otherwise 0. Vectors need not be
    wider than the channels are many."""
    if not plan.groups == plan.in_channels == plan.out_channels > 1:
        return 0
    most = least = machine().lanes("i8")
    while least > min(GROUP, most) and plan.groups <= least // 2:
        least //= 2
    return least


@lru_cache(maxsize=512)
def spec_of(plan: IntegerConvPlan) -> Integers:
    first = plan.layout is Layout.CHANNELS_FIRST
    return Integers(first, not plan.quantised, plan.y_dtype == "int8", _alone(plan), way(machine()))


@lru_cache(maxsize=512)
def cut_of(plan: IntegerConvPlan, wanted: int = 1) -> Cut:
    """The boxes of a plan: smaller ones where there would be fewer than wanted, if threads that take blocks of channels would
    write to the same lines of the cache."""
    spec, axes = spec_of(plan), _flat(plan.axes)
    groups, inputs, outputs = plan.groups, plan.in_channels, plan.out_channels
    if spec.alone:
        groups, inputs = -(-plan.groups // spec.block), min(plan.groups, spec.block)
        outputs = inputs
    else:
        inputs, outputs = inputs // max(groups, 1), outputs // max(groups, 1)
    inside = all(axis.start(0) >= 0 and axis.start(axis.out - 1) + axis.reach <= axis.size for axis in axes)
    direct = inside and not spec.first and plan.dtype == "uint8" and inputs % QUAD == 0 and not spec.alone
    run = not spec.alone and axes[2].dilation == 1 and (groups == 1 or not direct)
    windows = [axis.out for axis in axes]
    x = 1 if direct else inputs
    while x * math.prod(map(_pixels, axes, windows)) > X_BYTES or math.prod(windows) > WINDOWS:
        longest = next((k for k in range(3) if windows[k] > 1), None)
        if longest is None:
            break
        windows[longest] = -(-windows[longest] // 2)
    while not (spec.first or spec.alone) and plan.out_channels * (4 if spec.wide else 1) % LINE and math.prod(windows) > FEW:
        if groups * math.prod(-(-axis.out // n) for axis, n in zip(axes, windows, strict=True)) >= wanted:
            break
        longest = next(k for k in range(3) if windows[k] > 1)
        windows[longest] = -(-windows[longest] // 2)
    boxes = [_box(axis, n) for axis, n in zip(axes, windows, strict=True)]
    return Cut(axes, (boxes[0], boxes[1], boxes[2]), groups, inputs, outputs, direct, run)


def _flat(axes: tuple[StridedAxis, ...]) -> tuple[StridedAxis, StridedAxis, StridedAxis]:
    """Three axes; those of windows that are the pixels themselves are one."""
    one = StridedAxis(1, 1)
    if all(a.kernel == a.stride == 1 and a.pad_lo == 0 and a.size == a.out for a in axes):
        size = math.prod(a.size for a in axes)
        return one, one, StridedAxis(size, 1, out=size)
    d, h, w = (one,) * (3 - len(axes)) + axes
    return d, h, w


def _pixels(axis: StridedAxis, windows: int) -> int:
    return (windows - 1) * axis.stride + axis.reach


def _box(axis: StridedAxis, windows: int) -> Box:
    count = -(-axis.out // max(windows, 1))
    windows = -(-axis.out // max(count, 1))
    return Box(windows, -(-axis.out // max(windows, 1)), _pixels(axis, windows))


def scratch(spec: Integers, cut: Cut) -> tuple[int, int, int, int, int]:
    """Bytes of packed x, of the tables of windows' places there and in y, of sums over windows, and of results before they
    are moved to where channels come first."""
    x = 0 if cut.direct else cut.pixels * cut.inputs + SPARE
    windows = cut.windows + spec.rows
    y = windows * spec.block * (4 if spec.wide else 1) + SPARE if spec.first else 0
    return _lines(x), _lines(windows * 8), _lines(windows * 8), _lines(windows * 4), _lines(y)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, the units of one image, how many a thread takes, and its scratch."""

    address: int
    geometry: Geometry
    units: int
    taken: int
    slot: int


def shape_of(plan: IntegerConvPlan) -> tuple[int, int, int, int, int]:
    """Packed weights: groups, blocks, runs of quads, quads of one, and lanes of a block."""
    spec, cut = spec_of(plan), cut_of(plan)
    if spec.alone:
        return cut.groups, 1, -(-math.prod(axis.kernel for axis in cut.axes) // QUAD), 1, spec.block
    return cut.groups, -(-cut.outputs // spec.block), math.prod(cut.kernel), cut.quads, spec.block


@lru_cache(maxsize=512)
def schedule(plan: IntegerConvPlan, wanted: int) -> Schedule:
    """How a plan is computed; `wanted` is how many units an image should have, if that does not mean packing too much."""
    from .conv_integer_kernel import integer_kernel

    spec, cut = spec_of(plan), cut_of(plan, wanted)
    (address,) = functions("conv_integer", spec, lambda: integer_kernel(spec, machine()), ("integers",))
    _, blocks, runs, quads, block = shape_of(plan)
    products = max(cut.windows * block * runs * quads * QUAD, 1)
    units = cut.groups * cut.count
    least = 1 if cut.direct else -(-WORTH * cut.pixels * cut.inputs // products)
    part = max(blocks // max(-(-wanted // max(units, 1)), 1), min(least, blocks), 1)
    parts = -(-blocks // part)
    places = scratch(spec, cut)
    fields = [*_fields(plan, spec, cut), *_nest(spec, cut)]
    for name, value in (("parts", parts), ("part", part), ("blocks", blocks), ("panel", runs * quads * block * QUAD)):
        fields[FIELDS.index(name)] = value
    taken = max(TAKEN // (products * part), 1)
    return Schedule(address, Geometry(fields, []), units * parts, taken, sum(places))


def _fields(plan: IntegerConvPlan, spec: Integers, cut: Cut) -> list[int]:
    """The fields that do not depend on parts."""
    size, out = ([getattr(axis, name) for axis in cut.axes] for name in ("size", "out"))
    bytes_, pixels = 4 if spec.wide else 1, math.prod(out)
    x_pixel, x_channel = (1, math.prod(size)) if spec.first else (plan.in_channels, 1)
    y_pixel, y_channel = (bytes_, pixels * bytes_) if spec.first else (plan.out_channels * bytes_, bytes_)
    x_steps, packed = _steps(size, x_pixel), _steps([box.pixels for box in cut.boxes], cut.inputs)
    places = scratch(spec, cut)
    known = {"groups": cut.groups, "inputs": cut.inputs, "outputs": cut.outputs, "direct": int(cut.direct)}
    known |= {"x_channels": plan.in_channels, "y_channels": plan.out_channels, "x_channel": x_channel, "y_channel": y_channel}
    known |= {"x_image": math.prod(size) * plan.in_channels, "y_image": pixels * plan.out_channels * bytes_, "y_pixel": y_pixel}
    known |= {"slot": sum(places), "windows_at": places[0], "y_places_at": sum(places[:2])}
    known |= {"totals_at": sum(places[:3]), "y_at": sum(places[:4])}
    for k, (axis, box) in enumerate(zip(cut.axes, cut.boxes, strict=True)):
        of_axis = (axis.size, axis.out, axis.stride, axis.pad_lo, axis.reach, box.windows, box.count)
        steps = (x_steps[k], (x_steps if cut.direct else packed)[k])
        known.update({f"{name}{k}": value for name, value in zip(AXES, (*of_axis, *steps), strict=True)})
    return [known.get(name, 0) for name in FIELDS]


def _steps(sizes: list[int], pixel: int) -> list[int]:
    return [sizes[1] * sizes[2] * pixel, sizes[2] * pixel, pixel]


def _nest(spec: Integers, cut: Cut) -> list[int]:
    """Loops over taps and quads of a window: counts, and bytes from one to the next in what is read and in the weights."""
    size = [axis.size for axis in cut.axes] if cut.direct else [box.pixels for box in cut.boxes]
    pixel = cut.inputs * cut.groups if cut.direct else cut.inputs
    taps = [step * axis.dilation for step, axis in zip(_steps(size, pixel), cut.axes, strict=True)]
    if spec.alone:
        d, h, w = (axis.kernel for axis in cut.axes)
        places = [i * taps[0] + j * taps[1] + k * taps[2] for i in range(d) for j in range(h) for k in range(w)]
        return [-(-len(places) // QUAD), *[0] * (NEST - 1), *places, *places[:1] * (-len(places) % QUAD)]
    counts, quad = [*cut.kernel, cut.quads], spec.block * QUAD
    in_w = [math.prod(counts[k + 1 :]) * quad for k in range(4)]
    return [*counts, *taps, QUAD, *in_w]


def _lines(bytes_: int) -> int:
    return -(-bytes_ // 64) * 64


def declines(plan: IntegerConvPlan) -> str | None:
    """Why windows are not packed; None if they are."""
    return None if sum(scratch(spec_of(plan), cut_of(plan))) < MOST else "windows reach too far to be packed"
