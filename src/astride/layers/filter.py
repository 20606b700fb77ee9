"""Filter: the items that a selector marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from .. import ops
from ..errors import ArgumentError, UnsupportedError
from ..plan import LayoutPlan
from ..plan.layout import Move
from .layer import Blobs, Layer

SOURCE = "Caffe, src/caffe/layers/filter_layer.cpp"


class Filter(Layer):
    """bottoms: blobs and, last, a selector (N, 1, ...); tops: of each blob the items where the selector is not 0.

    How many there are only forward can tell: until then the tops have room for all, and forward gives them their
    shape. None selected makes empty tops. Items left out have gradient 0, and the selector has none.
    Source     Caffe, src/caffe/layers/filter_layer.cpp
    """

    type = "Filter"
    bottoms: ClassVar[tuple[int, int | None]] = (2, None)
    tops: ClassVar[tuple[int, int | None]] = (1, None)

    def __init__(self) -> None:
        super().__init__()
        self.items = 0
        """How many bottoms are filtered; set by setup."""

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        self.items = len(bottom) - 1
        if len(top) != len(bottom) - 1:
            raise ArgumentError(
                "there is a top for each bottom but the selector",
                given={"bottoms": len(bottom), "tops": len(top)},
                required=f"tops == bottoms - 1: {len(top)} == {len(bottom) - 1}",
                because=SOURCE,
            )

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        selector = bottom[-1].shape
        if not selector or any(n != 1 for n in selector[1:]):
            raise ArgumentError(
                "the selector has one value an item",
                given={"selector": selector},
                required="(N, 1, ...)",
                because=SOURCE,
            )
        for x, y in zip(bottom[:-1], top, strict=True):
            if not x.shape or x.shape[0] != selector[0]:
                raise ArgumentError(
                    "the selector has another number of items than the blob",
                    given={"shape": x.shape, "selector": selector},
                    required=f"{selector[0]} items: {x.shape[:1]}",
                    because=SOURCE,
                )
            y.reshape(*x.shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        chosen = np.flatnonzero(bottom[-1].data)
        self._saved = []
        for x, y in zip(bottom[:-1], top, strict=True):
            y.reshape(chosen.size, *x.shape[1:])
            self._saved.append(self.compute(self._plan(bottom), x.data, chosen, top=y.data))

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[-1]:
            raise UnsupportedError("a selector has no gradient", because=SOURCE)
        for i, (x, y) in enumerate(zip(bottom[:-1], top, strict=True)):
            if want[i]:
                x.diff[...] = ops.backward(self._plan(bottom), y.diff, self.kept(i), want=(True, False))[0]

    def allow_force_backward(self, index: int) -> bool:
        return index < self.items

    def _plan(self, bottom: Blobs) -> LayoutPlan:
        return LayoutPlan(dtype=bottom[0].dtype, move=Move.TAKE)
