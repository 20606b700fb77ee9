"""Correlation1D: how alike two images are, for every sideways displacement of the second."""

from __future__ import annotations

from ..errors import ArgumentError
from .correlation import Correlation


class Correlation1D(Correlation):
    """As Correlation, with displacements along the rows only, and pads on the left and right only.

    direction   0: to both sides; 1: to the right from 0 on; -1: to the left from one step on
    Source      DispNet's Caffe, src/caffe/layers/correlation_layer1d.cpp
    """

    type = "Correlation1D"

    def __init__(
        self,
        *,
        kernel: int,
        reach: int,
        pad: int = 0,
        stride: int = 1,
        step: int = 1,
        subtract: bool = False,
        direction: int = 0,
    ) -> None:
        super().__init__(kernel=kernel, reach=reach, pad=pad, stride=stride, step=step, subtract=subtract)
        if direction not in (-1, 0, 1):
            raise ArgumentError(
                "a direction is left, right or both",
                given={"single_direction": direction},
                required=f"-1, 0 or 1: {direction}",
                because="DispNet's Caffe, src/caffe/layers/correlation_layer1d.cpp",
                hint="single_direction: 0",
            )
        self.direction = direction

    def pads(self) -> tuple[int, int]:
        return 0, self.pad

    def reaches(self) -> tuple[int, int]:
        return 0, self.reach

    def displacements(self) -> list[tuple[int, int]]:
        most = self.reach // self.step
        first, count = {0: (-most, 2 * most + 1), 1: (0, most + 1), -1: (-most - 1, most + 1)}[self.direction]
        return [(0, self.step * k) for k in range(first, first + count)]
