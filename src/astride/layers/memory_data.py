"""MemoryData: batches from an injected source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError
from ..plan import Shape
from .layer import Blobs, Layer
from .source import Chance, Source


class MemoryData(Layer):
    """Each forward pass draws the next `batch_size` samples of `source`, one array for each top.

    `shapes` are the shapes of one sample, known before there is a source: images (C, H, W) and labels (). A source that
    leaves something to chance gets the layer's key as its seed if the layer is `random`.

    Quirks      there is no transformation here: what the source gives is what the tops hold
    Source      Caffe, src/caffe/layers/memory_data_layer.cpp
    """

    type = "MemoryData"
    bottoms: ClassVar[tuple[int, int | None]] = (0, 0)
    tops: ClassVar[tuple[int, int | None]] = (1, None)
    varies: ClassVar[bool] = False
    """A batch of one may have other sizes than the batch before."""

    def __init__(self, batch_size: int, shapes: Sequence[Shape], source: Source | None = None, *, random: bool = False) -> None:
        super().__init__()
        if batch_size < 1 or any(n < 1 for shape in shapes for n in shape):
            raise ArgumentError(
                "a batch and every size of a sample count from 1",
                given={"batch_size": batch_size, "shapes": tuple(shapes)},
                hint="batch_size: 64",
            )
        self.batch_size = batch_size
        self.random = random
        self.shapes = tuple(shapes)
        self._source: Source | None = None
        self.source = source

    @property
    def source(self) -> Source | None:
        return self._source

    @source.setter
    def source(self, source: Source | None) -> None:
        """Raises ArrayError where the source's samples have other shapes than the layer."""
        if source is not None and tuple(source.shapes()) != self.shapes:
            raise ArrayError(
                "the source's samples do not fit the data layer",
                given={"samples": tuple(source.shapes())},
                required=f"{self.shapes}",
                hint="arrays of those shapes, or the sizes in the layer's text",
            )
        self._source = source

    def reset(self, position: int = 0) -> None:
        """Go on at that sample."""
        if self._source is not None:
            self._source.reset(position)

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        if len(top) != len(self.shapes):
            raise ArgumentError(
                "a data layer has a top for each part of a sample",
                given={"tops": len(top)},
                required=f"tops == {len(self.shapes)}: {len(top)}",
            )

    def begin(self, top: Blobs) -> None:
        if self.random and isinstance(self._source, Chance):
            self._source.reseed(self.key)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        for blob, shape in zip(top, self.shapes, strict=True):
            blob.reshape(self.batch_size, *shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        if self._source is None:
            raise ArgumentError(
                "the data layer has no data yet",
                given={"layer": self.name},
                hint="net.set_input_arrays(data, labels) before forward",
            )
        for i, (blob, values) in enumerate(zip(top, self._source.batch(self.batch_size), strict=True)):
            if not self.fits(i, values, blob.shape):
                raise ArrayError(
                    "the source's batch has another shape than it promised",
                    given={"batch": values},
                    required=f"shape == {blob.shape}: {values.shape}",
                )
            blob.reshape(*values.shape)
            blob.data[...] = values

    def fits(self, index: int, values: Array, shape: Shape) -> bool:
        """Whether a batch may be the top of that index, which has this shape."""
        other_size = self.varies and self.batch_size == 1 and values.ndim == len(shape)
        return other_size or values.shape == shape

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        """There is nothing below."""
