"""Pooling where the channels come first. A unit is one row of output, computed in one of four ways: small windows all at
once, from a buffer (line_quick) or straight from the image (line_direct), wide ones with their taps in lanes (line_wide),
others tap by tap (line)."""

from __future__ import annotations

from . import line_direct
from .ir import Value, module
from .line import BATCH, TABLES, TILE, Across, Exactly, Line, Wide
from .line_direct import Directly
from .line_quick import Quickly
from .line_wide import Widely
from .machine import Machine
from .window import DILATION, KERNEL, OUT, SIZE, Place, Spec, Window, fields, kernel_function


def forward(spec: Spec, across: Across | Wide | None, machine: Machine) -> str:
    """The module of `forward`: a is x, b is y, c the offsets; units are rows (plane, depth, height) of y.

    Without `across` every window is scanned by itself, tap by tap.
    """
    f = kernel_function("forward")
    size_, out, kernel, dilation = (fields(f, start) for start in (SIZE, OUT, KERNEL, DILATION))
    tables = [f.at(f.geometry, f.field(f.geometry, TABLES + axis)) for axis in range(3)]
    group = across.group if isinstance(across, Across) else 1
    pixel = spec.number.bytes * group
    steps = [dilation[0] * size_[1] * size_[2] * pixel, dilation[1] * size_[2] * pixel, dilation[2] * pixel]
    kind: type[Exactly] = Widely if isinstance(across, Wide) else Exactly
    if isinstance(across, Across):
        kind = Directly if line_direct.takes(spec, across, machine) else Quickly
    row = kind(f, spec, kernel, steps, tables[2], size_[2], group, machine)
    columns = out[2] * group

    def line(unit: Value) -> Line:
        plane, place = unit // (out[0] * out[1]), unit % (out[0] * out[1])
        depth, height = Window.read(f, tables[0], place // out[1]), Window.read(f, tables[1], place % out[1])
        x = f.at(f.a, ((plane * size_[0] + depth.pixel) * size_[1] + height.pixel) * size_[2] * pixel)
        return Line(depth, height, x, unit * columns, Place(f.b, f.c).moved(f, spec, unit * columns))

    if isinstance(row, Directly) and isinstance(across, Across):
        with f.loop(f.begin, f.end) as unit:
            here = line(unit)
            with f.when(here.some, likely=True) as none:
                row.directly(here, across, columns)
                with none.otherwise():
                    row.exactly(here, f.value("i64", 0), columns)
        return module(f)
    if isinstance(row, Quickly) and isinstance(across, Across):
        batch, tile = f.field(f.geometry, BATCH), f.field(f.geometry, TILE) * group
        with f.loop(f.begin, f.end, batch) as first, f.loop(0, columns, tile) as start:
            lines, count = f.smaller(f.end - first, batch), f.smaller(columns - start, tile)
            with f.loop(0, lines) as k:
                here = line(first + k)
                with f.when(here.some, likely=True):
                    row.reduce(here, across, start, count, k)
            with f.loop(0, lines) as k:
                here = line(first + k)
                with f.when(here.some, likely=True) as none:
                    row.finish(here, across, start, count, k)
                    with none.otherwise():
                        row.exactly(here, start, count)
        return module(f)
    with f.loop(f.begin, f.end) as unit:
        here = line(unit)
        if isinstance(row, Widely):
            with f.when(here.some, likely=True) as none:
                row.widely(here, columns)
                with none.otherwise():
                    row.exactly(here, f.value("i64", 0), columns)
        else:
            row.exactly(here, f.value("i64", 0), columns)
    return module(f)
