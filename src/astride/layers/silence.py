"""Silence: blobs that nobody reads, so that they are no outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .layer import Blobs, Layer


class Silence(Layer):
    """Any number of bottoms and no top. The gradients are 0.

    Source     Caffe, src/caffe/layers/silence_layer.cpp
    """

    type = "Silence"
    bottoms: ClassVar[tuple[int, int | None]] = (1, None)
    tops: ClassVar[tuple[int, int | None]] = (0, 0)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        """There is no top."""

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        """There is nothing to compute."""

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        for x, wanted in zip(bottom, want, strict=True):
            if wanted:
                x.diff.fill(0)
