"""Layers that compute one function of each element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import ops
from ..plan import ElementwisePlan
from ..plan.dense import Function
from .blob import Blob
from .layer import Blobs, Layer


class Unary(Layer):
    """Subclasses say which function, with the plan's fields it reads. In place as well, for whatever they are."""

    in_place = True

    def __init__(self, function: Function, **fields: Any) -> None:
        super().__init__()
        self._single = ElementwisePlan(dtype="float32", function=function, **fields)
        self._double = replace(self._single, dtype="float64")

    def plan(self, blob: Blob) -> ElementwisePlan:
        """The plan for a bottom of this dtype."""
        return self._double if blob.dtype == "float64" else self._single

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self.plan(bottom[0]), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self.plan(bottom[0]), top[0].diff, self.kept(), want=(True, False))[0]
