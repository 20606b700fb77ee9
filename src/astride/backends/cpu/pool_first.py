"""Pooling where the channels come first. A unit is one row of output, computed in one of three ways: small windows all at
once (line_quick), wide ones with their taps in lanes (line_wide), others tap by tap (line)."""

from __future__ import annotations

from .ir import module
from .line import TABLES, TILE, Across, Exactly, Line, Wide
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
    kind = Quickly if isinstance(across, Across) else Widely if isinstance(across, Wide) else Exactly
    row = kind(f, spec, kernel, steps, tables[2], size_[2], group, machine)
    with f.loop(f.begin, f.end) as unit:
        plane, place = unit // (out[0] * out[1]), unit % (out[0] * out[1])
        depth, height = Window.read(f, tables[0], place // out[1]), Window.read(f, tables[1], place % out[1])
        x = f.at(f.a, ((plane * size_[0] + depth.pixel) * size_[1] + height.pixel) * size_[2] * pixel)
        columns = out[2] * group
        line = Line(depth, height, x, unit * columns, Place(f.b, f.c).moved(f, spec, unit * columns))
        some = (depth.count * height.count) > 0 if across is not None else f.value("i1", False)
        with f.when(some, likely=True) as none:
            if isinstance(row, Widely):
                row.widely(line, columns)
            elif isinstance(row, Quickly) and isinstance(across, Across):
                tile = f.field(f.geometry, TILE) * group
                with f.loop(0, columns, tile) as start:
                    row.quickly(line, across, start, f.smaller(columns - start, tile))
            with none.otherwise():
                row.exactly(line, f.value("i64", 0), columns)
    return module(f)
