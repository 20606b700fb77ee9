"""Convolution into few channels, on turned axes as well: gradients of a network's first layers, transposed convolution into an
image, one to a few results for each pixel.

Output channels would leave most lanes empty, so lanes are columns of y: where the axis is turned, columns of one phase. The
phases are as many convolutions with a part of the taps each, and read the same pixels. Channels first, x is read where it lies;
channels last, a unit packs the box that it reads, channels first. How work is cut is in conv_few_boxes.py, the code in
conv_few_kernel.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..epilogue import Epilogue
from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import LINE, PIECE
from .conv_few_boxes import Box, boxes_of, columns_of, groups_of, largest, most_taps, parts_of, places_of, size_of
from .conv_few_kernel import BIAS, BOX, GROUP, Few, few
from .conv_pack import first_sums, form_of
from .conv_relation import Relation, strides
from .edges import taps_inside
from .ending import bits, words
from .kept import kept
from .machine import machine
from .tables import Geometry
from .workers import address_of, run

Numbers = NDArray[np.int64]

MOST_TAPS = 2 * PIECE
"""Taps of a window that one sum may have at once."""

ALIAS = 2048
"""Bytes of which a packed channel had better not be a multiple: places of the cache would be few."""

TAKEN = 1 << 18
"""Products that a thread takes at once, at least."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, the units of one image and how many a thread takes, and its scratch."""

    address: int
    geometry: Geometry
    units: int
    taken: int
    slot: int


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int, first: bool) -> bool:
    """Whether columns are no strides apart, sums of all output channels and phases fit into registers, and what is packed into
    scratch memory."""
    axes = relation.volume
    if not (images and all(axis.size and axis.out for axis in axes)) or relation.groups > 1:
        return False
    if relation.dtype not in ("float32", "float64") or axes[2].stride > 1:
        return False
    if math.prod(most_taps(axes)) > MOST_TAPS or size_of(relation) is None:
        return False
    return first or boxes_of(relation, images) is not None


def compute(
    relation: Relation,
    x: Array,
    w: Array,
    b: Array | None,
    y: Array,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """y (N, outputs, *out) from x (N, inputs, *size), contiguous and of the relation's dtype, as weights are."""
    _compute(relation, (x, w, b, y), True, epilogue, residual)


def compute_last(
    relation: Relation,
    x: Array,
    w: Array,
    b: Array | None,
    y: Array,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """The same of y (N, *out, outputs) and x (N, *size, inputs)."""
    _compute(relation, (x, w, b, y), False, epilogue, residual)


def _compute(
    relation: Relation,
    arrays: tuple[Array, Array, Array | None, Array],
    first: bool,
    epilogue: Epilogue | None,
    residual: Array | None,
) -> None:
    x, w, b, y = arrays
    if not y.size:
        return
    found = schedule(relation, len(x), first, bits(epilogue, residual))
    weights = kept(w, ("few", form_of(relation)), lambda: _by_input(relation, w))
    bias = first_sums(relation, b)
    units = found.units * len(x)
    given = (address_of(bias), *words(epilogue, residual, y))
    block, memory = slots.block(found.slot, -(-units // found.taken), *given) if found.slot else (_block(given), None)
    places = (address_of(x), address_of(weights), address_of(block), address_of(y))
    run(found.address, found.geometry.address, *places, units, found.taken)
    del memory


def _block(given: tuple[int, ...]) -> Array:
    """A call's block where no scratch memory is needed."""
    return np.array([*[0] * BIAS, *given], np.int64)


def _by_input(relation: Relation, w: Array) -> Array:
    """Weights as (inputs, *kernel, outputs), not turned."""
    if not relation.swapped:
        w = w.swapaxes(0, 1)
    w = np.moveaxis(w, 1, -1)
    return np.ascontiguousarray(np.flip(w, tuple(range(1, w.ndim - 1))) if relation.flip else w)


def specification(relation: Relation, first: bool) -> Few:
    """What the code for a relation depends on."""
    size, wide = size_of(relation), relation.volume[2]
    assert size is not None
    _, taps = places_of(wide)
    variants = tuple(dict.fromkeys(variant for _, variant in columns_of(relation)))
    return Few(relation.spec.kind, relation.outputs, wide.input_dilation, tuple(taps), size.rows, variants, not first)


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, first: bool, how: int = 0) -> Schedule:
    """How a relation is computed over so many images, channels first or last; `how` is what is done with sums."""
    spec, axes = specification(relation, first), relation.volume
    (address,) = functions("conv_few", spec, lambda: few(spec, machine()), ("few",))
    boxes = parts_of(relation, images) if first else boxes_of(relation, images)
    assert boxes is not None
    bytes_, inputs, sizes = spec.bytes, relation.inputs, [axis.size for axis in axes]
    x_channel, x_steps, slot = _x_steps(relation, boxes, first)
    pixel = bytes_ if first else bytes_ * relation.outputs
    y_steps, from_steps = strides([axis.out for axis in axes], pixel), strides(sizes, bytes_ if first else bytes_ * inputs)
    w_row = axes[2].kernel * relation.outputs * bytes_
    w_deep = w_row * axes[1].kernel
    deep, high = (taps_inside(axis) for axis in axes[:2])
    start, _ = places_of(axes[2])
    x_image, y_image = (inputs * from_steps[0], relation.outputs * y_steps[0]) if first else (from_steps[0], y_steps[0])
    fields = [len(boxes), inputs, max(PIECE // math.prod(most_taps(axes)), 1), axes[2].out, axes[2].size, start]
    fields += [x_image, x_channel, *x_steps, high.step * x_steps[1], deep.step * x_steps[0]]
    fields += [w_deep * axes[0].kernel, high.skip * w_row, deep.skip * w_deep, y_image, y_steps[0]]
    whole = x_steps[1] == axes[2].size * bytes_ and all(box[5] == (0, axes[2].size) for box in boxes)
    fields += [*from_steps[:3], int(whole), slot, how]
    there = deep.count > 0
    firsts = [np.where(there, part, 0) * step for part, step in ((deep.pixel, x_steps[0]), (deep.number, w_deep))]
    depths = np.stack([firsts[0], deep.count, firsts[1], np.arange(axes[0].out) * y_steps[1]], 1).astype(np.int64)
    x_row, y_row = x_steps[1], y_steps[2]
    groups = [
        (g.rows, g.pixel * x_row, g.taps, g.tap * w_row, g.row * y_row, g.pixel_step * x_row, g.row_step * y_row)
        for g in groups_of(relation)
    ]
    found = columns_of(relation)
    columns = np.array([(at, spec.variants.index(variant)) for at, variant in found], np.int64)
    tables = [np.array(boxes, np.int64).reshape(-1, BOX), depths, np.array(groups, np.int64).reshape(-1, GROUP), columns]
    products = math.prod(axis.out for axis in axes) * relation.outputs * inputs * math.prod(most_taps(axes)) // len(boxes)
    return Schedule(address, Geometry(fields, tables), len(boxes), max(TAKEN // max(products, 1), 1), slot)


def _x_steps(relation: Relation, boxes: Sequence[Box], first: bool) -> tuple[int, tuple[int, int], int]:
    """Bytes of a channel, and of a depth and a row of x as it is read; and of the scratch it is packed to."""
    bytes_ = relation.spec.bytes
    if first:
        channel, deep, row, _ = strides([axis.size for axis in relation.volume], bytes_)
        return channel, (deep, row), 0
    deep, high, wide = largest(boxes)
    row = -(-wide * bytes_ // LINE) * LINE  # lines are written whole
    channel = deep * high * row
    channel += LINE if channel % ALIAS == 0 else 0
    return channel, (high * row, row), max(channel * relation.inputs, LINE)
