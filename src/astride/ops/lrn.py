"""Local response normalization: each value less where its neighbours are large."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.norms import LrnPlan
from ._run import as_array, run
from .softmax import canonical_axis


def lrn(
    x: Any,
    *,
    size: int = 5,
    alpha: float = 1.0,
    beta: float = 0.75,
    k: float = 1.0,
    axes: Sequence[int] = (1,),
    out: Array | None = None,
    backend: str | None = None,
) -> Array:
    """x / (k + alpha * mean of x^2 over the window)^beta; the window has `size` places in each of `axes` around its own.

    Shapes    x (any) → y (the same). axes=(1,) is the window across channels, axes=(2, 3) the one within a channel
    Numbers   float32, float64 → the same; squares are added in the order of the window
    Edges     the mean divides by size^len(axes) at the borders too, where places outside x count as 0;
              of an even size there is one place more before than after; k = 0 where the window is all zeros gives NaN
    Gradient  dy * s^-beta - 2 alpha beta / size^len(axes) * x * (sum over the windows x lies in of dy * y / s), where s is
              the base of the power; x and s are kept
    Raises    ArgumentError: size below 1, no such axis or one twice, a dtype other than float32 and float64
    Source    Caffe, src/caffe/layers/lrn_layer.cpp; goldens layers/lrn5, lrn3k2 (across), lrn_within3 (within, where k is 1)
    Example
    >>> import numpy as np, astride
    >>> astride.lrn(np.float64([[1, 2, 2]]), size=3, alpha=3.0, beta=1.0).round(3).tolist()
    [[0.167, 0.2, 0.222]]
    """
    x = as_array(x, "x")
    if size < 1:
        raise ArgumentError("a window has one place or more", given={"size": size}, required="size >= 1", operator="lrn")
    spanned = tuple(canonical_axis(axis, x.ndim, "lrn") for axis in axes)
    plan = LrnPlan(
        dtype=x.dtype.name,
        axes=spanned,
        before=size // 2,
        after=(size - 1) // 2,
        alpha=alpha / math.prod(size for _ in spanned),
        beta=float(beta),
        k=float(k),
    )
    return run(plan, x, out=out, backend=backend)[0]
