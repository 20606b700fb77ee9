"""Windows as columns: im2col."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArrayError, AstrideError
from ..plan import ConvPlan, Shape, UnfoldPlan
from ..plan.kinds import Direction, Layout
from ..rules._arguments import per_axis
from ._run import as_array, make_plan, run


def unfold(
    x: Any,
    *,
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
    """The pixels of every window that a convolution by these rules would read, as columns (im2col).

    Shapes    x (N, C, *size) -> y (N, C * taps, *out): row c * taps + j is tap j of channel c, taps in row-major order;
              channels last: x (N, *size, C), y (N, *out, C * taps)
    Numbers   float16, bfloat16, float32, float64; exact; gradients of half types are summed in float32
    Edges     a tap outside the input is 0, or what the rules' edge mode reads there
    Gradient  every pixel gets the sum of the taps that read it (col2im); only x's shape is kept
    Raises    ArgumentError: what the rules' convolution refuses; a dtype that is none of these
              ArrayError: x has not one to three spatial axes; UnsupportedError: the rules have no convolution
    Source    Caffe, src/caffe/util/im2col.cpp; PyTorch 2.13, aten/src/ATen/native/im2col.h; the windows are those of
              rules/<framework>.py's conv
    Example
    >>> import numpy as np, astride
    >>> astride.unfold(np.float32([[[1, 2, 3]]]), kernel=2).tolist()
    [[[1.0, 2.0], [2.0, 3.0]]]
    """
    x = as_array(x, "x")
    rank = x.ndim - 2
    if not 1 <= rank <= 3:
        raise ArrayError(
            "x has not one to three spatial axes",
            given={"x": x},
            required=f"1 <= x.ndim - 2 <= 3: {rank}",
            operator="unfold",
            hint="a batch and a channel axis besides the windows' axes",
        )
    arguments = {"stride": stride, "padding": padding, "dilation": dilation, "layout": layout, **options}
    windows = windows_of("unfold", rules, x.shape, kernel, x.dtype.name, {"x": x, "kernel": kernel}, arguments)
    plan = columns_plan(windows, Direction.FORWARD)
    return run(plan, x, out=out, backend=backend, rules=rules)[0]


def windows_of(
    op: str, rules: str, shape: Shape, kernel: Any, dtype: str, given: dict[str, Any], arguments: dict[str, Any]
) -> ConvPlan:
    """The plan of a convolution with one filter over an image of this shape; its errors under the operator's name."""
    rank = len(shape) - 2
    sizes = per_axis(kernel, rank, "kernel", None)
    last = str(arguments.get("layout", "")).endswith(("C", "last"))
    try:
        found: ConvPlan = make_plan(
            "conv", rules, shape, (1, shape[-1] if last else shape[1], *sizes), dtype, given=given, **arguments
        )
    except AstrideError as error:
        error.operator = op
        raise
    return found


def columns_plan(windows: ConvPlan, direction: Direction) -> UnfoldPlan:
    """These windows as columns, or columns of these windows as an image."""
    return UnfoldPlan(
        dtype=windows.dtype,
        axes=windows.axes,
        edge=windows.edge,
        direction=direction,
        layout=Layout(windows.layout),
        accumulate=windows.accumulate,
    )
