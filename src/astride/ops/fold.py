"""Columns summed into an image: col2im."""

from __future__ import annotations

import math
from typing import Any

from .. import tape
from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError
from ..plan.kinds import Direction, Layout
from ._run import as_array, run
from .unfold import columns_plan, windows_of


def fold(
    x: Any,
    *,
    output_size: Any,
    kernel: Any,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """Columns added where their taps lie in an image of `output_size` (col2im): the adjoint of unfold.

    Shapes    x (N, C * taps, *windows), or all windows in one axis, (N, C * taps, L) -> y (N, C, *output_size); row
              c * taps + j is tap j of channel c, taps in row-major order; channels last: x (N, *windows, C * taps)
    Numbers   float16, bfloat16 (summed in float32), float32, float64
    Edges     what lies outside the image is dropped, or goes where the rules' edge mode reads; pixels of no window are 0
    Gradient  every tap gets the gradient of its pixel (im2col); only x's shape is kept
    Raises    ArgumentError: no output size; windows or rows that do not fit it; what the rules' convolution refuses
              ArrayError: rank, dtype or `out` that does not fit; UnsupportedError: the rules have no convolution
    Source    Caffe, src/caffe/util/im2col.cpp; PyTorch 2.13, aten/src/ATen/native/Col2Im.cpp; the windows are those of
              rules/<framework>.py's conv
    Example
    >>> import numpy as np, astride
    >>> astride.fold(np.float32([[[1, 2], [10, 20]]]), output_size=3, kernel=2).tolist()
    [[[1.0, 12.0, 20.0]]]
    """
    x = as_array(x, "x")
    sizes = _sizes(output_size, kernel, x.ndim - 2)
    if x.ndim not in (3, len(sizes) + 2):
        raise ArrayError(
            "x has the wrong rank",
            given={"x": x},
            required=f"x.ndim is 3 or {len(sizes) + 2}: {x.ndim}",
            operator="fold",
            hint="columns (N, C * taps, windows), as unfold gives them",
        )
    last = layout.endswith(("C", "last"))
    image = (x.shape[0], *sizes, 1) if last else (x.shape[0], 1, *sizes)
    arguments = {"stride": stride, "padding": padding, "dilation": dilation, "layout": layout, **options}
    windows = windows_of("fold", rules, image, kernel, x.dtype.name, {"x": x, "output_size": output_size}, arguments)
    plan = columns_plan(windows, Direction.TRANSPOSED)
    outs = tuple(axis.out for axis in plan.axes)
    rows, found = (x.shape[-1], x.shape[1:-1]) if last else (x.shape[1], x.shape[2:])
    if rows % plan.taps or found not in (outs, (math.prod(outs),)):
        raise ArgumentError(
            "x is not the columns of such an image",
            given={"x": x, "output_size": output_size, "kernel": kernel},
            required=f"rows % {plan.taps} == 0: {rows} % {plan.taps};  windows == {outs}: {found}",
            operator="fold",
            rules=rules,
            hint="the output_size, kernel, stride and padding that unfold had",
        )
    if found != outs:
        shape = (x.shape[0], *outs, rows) if plan.layout is Layout.CHANNELS_LAST else (x.shape[0], rows, *outs)
        flat = x.shape
        x = tape.view(x, lambda a: a.reshape(shape), lambda g: g.reshape(flat))
    return run(plan, x, out=out, backend=backend, rules=rules)[0]


def _sizes(output_size: Any, kernel: Any, rank: int) -> tuple[int, ...]:
    """The image's sizes. One number stands for every axis of the kernel, or of x."""
    if output_size is None:
        raise ArgumentError("the output size is not given", given={"output_size": None}, operator="fold", hint="output_size=8")
    if isinstance(output_size, tuple | list):
        return tuple(output_size)
    return (output_size,) * (len(kernel) if isinstance(kernel, tuple | list) else max(rank, 1))
