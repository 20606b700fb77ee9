"""One sum over each whole plane where the channels come first: as many planes at a time as a vector has lanes.

Each plane is added up in lanes; then the planes' vectors are transposed and added, which gives a vector of sums. A plane's
sum does not depend on its neighbours. The last planes overlap those before where there are no more. The gradient of an
average fills each plane with its share.
"""

from __future__ import annotations

from functools import partial

from .conv_layout import transposed
from .gradients import Gather, Gradient
from .ir import Function, Value, module
from .ir_types import BITS, vector
from .machine import Machine
from .sums import Sum, Total
from .window import Spec, blocks, kernel_function

PLANES, PIXELS, DIVISOR, TAPS = range(4)
"""Fields: planes, pixels of each, what sums are divided by, and the taps of a whole window."""

ABREAST = 4
"""Vectors of one plane added up independently, so that additions need not wait for one another."""


def takes(spec: Spec | Gradient, machine: Machine) -> bool:
    """Whether this way is written for a sum, or the gradient of an average."""
    if isinstance(spec, Sum):
        return not spec.scaled and machine.lanes(spec.accumulate) >= 4
    return isinstance(spec, Gradient) and spec.kind == "share" and machine.lanes(spec.accumulate) >= 4


def forward(spec: Sum, machine: Machine) -> str:
    """The module of `forward`: a is x, b is y; units are as many planes as a vector has lanes."""
    f, n = kernel_function("forward"), machine.lanes(spec.accumulate)
    planes, pixels = f.field(f.geometry, PLANES), f.field(f.geometry, PIXELS)
    vectors, rests = f.scratch(vector(n, spec.accumulate), n, 64), f.scratch(spec.accumulate, n, 64)
    row, bytes_, kind = pixels * spec.number.bytes, BITS[spec.accumulate] // 8, vector(n, spec.accumulate)
    with f.loop(f.begin, f.end) as unit:
        first = f.smaller(unit * n, planes - n)
        with f.loop(0, n) as i:
            total, rest = _plane(f, spec, n, f.at(f.a, (first + i) * row), pixels)
            f.store(total, f.at(vectors, i * (n * bytes_)))
            f.store(rest, f.at(rests, i * bytes_))
        parts = transposed(f, [f.load(kind, f.at(vectors, i * (n * bytes_))) for i in range(n)])
        while len(parts) > 1:
            parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
        total = parts[0] + f.load(kind, rests)
        divisor = f.field(f.geometry, DIVISOR)
        value = Total(f, spec, n).finish(total, divisor, f.field(f.geometry, TAPS), pixels)
        f.store(spec.number.narrow(f, value), f.at(f.b, first * spec.number.bytes))
    return module(f)


def backward(spec: Gradient, machine: Machine) -> str:
    """The module of `backward` for averages: a is dx, b is dy; units are as many planes as a vector has lanes."""
    f, n, bytes_ = kernel_function("backward"), machine.lanes(spec.accumulate), spec.number.bytes
    planes, pixels = f.field(f.geometry, PLANES), f.field(f.geometry, PIXELS)
    divisor, shares = f.field(f.geometry, DIVISOR).to(spec.share), f.scratch(vector(n, spec.number.stored), 1, 64)
    with f.loop(f.begin, f.end) as unit:
        first = f.smaller(unit * n, planes - n)
        dy = spec.wide(f, spec.number.load(f, f.at(f.b, first * bytes_), n))
        f.store(spec.narrow(f, Gather(f, spec, n, pixels).scaled(dy, divisor)), shares)
        with f.loop(0, n) as i:
            dx, share = f.at(f.a, (first + i) * (pixels * bytes_)), f.load(spec.number.stored, f.at(shares, i * bytes_))
            value = f.splat(share, n)
            blocks(f, n, f.value("i64", 0), pixels, partial(_fill, f, dx, value, share))
    return module(f)


def _fill(f: Function, dx: Value, value: Value, share: Value, pixel: Value, lanes: int) -> None:
    place = f.at(dx, pixel * (BITS[share.type] // 8))
    f.store(share if lanes == 1 else value, place)


def _plane(f: Function, spec: Sum, n: int, plane: Value, pixels: Value) -> tuple[Value, Value]:
    """The sums of a plane in every lane, and of the pixels that do not fill a vector."""
    totals, rest = [Total(f, spec, n) for _ in range(ABREAST)], Total(f, spec, 1)
    for total in (*totals, rest):
        total.start(f.value("i64", 0), f.value("i64", 0))
    bytes_, many, whole = spec.number.bytes, pixels // (n * ABREAST) * (n * ABREAST), pixels // n * n
    with f.loop(0, many, n * ABREAST) as at:
        for k, total in enumerate(totals):
            total.take(spec.number.load(f, f.at(plane, (at + k * n) * bytes_), n), at)
    with f.loop(many, whole, n) as at:
        totals[0].take(spec.number.load(f, f.at(plane, at * bytes_), n), at)
    with f.loop(whole, pixels) as at:
        rest.take(spec.number.load(f, f.at(plane, at * bytes_), 1), at)
    sums = [total.sum.get() for total in totals]
    while len(sums) > 1:
        sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=True)]
    return sums[0], rest.sum.get()
