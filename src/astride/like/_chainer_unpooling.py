"""Chainer's two ways back from pooling: values repeated over their windows, and values put where the maximum was."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops, tape
from ..backends.protocol import Array, Arrays, Saved, offset_dtype
from ..errors import ArgumentError, ArrayError, AstrideError
from ..ops._run import as_array, run
from ..ops.max_pool import plane_indices
from ..rules import chainer as rules


def unpooling_nd(x: Array, ksize: Any, stride: Any = None, pad: Any = 0, outsize: Any = None, cover_all: bool = True) -> Array:
    """Each value repeated over its window, overlapping windows summed: nearest-neighbour upsampling where stride is ksize.

    Shapes    x (N, C, *size) -> y (N, C, *out): stride*(n-1) + ksize - 2*pad, with `cover_all` stride-1 less, or `outsize`
    Numbers   float16, float32, float64: a transposed convolution of each channel with ones
    Edges     what falls outside the output is dropped
    Gradient  dy summed over the window
    Raises    ArgumentError: an `outsize` that no pooling takes to x's size, or an empty one; ArrayError: x's dtype
    Source    chainer/functions/pooling/unpooling_nd.py
    Example
    >>> import numpy as np
    >>> from astride.like import chainer
    >>> chainer.unpooling_nd(np.array([[[1.0, 2.0]]]), 2).tolist()
    [[[1.0, 1.0, 2.0]]]
    """
    x = as_array(x, "x")
    try:
        plan = rules.unpooling(
            x.shape, x.dtype.name, kernel=ksize, stride=stride, padding=pad, output_size=outsize, cover_all=cover_all
        )
    except AstrideError as error:
        raise error.within(operator="unpooling", rules="chainer", given={"x": x})
    return run(plan, x, np.ones(plan.weight_shape, x.dtype), rules="chainer")[0]


def unpooling_1d(x: Array, ksize: Any, stride: Any = None, pad: Any = 0, outsize: Any = None, cover_all: bool = True) -> Array:
    """unpooling_nd over (N, C, L)."""
    return unpooling_nd(of_rank(x, 1), ksize, stride, pad, outsize, cover_all)


def unpooling_2d(x: Array, ksize: Any, stride: Any = None, pad: Any = 0, outsize: Any = None, cover_all: bool = True) -> Array:
    """unpooling_nd over (N, C, H, W)."""
    return unpooling_nd(of_rank(x, 2), ksize, stride, pad, outsize, cover_all)


def unpooling_3d(x: Array, ksize: Any, stride: Any = None, pad: Any = 0, outsize: Any = None, cover_all: bool = True) -> Array:
    """unpooling_nd over (N, C, D, H, W)."""
    return unpooling_nd(of_rank(x, 3), ksize, stride, pad, outsize, cover_all)


def upsampling_2d(
    x: Array,
    indexes: Array,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: Any = None,
    cover_all: bool = True,
) -> Array:
    """Each value to the place inside its window that `indexes` names, zeros elsewhere, overlapping windows summed: the way
    back through the max pooling that gave those indexes.

    Shapes    x and indexes (N, C, H, W) -> y (N, C, *out), sizes as unpooling_nd; indexes as max_pooling_2d returns them
    Numbers   float16, float32, float64
    Edges     a place in the padding drops its value
    Gradient  dy read at the same places
    Raises    ArgumentError: as unpooling_nd; ArrayError: indexes of another shape, no integers, or outside the window
    Source    chainer/functions/pooling/upsampling_2d.py
    """
    x, places = of_rank(x, 2), as_array(indexes, "indexes")
    try:
        plan = rules.upsampling(
            x.shape, x.dtype.name, kernel=ksize, stride=stride, padding=pad, output_size=outsize, cover_all=cover_all
        )
        if places.shape != x.shape or places.dtype.kind not in "iu":
            raise ArrayError(
                "indexes do not fit x", given={"indexes": places}, required=f"integers of shape {x.shape}", hint="one per value"
            )
        if places.size and (places.min() < 0 or places.max() >= plan.taps):
            raise ArrayError(
                "an index lies outside the window",
                given={"indexes": places},
                required=f"0 <= indexes < {plan.taps}: {places.min()} to {places.max()}",
                hint="indexes of max_pooling_2d with the same ksize",
            )
    except AstrideError as error:
        raise error.within(operator="upsampling_2d", rules="chainer", given={"x": x})
    shape = (*x.shape[:2], *(axis.size for axis in plan.axes))
    saved = Saved(shapes=(shape, None), offsets=places.astype(offset_dtype(plan.taps)))
    y = ops.backward(plan, x, saved, want=(True, False))[0]
    assert y is not None
    plane = plane_indices(plan, saved).reshape(*shape[:2], -1)

    def pull(gradients: Arrays, want: tuple[bool, ...]) -> Arrays:
        dy = gradients[0]
        if dy is None:
            return (None,)
        read = np.take_along_axis(dy.reshape(*shape[:2], -1), np.maximum(plane, 0), axis=-1)
        return (np.where(plane < 0, dy.dtype.type(0), read).reshape(x.shape),)

    tape.record(tape.Node("upsampling_2d", (x,), (y,), pull))
    return y


def of_rank(x: Any, rank: int) -> Array:
    """x, if it has that many spatial axes."""
    array = as_array(x, "x")
    if array.ndim != rank + 2:
        raise ArgumentError(
            "x has the wrong rank",
            given={"x": array},
            required=f"x.ndim == {rank + 2}: {array.ndim}",
            because="Chainer 7.8.1, the functions' type checks",
        )
    return array
