"""Windows as columns: im2col, and its adjoint."""

from __future__ import annotations

from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError, AstrideError
from ..plan.unfold import UnfoldPlan
from ._run import as_array, make_plan, run


def unfold(
    x: Any,
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    rules: str = "explicit",
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """The pixels of every window that a convolution by these rules would read, as columns (im2col).

    Shapes    x (N, C, *size) → y (N, C * taps, *out): row c * taps + j is tap j of channel c, taps in row-major order
    Numbers   float32, float64 → the same, exact; gradients are summed in that dtype
    Edges     a tap outside the input is 0, or what the rules' edge mode reads there
    Gradient  every pixel gets the sum of the taps that read it (col2im); only x's shape is kept
    Raises    ArgumentError: what the rules' convolution refuses; channels last
              ArrayError: x has not one to three spatial axes; UnsupportedError: the rules have no convolution
    Source    Caffe, src/caffe/util/im2col.cpp; the windows are those of rules/<framework>.py's conv
    Example
    >>> import numpy as np, astride
    >>> astride.unfold(np.float32([[[1, 2, 3]]]), kernel=2).tolist()
    [[[1.0, 2.0], [2.0, 3.0]]]
    """
    x = as_array(x, "x")
    rank = x.ndim - 2
    if not 1 <= rank <= 3:
        raise ArrayError(
            "x has not one to three spatial axes", given={"x": x}, required=f"1 <= x.ndim - 2 <= 3: {rank}", operator="unfold"
        )
    if options.get("layout", "channels_first") != "channels_first":
        raise ArgumentError("columns are channels first", given={"layout": options["layout"]}, operator="unfold", rules=rules)
    sizes = (kernel,) * rank if isinstance(kernel, int) else tuple(kernel)
    given = {"x": x, "kernel": kernel}
    arguments = {"stride": stride, "padding": padding, "dilation": dilation, **options}
    try:
        windows = make_plan("conv", rules, x.shape, (1, x.shape[1], *sizes), x.dtype.name, given=given, **arguments)
    except AstrideError as error:
        error.operator = "unfold"
        raise
    plan = UnfoldPlan(dtype=x.dtype.name, axes=windows.axes, edge=windows.edge)
    return run(plan, x, out=out, backend=backend, rules=rules)[0]
