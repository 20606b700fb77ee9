"""Convolution of few input channels where the channels come first: lanes are columns of y, which is written where it lies.

A unit is some rows and columns of one image's plane of y, at one depth, for some output channels of a group. It packs what it
reads of x, plane by plane: with strides, the columns of each phase side by side, and zeros where there is padding, so that a
tap of a block of columns is one vector, whichever tap it is. The products with these zeros are no part of the sum: they do not
show while weights are finite, and with others the next way computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import StridedAxis
from ..epilogue import Epilogue
from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import LINE
from .conv_gather import TAKEN
from .conv_planar_tile import ENTRY, FIELDS, PHASES, Planar, planar
from .conv_relation import Relation, strides
from .cuts import evenly
from .ending import bits, words
from .kept import kept
from .machine import machine
from .slots import MOST
from .tables import Geometry
from .workers import address_of, run

Numbers = NDArray[np.int64]

X_BYTES = 1 << 16
"""About as much of packed x as a unit has."""

UNITS = 16
"""Units that a call has at least, if that leaves them VECTORS: more would pack more rows twice."""

COLUMNS = 1024
"""Columns of a unit, at most; half as many where what so many read is more than X_BYTES."""

PARTS = 8
"""Parts that output channels are taken in, at most: each packs all it reads."""

VECTORS = 24
"""Vectors of a unit from which it may have fewer rows than fit, so that there are UNITS of them."""


ALIAS = 256
"""Bytes from a window's row to the next of which multiples leave few places of the cache."""

PART = 16
"""Output channels that parts are multiples of: whole tiles."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows and columns of a unit, and the packed numbers of one phase of a row, in whole vectors."""

    rows: int
    columns: int
    pitch: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, units, how many a thread takes, and its scratch."""

    address: int
    geometry: Geometry
    units: int
    taken: int
    slot: int


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int) -> bool:
    """Whether it can be computed so: pixels not stretched, and the least that is packed at once fits into scratch memory."""
    if relation.dtype not in ("float32", "float64") or relation.depthwise or not images:
        return False
    if any(axis.input_dilation > 1 for axis in relation.axes):
        return False
    return _slot(relation, _cut(relation)) <= MOST


def compute(
    relation: Relation,
    x: Array,
    packed: Array,
    bias: Array,
    y: Array,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """y (N, outputs, *out) from x (N, inputs, *size), contiguous and of the relation's dtype; weights and bias are packed."""
    if not y.size:
        return
    found = schedule(relation, len(x), bits(epilogue, residual))
    block, memory = slots.block(found.slot, -(-found.units // found.taken), address_of(bias), *words(epilogue, residual, y))
    places = (address_of(x), address_of(packed), address_of(block), address_of(y))
    run(found.address, found.geometry.address, *places, found.units, found.taken)
    del memory


def hidden(relation: Relation, w: Array) -> bool:
    """Whether products with zeros in the place of padding do not show: weights are finite, or there is no padding. Frozen weights
    are looked at once."""
    if not any(axis.pad_lo > 0 or axis.start(axis.out - 1) + axis.reach > axis.size for axis in relation.axes):
        return True
    return bool(kept(w, "finite", lambda: np.array([np.isfinite(w).all()]))[0])


def written_for(relation: Relation) -> Planar:
    """What the code for a relation depends on."""
    stride = relation.volume[2].stride
    return Planar(relation.spec.kind, stride if stride in PHASES else 0)


def reach(axis: StridedAxis, count: int) -> int:
    """Pixels from the first to the last that so many windows read."""
    return (count - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1


def over(axis: StridedAxis) -> int:
    """Packed numbers of a phase from a window's first tap to the last."""
    return (axis.kernel - 1) * axis.dilation // axis.stride


@lru_cache(maxsize=512)
def _cut(relation: Relation) -> Cut:
    depth, height, width = relation.volume
    lanes, inputs = relation.spec.lanes(machine()), relation.parts[1]
    most = COLUMNS if inputs * depth.kernel * row_bytes(relation, COLUMNS) <= X_BYTES else COLUMNS // 2
    chunks = -(-width.out // most)
    columns = -(-width.out // chunks)
    columns = min(-(-columns // lanes) * lanes, width.out)
    pitch = (-(-(columns + over(width)) // lanes) + 1) * lanes
    row = inputs * depth.kernel * row_bytes(relation, pitch)
    rows = 1
    while rows < height.out and reach(height, rows + 1) * row <= X_BYTES:
        rows += 1
    return Cut(rows, columns, pitch)


def _slot(relation: Relation, cut: Cut) -> int:
    """Bytes of scratch."""
    depth, height, _ = relation.volume
    return relation.parts[1] * depth.kernel * reach(height, cut.rows) * row_bytes(relation, cut.pitch)


def _rows(relation: Relation, images: int, cut: Cut, lanes: int) -> int:
    """Rows of a unit: fewer where units would be few, and the same for as many as possible."""
    depth, height, width = relation.volume
    others = images * relation.parts[0] * depth.out * -(-width.out // cut.columns)
    wanted = -(-UNITS // max(others, 1))
    least = -(-VECTORS // -(-cut.columns // lanes))
    rows = min(cut.rows, max(-(-height.out // wanted), least))
    return -(-height.out // -(-height.out // rows))


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, how: int = 0) -> Schedule:
    """How a relation is computed over so many images; `how` is what is done with sums."""
    spec, cut, axes = relation.spec, _cut(relation), relation.volume
    size, lanes, block = spec.bytes, spec.lanes(machine()), spec.block(machine())
    depth, height, width = axes
    written = written_for(relation)
    (address,) = functions("conv_planar", (written, block), lambda: planar(written, block, machine()), ("planar",))
    groups, inputs, outputs = relation.parts
    rows = _rows(relation, images, cut, lanes)
    row = row_bytes(relation, cut.pitch)
    chunks, entries = _entries(width, cut, rows, lanes, (height.stride * row, width.out * size), size)
    row_chunks = -(-height.out // rows)
    units = images * groups * depth.out * row_chunks * len(chunks)
    part, parts = evenly(outputs, PART, min(UNITS // max(units, 1), PARTS))  # all channels, but where there are few units
    fields = places_of(relation, cut.pitch, rows) | {
        "parts": parts,
        "part": part,
        "depths": depth.out,
        "row_chunks": row_chunks,
        "rows": rows,
        "r_out": height.out,
        "column_chunks": len(chunks),
        "blocks": relation.blocks,
        "panel": relation.taps * inputs * block * size,
        "lanes": min(lanes, width.out),
        "how": how,
    }
    slot = fields["slot"]
    offsets = np.moveaxis(offsets_of(relation, fields), 0, -1).ravel()
    products = part * rows * cut.columns * relation.taps * inputs
    taken = max(TAKEN // max(products, 1), 1)
    return Schedule(address, Geometry([fields[name] for name in FIELDS], [chunks, entries, offsets]), units * parts, taken, slot)


def row_bytes(relation: Relation, pitch: int) -> int:
    """Bytes of a packed row of phases of so many numbers: the rows of a vector shall not share places of the cache."""
    _, height, width = relation.volume
    row = width.stride * pitch * relation.spec.bytes
    return row + (LINE if height.stride * row % ALIAS == 0 else 0)


def places_of(relation: Relation, pitch: int, rows: int) -> dict[str, int]:
    """The fields PLACES, for so many packed numbers of a phase of a row, and rows of y that are packed for at once."""
    axes, size = relation.volume, relation.spec.bytes
    depth, height, width = axes
    groups, inputs, outputs = relation.parts
    x_steps, y_steps = strides([a.size for a in axes], size), strides([a.out for a in axes], size)
    row = row_bytes(relation, pitch)
    plane = reach(height, rows) * row
    fields = {"groups": groups, "inputs": inputs, "outputs": outputs, "taps": relation.taps * inputs}
    fields |= dict(zip(("x_channel", "x_depth", "x_row"), x_steps, strict=False))
    fields |= dict(zip(("y_channel", "y_depth", "y_row"), y_steps, strict=False))
    fields |= {"z_size": depth.size, "z_stride": depth.stride, "z_step": depth.dilation, "z_pad": depth.pad_lo}
    fields |= {"z_taps": depth.kernel, "r_size": height.size, "r_stride": height.stride, "r_pad": height.pad_lo}
    fields |= {"r_reach": reach(height, 1), "c_size": width.size, "c_stride": width.stride, "c_pad": width.pad_lo}
    fields |= {"c_over": over(width), "p_row": row, "p_phase": pitch * size, "p_plane": plane}
    return fields | {"slot": inputs * depth.kernel * plane}


def offsets_of(relation: Relation, fields: dict[str, int]) -> Numbers:
    """(inputs, depth, height, width): the bytes from a window's first packed number to that of each channel and tap."""
    depth, height, width = relation.volume
    channel, z, r, c = np.ogrid[: relation.parts[1], : depth.kernel, : height.kernel, : width.kernel]
    at = c * width.dilation
    along = at % width.stride * fields["p_phase"] + at // width.stride * relation.spec.bytes
    deep = (channel * depth.kernel + z) * fields["p_plane"]
    return np.asarray(deep + r * height.dilation * fields["p_row"] + along, np.int64)


def _columns(width: StridedAxis, cut: Cut, lanes: int) -> list[tuple[int, int]]:
    """The first column of each chunk and how many it has; the last one has those too that would not fill a vector."""
    firsts = list(range(0, width.out, cut.columns))
    if len(firsts) > 1 and width.out - firsts[-1] < lanes:
        firsts.pop()
    return [(first, end - first) for first, end in zip(firsts, [*firsts[1:], width.out], strict=True)]


def _entries(width: StridedAxis, cut: Cut, rows: int, lanes: int, steps: tuple[int, int], size: int) -> tuple[Numbers, Numbers]:
    """Chunks of columns, and the vectors of each chunk's rows: bytes in packed x and in y from the first of the unit. The last
    vector of a row begins early enough to be full."""
    chunks, entries = [], []
    count = 0
    for first, columns in _columns(width, cut, lanes):
        at = np.minimum(np.arange(0, columns, lanes), max(columns - lanes, 0)) * size
        row = np.arange(rows)[:, None]
        chunks.append([first, columns, count, len(at)])
        entries.append(np.stack([row * steps[0] + at, row * steps[1] + at], 2).reshape(-1, ENTRY))
        count += rows * len(at)
    return np.array(chunks, np.int64), np.concatenate(entries).astype(np.int64)
