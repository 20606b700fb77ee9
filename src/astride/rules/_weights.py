"""What the shape of a weight array says, checked against the input it is to meet."""

from __future__ import annotations

import math

from ..errors import ArgumentError
from ..plan import Shape
from ._arguments import PerAxis, whole


def weights_of(w_shape: Shape, rank: int, in_channels: int, groups: int) -> tuple[PerAxis, int]:
    """(kernel, output channels) of weights (O, I/g, *kernel), checked against the input's channels."""
    groups = whole(groups, "groups", 1)
    if len(w_shape) != rank + 2:
        raise ArgumentError(
            "w has the wrong rank", given={"w.shape": tuple(w_shape)}, required=f"w.ndim == {rank + 2}: {len(w_shape)}"
        )
    if in_channels % groups:
        raise ArgumentError(
            "the input's channels are not divisible by groups",
            given={"groups": groups},
            required=f"channels % groups == 0: {in_channels} % {groups} = {in_channels % groups}",
            hint=f"groups={math.gcd(in_channels, groups)}",
        )
    if w_shape[1] * groups != in_channels:
        raise ArgumentError(
            "w has other input channels than x",
            given={"w.shape": tuple(w_shape), "groups": groups},
            required=f"w.shape[1] * groups == channels of x: {w_shape[1]} * {groups} == {in_channels}",
            hint="weights (O, I/groups, *kernel)",
        )
    return tuple(int(k) for k in w_shape[2:]), int(w_shape[0])


def transposed_weights_of(w_shape: Shape, rank: int, in_channels: int, groups: int) -> tuple[PerAxis, int]:
    """(kernel, output channels) of weights (I, O/g, *kernel), checked against the input's channels."""
    groups = whole(groups, "groups", 1)
    if len(w_shape) != rank + 2:
        raise ArgumentError(
            "w has the wrong rank", given={"w.shape": tuple(w_shape)}, required=f"w.ndim == {rank + 2}: {len(w_shape)}"
        )
    if w_shape[0] != in_channels:
        raise ArgumentError(
            "w has other input channels than x",
            given={"w.shape": tuple(w_shape)},
            required=f"w.shape[0] == channels of x: {w_shape[0]} == {in_channels}",
            hint="weights (I, O/groups, *kernel)",
        )
    return tuple(int(k) for k in w_shape[2:]), int(w_shape[1]) * groups
