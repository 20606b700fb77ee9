"""The relation behind convolution, its gradients and the transposed operator: a[i*s - p + j*d] meets b[i] over w[j].

    gather(link, a, w)      b[i]               = sum_j a[i*s - p + j*d] w[j]     convolution
    scatter(link, b, w)     a[i*s - p + j*d]  += b[i] w[j]                       its adjoint in a
    weights(link, a, b)     w[j]               = sum_i a[i*s - p + j*d] b[i]     its adjoint in w

Each is told twice: as matrix products over columns (`im2col`), and position by position (`loops2`). Arrays are
(N, C, *size) views in the dtype sums are formed in; w is (O, I/g, *kernel) as the relation sees it. gather and scatter
write the whole of `out`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...plan import ConvPlan, StridedAxis
from ..protocol import Array
from ._windows import EVERY, Extension, Tap, everywhere_inside, extension, places, taps

WIDE_POSITIONS = 512
"""Images of fewer positions share one matrix product: many small products cost more than their arithmetic."""

COLUMN_ELEMENTS = 1 << 24
"""Columns are built for as many images at a time as keep them within this many numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """The geometry of one relation: a has `a_channels`, b has `b_channels`, both in `groups` groups."""

    axes: tuple[StridedAxis, ...]
    grown: Extension
    groups: int
    a_channels: int
    b_channels: int
    flip: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def outs(self) -> tuple[int, ...]:
        return tuple(axis.out for axis in self.axes)

    @property
    def taps(self) -> tuple[Tap, ...]:
        return taps(self.grown.axes)

    @property
    def wide(self) -> bool:
        """Whether every image is worth a matrix product of its own."""
        return math.prod(self.outs) >= WIDE_POSITIONS

    @property
    def matrix(self) -> tuple[int, int, int]:
        """The taps as one matrix per group: (groups, O/g, I/g * taps)."""
        return (self.groups, self.b_channels // self.groups, self.a_channels // self.groups * len(self.taps))

    @property
    def kernel(self) -> tuple[int, int, int, int]:
        """The kernel with its places in a row: (groups, O/g, I/g, places)."""
        return (*self.matrix[:2], self.a_channels // self.groups, math.prod(axis.kernel for axis in self.axes))

    @property
    def met(self) -> Any:
        """The places of the kernel that are taps: the others meet no pixel in any window."""
        return EVERY if len(self.taps) == self.kernel[3] else [tap.offset for tap in self.taps]

    def start(self, a: Array) -> Array:
        """Zeros to add shares of `a` to: its own memory, or that of the input an edge mode grew."""
        a[...] = 0
        if self.grown.sources is None:
            return a
        return np.zeros((*a.shape[:2], *(axis.size for axis in self.grown.axes)), a.dtype)

    def finish(self, total: Array, a: Array) -> None:
        """Bring what was added to a grown input back to `a`."""
        if total is not a:
            a[...] = self.grown.fold(total)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return (self.b_channels, self.a_channels // self.groups, *(axis.kernel for axis in self.axes))


def link(plan: ConvPlan) -> Link:
    """The relation a plan describes, batch groups folded into groups."""
    transposed = plan.op == "conv_transpose"
    a, b = (plan.out_channels, plan.in_channels) if transposed else (plan.in_channels, plan.out_channels)
    grown = extension(plan.axes, plan.edge)
    return Link(plan.axes, grown, plan.groups * plan.batch_groups, a * plan.batch_groups, b, plan.flip)


def oriented(lk: Link, w: Array) -> Array:
    """The weights as the taps meet them."""
    return w[(EVERY, EVERY, *[slice(None, None, -1)] * len(lk.axes))] if lk.flip else w


def gather_im2col(lk: Link, a: Array, w: Array, out: Array) -> None:
    """b (N, O, *out) as matrix products: the kernel times the columns.

    Padded taps of a kernel that is not finite are skipped, not multiplied.
    """
    w = oriented(lk, w)
    if not _padding_is_neutral(lk, w):
        _gather_by_tap(lk, a, w, out)
        return
    kernel = _met(lk, w)
    for images in _chunks(lk, a.shape[0]):
        columns, b = _columns(lk, a[images]), out[images]
        if lk.wide and b.flags.c_contiguous:
            np.matmul(kernel, columns, out=b.reshape(len(b), *lk.matrix[:2], columns.shape[-1]))
        else:
            _from_rows(lk, np.matmul(kernel, columns), b)


def scatter_im2col(lk: Link, b: Array, w: Array, out: Array) -> None:
    """a (N, I, *size): matrix products give every tap's share, added where the tap lies."""
    kernel = _met(lk, oriented(lk, w)).swapaxes(1, 2)
    total = lk.start(out)
    for images in _chunks(lk, b.shape[0]):
        shares = np.matmul(kernel, _rows(lk, b[images]))
        count, part = images.stop - images.start, total[images]
        if lk.wide:
            shares = shares.reshape(count, lk.a_channels, len(lk.taps), *lk.outs).swapaxes(1, 2).swapaxes(0, 1)
        else:
            shares = shares.reshape(lk.a_channels, len(lk.taps), count, *lk.outs).swapaxes(0, 1)
            part = part.swapaxes(0, 1)
        for tap, share in zip(lk.taps, shares, strict=True):
            tap.add(part, tap.of(share))
    lk.finish(total, out)


def weights_im2col(lk: Link, a: Array, b: Array) -> Array:
    """w (O, I/g, *kernel): b times the columns of a, summed over images."""
    if not _padding_is_neutral(lk, b):
        return oriented(lk, _weights_by_tap(lk, a, b))
    total = np.zeros(lk.matrix, a.dtype)
    for images in _chunks(lk, a.shape[0]):
        columns, rows = _columns(lk, a[images]).swapaxes(-1, -2), _rows(lk, b[images])
        for column, row in zip(columns, rows, strict=True) if lk.wide else [(columns, rows)]:
            total += np.matmul(row, column)
    kernel = np.zeros(lk.kernel, a.dtype)
    kernel[..., lk.met] = total.reshape(*lk.kernel[:3], len(lk.taps))
    return oriented(lk, kernel.reshape(lk.weight_shape))


def gather_loops2(lk: Link, a: Array, w: Array, out: Array) -> None:
    """b, one position at a time: the window under the kernel times the kernel, all images and channels at once."""
    a = lk.grown.grow(a, 0.0)
    kernel = oriented(lk, w).reshape(lk.kernel)
    for place in places(lk.grown.axes):
        window = _by_group(lk, a[(EVERY, EVERY, *place.pixels)])
        here = np.einsum("ngit,goit->ngo", window, kernel[..., place.offsets])
        out[(..., *place.window)] = here.reshape(a.shape[0], lk.b_channels)


def scatter_loops2(lk: Link, b: Array, w: Array, out: Array) -> None:
    """a, one position of b at a time: its value times the kernel, added under the window."""
    total = lk.start(out)
    kernel = oriented(lk, w).reshape(lk.kernel)
    for place in places(lk.grown.axes):
        here = b[(..., *place.window)].reshape(b.shape[0], *lk.matrix[:2])
        share = np.einsum("ngo,goit->ngit", here, kernel[..., place.offsets])
        total[(EVERY, EVERY, *place.pixels)] += share.reshape(b.shape[0], lk.a_channels, len(place.offsets))
    lk.finish(total, out)


def weights_loops2(lk: Link, a: Array, b: Array) -> Array:
    """w, one position at a time: the window times the value it gave, summed over images."""
    a = lk.grown.grow(a, 0.0)
    total = np.zeros(lk.kernel, a.dtype)
    for place in places(lk.grown.axes):
        window = _by_group(lk, a[(EVERY, EVERY, *place.pixels)])
        here = b[(..., *place.window)].reshape(b.shape[0], *lk.matrix[:2])
        total[..., place.offsets] += np.einsum("ngo,ngit->goit", here, window)
    return oriented(lk, total.reshape(lk.weight_shape))


def _columns(lk: Link, a: Array) -> Array:
    """For every tap the pixels it reads, zeros where it lies outside, as the columns of matrix products.

    (N, groups, I/g * taps, positions), one product per image, or (groups, I/g * taps, N * positions), one for all.
    """
    a = lk.grown.grow(a, 0.0)
    count = a.shape[0]
    shape = (lk.a_channels, len(lk.taps), *lk.outs) if lk.wide else (lk.a_channels, len(lk.taps), count, *lk.outs)
    make = np.empty if everywhere_inside(lk.grown.axes) else np.zeros
    columns: Array = make((count, *shape) if lk.wide else shape, a.dtype)
    by_tap = columns.swapaxes(1, 2).swapaxes(0, 1) if lk.wide else columns.swapaxes(0, 1)
    pixels = a if lk.wide else a.swapaxes(0, 1)
    for tap, column in zip(lk.taps, by_tap, strict=True):
        tap.put(column, tap.read(pixels))
    if lk.wide:
        return columns.reshape(count, lk.groups, lk.matrix[2], math.prod(lk.outs))
    return columns.reshape(lk.groups, lk.matrix[2], count * math.prod(lk.outs))


def _met(lk: Link, w: Array) -> Array:
    """Oriented weights as the other side of the products of `_columns`."""
    return np.ascontiguousarray(np.ascontiguousarray(w).reshape(lk.kernel)[..., lk.met]).reshape(lk.matrix)


def _rows(lk: Link, b: Array) -> Array:
    """b (N, O, *out) as the other side of the products of `_columns`: a row per channel."""
    if lk.wide:
        return np.ascontiguousarray(b).reshape(b.shape[0], *lk.matrix[:2], math.prod(lk.outs))
    return np.ascontiguousarray(b.swapaxes(0, 1)).reshape(*lk.matrix[:2], b.shape[0] * math.prod(lk.outs))


def _from_rows(lk: Link, rows: Array, b: Array) -> None:
    """The inverse of `_rows`, into b."""
    if lk.wide:
        b[...] = rows.reshape(b.shape)
    else:
        b[...] = rows.reshape(lk.b_channels, b.shape[0], *lk.outs).swapaxes(0, 1)


def _padding_is_neutral(lk: Link, factor: Array) -> bool:
    """Whether zeros in place of skipped taps change nothing: no tap is skipped, or what meets them is finite."""
    return everywhere_inside(lk.grown.axes) or bool(np.isfinite(factor).all())


def _gather_by_tap(lk: Link, a: Array, w: Array, out: Array) -> None:
    """gather, tap by tap, so that a tap outside the input contributes nothing at all."""
    a = lk.grown.grow(a, 0.0)
    out[...] = 0
    kernel = w.reshape(lk.kernel)
    for tap in lk.taps:
        pixels = _by_group(lk, tap.read(a))
        share = np.einsum("ngi...,goi->ngo...", pixels, kernel[..., tap.offset])
        tap.put(out, tap.of(out) + share.reshape(a.shape[0], lk.b_channels, *pixels.shape[3:]))


def _weights_by_tap(lk: Link, a: Array, b: Array) -> Array:
    a = lk.grown.grow(a, 0.0)
    total = np.zeros(lk.kernel, a.dtype)
    for tap in lk.taps:
        pixels, values = _by_group(lk, tap.read(a)), _by_group(lk, tap.of(b))
        flat = (*pixels.shape[:3], -1)
        total[..., tap.offset] = np.einsum("ngip,ngop->goi", pixels.reshape(flat), values.reshape(*values.shape[:3], -1))
    return total.reshape(lk.weight_shape)


def _by_group(lk: Link, array: Array) -> Array:
    """(N, C, ...) as (N, groups, C / groups, ...)."""
    return array.reshape(array.shape[0], lk.groups, array.shape[1] // lk.groups, *array.shape[2:])


def _chunks(lk: Link, images: int) -> Iterator[slice]:
    """Slices of the batch whose columns stay within COLUMN_ELEMENTS."""
    per_image = max(lk.a_channels * len(lk.taps) * math.prod(lk.outs), 1)
    step = max(COLUMN_ELEMENTS // per_image, 1)
    return (slice(first, min(first + step, images)) for first in range(0, images, step))
