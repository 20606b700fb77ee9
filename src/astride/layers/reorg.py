"""Reorg: blocks of an image become channels, in Darknet's order."""

from __future__ import annotations

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import LayoutPlan, Shape
from ..plan.layout import Move
from ._composed import Composed
from ._steps import Steps
from .layer import Blobs

SOURCE = "Darknet, src/blas.c, reorg_cpu"


class Reorg(Composed):
    """(N, C, H, W) becomes (N, C s^2, H / s, W / s); with `reverse` (N, C / s^2, H s, W s), for a stride s.

    Quirks      Darknet reads the bottom as if it were (C / s^2, H s, W s), so it is no plain space to depth; weights were
                trained with that. One port, of YOLO9000, moves the other way round
    Source      the YOLO ports of Caffe, src/caffe/layers/reorg_layer.cpp, and Darknet, src/blas.c
    """

    type = "Reorg"

    def __init__(self, stride: int, *, reverse: bool = False) -> None:
        super().__init__()
        if stride < 1:
            raise ArgumentError(
                "a stride counts from 1", given={"stride": stride}, required=f"stride >= 1: {stride}", hint="stride: 2"
            )
        self.stride, self.reverse = stride, reverse

    def top_shape(self, shape: Shape) -> Shape:
        """The top's shape for a bottom of this one."""
        s = self.stride
        if len(shape) != 4 or shape[1] % s**2 or (not self.reverse and (shape[2] % s or shape[3] % s)):
            raise ArgumentError(
                "the bottom does not divide into blocks",
                given={"bottom": shape, "stride": s},
                required=f"(N, C, H, W) with C % {s**2} == 0" + ("" if self.reverse else f", H % {s} == 0, W % {s} == 0"),
                because=SOURCE,
                hint="another stride",
            )
        n, c, h, w = shape
        return (n, c // s**2, h * s, w * s) if self.reverse else (n, c * s**2, h // s, w // s)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*self.top_shape(bottom[0].shape))

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x, s = arrays[0], self.stride
        n, c, h, w = x.shape
        rows = c * h // s**2
        seen, order = ((n, s, s, rows, w), (0, 3, 1, 4, 2)) if self.reverse else ((n, rows, s, w, s), (0, 2, 4, 1, 3))
        moved = steps.run(LayoutPlan(dtype=x.dtype.name, move=Move.PERMUTE, order=order), steps.shaped(x, seen))
        return steps.shaped(moved, self.top_shape(x.shape))
