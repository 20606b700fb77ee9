"""The two grids that a convolution's plan relates, as kernels see them: three axes, groups, and strides in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ...plan import ConvPlan, Shape, StridedAxis
from ...plan.kinds import Edge, Layout


@dataclass(frozen=True, slots=True)
class Link:
    """Both grids: axes, groups, channels a group, images, and strides in memory.

    Those of a and b are (image, group, channel, *axes), those of w (group, channel of b, channel of a, tap).
    """

    axes: tuple[StridedAxis, ...]
    edge: Edge
    flip: bool
    groups: int
    images: int
    a_channels: int
    b_channels: int
    a_strides: tuple[int, ...]
    b_strides: tuple[int, ...]
    w_strides: tuple[int, int, int, int]

    @property
    def taps(self) -> int:
        return math.prod(axis.kernel for axis in self.axes)

    @property
    def a_total(self) -> int:
        """Elements of a, all of its images and channels."""
        return self.images * self.groups * self.a_channels * math.prod(axis.size for axis in self.axes)

    @property
    def b_total(self) -> int:
        return self.images * self.groups * self.b_channels * math.prod(axis.out for axis in self.axes)

    @property
    def w_total(self) -> int:
        return self.groups * self.b_channels * self.a_channels * self.taps

    @property
    def channels_last(self) -> bool:
        return self.b_strides[2] == 1


def link(plan: ConvPlan, x: Shape, w_last: bool = False) -> Link:
    """The relation of a plan on an x of this shape. Groups of the batch are groups whose images lie apart.

    `w_last` says that weights are (outputs, *kernel, inputs / groups), as Metal has them, and not canonical.
    """
    axes = (*[StridedAxis(1, 1)] * (3 - len(plan.axes)), *plan.axes)
    transposed = plan.op == "conv_transpose"
    a, b = (plan.out_channels, plan.in_channels) if transposed else (plan.in_channels, plan.out_channels)
    groups = plan.groups * plan.batch_groups
    images = x[0] // plan.batch_groups
    a_inner = a // plan.groups
    last = plan.layout is Layout.CHANNELS_LAST
    apart = images if plan.batch_groups > 1 else 0
    return Link(
        axes,
        plan.edge,
        plan.flip,
        groups,
        images,
        a_inner,
        b // groups,
        _strides([axis.size for axis in axes], a, a_inner, last, apart),
        _strides([axis.out for axis in axes], b, b // groups, last, 0),
        _weight_strides(math.prod(plan.kernel), a_inner, b // groups, w_last, transposed),
    )


def _weight_strides(taps: int, a: int, b: int, last: bool, transposed: bool) -> tuple[int, int, int, int]:
    if not last:
        return (b * a * taps, a * taps, taps, 1)
    return (a * taps * b, 1, taps * b, b) if transposed else (b * taps * a, taps * a, 1, a)


def _strides(sizes: list[int], channels: int, inner: int, last: bool, apart: int) -> tuple[int, ...]:
    """(image, group, channel, *axes); groups are `inner` channels apart, or `apart` images."""
    step = channels if last else 1
    along: list[int] = []
    for size in reversed(sizes):
        along.insert(0, step)
        step *= size
    channel = 1 if last else step
    image = step if last else step * channels
    return (image, apart * image if apart else inner * channel, channel, *along)


def grown(lk: Link) -> tuple[Link, tuple[int, ...]]:
    """The relation on an input that an edge mode has grown, channels first, and how far it grew below each axis."""
    lows, axes = [], []
    for axis in lk.axes:
        low = max(axis.pad_lo, 0)
        high = max(axis.start(axis.out - 1) + axis.reach - axis.size, 0) if axis.out else 0
        lows.append(low)
        axes.append(replace(axis, size=axis.size + low + high, pad_lo=axis.pad_lo - low, pad_hi=min(axis.pad_hi - high, 0)))
    channels = lk.groups * lk.a_channels
    strides = _strides([axis.size for axis in axes], channels, lk.a_channels, False, 0)
    return replace(lk, axes=tuple(axes), edge=Edge.SKIP, a_strides=strides), tuple(lows)


def everywhere_inside(lk: Link) -> bool:
    """Whether no tap of any window is a hole."""
    if lk.edge is not Edge.SKIP:
        return all(axis.size > 0 for axis in lk.axes)
    return all(
        axis.input_dilation == 1 and axis.pad_lo <= 0 and (not axis.out or axis.start(axis.out - 1) + axis.reach <= axis.size)
        for axis in lk.axes
    )


__all__ = ["Link", "everywhere_inside", "grown", "link"]
