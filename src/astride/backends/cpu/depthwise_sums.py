"""What the gradients of depthwise weights share where the channels come first and lanes are columns.

A unit is one channel of some images. Every tap has a vector of sums, which after about PIECE terms are added to totals, whose
lanes are added up when the unit ends. The sums of all sets of images are added up at last, always in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...plan import Shape
from ..protocol import Array
from .contraction import PIECE, added_up
from .conv_relation import Relation
from .ir import Function, Value
from .ir_types import element, lanes, size
from .tables import Geometry
from .workers import address_of, run

UNITS = 32
"""Units of a call, about, if there are images enough."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, sets of images, and how many units a thread takes."""

    address: int
    geometry: Geometry
    sets: int
    taken: int


def sets_of(relation: Relation, images: int) -> int:
    """Sets that so many images are taken in."""
    return max(min(images, UNITS // relation.outputs), 1)


def weights_gradient(
    schedule: Callable[[Relation, int], Schedule], relation: Relation, a: Array, b: Array, shape: Shape
) -> Array:
    """w[j] = sum_i a[i*s - p + j*d] b[i], of this shape, from contiguous a (N, channels, *size) and b (N, channels, *out)."""
    if not (a.size and b.size and math.prod(shape)):
        return np.zeros(shape, a.dtype)
    found = schedule(relation, len(a))
    sums = np.empty((found.sets, relation.outputs, relation.taps), a.dtype)
    units = found.sets * relation.outputs
    run(found.address, found.geometry.address, address_of(a), address_of(b), 0, address_of(sums), units, found.taken)
    dw = sums.sum(0) if found.sets > 1 else sums[0]
    return np.ascontiguousarray(dw[:, ::-1] if relation.flip else dw).reshape(shape)


class Sums:
    """Writes the sums of a unit's taps, a register each, which are brought to totals in memory every PIECE terms; and the units
    of a kernel whose d is (sets, channels, taps)."""

    def __init__(self, f: Function, kind: str, taps: int) -> None:
        self.f, self.kind = f, kind
        self.totals = f.scratch(kind, taps)
        self.taps = [f.variable(kind, 0) for _ in range(taps)]
        self.terms = f.variable("i64", 0)

    def grown(self, terms: Value | int, most: int) -> None:
        """Sums have so many more terms; they are cut where the next ones, `most` at most, would make them too long."""
        self.terms.set(self.terms.get() + terms)
        with self.f.when(self.terms.get() > (PIECE - most), likely=False):
            self.cut()

    def cut(self) -> None:
        """Add sums to totals, and begin them anew."""
        f = self.f
        for tap, total in enumerate(self.taps):
            place = self._total(tap)
            f.store(f.load(self.kind, place) + total.get(), place)
            total.set(0)
        self.terms.set(0)

    def units(self, channels: Value, bounds: Value, add: Callable[[Value], None], end: Callable[[], None] | None = None) -> None:
        """All units: `add` writes what one plane, by its number, adds; `end` what comes behind the last one."""
        f, bytes_ = self.f, size(element(self.kind))
        with f.loop(f.begin, f.end) as unit:
            set_, channel = f.at(bounds, unit // channels * 8), unit % channels
            for tap in range(len(self.taps)):
                f.store(f.value(self.kind, 0), self._total(tap))
            with f.loop(f.load("i64", set_), f.load("i64", f.at(set_, 8))) as image:
                add(image * channels + channel)
            if end is not None:
                end()
            for tap in range(len(self.taps)):
                total = added_up(f, f.load(self.kind, self._total(tap)), lanes(self.kind))
                f.store(total, f.at(f.d, (unit * len(self.taps) + tap) * bytes_))

    def _total(self, tap: int) -> Value:
        return self.f.at(self.totals, tap * size(self.kind))
