"""Columns summed back into an image: unfold read in the other direction. Its gradient is unfold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan.unfold import UnfoldPlan
from ..protocol import Array, Arrays, Kernel, Saved
from .unfold import gathered, spread


def forward(plan: UnfoldPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Only the columns' shape is kept."""
    columns = arrays[0]
    assert columns is not None
    out[...] = gathered(plan, columns, out.shape)
    return out, Saved((columns.shape,)) if save else None


def backward(plan: UnfoldPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Every tap gets the gradient of the pixel it was added to."""
    shape = saved.shapes[0]
    assert shape is not None
    if not want[0]:
        return (None,)
    columns = np.empty(shape, dy.dtype)
    spread(plan, dy, columns)
    return (columns,)


def twice(plan: UnfoldPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """The operator is linear, so dy's own gradient is the operator of the cotangent."""
    assert cotangents[0] is not None
    return gathered(plan, cotangents[0], dy.shape), (None,)


KERNELS = (Kernel("taps", forward, backward, twice=twice),)
