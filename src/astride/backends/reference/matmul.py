"""Matrix products: NumPy's, which hands them to BLAS.

x (*lead, K) is read as (rows, K). With w (K, N): y = x w + b, dx = dy w^T, dw = x^T dy, db = sum of dy over the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...plan.dense import MatmulPlan
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: MatmulPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """One product for all the rows of x."""
    x, w, b = (*arrays, None, None)[:3]
    assert x is not None and w is not None
    # A reshape of an `out` with other strides would be a copy, which is then written back.
    rows = _rows(out, plan.columns) if out.flags.c_contiguous else np.empty((math.prod(out.shape[:-1]), plan.columns), out.dtype)
    np.matmul(_rows(x, plan.inner), w.T if plan.transposed else w, out=rows)
    if b is not None:
        rows += b
    if not out.flags.c_contiguous:
        out[...] = rows.reshape(out.shape)
    shapes = (x.shape, w.shape, None if b is None else b.shape)
    return out, Saved(shapes, x=x, w=w) if save else None


def backward(plan: MatmulPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Each gradient is one product, computed only where wanted."""
    assert saved.x is not None and saved.w is not None
    drows = _rows(dy, plan.columns)
    dx = dw = db = None
    if want[0]:
        dx = (drows @ (saved.w if plan.transposed else saved.w.T)).reshape(saved.x.shape)
    if want[1]:
        rows = _rows(saved.x, plan.inner)
        dw = drows.T @ rows if plan.transposed else rows.T @ drows
    if want[2]:
        db = drows.sum(axis=0)
    return dx, dw, db


def _rows(x: Array, columns: int) -> Array:
    """Every axis but the last as one; -1 cannot be worked out where a row is empty."""
    return x.reshape(math.prod(x.shape[:-1]), columns)


KERNELS = (Kernel("blas", forward, backward),)
