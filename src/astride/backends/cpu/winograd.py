"""Convolution with 3x3 windows of stride 1 by Winograd's form: y from x, and the gradient of x from that of y.

The output is cut into tiles of 2x2 (or 4x4) pixels. A tile's pixels and the weights are transformed, multiplied point by point
and summed over channels, and the sums transformed into outputs: 16 products (or 36) where windows have 36 (or 144). A unit is
a chunk of tiles of one group: its transformed pixels stay in the cache while the weights pass by.

A tile that holds an infinity or NaN is computed directly, so that they lie where windows have them and padding meets nothing.
What is computed for a tile depends on nothing but the tile: neither chunks nor threads show.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..epilogue import Epilogue
from ..protocol import Array
from . import conv_gather, slots
from .cache import functions
from .conv_layout import channels_last
from .conv_pack import form_of
from .conv_relation import Relation
from .ending import bits, words
from .ir import module
from .kept import kept
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .winograd_first import UnitFirst, room
from .winograd_forms import FORMS
from .winograd_pack import transformed_weights
from .winograd_parts import apart, steps_of
from .winograd_units import FIELDS, Form, Unit
from .workers import address_of, run

CACHE = 3 << 17
"""Bytes of a chunk's transformed pixels, about: they stay in the cache with the products and a block's weights."""

LARGE = 20
"""Outputs along both axes from which tiles of 4x4 were measured faster than those of 2x2, for single images as well."""

UNITS = 8
"""Units that a call has at least, if it has tiles enough."""


def declines(relation: Relation, most: int) -> str | None:
    """Why a relation cannot be computed with tiles of at most `most` outputs along a side; None if it can."""
    if most not in FORMS:
        return "Winograd's form is switched off"
    steps = [(axis.kernel, axis.stride, axis.dilation, axis.input_dilation) for axis in relation.axes]
    if len(steps) != 2 or any(step != (3, 1, 1, 1) for step in steps):
        return "windows are not 3x3 with stride 1"
    return "each channel is by itself" if relation.depthwise else None


def tile_of(relation: Relation, most: int) -> int:
    """The side of the tiles: `most`, or 2 where an image has little room for larger ones."""
    return most if min(axis.out for axis in relation.axes) >= LARGE else 2


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address and geometry, how many units and tiles there are, and the bytes of a slot."""

    address: int
    geometry: Geometry
    units: int
    tiles: int
    slot: int


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, tile: int, first: bool) -> Schedule:
    """How a relation is computed over so many images."""
    spec = relation.spec
    form = Form(spec, tile, first)
    (address,) = functions("winograd", form, lambda: winograd(form, machine()), ("winograd",))
    groups, inputs, outputs = relation.parts
    (high, wide), rows, lanes = relation.axes, spec.rows(machine())[0], spec.lanes(machine())
    points, vectors = FORMS[tile].points ** 2, -(-inputs // lanes)
    in_row, in_column = -(-wide.out // tile), -(-high.out // tile)
    tiles = images * in_row * in_column
    blocks = -(-tiles // rows)
    row = vectors * lanes * spec.bytes * points * rows
    chunks = min(max(-(-blocks // max(CACHE // row, 2)), -(-UNITS // groups)), blocks)
    most = -(-blocks // chunks)
    point, product = apart(row // points * most), apart(rows * most * spec.block(machine()) * spec.bytes)
    slot = points * (point + product) + (room(spec, tile, machine()) if first else 0)
    values = dict(
        tiles=tiles, in_image=in_row * in_column, in_row=in_row, chunks=chunks, blocks_of_tiles=blocks,
        slot=slot,
        height=high.size, width=wide.size, pad_y=high.pad_lo, pad_x=wide.pad_lo,
        out_height=high.out, out_width=wide.out, inputs=inputs, outputs=outputs, vectors=vectors, blocks=relation.blocks,
        point=point, product=product,
        **steps_of("x", (high.size, wide.size), relation.inputs, inputs, spec.bytes, first),
        **steps_of("y", (high.out, wide.out), relation.outputs, outputs, spec.bytes, first),
    )  # fmt: skip
    zeros = np.zeros(-(-vectors * lanes * spec.bytes // 8), np.int64)
    return Schedule(address, Geometry([values[name] for name in FIELDS], [zeros]), groups * chunks, tiles, slot)


def _transformed(relation: Relation, packed: Array, tile: int) -> Array:
    """The weights in Winograd's form, made once if they cannot change."""
    return kept(packed, ("winograd", form_of(relation), tile), lambda: transformed_weights(relation, packed, tile))


def compute(
    relation: Relation,
    x: Array,
    packed: Array,
    bias: Array,
    y: Array,
    tile: int,
    first: bool = False,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """y (N, *out, outputs) from x (N, *size, inputs), contiguous and of the relation's dtype, and packed weights and bias.

    With `first` y is (N, outputs, *out) and x (N, inputs, *size). `tile` is 2 or 4. Any size will do:
    whether it is worth it, conv_cost.py says.
    """
    if not y.size:
        return
    found, weights = schedule(relation, len(x), tile, first), _transformed(relation, packed, tile)
    flags = np.zeros(found.tiles, np.uint8)
    ending = bits(epilogue, residual), *words(epilogue, residual, y)
    block, memory = slots.block(found.slot, found.units, bias.ctypes.data, flags.ctypes.data, *ending)
    run(
        found.address,
        found.geometry.address,
        address_of(x),
        address_of(weights),
        address_of(block),
        address_of(y),
        found.units,
        1,
    )
    del memory
    if flags.any():
        where = np.moveaxis(y, 1, -1) if first else y
        for n in np.flatnonzero(flags.reshape(len(x), -1).any(1)):
            one = channels_last(x[n : n + 1]) if first else x[n : n + 1]
            added = None if residual is None else residual[n : n + 1]
            added = channels_last(added) if first and added is not None else added
            _directly(relation, one, packed, bias, where[n], tile, flags.reshape(len(x), -1)[n], epilogue, added)


def _directly(
    relation: Relation, x: Array, packed: Array, bias: Array, y: Array, tile: int, flags: Array,
    epilogue: Epilogue | None, residual: Array | None,
) -> None:  # fmt: skip
    """Compute the flagged tiles of one image again, by the direct form."""
    in_row = -(-relation.axes[1].out // tile)
    direct = np.empty((1, *y.shape), y.dtype)
    conv_gather.compute(relation, x, packed, bias, direct, epilogue=epilogue, residual=residual)
    for t in np.flatnonzero(flags):
        rows, columns = (slice(at * tile, (at + 1) * tile) for at in divmod(int(t), in_row))
        y[rows, columns] = direct[0, rows, columns]


def winograd(form: Form, machine: Machine) -> str:
    """The module of `winograd`: a is x, b the transformed weights, c the call's block, d is y."""
    f = kernel_function("winograd")
    writer = (UnitFirst if form.first else Unit)(f, form, machine)
    number, memory = slots.slot(f, f.c, writer.slot)
    with f.loop(f.begin, f.end) as unit:
        writer.unit(unit, memory)
    slots.give_back(f, f.c, number)
    return module(f, slots.taker(), *writer.functions)
