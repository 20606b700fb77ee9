"""Convolution and the transposed one, forward and backward: which relation is the value and which are its gradients.

    conv              y gathers x along the axes,             dx gathers dy along the axes turned back
    conv_transpose    y gathers x along the axes turned back, dx gathers dy along the axes

Kernels compute channels last, in float32 or float64: arrays whose channels come first are transposed on the way in and out,
narrower types widened and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ... import settings
from ...plan import ConvPlan, Shape
from ...plan.kinds import Direction, Edge, Layout
from .. import memory
from ..epilogue import Epilogue
from ..fixed import frozen
from ..protocol import Array, Arrays, Saved
from . import (
    conv_choice,
    conv_few,
    conv_half,
    conv_planar,
    conv_planar_weights,
    conv_planes,
    conv_short,
    conv_slabs,
    conv_subpixel,
    conv_weights_matrix,
    conv_weights_packed,
    depthwise_first,
    depthwise_last,
    depthwise_moved,
    depthwise_weights,
    depthwise_weights_first,
    depthwise_whole,
    depthwise_whole_weights,
    winograd,
    winograd_weights,
)
from .conv_gather import compute
from .conv_layout import channels_first, channels_last
from .conv_pack import packed, packed_bias
from .conv_relation import Relation
from .conv_weights import weights_gradient
from .conv_windows import MOST, most_classes, stretched_back
from .kept import kept

PLANAR = {
    "planes": conv_planes,
    "depthwise whole": depthwise_whole,
    "depthwise planes": depthwise_first,
    "depthwise moved": depthwise_moved,
    "few outputs": conv_few,
    "sub-pixel": conv_subpixel,
}
"""Who computes channels first where they lie, from the weights as they are."""

PACKED = {"columns": conv_planar, "slabs": conv_slabs}
"""Who does so from packed weights and bias, beside Winograd's form."""

NARROW, WIDE = ("float16", "bfloat16"), ("float32", "float64")


def declines(plan: ConvPlan) -> str | None:
    """Why this backend does not convolve by a plan; None if it does."""
    if plan.dtype not in WIDE + NARROW:
        return f"no kernels for {plan.dtype}"
    if plan.accumulate not in WIDE:
        return f"no kernels that sum in {plan.accumulate}"
    if plan.y_dtype not in ("", plan.dtype):
        return f"no kernels that turn {plan.dtype} into {plan.y_dtype}"
    if plan.edge is not Edge.SKIP:
        return f"no kernels for the edge mode {plan.edge}"
    if plan.batch_groups > 1:
        return "no kernels for groups of the batch"
    if any(axis.input_dilation > 1 for axis in plan.axes):
        return "no kernels for a stretched input"
    if max(most_classes(plan.axes), most_classes([stretched_back(axis) for axis in plan.axes])) > MOST:
        return f"more than {MOST} kinds of windows at the edges"
    return None


def computed(plan: ConvPlan) -> np.dtype[Any]:
    """The type kernels compute in: the plan's, or the one its sums are formed in where that is wider."""
    return np.dtype("float64" if "float64" in (plan.dtype, plan.accumulate) else "float32")


@lru_cache(maxsize=512)
def relation(plan: ConvPlan, to_input: bool) -> Relation:
    """What gives y, or with `to_input` the gradient of x."""
    back = to_input != (plan.direction is Direction.TRANSPOSED)
    axes = tuple(stretched_back(axis) for axis in plan.axes) if back else plan.axes
    inputs, outputs = plan.in_channels, plan.out_channels
    if to_input:
        inputs, outputs = outputs, inputs
    return Relation(computed(plan).name, axes, inputs, outputs, plan.groups, back, plan.flip != back)


def forward(
    plan: ConvPlan,
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    out: Array,
    save: bool,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> tuple[Array, Saved | None]:
    """Convolve x into out, add a residual of out's shape, and do what an epilogue says; with `save`, keep x and w.

    Results that are rounded to a narrower type are finished afterwards, for both are about rounded numbers.
    """
    fused = out.dtype == computed(plan)
    if fused:
        _gathered(plan, relation(plan, False), x, w, b, out, epilogue, residual)
    else:
        _gathered(plan, relation(plan, False), x, w, b, out)
        (epilogue or Epilogue()).apply(out, residual)
    if not save:
        return out, None
    return out, Saved(shapes=(x.shape, w.shape, None if b is None else b.shape), x=x, w=w)


def backward(plan: ConvPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The gradients of x, w and b."""
    x, w = saved.x, saved.w
    assert x is not None and w is not None
    dx = dw = db = None
    if want[0]:
        dx = memory.empty(x.shape, x.dtype)
        _gathered(plan, relation(plan, True), dy, w, None, dx)
    if want[1]:
        wide = computed(plan)
        a, c = memory.contiguous(x, wide), memory.contiguous(dy, wide)
        transposed, first = plan.direction is Direction.TRANSPOSED, plan.layout is Layout.CHANNELS_FIRST
        if transposed:
            a, c = c, a
        with np.errstate(all="ignore"):  # what is added up or rounded there may be infinite
            dw = _weights_gradient(relation(plan, transposed), a, c, w.shape, first).astype(w.dtype, copy=False)
    if len(want) > 2 and want[2]:
        first = plan.layout is Layout.CHANNELS_FIRST
        axes = (0, *range(2, dy.ndim)) if first else tuple(range(dy.ndim - 1))
        with np.errstate(all="ignore"):
            db = dy.astype(computed(plan), copy=False).sum(axis=axes).astype(x.dtype, copy=False)
    return (dx, dw, db)


def ways(plan: ConvPlan) -> tuple[str, ...]:
    """How one image is computed, a line for each direction."""
    first, transposed = plan.layout is Layout.CHANNELS_FIRST, plan.direction is Direction.TRANSPOSED
    lines = [("forward", "gather", False), ("gradient of x", "gather", True), ("gradient of w", "weights", transposed)]
    return tuple(f"{name}: {conv_choice.explained(kind, relation(plan, back), 1, first)}" for name, kind, back in lines)


def _gathered(
    plan: ConvPlan,
    how: Relation,
    x: Array,
    w: Array,
    b: Array | None,
    out: Array,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """Compute a relation in the plan's layout, in any type, into an array of any strides."""
    wide = computed(plan)
    first = plan.layout is Layout.CHANNELS_FIRST
    way = conv_choice.gathering(how, len(x), first)
    if x.dtype != wide and wide == np.float32 and conv_half.takes(x, out):
        _in_parts(plan, how, way, x, w, b, out)
        (epilogue or Epilogue()).apply(out, residual)
        return
    residual = None if residual is None else memory.contiguous(residual, wide)
    if way == "columns" and not conv_planar.hidden(how, w):
        way = "slabs" if conv_slabs.takes(how, len(x)) else "tiles"
    if first and (way in PLANAR or way in PACKED or way == "winograd"):
        y = out if out.dtype == wide and out.flags.c_contiguous else np.empty(out.shape, wide)
        _channels_first(way, how, memory.contiguous(x, wide), memory.contiguous(w, wide), b, y, epilogue, residual)
        if y is not out:
            _rounded(y, out)
        return
    x, w = _last(plan, x, wide), memory.contiguous(w, wide)
    ready = out.dtype == wide and out.flags.c_contiguous
    if ready and not first:
        _channels_last(way, how, x, w, b, out, epilogue, residual)
        return
    y = np.empty((out.shape[0], *out.shape[2:], out.shape[1]) if first else out.shape, wide)
    added = channels_last(residual) if first and residual is not None else residual
    _channels_last(way, how, x, w, b, y, epilogue, added)
    if ready:
        channels_first(y, out)
    else:
        _rounded(np.moveaxis(y, -1, 1) if first else y, out)


def _in_parts(plan: ConvPlan, how: Relation, way: str, x: Array, w: Array, b: Array | None, out: Array) -> None:
    """The same for narrow numbers, part by part, each in the way that the whole would take."""
    first = plan.layout is Layout.CHANNELS_FIRST
    x, ready = memory.contiguous(x), kept(w, ("wide", "float32"), lambda: frozen(w.astype(np.float32)))
    for part in conv_half.parts(how, len(x), _bands(how, way, first, settings.current().winograd)):
        y = conv_half.empty(out, part, first)
        with conv_choice.forced(way):
            _gathered(plan, part.relation, conv_half.widened(x, part, first), ready, b, y)
        conv_half.rounded(y, out, part, first)


@lru_cache(maxsize=512)
def _bands(how: Relation, way: str, first: bool, most: int) -> tuple[conv_half.Part, ...]:
    """The bands of an image, if this way computes them as it does the whole."""
    bands = conv_half.bands_of(how)
    if way == "columns":  # which looks at the weights as well
        return ()
    for band in bands:
        if way not in conv_choice.candidates("gather", band.relation, 1, first, most):
            return ()
        if way == "winograd" and winograd.tile_of(band.relation, most) != winograd.tile_of(how, most):
            return ()
    return bands


def _channels_first(
    way: str,
    how: Relation,
    x: Array,
    w: Array,
    b: Array | None,
    y: Array,
    epilogue: Epilogue | None,
    residual: Array | None,
) -> None:
    """Compute a relation, channels first, all arrays contiguous and of the type kernels compute in."""
    if way in PLANAR:
        PLANAR[way].compute(how, x, w, b, y, epilogue=epilogue, residual=residual)
        return
    weights, bias = packed(how, w), packed_bias(how, b, y.dtype)
    if way == "winograd":
        tile = winograd.tile_of(how, settings.current().winograd)
        winograd.compute(how, x, weights, bias, y, tile, True, epilogue=epilogue, residual=residual)
    else:
        PACKED[way].compute(how, x, weights, bias, y, epilogue=epilogue, residual=residual)


def _channels_last(
    way: str,
    how: Relation,
    x: Array,
    w: Array,
    b: Array | None,
    y: Array,
    epilogue: Epilogue | None,
    residual: Array | None,
) -> None:
    """Compute a relation, channels last, all arrays contiguous and of the type kernels compute in."""
    if way == "depthwise rows":
        depthwise_last.compute(how, x, w, b, y, epilogue=epilogue, residual=residual)
        return
    if way == "few outputs":
        conv_few.compute_last(how, x, w, b, y, epilogue=epilogue, residual=residual)
        return
    if way == "sub-pixel":
        conv_subpixel.compute_last(how, x, w, b, y, epilogue=epilogue, residual=residual)
        return
    weights, bias = packed(how, w), packed_bias(how, b, y.dtype)
    if way == "winograd":
        tile = winograd.tile_of(how, settings.current().winograd)
        winograd.compute(how, x, weights, bias, y, tile, epilogue=epilogue, residual=residual)
    elif way == "slabs":
        conv_slabs.compute(how, x, weights, bias, y, epilogue=epilogue, residual=residual, first=False)
    elif way == "short":
        conv_short.compute(how, x, weights, bias, y, epilogue=epilogue, residual=residual)
    else:
        compute(how, x, weights, bias, y, epilogue=epilogue, residual=residual)


def _weights_gradient(how: Relation, a: Array, c: Array, shape: Shape, first: bool) -> Array:
    """The gradient of a relation's weights from what it reads and the gradient of what it gives, channels first or last."""
    way = conv_choice.weighing(how, len(a), first)
    if way == "winograd":
        tile = winograd.tile_of(how, settings.current().winograd)
        return winograd_weights.weights_gradient(how, a, c, shape, tile, first)
    if way == "depthwise whole":
        return depthwise_whole_weights.weights_gradient(how, a, c, shape)
    if way == "depthwise planes":
        return depthwise_weights_first.weights_gradient(how, a, c, shape)
    if way == "depthwise":
        return depthwise_weights.weights_gradient(how, a, c, shape, first)
    if way == "matrix":
        return conv_weights_matrix.weights_gradient(how, a, c, shape, first)
    if way == "columns":
        found = conv_planar_weights.weights_gradient(how, a, c, shape)
        if found is not None:
            return found
        way = "tiles"
    if way == "packed":
        return conv_weights_packed.weights_gradient(how, a, c, shape, first)
    if first:
        a, c = channels_last(a), channels_last(c)
    return weights_gradient(how, a, c, shape)


def _rounded(y: Array, out: Array) -> None:
    """Into memory of any strides and a narrower type, where what is too large is an infinity and no warning."""
    with np.errstate(all="ignore"):
        out[...] = y


def _last(plan: ConvPlan, x: Array, wide: np.dtype[Any]) -> Array:
    """Contiguous, in the type kernels compute in, channels last."""
    x = memory.contiguous(x, wide)
    return channels_last(x) if plan.layout is Layout.CHANNELS_FIRST else x
