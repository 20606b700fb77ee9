"""Windows as columns, tap by tap: the matrix that turns a convolution into one product, and the adjoint that sums it back."""

from __future__ import annotations

from collections.abc import Sequence

from ...plan.kinds import Layout
from ...plan.unfold import UnfoldPlan
from ..protocol import Array, Arrays, Kernel, Saved
from ._windows import PixelGradient, extension, taps


def forward(plan: UnfoldPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Only x's shape is kept."""
    x = arrays[0]
    assert x is not None
    grown = extension(plan.axes, plan.edge)
    pixels = grown.grow(x, 0)
    out[...] = 0
    for tap in taps(grown.axes):
        tap.put(out[:, tap.offset :: plan.taps], tap.read(pixels))
    return out, Saved((x.shape,)) if save else None


def backward(plan: UnfoldPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Every pixel gets the sum of the taps that read it."""
    if not want[0]:
        return (None,)
    shape = saved.shapes[0]
    assert shape is not None
    grown = extension(plan.axes, plan.edge)
    total = PixelGradient(shape, dy.dtype, Layout.CHANNELS_FIRST, grown, plan.dtype)
    for tap in taps(grown.axes):
        tap.add(total.total, tap.of(dy[:, tap.offset :: plan.taps]))
    return (total.finish(),)


KERNELS = (Kernel("taps", forward, backward),)
