"""Transposed convolution: scatter forward, gather for dx. And `flip`, the same operator as a convolution:

a stride-s transposed convolution is a stride-1 convolution of the input with s-1 zeros between its pixels, the kernel
turned by 180 degrees along every axis, in and out channels swapped inside each group, and padding (k-1)*d - p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...plan import ConvPlan
from ...plan.kinds import Direction
from ..protocol import Array, Arrays, Kernel, Saved
from . import conv
from ._conv_ladder import RUNGS, kernel


def as_convolution(plan: ConvPlan) -> ConvPlan:
    """The plan of the convolution that computes this transposed one."""
    return replace(plan, direction=Direction.FORWARD, axes=tuple(axis.flipped() for axis in plan.axes), flip=not plan.flip)


def swapped(plan: ConvPlan, w: Array) -> Array:
    """(I, O/g, *k) as (O, I/g, *k): channels swapped inside each group. Swapping twice gives w back."""
    inner = (plan.groups, w.shape[0] // plan.groups, w.shape[1], *w.shape[2:])
    return np.ascontiguousarray(w.reshape(inner).swapaxes(1, 2)).reshape(plan.groups * inner[2], inner[1], *w.shape[2:])


def forward_flip(
    plan: ConvPlan, x: Array, w: Array, b: Array | None = None, *, out: Array, save: bool
) -> tuple[Array, Saved | None]:
    """The flip identity, computed by convolution's best rung."""
    y, saved = conv.KERNELS[0].forward(as_convolution(plan), x, swapped(plan, w), b, out=out, save=save)
    return y, None if saved is None else replace(saved, shapes=(x.shape, w.shape, saved.shapes[2]))


def backward_flip(plan: ConvPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Convolution's gradients, dw turned back into the transposed layout."""
    dx, dw, db = conv.KERNELS[0].backward(as_convolution(plan), dy, saved, want=want)
    return dx, None if dw is None else swapped(plan, dw), db


def twice_flip(plan: ConvPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """Convolution's, the weights turned both ways; `saved` holds them as convolution sees them."""
    gx, gw, gb = cotangents
    turned = (gx, None if gw is None else swapped(plan, gw), gb)
    double = conv.KERNELS[0].twice
    assert double is not None
    gradient, (dx, dw, db) = double(as_convolution(plan), dy, saved, turned, want=want)
    return gradient, (dx, None if dw is None else swapped(plan, dw), db)


KERNELS = (
    *(kernel(rung, transposed=True) for rung in RUNGS),
    Kernel("flip", forward_flip, backward_flip, twice=twice_flip),
)
