"""Resize: images at another size, linearly, from the first corner on."""

from __future__ import annotations

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import Shape
from ._composed import Composed
from ._resampling import four_axes, from_zero, resample
from ._steps import Steps
from .layer import Blobs

SOURCE = "face recognition in forks of Caffe, src/caffe/layers/resize_layer.cpp"


class Resize(Composed):
    """Bilinear to `size`, or to the bottom's size times `scale`, cut off; output i of an axis lies at i * size / outputs.

    Edges       behind the last row and column there is nothing, so that what lies there fades
    Source      face recognition in forks of Caffe, src/caffe/layers/resize_layer.cpp and src/caffe/util/util_img.cpp
    """

    type = "Resize"

    def __init__(self, *, size: tuple[int, int] | None = None, scale: tuple[float, float] | None = None) -> None:
        super().__init__()
        if (size is None) == (scale is None):
            raise ArgumentError(
                "a size is given, or scales",
                given={"height, width": size, "scales": scale},
                required="one of the two",
                because=SOURCE,
                hint="resize_param { height: 224 width: 224 }",
            )
        self.size, self.scale = size, scale

    def top_size(self, shape: Shape) -> tuple[int, ...]:
        """The size for a bottom of this shape."""
        if self.scale is None:
            return self.size or ()
        return tuple(int(n * s) for n, s in zip(shape[2:], self.scale, strict=True))

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        four_axes(shape, SOURCE)
        size = self.top_size(shape)
        if min(size) < 1:
            raise ArgumentError(
                "the top has no pixels",
                given={"bottom": shape, "size": size},
                required=f"height, width >= 1: {size}",
                because=SOURCE,
            )
        top[0].reshape(*shape[:2], *size)

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        pairs = zip(x.shape[2:], self.top_size(x.shape), strict=True)
        return resample(steps, x, [from_zero(n, out, n / out) for n, out in pairs])
