"""Layers that are a few operators one after the other, with one top: they say which, the gradients follow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..backends.protocol import Array
from ._steps import Steps
from .layer import Blobs, Layer, nothing_kept


class Composed(Layer):
    """Subclasses define `compose`, and `reshape` unless the top is shaped as the first bottom."""

    _steps: Steps | None = None
    _given: Sequence[Array] = ()
    _result: Array | None = None

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        """From the bottoms' arrays and then the parameters' to the top's."""
        raise NotImplementedError

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        y = top[0].data
        given = [x.data for x in bottom]
        if self.keep:
            # what a step keeps must not be overwritten by its own result
            given = [x.copy() if np.may_share_memory(x, y) else x for x in given]
        steps = Steps(self.keep)
        arrays = (*given, *(p.data for p in self.params))
        result = self.compose(steps, *arrays)
        y[...] = result
        if self.keep:
            self._steps, self._given, self._result = steps, arrays, result

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self._steps is None or self._result is None:
            raise nothing_kept()
        wanted = (*want, *self.param_wanted)
        asked = [array for array, w in zip(self._given, wanted, strict=True) if w]
        found = iter(self._steps.backward([(self._result, top[0].diff)], asked))
        for blob, w in zip(bottom, want, strict=True):
            if w:
                gradient = next(found)
                blob.diff[...] = 0 if gradient is None else gradient
        for i, w in enumerate(self.param_wanted):
            if w:
                self.accumulate(i, next(found))
