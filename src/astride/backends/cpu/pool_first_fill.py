"""The gradient of averages over whole planes where the channels come first: each plane is filled with one number."""

from __future__ import annotations

from .gradients import Gather, Gradient
from .ir import Function, Value, module
from .machine import Machine
from .window import FIRST_FREE, SIZE, blocks, fields, kernel_function


def backward(spec: Gradient, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy; units are planes. The factor of the geometry is the divisor."""
    f = kernel_function("backward")
    number, size = spec.number, fields(f, SIZE)
    pixels, share = size[0] * size[1] * size[2], f.field(f.geometry, FIRST_FREE).to(spec.share)
    with f.loop(f.begin, f.end) as plane:
        given = _given(f, spec, plane, pixels, share)
        dx = f.at(f.a, plane * pixels * number.bytes)

        def fill(i: Value, lanes: int) -> None:
            f.store(f.splat(given, lanes), f.at(dx, i * number.bytes))

        blocks(f, machine.lanes(number.stored), f.value("i64", 0), pixels, fill)
    return module(f)


def _given(f: Function, spec: Gradient, plane: Value, pixels: Value, share: Value) -> Value:
    """What the plane's one window gives to every pixel, as memory holds it."""
    state = Gather(f, spec, 1, pixels)
    state.start(None)
    dy = spec.wide(f, spec.number.load(f, f.at(f.b, plane * spec.number.bytes), 1))
    state.take(state.scaled(dy, share), pixels, None)
    return spec.narrow(f, state.result())
