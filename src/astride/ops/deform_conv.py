"""Deformable convolution."""

from __future__ import annotations

import math
from typing import Any

from ..backends.protocol import Array, dtype_name
from ._run import as_array, make_plan, run


def deform_conv(
    x: Array,
    offset: Array,
    w: Array,
    b: Array | None = None,
    mask: Array | None = None,
    *,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    groups: int = 1,
    offset_groups: int | None = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """Convolution whose taps lie where offsets move them, between pixels, and weigh what a mask says (v1 without, v2 with it).

    y[i] = sum_j w[j] mask[j, i] x(i*s - p + j*d + offset[j, i]) + b, x interpolated linearly along every axis. Channels in
    `offset_groups` groups have offsets of their own; by default as many as the offset's channels are for.

    Shapes    x (N, I, *size), offset (N, G * taps * rank, *out), w (O, I/groups, *kernel), mask (N, G * taps, *out), b (O,)
              -> y (N, O, *out). The offset's channels are (group, tap, axis), axes as x has them (height before width), the
              mask's (group, tap); channels last in x, offset, mask and y
    Numbers   float16, bfloat16 (computed in float32), float32, float64; within terms * eps of the sum of magnitudes
    Edges     pixels outside the input are 0, and so is a tap a whole pixel or more outside; a NaN offset gives NaN
    Gradient  to x, offset, w, mask and b. At a whole position the one to the right counts; the arrays are saved
    Raises    ArgumentError: channels that groups or offset_groups do not divide; what the rules refuse
              ArrayError: mixed dtypes; shapes that do not fit each other, or `out`
              UnsupportedError: the rules have no deformable convolution, or the named backend declines
    Source    Dai et al. 2017, Zhu et al. 2018; torchvision, ops/deform_conv.py; ONNX, DeformConv
    Example
    >>> import numpy as np, astride
    >>> x = np.array([[[0.0, 10.0, 20.0, 40.0]]]); w = np.ones((1, 1, 1))
    >>> astride.deform_conv(x, np.full((1, 1, 4), 0.25), w).tolist()
    [[[2.5, 12.5, 25.0, 30.0]]]
    """
    x, offset, w = as_array(x, "x"), as_array(offset, "offset"), as_array(w, "w")
    b = None if b is None else as_array(b, "b")
    mask = None if mask is None else as_array(mask, "mask")
    given = {"x": x, "offset": offset, "w": w} | {n: a for n, a in (("mask", mask), ("b", b)) if a is not None}
    if offset_groups is None:
        channels = offset.shape[-1] if layout.endswith(("C", "last")) else offset.shape[1] if offset.ndim > 1 else 0
        offset_groups = max(channels // max(math.prod(w.shape[2:]) * (x.ndim - 2), 1), 1)
    plan = make_plan(
        "deform_conv",
        rules,
        x.shape,
        w.shape,
        dtype_name(x.dtype),
        given=given,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        offset_groups=offset_groups,
        layout=layout,
        **options,
    )
    return run(plan, x, offset, w, mask, b, out=out, backend=backend, rules=rules)[0]
