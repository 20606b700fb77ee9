"""The relation behind convolution, its gradients and the transposed operator: a[i*s - p + j*d] meets b[i] over w[j].

    gather(link, a, w)      b[i]               = sum_j a[i*s - p + j*d] w[j]     convolution
    scatter(link, b, w)     a[i*s - p + j*d]  += b[i] w[j]                       its adjoint in a
    weights(link, a, b)     w[j]               = sum_i a[i*s - p + j*d] b[i]     its adjoint in w

Each is told twice: as one matrix product over columns (`im2col`), and position by position (`loops2`). Arrays are
(N, C, *size) views in the dtype sums are formed in; w is (O, I/g, *kernel) as the relation sees it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...plan import ConvPlan, StridedAxis
from ..protocol import Array
from ._windows import EVERY, Extension, Tap, everywhere_inside, extension, places, taps

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
    def matrix(self) -> tuple[int, int, int]:
        """The kernel as one matrix per group: (groups, O/g, I/g * taps)."""
        return (self.groups, self.b_channels // self.groups, self.a_channels // self.groups * len(self.taps))

    @property
    def kernel(self) -> tuple[int, int, int, int]:
        """The kernel with its taps in a row: (groups, O/g, I/g, taps)."""
        return (self.groups, self.b_channels // self.groups, self.a_channels // self.groups, len(self.taps))

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


def gather_im2col(lk: Link, a: Array, w: Array) -> Array:
    """b (N, O, *out) as one matrix product per group; padded taps of a non-finite kernel are skipped, not multiplied."""
    w = oriented(lk, w)
    b = np.empty((lk.b_channels, a.shape[0], *lk.outs), a.dtype)
    if not _padding_is_neutral(lk, w):
        return _gather_by_tap(lk, a, w)
    kernel = np.ascontiguousarray(w).reshape(lk.matrix)
    for images in _chunks(lk, a.shape[0]):
        columns = _columns(lk, a[images])
        product = np.matmul(kernel, columns.reshape(lk.groups, lk.matrix[2], math.prod(columns.shape[2:])))
        b[:, images] = product.reshape(lk.b_channels, columns.shape[2], *lk.outs)
    return np.moveaxis(b, 0, 1)


def scatter_im2col(lk: Link, b: Array, w: Array) -> Array:
    """a (N, I, *size): one matrix product per group gives every tap's share, added where the tap lies."""
    kernel = np.ascontiguousarray(oriented(lk, w)).reshape(lk.matrix)
    total = np.zeros((lk.a_channels, b.shape[0], *(axis.size for axis in lk.grown.axes)), b.dtype)
    for images in _chunks(lk, b.shape[0]):
        columns = np.matmul(kernel.swapaxes(1, 2), _row_per_channel(lk, b[images]))
        columns = columns.reshape(lk.a_channels, len(lk.taps), images.stop - images.start, *lk.outs)
        for tap in lk.taps:
            tap.add(total[:, images], tap.of(columns[:, tap.offset]))
    return lk.grown.fold(np.moveaxis(total, 0, 1))


def weights_im2col(lk: Link, a: Array, b: Array) -> Array:
    """w (O, I/g, *kernel): b times the columns of a, summed over all images."""
    if not _padding_is_neutral(lk, b):
        return oriented(lk, _weights_by_tap(lk, a, b))
    total = np.zeros(lk.matrix, a.dtype)
    for images in _chunks(lk, a.shape[0]):
        columns = _columns(lk, a[images])
        columns = columns.reshape(lk.groups, lk.matrix[2], math.prod(columns.shape[2:]))
        total += np.matmul(_row_per_channel(lk, b[images]), columns.swapaxes(1, 2))
    return oriented(lk, total.reshape(lk.weight_shape))


def gather_loops2(lk: Link, a: Array, w: Array) -> Array:
    """b, one position at a time: the window under the kernel times the kernel, all images and channels at once."""
    a = lk.grown.grow(a, 0.0)
    b = np.zeros((a.shape[0], lk.b_channels, *lk.outs), a.dtype)
    kernel = oriented(lk, w).reshape(lk.kernel)
    for place in places(lk.grown.axes):
        window = _by_group(lk, a[(EVERY, EVERY, *place.pixels)])
        here = np.einsum("ngit,goit->ngo", window, kernel[..., place.offsets])
        b[(..., *place.window)] = here.reshape(a.shape[0], lk.b_channels)
    return b


def scatter_loops2(lk: Link, b: Array, w: Array) -> Array:
    """a, one position of b at a time: its value times the kernel, added under the window."""
    total = np.zeros((b.shape[0], lk.a_channels, *(axis.size for axis in lk.grown.axes)), b.dtype)
    kernel = oriented(lk, w).reshape(lk.kernel)
    for place in places(lk.grown.axes):
        here = b[(..., *place.window)].reshape(b.shape[0], *lk.matrix[:2])
        share = np.einsum("ngo,goit->ngit", here, kernel[..., place.offsets])
        total[(EVERY, EVERY, *place.pixels)] += share.reshape(b.shape[0], lk.a_channels, len(place.offsets))
    return lk.grown.fold(total)


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
    """(I, taps, N, *out): for every tap the pixels it reads, zeros where it lies outside."""
    a = np.moveaxis(lk.grown.grow(a, 0.0), 0, 1)
    shape = (a.shape[0], len(lk.taps), a.shape[1], *lk.outs)
    columns = np.empty(shape, a.dtype) if everywhere_inside(lk.grown.axes) else np.zeros(shape, a.dtype)
    for tap in lk.taps:
        tap.put(columns[:, tap.offset], tap.read(a))
    return columns


def _padding_is_neutral(lk: Link, factor: Array) -> bool:
    """Whether zeros in place of skipped taps change nothing: no tap is skipped, or what meets them is finite."""
    return everywhere_inside(lk.grown.axes) or bool(np.isfinite(factor).all())


def _gather_by_tap(lk: Link, a: Array, w: Array) -> Array:
    """gather, tap by tap, so that a tap outside the input contributes nothing at all."""
    a = lk.grown.grow(a, 0.0)
    b = np.zeros((a.shape[0], lk.b_channels, *lk.outs), a.dtype)
    kernel = w.reshape(lk.kernel)
    for tap in lk.taps:
        pixels = _by_group(lk, tap.read(a))
        share = np.einsum("ngi...,goi->ngo...", pixels, kernel[..., tap.offset])
        tap.put(b, tap.of(b) + share.reshape(a.shape[0], lk.b_channels, *pixels.shape[3:]))
    return b


def _weights_by_tap(lk: Link, a: Array, b: Array) -> Array:
    a = lk.grown.grow(a, 0.0)
    total = np.zeros(lk.kernel, a.dtype)
    for tap in lk.taps:
        pixels, values = _by_group(lk, tap.read(a)), _by_group(lk, tap.of(b))
        flat = (*pixels.shape[:3], -1)
        total[..., tap.offset] = np.einsum("ngip,ngop->goi", pixels.reshape(flat), values.reshape(*values.shape[:3], -1))
    return total.reshape(lk.weight_shape)


def _row_per_channel(lk: Link, b: Array) -> Array:
    """(N, O, *out) as (groups, O/g, N * positions)."""
    return np.ascontiguousarray(np.moveaxis(b, 0, 1)).reshape(*lk.matrix[:2], b.shape[0] * math.prod(lk.outs))


def _by_group(lk: Link, array: Array) -> Array:
    """(N, C, ...) as (N, groups, C / groups, ...)."""
    return array.reshape(array.shape[0], lk.groups, array.shape[1] // lk.groups, *array.shape[2:])


def _chunks(lk: Link, images: int) -> Iterator[slice]:
    """Slices of the batch whose columns stay within COLUMN_ELEMENTS."""
    per_image = max(lk.a_channels * len(lk.taps) * math.prod(lk.outs), 1)
    step = max(COLUMN_ELEMENTS // per_image, 1)
    return (slice(first, min(first + step, images)) for first in range(0, images, step))
