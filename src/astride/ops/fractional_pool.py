"""Fractional max pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tape
from ..backends.protocol import Array, Saved, dtype_name
from ..errors import ArgumentError
from ..plan import FractionalPlan
from ..plan.kinds import Layout
from ._run import as_array, make_plan, run
from .stochastic_pool import uniforms

LARGEST_SAMPLE = 2**20
"""Samples are drawn from [0, 1). Others place the windows by the same formula, as long as its integers stay exact."""


def fractional_pool(
    x: Array,
    *,
    kernel: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    samples: Array | None = None,
    seed: int | None = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    return_indices: bool = False,
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Any:
    """The greatest tap of windows of one size, so placed at random that the output is any fraction of the input.

    With u a plane's sample of an axis and a = (size - kernel) / (out - 1), window i starts at floor((i + u) a) - floor(u a),
    the last at size - kernel. The output's size is given, or as a ratio of the input's. `samples` are given, or drawn from
    `seed` by the generator of stochastic_pool.

    Shapes    x (N, C, *size), samples (N, C, rank) -> y (N, C, *out), or x and y (N, *size, C) with layout="channels_last";
              indices like y, int64, flat in the plane
    Numbers   float16, bfloat16, float32, float64; exact. Places are computed in x's dtype, as PyTorch does
    Edges     no window leaves the input; the first greatest wins, a NaN over all, the first of several (PyTorch: the last)
    Gradient  to the winning tap; samples get none; one byte saved per output for kernels up to 255 taps, and the places
    Raises    ArgumentError: not exactly one of output_size and output_ratio, of samples and seed; windows that do not fit;
              samples that are not finite
              ArrayError: dtypes, ranks or `out` that do not fit; UnsupportedError: the rules have no fractional pooling
    Source    Graham 2014; PyTorch 2.13, aten/src/ATen/native/FractionalMaxPool2d.cpp and 3d
    Example
    >>> import numpy as np, astride
    >>> x = np.arange(7.0).reshape(1, 1, 7)
    >>> astride.fractional_pool(x, kernel=2, output_size=4, samples=np.array([[[0.5]]])).tolist()
    [[[1.0, 3.0, 5.0, 6.0]]]
    """
    x = as_array(x, "x")
    plan = make_plan(
        "fractional_pool",
        rules,
        x.shape,
        dtype_name(x.dtype),
        given={"x": x},
        kernel=kernel,
        output_size=output_size,
        output_ratio=output_ratio,
        layout=layout,
        **options,
    )
    if (samples is None) == (seed is None):
        raise ArgumentError(
            "the windows' places need draws from one source",
            given={"samples": samples, "seed": seed},
            required="samples or seed, one of them",
            operator="fractional_pool",
            rules=rules,
            hint="seed=0",
        )
    channels = x.shape[1] if plan.layout is Layout.CHANNELS_FIRST else x.shape[-1]
    drawn = (
        as_array(samples, "samples") if samples is not None else draws((x.shape[0], channels, len(plan.size)), x.dtype, seed or 0)
    )
    if not (np.abs(drawn.astype(np.float64)) < LARGEST_SAMPLE).all():  # which float16 does not hold
        raise ArgumentError(
            "samples are no numbers of ordinary size",
            given={"samples": drawn},
            required=f"|samples| < {LARGEST_SAMPLE}, usually in [0, 1)",
            operator="fractional_pool",
            rules=rules,
            hint="numpy.random.default_rng(0).random(samples.shape)",
        )
    y, saved = run(plan, x, drawn, out=out, backend=backend, save=return_indices, rules=rules)
    if not return_indices:
        return y
    assert saved is not None
    indices = indices_of(plan, saved)
    tape.record(tape.Node("indices", (), (indices,), lambda g, want: ()))
    return y, indices


def draws(shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    """Samples in [0, 1), multiples of 2^-8, which every floating dtype holds."""
    fine: Array = np.floor((1 - uniforms(shape, np.float64, seed)) * 256) / 256
    return fine.astype(dtype)


def indices_of(plan: FractionalPlan, saved: Saved) -> Array:
    """Where each output was taken, row-major in its plane, int64 in y's layout."""
    assert saved.offsets is not None
    rank = len(plan.size)
    remaining = saved.offsets.astype(np.int64)
    flat = np.zeros(remaining.shape, np.int64)
    scale = 1
    for a in reversed(range(rank)):
        remaining, place = np.divmod(remaining, plan.kernel[a])
        first = saved.extra["starts"][a]
        flat += (first.reshape(*first.shape[:2], *[first.shape[2] if b == a else 1 for b in range(rank)]) + place) * scale
        scale *= plan.size[a]
    return flat if plan.layout is Layout.CHANNELS_FIRST else np.ascontiguousarray(np.moveaxis(flat, 1, -1))
