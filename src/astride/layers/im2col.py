"""Im2col: the pixels of every window as columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import ops
from ..plan import Shape, UnfoldPlan
from .blob import Blob
from .layer import Blobs, Layer, Plans, canonical_axis


class Im2col(Layer):
    """For every window its pixels: row c * taps + j holds tap j of channel c; a tap outside the image is 0.

    rule    (shape, dtype) -> UnfoldPlan, for shapes (N, C, *size)
    axis    the channels' axis: those before it are one batch, those behind it are spatial

    A convolution is one matrix product with this top.
    Source     Caffe, src/caffe/layers/im2col_layer.cpp, src/caffe/util/im2col.cpp
    """

    type = "Im2col"

    def __init__(self, rule: Callable[[Shape, str], UnfoldPlan], *, axis: int = 1) -> None:
        super().__init__()
        self.plans = Plans(rule)
        self.axis = axis

    def plan(self, blob: Blob) -> UnfoldPlan:
        """The plan for a bottom of this shape."""
        return self.plans(self._canonical(blob.shape), blob.dtype)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        columns = self.plan(bottom[0]).output_shape(self._canonical(shape))
        top[0].reshape(*shape[: canonical_axis(self.axis, shape)], *columns[1:])

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, y = (b.data.reshape(self._canonical(b.shape)) for b in (bottom[0], top[0]))
        self._saved = [self.compute(self.plan(bottom[0]), x, top=y)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            dx = ops.backward(self.plan(bottom[0]), top[0].diff.reshape(self._canonical(top[0].shape)), self.kept())[0]
            assert dx is not None
            bottom[0].diff[...] = dx.reshape(bottom[0].shape)

    def _canonical(self, shape: Shape) -> Shape:
        """(N, C, *size): everything before the channels is one batch."""
        axis = canonical_axis(self.axis, shape)
        return (math.prod(shape[:axis]), *shape[axis:])
