"""Correlation: how alike two images are, for every displacement of the second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from .layer import Blobs, Layer, nothing_kept

SOURCE = "FlowNet's Caffe, src/caffe/layers/correlation_layer.cpp"


class Correlation(Layer):
    """A channel of the top for each displacement (dy, dx), dy the slower: the mean of a * (b displaced) over the channels and a
    square of `kernel` pixels. With `subtract` it is the mean of |a - (b displaced)|.

    Displacements are the multiples of `step` up to `reach` in both directions. Both images get `pad` zeros on every side;
    outputs are `stride` apart, and as many as fit with all displacements: ceil((size + 2 pad - 2 reach - kernel + 1) / stride).

    Bottoms     a and b, (N, C, H, W) of one shape
    Gradient    to both; of |a - b| where they are equal: that of a - b
    Source      FlowNet's Caffe, src/caffe/layers/correlation_layer.cpp and correlation_layer.cu
    """

    type = "Correlation"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)

    def __init__(self, *, kernel: int, reach: int, pad: int = 0, stride: int = 1, step: int = 1, subtract: bool = False) -> None:
        super().__init__()
        if kernel % 2 == 0 or stride < 1 or step < 1:
            raise ArgumentError(
                "a correlation's square has a middle, and its steps are at least 1",
                given={"kernel_size": kernel, "stride_1": stride, "stride_2": step},
                required=f"kernel_size odd: {kernel}; stride_1 >= 1: {stride}; stride_2 >= 1: {step}",
                because=SOURCE,
                hint="kernel_size: 1",
            )
        self.kernel, self.reach, self.pad, self.stride, self.step, self.subtract = kernel, reach, pad, stride, step, subtract
        self._padded: tuple[Array, Array] | None = None

    def pads(self) -> tuple[int, int]:
        """Zeros above and below, and on the left and right."""
        return self.pad, self.pad

    def reaches(self) -> tuple[int, int]:
        """How far the first window is from the padded image's edges."""
        return self.reach, self.reach

    def displacements(self) -> list[tuple[int, int]]:
        """(dy, dx) of every channel of the top."""
        along = [self.step * k for k in range(-(self.reach // self.step), self.reach // self.step + 1)]
        return [(dy, dx) for dy in along for dx in along]

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        a, b = bottom[0].shape, bottom[1].shape
        if a != b or len(a) != 4:
            raise ArgumentError(
                "the two images have different shapes",
                given={"bottoms": (a, b)},
                required=f"equal shapes (N, C, H, W): {a} == {b}",
                because=SOURCE,
            )
        out = tuple(
            -(-(n + 2 * pad - 2 * reach - self.kernel + 1) // self.stride)
            for n, pad, reach in zip(a[2:], self.pads(), self.reaches(), strict=True)
        )
        if min(out) < 1:
            raise ArgumentError(
                "the displacements and the square do not fit in the image",
                given={"bottom": a, "pad": self.pad, "max_displacement": self.reach, "kernel_size": self.kernel},
                required=f"a top of at least one pixel: {out}",
                because=SOURCE,
                hint=f"pad: {self.reach + self.kernel // 2}",
            )
        top[0].reshape(a[0], len(self.displacements()), *out)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        a, b = (self._with_pad(blob.data) for blob in bottom)
        y = top[0].data
        y.fill(0)
        for channel, own, displaced in self._pairs(a, b, y.shape):
            y[:, channel] += np.abs(own - displaced).sum(1) if self.subtract else (own * displaced).sum(1)
        y /= self.kernel**2 * a.shape[1]
        self._padded = (a, b) if self.keep else None

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self._padded is None:
            raise nothing_kept()
        a, b = self._padded
        dy = top[0].diff / (self.kernel**2 * a.shape[1])
        gradients = np.zeros_like(a), np.zeros_like(b)
        pairs = zip(self._pairs(a, b, dy.shape), self._pairs(*gradients, dy.shape), strict=True)
        for (channel, own, displaced), (_, da, db) in pairs:
            g = dy[:, channel, None]
            if self.subtract:
                signed = np.where(own >= displaced, g, -g)
                da += signed
                db -= signed
            else:
                da += g * displaced
                db += g * own
        for blob, gradient, w in zip(bottom, gradients, want, strict=True):
            if w:
                (top_pad, left_pad), (h, wide) = self._margins(), blob.shape[2:]
                blob.diff[...] = gradient[:, :, top_pad : top_pad + h, left_pad : left_pad + wide]

    def _margins(self) -> tuple[int, int]:
        """Rows above and columns to the left of the image; displacements may reach behind the pad, where zeros are."""
        least = (min(shifts) for shifts in zip(*self.displacements(), strict=True))
        rows, columns = (p + max(-d - r, 0) for d, p, r in zip(least, self.pads(), self.reaches(), strict=True))
        return rows, columns

    def _with_pad(self, x: Array) -> Array:
        rows, columns = self._margins()
        return np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)))

    def _pairs(self, a: Array, b: Array, out: tuple[int, ...]) -> Iterator[tuple[int, Array, Array]]:
        """For every displacement and every pixel of the square: the top's channel, and the views that meet there."""
        rows, columns = (m - p + r for m, p, r in zip(self._margins(), self.pads(), self.reaches(), strict=True))
        for channel, (dy, dx) in enumerate(self.displacements()):
            for j in range(self.kernel):
                for i in range(self.kernel):
                    yield channel, self._cut(a, rows + j, columns + i, out), self._cut(b, rows + j + dy, columns + i + dx, out)

    def _cut(self, x: Array, row: int, column: int, out: tuple[int, ...]) -> Array:
        s = self.stride
        return x[:, :, row : row + (out[2] - 1) * s + 1 : s, column : column + (out[3] - 1) * s + 1 : s]
