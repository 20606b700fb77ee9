"""Max pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tape
from ..backends.protocol import Array, Saved, dtype_name, no_offset
from ..errors import ArgumentError
from ..plan import PoolPlan
from ..plan.kinds import IndexBase, Layout, Unpicked
from ._run import as_array, make_plan, run


def max_pool(
    x: Array,
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    return_indices: bool = False,
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Any:
    """The greatest tap of each window, over one to three spatial axes, by a framework's rules.

    Shapes    x (N, C, *size) -> y (N, C, *out), or (N, *size, C) with layout="channels_last"; indices like y, int64,
              flat within one plane unless the rules count otherwise, -1 where no tap won
    Numbers   float16, bfloat16, float32, float64, integers and bool, where the rules have them; exact; dtype kept
    Edges     ties, NaN, windows of padding alone and what padding reads are the rules': see docs/rules/
    Gradient  to the winning tap, or to all that tie, by the rules; one byte saved per output for kernels up to 255 taps
    Raises    ArgumentError: a kernel, stride, padding or option the rules refuse; rules nobody knows
              ArrayError: dtype, rank or `out` that does not fit; `out` overlapping x
              UnsupportedError: the rules have no max pooling, or the named backend declines
    Source    rules/<framework>.py names framework, version and file; tests/golden confirms
    Example
    >>> import numpy as np, astride
    >>> x = np.arange(1, 7, dtype="float32").reshape(1, 1, 6)
    >>> astride.max_pool(x, kernel=3, stride=2).tolist(), astride.max_pool(x, kernel=3, stride=2, rules="caffe").tolist()
    ([[[3.0, 5.0]]], [[[3.0, 5.0, 6.0]]])
    """
    return extreme("max_pool", x, kernel, stride, padding, dilation, layout, rules, return_indices, out, backend, options)


def extreme(
    op: str,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    rules: str,
    return_indices: bool,
    out: Array | None,
    backend: str | None,
    options: dict[str, Any],
) -> Any:
    """The shared body of max_pool and min_pool."""
    x = as_array(x, "x")
    plan = make_plan(
        op,
        rules,
        x.shape,
        dtype_name(x.dtype),
        given={"x": x},
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        layout=layout,
        **options,
    )
    if return_indices and not plan.picks:
        raise ArgumentError(
            "these rules pick no single tap, so there is no index",
            given={"tie": str(plan.tie)},
            operator=op,
            rules=rules,
            hint='tie="first"',
        )
    y, saved = run(plan, x, out=out, backend=backend, save=return_indices, rules=rules)
    if not return_indices:
        return y
    assert saved is not None
    indices = indices_of(plan, saved)
    if tape.active():
        tape.record(tape.Node("indices", (), (indices,), lambda g, want: ()))
    return y, indices


def indices_of(plan: PoolPlan, saved: Saved) -> Array:
    """Indices of the picked taps as the plan's `index_base` counts, int64 in y's layout, -1 where none was picked."""
    if plan.index_base is IndexBase.WINDOW:
        assert saved.offsets is not None
        offsets = saved.offsets.astype(np.int64)
        return _in_layout(plan, np.where(saved.offsets == no_offset(saved.offsets.dtype), -1, offsets))
    indices = plane_indices(plan, saved)
    if plan.index_base is IndexBase.TENSOR_COLUMN:
        indices = _column_major(plan, indices)
    if plan.index_base is not IndexBase.PLANE:
        indices = _tensor_indices(plan, saved, indices)
    return indices


def plane_indices(plan: PoolPlan, saved: Saved) -> Array:
    """Row-major in the unpadded plane of one channel, int64 in y's layout, -1 where no tap was picked (0 by Unpicked.ORIGIN)."""
    assert saved.offsets is not None
    offsets = saved.offsets
    missing = offsets == no_offset(offsets.dtype)
    remaining = np.where(missing, 0, offsets.astype(np.int64))
    flat = np.zeros(offsets.shape, np.int64)
    scale = 1
    for a in reversed(range(len(plan.axes))):
        axis = plan.axes[a]
        remaining, place = np.divmod(remaining, max(axis.kernel, 1))
        start = np.array([axis.start(i) for i in range(axis.out)], np.int64)
        start = start.reshape(-1, *[1] * (len(plan.axes) - 1 - a))
        step = getattr(axis, "dilation", 1)
        position = (start + place * step) // getattr(axis, "input_dilation", 1)
        outside = (position < 0) | (position >= axis.size)
        missing = missing | outside
        flat += np.where(outside, 0, position) * scale
        scale *= axis.size
    return _in_layout(plan, np.where(missing, 0 if plan.unpicked is Unpicked.ORIGIN else -1, flat))


def _column_major(plan: PoolPlan, plane: Array) -> Array:
    """Plane indices with the first spatial axis fastest, -1 where there is none."""
    sizes = tuple(axis.size for axis in plan.axes)
    position = np.unravel_index(np.maximum(plane, 0), sizes)
    return np.where(plane < 0, -1, np.ravel_multi_index(position[::-1], sizes[::-1]))


def _tensor_indices(plan: PoolPlan, saved: Saved, plane: Array) -> Array:
    """Row-major over the whole input as it lies, (n, c, *place) or (n, *place, c), or over each image of it."""
    shape = saved.shapes[0]
    assert shape is not None
    images = np.arange(shape[0], dtype=np.int64) * (plan.index_base is not IndexBase.IMAGE)
    if plan.layout is Layout.CHANNELS_FIRST:
        size = int(np.prod(shape[2:]))
        planes = images[:, None] * shape[1] + np.arange(shape[1], dtype=np.int64)
        return np.where(plane < 0, -1, planes.reshape(*shape[:2], *[1] * len(plan.axes)) * size + plane)
    size, channels = int(np.prod(shape[1:-1])), shape[-1]
    image = images.reshape(-1, *[1] * (len(plan.axes) + 1))
    return np.where(plane < 0, -1, (image * size + plane) * channels + np.arange(channels))


def _in_layout(plan: PoolPlan, indices: Array) -> Array:
    """(N, C, *out) as y lies, C-contiguous."""
    return indices if plan.layout is Layout.CHANNELS_FIRST else np.ascontiguousarray(np.moveaxis(indices, 1, -1))
