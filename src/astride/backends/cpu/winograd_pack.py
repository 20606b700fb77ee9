"""Weights as Winograd's products read them: transformed lane by lane from those that direct tiles read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

from ..memory import Pool
from ..protocol import Array
from .cache import functions
from .contraction import Contraction
from .conv_relation import Relation
from .ir import module
from .ir_types import vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .winograd_forms import FORMS, transformed
from .workers import address_of, run

INPUTS, ROWS = range(2)
"""Fields: input channels of a group, and as many with the zeros behind them."""

TAKEN = 32
"""Channels that a thread takes at once."""

_pool = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.after_fork)


@dataclass(frozen=True, slots=True)
class Transform:
    """What the kernel depends on: what it computes with, and the outputs of a tile's row."""

    spec: Contraction
    tile: int


def transformed_weights(relation: Relation, packed: Array, tile: int) -> Array:
    """(groups, blocks, points, inputs, lanes) from packed weights, inputs rounded up to whole vectors by zeros."""
    groups = relation.parts[0]
    address, geometry, rows = _schedule(relation, tile)
    shape = (groups, relation.blocks, FORMS[tile].points ** 2, rows, packed.shape[-1])
    out = _pool.empty(shape, packed.dtype)
    run(address, geometry.address, address_of(packed), address_of(out), 0, 0, groups * relation.blocks * rows, TAKEN)
    return out


@lru_cache(maxsize=512)
def _schedule(relation: Relation, tile: int) -> tuple[int, Geometry, int]:
    form, lanes = Transform(relation.spec, tile), relation.spec.lanes(machine())
    (address,) = functions("winograd_pack", form, lambda: transform(form, machine()), ("transform",))
    inputs = relation.parts[1]
    rows = -(-inputs // lanes) * lanes
    return address, Geometry([inputs, rows], []), rows


def transform(form: Transform, machine: Machine) -> str:
    """The module of `transform`: a are packed weights, b transformed ones; units are (group, block, input channel)."""
    f, spec, matrix = kernel_function("transform"), form.spec, FORMS[form.tile].weights
    width = spec.lanes(machine) * spec.bytes
    row, kind = width * spec.vectors(machine), vector(spec.lanes(machine), spec.kind)
    inputs, rows = f.field(f.geometry, INPUTS), f.field(f.geometry, ROWS)
    with f.loop(f.begin, f.end) as unit:
        block, channel = unit // rows, unit % rows
        w, to = f.at(f.a, (block * inputs * 9 + channel) * row), f.at(f.b, (block * rows * len(matrix) ** 2 + channel) * row)
        with f.loop(0, row, width) as part, f.when(channel < inputs, likely=True) as behind:
            values = [[f.load(kind, f.at(f.at(w, part), inputs * ((i * 3 + j) * row))) for j in range(3)] for i in range(3)]
            for k, value in enumerate(v for line in transformed(f, matrix, lambda i, j: values[i][j]) for v in line):
                f.store(value, f.at(f.at(to, part), rows * (k * row)))
            with behind.otherwise():
                for k in range(len(matrix) ** 2):
                    f.store(f.value(kind, 0), f.at(f.at(to, part), rows * (k * row)))
    return module(f)
