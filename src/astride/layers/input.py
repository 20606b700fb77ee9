"""Input: blobs that the caller fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ArgumentError
from ..plan import Shape
from .layer import Blobs, Layer


class Input(Layer):
    """Tops of given shapes: one shape for all, one each, or none where the caller reshapes them. It computes nothing.

    Source      Caffe, src/caffe/layers/input_layer.cpp
    """

    type = "Input"
    bottoms: ClassVar[tuple[int, int | None]] = (0, 0)
    tops: ClassVar[tuple[int, int | None]] = (1, None)

    def __init__(self, shapes: Sequence[Shape] = ()) -> None:
        super().__init__()
        self.shapes = tuple(shapes)

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        if len(self.shapes) not in (0, 1, len(top)):
            raise ArgumentError(
                "an input needs no shape, one for all tops, or one each",
                given={"shapes": len(self.shapes), "tops": len(top)},
                required=f"0, 1 or {len(top)} shapes: {len(self.shapes)}",
            )
        # Only here: later on the shape is the caller's.
        for i, blob in enumerate(top):
            if self.shapes:
                blob.reshape(self.shapes[i if len(self.shapes) > 1 else 0])

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        """The tops keep the shape the caller gave them."""

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        """The tops keep what the caller wrote."""

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        """There is nothing below."""
