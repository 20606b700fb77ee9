"""Stochastic pooling and its draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..backends.draws import draws as draws_of
from ..backends.protocol import Array, dtype_name
from ..errors import ArgumentError, ArrayError
from ..plan import Shape
from ..plan.kinds import Reduce
from ._run import as_array, make_plan, run


def stochastic_pool(
    x: Array,
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = None,
    layout: str = "channels_first",
    rules: str = "explicit",
    training: bool = False,
    uniform: Array | None = None,
    seed: int | None = None,
    out: Array | None = None,
    backend: str | None = None,
    **options: Any,
) -> Array:
    """Training: one tap of each window, drawn in proportion to its activation. Test time: sum x^2 / sum x.

    In training a draw r in (0, 1] per output comes from `uniform`, or from `seed` by a counter-based generator
    (Philox 4x32-10, one draw per place in y, so that threads and backends agree). Taps are summed in row-major order;
    the first whose running sum reaches r * sum is drawn.

    Shapes    x (N, C, *size) -> y (N, C, *out), or (N, *size, C) with layout="channels_last"; uniform like y
    Numbers   float16, bfloat16, float32, float64; training exact; test time within taps * eps
    Edges     a window of zeros draws its first tap and gives 0. Activations below 0 are not guarded against: the first
              crossing is drawn; with none y is 0 and nothing flows back (Caffe leaves memory unwritten there). At test
              time y is 0 unless the sum is positive
    Gradient  training: to the drawn tap; test time: (2x - y) / sum x
    Raises    ArgumentError: training without `uniform` or `seed`, or with both; what the rules refuse; an integer x
              ArrayError: uniform of another shape or dtype than y, or outside 0 to 1; dtype, rank or `out` that does not fit
              UnsupportedError: the rules have no stochastic pooling, or the named backend declines
    Source    Zeiler and Fergus 2013; Caffe, src/caffe/layers/pooling_layer.cu; tests/golden/caffe/stochastic confirms
    Example
    >>> import numpy as np, astride
    >>> x = np.array([[[[1, 2], [3, 4]]]], dtype="float32")
    >>> astride.stochastic_pool(x, kernel=2).item()
    3.0
    """
    x = as_array(x, "x")
    plan = make_plan(
        "stochastic_pool",
        rules,
        x.shape,
        dtype_name(x.dtype),
        given={"x": x},
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        layout=layout,
        training=training,
        **options,
    )
    draws = None
    if plan.reduce is Reduce.STOCHASTIC:
        if (uniform is None) == (seed is None):
            raise ArgumentError(
                "training needs draws from one place",
                given={"uniform": uniform, "seed": seed},
                required="uniform or seed, one of them",
                operator="stochastic_pool",
                rules=rules,
                hint="seed=0",
            )
        shape = tuple(axis.out for axis in plan.axes)
        y_shape = (*x.shape[:2], *shape) if plan.layout.value == "channels_first" else (x.shape[0], *shape, x.shape[-1])
        draws = given_uniforms(uniform) if uniform is not None else uniforms(y_shape, x.dtype, seed or 0)
    return run(plan, x, draws, out=out, backend=backend, rules=rules)[0]


def given_uniforms(uniform: Any) -> Array:
    """The caller's draws. Raises ArrayError where one is no part of the whole, which could draw no tap."""
    draws = as_array(uniform, "uniform")
    outside = draws[~((draws >= 0) & (draws <= 1))]
    if outside.size:
        raise ArrayError(
            "a uniform draw lies outside 0 to 1",
            given={"uniform": draws},
            required=f"0 < uniform <= 1: {outside[0]}",
            hint="1 - numpy.random.default_rng(0).random(y.shape, y.dtype)",
        )
    return draws


def uniforms(shape: Shape, dtype: Any, seed: int, stream: int = 0) -> Array:
    """Draws in (0, 1], multiples of 2^-24: place i of the row-major array is a function of (seed, stream, i) alone.

    Raises ArgumentError: a seed that does not fit 64 bits. Source: Philox 4x32-10 (Salmon et al. 2011), key = seed,
    counter = (i // 4, stream), word i % 4.
    """
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64 or not 0 <= stream < 2**64:
        raise ArgumentError(
            "a seed is a whole number of 64 bits",
            given={"seed": seed, "stream": stream},
            required=f"0 <= seed < 2**64: {seed!r}",
            hint="seed=0",
        )
    draws = draws_of(math.prod(shape), int(seed), int(stream)).astype(dtype, copy=False)
    return draws.reshape(shape)
