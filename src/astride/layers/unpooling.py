"""Unpooling: values back to where a pooling took its maxima from."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import Shape, UnpoolPlan
from ._composed import Composed
from ._resampling import four_axes
from ._steps import Steps
from .layer import Blobs, integers

SOURCE = "DeconvNet's Caffe, src/caffe/layers/unpooling_layer.cpp"


class Unpooling(Composed):
    """With a second bottom, the mask of a max pooling: values go to the places it names. With one bottom: to the first place
    of each window. Zeros elsewhere.

    The top's size is `size`; without it what windows of `kernel` every `stride` cover, at least bottom * stride + 1.

    Bottoms     x (N, C, H, W); if given, the mask of its shape, indices in one plane of the top
    Edges       of two values with one place the last stays; places beyond the top's end are its last ones. An index outside
                the plane is an error
    Gradient    the top's at the same places; the mask has none
    Quirks      DeconvNet keeps the first size it computed when bottoms change theirs later; here the top follows
    Source      DeconvNet's Caffe, src/caffe/layers/unpooling_layer.cpp
    """

    type = "Unpooling"
    bottoms: ClassVar[tuple[int, int | None]] = (1, 2)

    def __init__(self, *, kernel: tuple[int, int], stride: tuple[int, int] = (1, 1), size: tuple[int, int] | None = None) -> None:
        super().__init__()
        if min(*kernel, *stride, *(size or (1,))) < 1:
            raise ArgumentError(
                "windows, steps and sizes count from 1",
                given={"kernel": kernel, "stride": stride, "size": size},
                required="each >= 1",
                because=SOURCE,
                hint="unpooling_param { unpool: MAX kernel_size: 2 stride: 2 unpool_size: 14 }",
            )
        self.kernel, self.stride, self.size = kernel, stride, size

    def top_size(self, shape: Shape) -> tuple[int, ...]:
        """The size for a bottom of this shape."""
        if self.size is not None:
            return self.size
        return tuple(max((n - 1) * s + k, n * s + 1) for n, k, s in zip(shape[2:], self.kernel, self.stride, strict=True))

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        four_axes(shape, SOURCE)
        if len(bottom) > 1 and bottom[1].shape != shape:
            raise ArgumentError(
                "there is an index for each value",
                given={"bottom": shape, "mask": bottom[1].shape},
                required=f"equal shapes: {bottom[1].shape} == {shape}",
                because=SOURCE,
            )
        top[0].reshape(*shape[:2], *self.top_size(shape))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._mask = integers(bottom[1], "mask") if len(bottom) > 1 else self._first(bottom[0].shape)
        super().forward(bottom, top)

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        return steps.run(UnpoolPlan(dtype=x.dtype.name, size=x.shape[2:], out=self.top_size(x.shape)), x, self._mask)

    def _first(self, shape: Shape) -> Array:
        """The first place of each window."""
        out = self.top_size(shape)
        rows, columns = (np.minimum(np.arange(n) * s, m - 1) for n, s, m in zip(shape[2:], self.stride, out, strict=True))
        return np.broadcast_to(rows[:, None] * out[1] + columns, shape).astype(np.int64)

    def allow_force_backward(self, index: int) -> bool:
        return index == 0
