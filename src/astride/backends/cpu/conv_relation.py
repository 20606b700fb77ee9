"""What a kernel of convolution computes: which axes, of how many channels, and how weights lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...plan import StridedAxis
from .contraction import Contraction
from .conv_spread import ALIAS
from .machine import machine

WORTH = 128
"""Products for each number of x from which pixels that share places of the cache are copied to a better distance."""


@dataclass(frozen=True, eq=False)
class Relation:
    """What is gathered: windows of x along `axes`, `inputs` channels of x and `outputs` of y in groups.

    `swapped` weights are (inputs, outputs / groups, *kernel), others (outputs, inputs / groups, *kernel); with `flip` they
    are turned along every axis. A relation is equal to itself only: whoever makes it keeps it.
    """

    dtype: str
    axes: tuple[StridedAxis, ...]
    inputs: int
    outputs: int
    groups: int
    swapped: bool
    flip: bool

    @cached_property
    def depthwise(self) -> bool:
        """Whether every channel has its own window and no other."""
        return self.groups == self.inputs == self.outputs and self.groups > 1

    @cached_property
    def volume(self) -> tuple[StridedAxis, StridedAxis, StridedAxis]:
        """Depth, height and width: an axis that is not there has one window of one pixel."""
        depth, height, width = (StridedAxis(1, 1),) * (3 - len(self.axes)) + self.axes
        return depth, height, width

    @cached_property
    def pixels(self) -> tuple[int, int]:
        """Pixels of an image of x and of y."""
        return math.prod(axis.size for axis in self.axes), math.prod(axis.out for axis in self.axes)

    @cached_property
    def single(self) -> bool:
        """Whether every window is one pixel, of all channels of a group, and lies inside."""
        return not self.depthwise and all(
            axis.kernel == axis.input_dilation == 1 and axis.pad_lo == 0 and (axis.out - 1) * axis.stride < axis.size
            for axis in self.axes
        )

    @cached_property
    def spec(self) -> Contraction:
        return Contraction("float" if self.dtype == "float32" else "double", self.depthwise)

    @cached_property
    def taps(self) -> int:
        return math.prod(axis.kernel for axis in self.axes)

    @cached_property
    def parts(self) -> tuple[int, int, int]:
        """Groups, and the input and output channels of each, as kernels see them: depthwise windows are one group of lanes."""
        if self.depthwise:
            return 1, 1, self.outputs
        return self.groups, self.inputs // self.groups, self.outputs // self.groups

    @cached_property
    def blocks(self) -> int:
        """Blocks of output channels in a group."""
        return -(-self.parts[2] // self.spec.block(machine()))

    @cached_property
    def spreads(self) -> bool:
        """Whether x is copied, channels last, since its pixels share places of the cache."""
        windows = math.prod(max(axis.out, 1) / max(axis.size, 1) for axis in self.axes)
        worth = self.taps * self.parts[2] * windows >= WORTH
        return worth and not self.depthwise and self.inputs * self.spec.bytes % ALIAS == 0

    @cached_property
    def packed_shape(self) -> tuple[int, ...]:
        groups, inputs, _ = self.parts
        return (groups, self.blocks, self.taps, inputs, self.spec.block(machine()))


def three(values: Sequence[int], fill: int) -> list[int]:
    """One to three numbers, one an axis, as three."""
    return [fill] * (3 - len(values)) + list(values)


def strides(sizes: Sequence[int], pixel: int) -> list[int]:
    """Bytes from one image, depth, row and column to the next where pixels have `pixel` bytes."""
    steps = [pixel]
    for size in reversed(three(sizes, 1)):
        steps.append(steps[-1] * size)
    return steps[::-1]
