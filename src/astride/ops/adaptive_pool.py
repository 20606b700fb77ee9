"""Adaptive pooling."""

from __future__ import annotations

from typing import Any

from .. import tape
from ..backends.protocol import Array, dtype_name
from ..errors import ArgumentError
from ._run import as_array, make_plan, run
from .max_pool import indices_of


def adaptive_pool(
    x: Array,
    *,
    output_size: Any,
    reduce: str = "average",
    layout: str = "channels_first",
    rules: str = "explicit",
    return_indices: bool = False,
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Any:
    """The mean or greatest tap of windows laid so that the output has a given size, over one to three spatial axes.

    Window i of o over n pixels is [floor(i*n/o), ceil((i+1)*n/o)): all of the input is covered, windows differ in length by
    at most one and neighbours share at most one pixel. The plan is one of avg_pool or max_pool, and so are the kernels.

    Shapes    x (N, C, *size) -> y (N, C, *output_size), or channels last; None in output_size keeps that axis; o may
              exceed n; indices like y, int64, flat in the plane
    Numbers   average: float16, bfloat16 (summed in float32), float32, float64; max: integers and bool as well, where the
              rules have them, exact
    Edges     no window is empty or leaves the input; ties and NaN of the maximum are the rules'
    Gradient  average: dy / length to each tap; max: to the winning tap
    Raises    ArgumentError: no or a negative output size; `return_indices` of an average; what the rules refuse
              ArrayError: dtype, rank or `out` that does not fit; `out` overlapping x
              UnsupportedError: the rules have no adaptive pooling, or the named backend declines
    Source    PyTorch 2.13, aten/src/ATen/native/AdaptivePooling.h; tests/golden confirms
    Example
    >>> import numpy as np, astride
    >>> astride.adaptive_pool(np.arange(1.0, 6.0).reshape(1, 1, 5), output_size=3).tolist()
    [[[1.5, 3.0, 4.5]]]
    """
    x = as_array(x, "x")
    plan = make_plan(
        "adaptive_pool",
        rules,
        x.shape,
        dtype_name(x.dtype),
        given={"x": x, "output_size": output_size},
        output_size=() if output_size is None else output_size,
        reduce=reduce,
        layout=layout,
        **options,
    )
    if return_indices and not plan.picks:
        raise ArgumentError(
            "an average has no indices", given={"reduce": reduce}, operator="adaptive_pool", rules=rules, hint='reduce="max"'
        )
    y, saved = run(plan, x, out=out, backend=backend, save=return_indices, rules=rules)
    if not return_indices:
        return y
    assert saved is not None
    indices = indices_of(plan, saved)
    tape.record(tape.Node("indices", (), (indices,), lambda g, want: ()))
    return y, indices
