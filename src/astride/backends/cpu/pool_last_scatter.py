"""The gradient of pooling where the channels come last and windows give to pixels, not pixels ask their windows.

Extremes of large windows that overlap much: dx is cleared, and every window adds to one tap in each channel. A unit is a
block of channels of one image, so the order of additions is that of the windows. Averages over whole images: what one
window gives is worked out once and copied to every pixel.
"""

from __future__ import annotations

from .gradients import Gather, Gradient
from .ir import Function, Value, module
from .ir_types import size, vector
from .machine import Machine
from .pool_last import over_channels
from .window import CHANNELS, FIRST_FREE, OUT, SIZE, fields, kernel_function

BLOCK, TABLES, PLACES = FIRST_FREE + 1, FIRST_FREE + 2, FIRST_FREE + 5
"""Fields: the channels of one unit; three tables of where windows start, and for each number of a tap how far it lies from its
window's start, all in bytes."""

UNROLLED = 4
"""Channels taken at once: they never give to the same number."""

TILE = 2048
"""Channels of one image's gradient that are worked out before they are copied."""


def backward(spec: Gradient, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy, c the offsets, d is x; units are blocks of channels of one image."""
    f = kernel_function("backward")
    number, channels, block = spec.number, f.field(f.geometry, CHANNELS), f.field(f.geometry, BLOCK)
    size_, out = fields(f, SIZE), fields(f, OUT)
    tables = [f.at(f.geometry, f.field(f.geometry, TABLES + axis)) for axis in range(3)]
    places = f.at(f.geometry, f.field(f.geometry, PLACES))
    pixels, windows, blocks = size_[0] * size_[1] * size_[2], out[0] * out[1] * out[2], (channels - 1) // block + 1
    with f.loop(f.begin, f.end) as unit:
        image, first = unit // blocks, unit % blocks * block
        last = f.smaller(channels, first + block)
        plane = image * pixels * channels * number.bytes
        _clear(f, spec, f.at(f.a, plane), pixels, channels, first, last, machine.lanes(spec.accumulate))
        with f.loop(0, out[0]) as i, f.loop(0, out[1]) as j:
            start = f.load("i64", f.at(tables[0], i * 8)) + f.load("i64", f.at(tables[1], j * 8))
            line = image * windows + (i * out[1] + j) * out[2]
            with f.loop(0, out[2]) as k:
                place = plane + start + f.load("i64", f.at(tables[2], k * 8))
                window, whole = (line + k) * channels, first + (last - first) // UNROLLED * UNROLLED
                with f.loop(first, whole, UNROLLED) as c:
                    for n in range(UNROLLED):
                        _to_one(f, spec, place, window, places, c + n)
                with f.loop(whole, last) as c:
                    _to_one(f, spec, place, window, places, c)
    return module(f)


def _clear(
    f: Function, spec: Gradient, dx: Value, pixels: Value, channels: Value, first: Value, last: Value, lanes: int
) -> None:
    bytes_ = spec.number.bytes
    with f.loop(0, pixels) as pixel:
        here = f.at(dx, (pixel * channels + first) * bytes_)

        def body(c: Value, lanes: int, blocks: int) -> None:
            for k in range(blocks):
                f.store(f.value(vector(lanes, spec.accumulate), 0), f.at(here, (c + k * lanes) * bytes_))

        over_channels(f, last - first, lanes, 4, body)


def _to_one(f: Function, spec: Gradient, start: Value, window: Value, places: Value, c: Value) -> None:
    """One channel's dy to the tap whose number was saved."""
    bytes_ = spec.number.bytes
    number = f.load(f"i{8 * spec.offsets}", f.at(f.c, (window + c) * spec.offsets))
    with f.when(number.ne(-1), likely=True):
        place = start + f.load("i64", f.at(places, number.widened("i64") * 8)) + c * bytes_
        state = Gather(f, spec, 1, f.value("i64", 0))
        state.start(f.load(spec.accumulate, f.at(f.d, place)) if spec.reads_x else None)
        dy, here = f.load(spec.accumulate, f.at(f.b, (window + c) * bytes_)), f.at(f.a, place)
        f.store(f.load(spec.accumulate, here) + state.given(dy), here)


def whole_images(spec: Gradient, machine: Machine, *, streaming: bool) -> str:
    """The module of `backward` for averages over whole images: a is dx, b is dy; units are images."""
    f = kernel_function("backward")
    number, channels, size_ = spec.number, f.field(f.geometry, CHANNELS), fields(f, SIZE)
    lanes, pixels = machine.lanes(spec.accumulate), size_[0] * size_[1] * size_[2]
    share = f.field(f.geometry, FIRST_FREE).to(spec.share)
    given = f.scratch(number.stored, TILE, 64)
    with f.loop(f.begin, f.end) as image, f.loop(0, channels, TILE) as first:
        count = f.smaller(channels - first, TILE)
        dy = f.at(f.b, (image * channels + first) * number.bytes)

        def divide(c: Value, lanes: int, blocks: int) -> None:
            for k in range(blocks):
                place = (c + k * lanes) * number.bytes
                state = Gather(f, spec, lanes, pixels)
                state.start(None)
                state.take(state.scaled(spec.wide(f, number.load(f, f.at(dy, place), lanes)), share), pixels, None)
                f.store(spec.narrow(f, state.result()), f.at(given, place))

        over_channels(f, count, lanes, 4, divide)
        with f.loop(0, pixels) as pixel:
            here = f.at(f.a, ((image * pixels + pixel) * channels + first) * number.bytes)

            def copy(c: Value, lanes: int, blocks: int) -> None:
                for k in range(blocks):
                    place = (c + k * lanes) * number.bytes
                    values = f.load(vector(lanes, number.stored), f.at(given, place))
                    f.store(values, f.at(here, place), streaming=streaming and lanes > 1)

            over_channels(f, count, machine.vector_bytes // size(number.stored), 4, copy)
    if streaming:
        f.call("void", "llvm.x86.sse.sfence")
    return module(f)
