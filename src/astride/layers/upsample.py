"""Upsample: larger images, by the places a pooling took its maxima from, or by repeating every pixel."""

from __future__ import annotations

from typing import ClassVar

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import Shape, UnpoolPlan
from ._composed import Composed
from ._resampling import four_axes, nearest, resample
from ._steps import Steps
from .layer import Blobs, integers

SEGNET = "SegNet's Caffe, src/caffe/layers/upsample_layer.cpp"


class Upsample(Composed):
    """With a second bottom, the mask of a max pooling: values go to the places it names, zeros elsewhere. With one bottom:
    every pixel `scale` times in both directions.

    The top's size is `size`, or the bottom's times `scale` less `less` (0 or 1 an axis, for images of odd size).

    Bottoms     x (N, C, H, W); if given, the mask of its shape, indices in one plane of the top
    Edges       of two values with one place the last stays. An index outside the plane is an error
    Gradient    the top's at the same places; the mask has none
    Source      SegNet's Caffe, src/caffe/layers/upsample_layer.cpp; the YOLO ports of Caffe, a file of the same name
    """

    type = "Upsample"
    bottoms: ClassVar[tuple[int, int | None]] = (1, 2)

    def __init__(
        self, *, scale: tuple[int, int] = (2, 2), less: tuple[int, int] = (0, 0), size: tuple[int, int] | None = None
    ) -> None:
        super().__init__()
        if min(scale) < 1 or (size is not None and min(size) < 1):
            raise ArgumentError(
                "sizes and scales count from 1",
                given={"scale": scale, "size": size},
                required="each >= 1",
                because=SEGNET,
                hint="scale: 2, or upsample_h: 360 upsample_w: 480",
            )
        if any(n and s != 2 for n, s in zip(less, scale, strict=True)):
            raise ArgumentError(
                "an output is one smaller only where it is twice as large",
                given={"pad_out": less, "scale": scale},
                required="scale == 2 where pad_out is set",
                because=SEGNET,
                hint="upsample_h and upsample_w",
            )
        self.scale, self.less, self.size = scale, less, size

    def top_size(self, shape: Shape) -> tuple[int, ...]:
        """The size for a bottom of this shape."""
        if self.size is not None:
            return self.size
        return tuple(n * s - less for n, s, less in zip(shape[2:], self.scale, self.less, strict=True))

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        four_axes(shape, SEGNET)
        if len(bottom) > 1 and bottom[1].shape != shape:
            raise ArgumentError(
                "there is an index for each value",
                given={"bottom": shape, "mask": bottom[1].shape},
                required=f"equal shapes: {bottom[1].shape} == {shape}",
                because=SEGNET,
            )
        top[0].reshape(*shape[:2], *self.top_size(shape))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._mask = integers(bottom[1], "mask") if len(bottom) > 1 else None
        super().forward(bottom, top)

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        out = self.top_size(x.shape)
        if self._mask is not None:
            return steps.run(UnpoolPlan(dtype=x.dtype.name, size=x.shape[2:], out=out), x, self._mask)
        taps = [nearest(n, n * s, s) for n, s in zip(x.shape[2:], self.scale, strict=True)]
        return resample(steps, x, taps)

    def allow_force_backward(self, index: int) -> bool:
        return index == 0
