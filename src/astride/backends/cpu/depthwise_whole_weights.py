"""The gradient of depthwise weights of small planes where the channels come first: a whole plane is written out.

As depthwise_whole.py computes y: lanes are columns of dy, every tap has a vector of sums in a register, and rows of x come one
after the other, each loaded once a tap for all rows of dy that belong to it. A unit is one channel of some images, whose lanes
are added up at the end; after about PIECE terms sums are added to totals.
"""

from __future__ import annotations

import math
from functools import lru_cache

from ...plan import Shape
from ..protocol import Array
from . import depthwise_sums, depthwise_whole
from .cache import functions
from .contraction import PIECE, fused
from .conv_relation import Relation
from .cuts import bounds_of
from .depthwise_sums import Schedule, Sums, sets_of
from .depthwise_whole import TAKEN, Pixels, Whole, specification
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function

CHANNELS = 0
"""The field: channels. Then a table: where sets of images begin."""


@lru_cache(maxsize=512)
def takes(relation: Relation) -> bool:
    """Whether planes are small enough to be written out, with sums that need not be cut inside."""
    if not depthwise_whole.takes(relation) or relation.axes[-1].input_dilation > 1:
        return False
    vectors = specification(relation).vectors(relation.spec.lanes(machine()))
    return math.prod(axis.out for axis in relation.axes[:-1]) * vectors <= PIECE


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape) -> Array:
    """w[j] = sum_i a[i*s - p + j*d] b[i], of this shape, from contiguous a (N, channels, *size) and b (N, channels, *out)."""
    return depthwise_sums.weights_gradient(schedule, relation, a, b, shape)


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int) -> Schedule:
    """How the gradient is computed over so many images."""
    spec = specification(relation)
    (address,) = functions("depthwise_whole_weights", spec, lambda: correlate(spec, machine()), ("correlate",))
    sets = sets_of(relation, images)
    bounds = bounds_of(images, sets)
    products = images * spec.high.out * spec.wide.out * relation.taps // sets
    return Schedule(address, Geometry([relation.outputs], [bounds]), sets, max(TAKEN // max(products, 1), 1))


def correlate(spec: Whole, machine: Machine) -> str:
    """The module of `correlate`: a and b are the arrays, d the sums of every unit; units are (set of images, channel)."""
    f, lanes = kernel_function("correlate"), max(machine.lanes(spec.kind), 2)
    kind, taps = vector(lanes, spec.kind), spec.high.kernel * spec.wide.kernel
    channels, bounds = f.field(f.geometry, CHANNELS), f.at(f.geometry, f.field(f.geometry, 1))
    x_plane, y_plane = spec.planes
    sums, of_plane = Sums(f, kind, taps), spec.high.out * spec.vectors(lanes)

    def add(plane: Value) -> None:
        places = (f.at(f.a, plane * x_plane), f.at(f.b, plane * y_plane))
        grown = _plane(f, spec, lanes, places, [total.get() for total in sums.taps])
        for total, value in zip(sums.taps, grown, strict=True):
            total.set(value)
        sums.grown(of_plane, of_plane)

    sums.units(channels, bounds, add, sums.cut)
    return module(f)


def _plane(f: Function, spec: Whole, lanes: int, places: tuple[Value, Value], sums: list[Value]) -> list[Value]:
    """The sums of all taps with what one plane adds to them."""
    columns, out, wide = Pixels(f, spec, lanes, places[0]), spec.wide.out, spec.wide.kernel
    kind, known = vector(lanes, spec.kind), dict[tuple[int, int], Value]()

    def number(y: int, nth: int) -> Value:
        """A vector of a row of dy, zeros behind its end."""
        if (y, nth) not in known:
            windows = columns.windows(nth)
            mask = None if all(windows) else f.value(vector(lanes, "i1"), windows)
            known[y, nth] = f.load(kind, f.at(places[1], (y * out + nth * lanes) * spec.bytes), mask=mask)
        return known[y, nth]

    for x, users in spec.readers.items():
        for tap in range(wide):
            for nth in range(columns.vectors):
                found = columns.load(x, tap, nth)
                if found is None:
                    continue
                mask = None if all(found[1]) else columns.mask(found[1])
                for y, above in users:
                    which = above * wide + tap
                    added = fused(f, found[0], number(y, nth), sums[which])
                    sums[which] = added if mask is None else f.select(mask, added, sums[which])
    return sums
