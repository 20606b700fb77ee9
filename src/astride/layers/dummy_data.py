"""DummyData: blobs that fillers fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import ArgumentError
from ..plan import Shape
from .fillers import Filler
from .layer import Blobs, Layer


class DummyData(Layer):
    """Tops of given shapes: one shape for all or one each; so with the fillers, of which none means zeros.

    A constant filler fills once, before the first pass, so that what is written to its top stays; the others fill anew
    in every pass, drawing by the layer's key and the number of the pass.
    Source     Caffe, src/caffe/layers/dummy_data_layer.cpp
    """

    type = "DummyData"
    bottoms: ClassVar[tuple[int, int | None]] = (0, 0)
    tops: ClassVar[tuple[int, int | None]] = (1, None)

    def __init__(self, shapes: Sequence[Shape], fillers: Sequence[Filler] = ()) -> None:
        super().__init__()
        self.shapes = tuple(tuple(shape) for shape in shapes)
        self.fillers = tuple(fillers) or (Filler(),)
        self.random = any(filler.kind != "constant" for filler in self.fillers)

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        for what, given in (("shapes", self.shapes), ("fillers", self.fillers)):
            if len(given) not in (1, len(top)):
                raise ArgumentError(
                    f"there must be one of the {what} for all tops, or one each",
                    given={what: len(given), "tops": len(top)},
                    required=f"1 or {len(top)}: {len(given)}",
                    because="Caffe, src/caffe/layers/dummy_data_layer.cpp",
                )
        for i, y in enumerate(top):
            y.reshape(self.shapes[i if len(self.shapes) > 1 else 0])

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        if self.copies:
            self.setup(bottom, top)

    def begin(self, top: Blobs) -> None:
        self._fill(top, all_of_them=True)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        # A compiled network has no blobs that keep their values from pass to pass.
        self._fill(top, all_of_them=self.copies)
        self.draws += int(self.random)

    def _fill(self, top: Blobs, *, all_of_them: bool) -> None:
        for i, y in enumerate(top):
            filler = self.fillers[i if len(self.fillers) > 1 else 0]
            if all_of_them or filler.kind != "constant":
                draws = np.random.Philox(key=self.key, counter=[0, 0, i, self.draws])
                y.data[...] = filler(y.shape, y.dtype, np.random.RandomState(draws))

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        """There is nothing below."""
