"""Layers whose top is the bottom's own memory in another shape."""

from __future__ import annotations

from collections.abc import Sequence

from ..plan import Shape
from .layer import Blobs, Layer


class View(Layer):
    """Subclasses say the top's shape. Where a later layer would overwrite the shared memory, it is copied instead."""

    shares = True

    def top_shape(self, shape: Shape) -> Shape:
        """The top's shape for a bottom of this one. Raises ArgumentError where there is none."""
        raise NotImplementedError

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*self.top_shape(bottom[0].shape))
        if not self.copies:
            top[0].share(bottom[0], data=True, diff=True)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        if self.copies:
            top[0].data[...] = bottom[0].data.reshape(top[0].shape)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self.copies and want[0]:
            bottom[0].diff[...] = top[0].diff.reshape(bottom[0].shape)
