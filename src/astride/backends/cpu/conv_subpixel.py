"""Transposed convolution, and the gradient of x of strided ones, with all phases of a column as channels: the sub-pixel form.

Where pixels of x lie s apart along the last axis, every s neighbouring outputs (a cell) read the same pixels through different
taps. They are the result of an ordinary axis whose windows have s times the channels: fuller lanes where channels are few, and
x is read once for all of them. Channels last, the numbers of a cell are y's own, in order; channels first, each channel has s
numbers of a cell side by side, and slabs are unpacked by that many at once (conv_slabs.py).

Only windows that leave no tap of a cell out are taken: taps that are not there would be zeros, and zero times infinity is NaN.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...plan import StridedAxis
from ..epilogue import Epilogue
from ..protocol import Array
from . import conv_gather, conv_slabs
from .conv_pack import form_of, packed, packed_bias
from .conv_relation import Relation
from .kept import kept
from .machine import machine

WIDEST = 16
"""Phases of a cell, at most: more of them than a vector has lanes need no help."""


def takes(relation: Relation, images: int, first: bool) -> bool:
    """Whether cells are whole, and slabs of them fit into scratch memory where channels come first."""
    if relation.groups > 1 or relation.dtype not in ("float32", "float64") or not relation.axes:
        return False
    axis = relation.axes[-1]
    phases = axis.input_dilation
    if phases == 1 or axis.stride > 1 or axis.dilation > 1 or axis.kernel % phases or axis.out % phases:
        return False
    if axis.pad_lo % phases != phases - 1 or not axis.out or not axis.size:
        return False
    if not first:
        return True
    block = relation.spec.block(machine())
    return phases <= WIDEST and block % phases == 0 and conv_slabs.takes(folded(relation, True), images)


@lru_cache(maxsize=512)
def folded(relation: Relation, first: bool) -> Relation:
    """The relation between x and cells. Its weights are those of `arranged`; `first` relations have others, so are others."""
    axis = relation.axes[-1]
    phases, taps = axis.input_dilation, axis.kernel // axis.input_dilation
    cells, low = axis.out // phases, axis.pad_lo // phases
    last = StridedAxis(axis.size, taps, 1, 1, low, cells - 1 + taps - axis.size - low, cells)
    outputs = relation.outputs * phases
    return replace(relation, axes=(*relation.axes[:-1], last), outputs=outputs, swapped=False, flip=False)


def arranged(relation: Relation, w: Array, first: bool) -> Array:
    """Weights (cell's outputs, inputs, *kernel) of the folded relation: phase by phase all channels, or `first` channel by
    channel all phases."""
    rank, phases = len(relation.axes), relation.axes[-1].input_dilation
    if relation.flip:
        w = w[:, :, *[slice(None, None, -1)] * rank]
    if relation.swapped:
        w = w.swapaxes(0, 1)
    # Along the last axis phase a of a cell has the taps phases - 1 - a, and every phases-th behind it.
    w = w.reshape(*w.shape[:-1], w.shape[-1] // phases, phases)[..., ::-1]
    w = np.moveaxis(w, -1, 1 if first else 0)
    return np.ascontiguousarray(w).reshape(relation.outputs * phases, relation.inputs, *w.shape[3:])


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
    """y (N, outputs, *out) from x (N, inputs, *size), contiguous and of the relation's dtype."""
    how, weights, bias = _prepared(relation, w, b, first=True)
    phases = relation.axes[-1].input_dilation
    conv_slabs.compute(how, x, weights, bias, y, epilogue=epilogue, residual=residual, fold=phases)


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
    """y (N, *out, outputs) from x (N, *size, inputs), contiguous and of the relation's dtype."""
    how, weights, bias = _prepared(relation, w, b, first=False)
    conv_gather.compute(how, x, weights, bias, y, epilogue=epilogue, residual=residual)


def _prepared(relation: Relation, w: Array, b: Array | None, *, first: bool) -> tuple[Relation, Array, Array]:
    """The folded relation, its packed weights, and its packed bias."""
    how, phases = folded(relation, first), relation.axes[-1].input_dilation
    form = (form_of(how), phases, relation.swapped, relation.flip, first)
    weights = kept(w, ("sub-pixel", form), lambda: packed(how, arranged(relation, w, first)))
    if b is not None:
        b = np.repeat(b, phases) if first else np.tile(b, phases)
    return how, weights, packed_bias(how, b, weights.dtype)
