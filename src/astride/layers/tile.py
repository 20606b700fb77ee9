"""Tile: a blob again and again along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..errors import ArgumentError
from ..plan import LayoutPlan
from ..plan.layout import Move
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis


class Tile(Layer):
    """The whole bottom `tiles` times along `axis`; the gradient is the sum over the copies.

    Source     Caffe, src/caffe/layers/tile_layer.cpp
    """

    type = "Tile"

    def __init__(self, tiles: int, *, axis: int = 1) -> None:
        super().__init__()
        if tiles < 1:
            raise ArgumentError(
                "tiles count from 1",
                given={"tiles": tiles},
                required=f"tiles >= 1: {tiles}",
                because="Caffe, src/caffe/layers/tile_layer.cpp",
                hint="tiles: 2",
            )
        self.tiles = tiles
        self.axis = axis

    def plan(self, blob: Blob) -> LayoutPlan:
        """The plan for a bottom of this rank."""
        return LayoutPlan(dtype=blob.dtype, move=Move.TILE, axis=canonical_axis(self.axis, blob.shape), tiles=self.tiles)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*self.plan(bottom[0]).output_shape(bottom[0].shape))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self.plan(bottom[0]), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self.plan(bottom[0]), top[0].diff, self.kept())[0]
