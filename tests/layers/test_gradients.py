"""The checker itself: it must be able to fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from astride.layers.layer import Blobs
from astride.layers.relu import ReLU

from .gradients import Bench, check_gradient


class Wrong(ReLU):
    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        super().backward(top, want, bottom)
        bottom[0].diff.reshape(-1)[-1] *= 1.01


class Adds(ReLU):
    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        before = bottom[0].diff.copy()
        super().backward(top, want, bottom)
        bottom[0].diff[...] += before


@pytest.mark.parametrize("layer", [Wrong, Adds])
def test_a_wrong_gradient_fails(layer: type[ReLU]) -> None:
    with pytest.raises(AssertionError, match="Not equal"):
        check_gradient(Bench(layer(), [np.array([[1.0, 2.0, 3.0]])]))
