"""A framework's call with what stands around it, computed: padding before, a crop and factors behind, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import dispatch
from ..errors import ArgumentError
from ..ops._run import plan as make_plan
from ..plan import ConvPlan, PoolPlan
from .spelling import Operation

Array = npt.NDArray[Any]
Pairs = tuple[tuple[int, int], ...]

SINGLE = ("onednn", "ncnn", "onnxruntime")
"""Rules without float64 for some operator. They are computed in it all the same, so that what differs is not rounding."""
MODES = {"mirror": "reflect", "mirror_edge": "symmetric", "clamp": "edge", "wrap": "wrap"}
"""What an edge mode is called by numpy.pad."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What is done to x, in this order; everything that is not needed is None.

    pads        before and after each axis, negative to cut off; filled with `fill`, a number or an edge mode
    arguments   of the framework's rule
    turn        whether the kernel is turned by 180 degrees first
    crop        of each axis of y the places [begin, end) that are kept; an end past y's adds zeros
    factors     what y is multiplied by, along each axis
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    pads: Pairs | None = None
    fill: float | str = 0.0
    turn: bool = False
    crop: Pairs | None = None
    factors: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """A result and its gradients; those are None where they were not asked for, or w is not there."""

    plan: PoolPlan | ConvPlan
    y: Array
    dx: Array | None = None
    dw: Array | None = None


def plan_of(rules: str, o: Operation, shape: tuple[int, ...], w_shape: tuple[int, ...] | None, steps: Steps) -> Any:
    """The plan of the call itself, on the padded input. What the rule refuses is raised."""
    around = steps.pads or ((0, 0),) * (len(shape) - 2)
    inner = (*shape[:2], *(n + lo + hi for n, (lo, hi) in zip(shape[2:], around)))
    window = {} if o.weighted else {"kernel": o.kernel}
    dtype = "float32" if rules in SINGLE else "float64"
    plan = make_plan(o.op, inner, rules=rules, dtype=dtype, w_shape=w_shape, **window, **steps.arguments)
    return replace(plan, dtype="float64", accumulate="float64")


def computed(rules: str, o: Operation, steps: Steps, x: Array, w: Array | None, dy: Array | None = None) -> Computed:
    """y of x (and w), and with `dy` the gradients of sum(dy * y)."""
    places = None if steps.pads is None else [_places(n, pair, steps.fill) for n, pair in zip(x.shape[2:], steps.pads)]
    inner = x if places is None else _gathered(x, places, 0.0 if isinstance(steps.fill, str) else steps.fill)
    kernel = _turned(w) if steps.turn else w
    plan = plan_of(rules, o, x.shape, None if w is None else w.shape, steps)
    y, saved = dispatch.forward(plan, inner, *([] if kernel is None else [kernel]), save=dy is not None)
    result = _cropped(y, steps.crop)
    factors = None if steps.factors is None else _outer(steps.factors)
    if factors is not None:
        if any(f not in (1, n) for f, n in zip(factors.shape, result.shape[2:])):
            raise ArgumentError(
                "the factors are for another size",
                given={"factors": factors.shape},
                required=f"one for each place of y: {result.shape[2:]}",
            )
        result = result * factors
    if dy is None or saved is None:
        return Computed(plan, result)
    back = _uncropped(dy if factors is None else dy * factors, y.shape, steps.crop)
    gradients = dispatch.backward(plan, np.ascontiguousarray(back), saved)
    dx, dw = gradients[0], gradients[1] if kernel is not None else None
    assert dx is not None
    if places is not None:
        dx = _scattered(dx, places, x.shape)
    return Computed(plan, result, dx, _turned(dw) if steps.turn else dw)


def _places(n: int, pair: tuple[int, int], fill: float | str) -> Array:
    """For each place of the padded axis the pixel it holds, -1 for the fill."""
    lo, hi = max(pair[0], 0), max(pair[1], 0)
    pixels = np.arange(n)
    if isinstance(fill, str):
        mode: Any = MODES[fill]
        placed = np.pad(pixels, (lo, hi), mode=mode)
    else:
        placed = np.pad(pixels, (lo, hi), constant_values=-1)
    return placed[max(-pair[0], 0) : len(placed) - max(-pair[1], 0)]


def _gathered(x: Array, places: list[Array], fill: float) -> Array:
    for a, placed in enumerate(places, 2):
        taken = np.take(x, np.maximum(placed, 0), axis=a)
        outside = (placed < 0).reshape(-1, *[1] * (x.ndim - a - 1))
        x = np.where(outside, fill, taken)
    return np.ascontiguousarray(x)


def _scattered(dx: Array, places: list[Array], shape: tuple[int, ...]) -> Array:
    """Gradients of padded places added up at the pixels they show."""
    for a, placed in reversed(list(enumerate(places, 2))):
        total = np.zeros((shape[a], *np.delete(dx.shape, a)), dx.dtype)
        np.add.at(total, placed[placed >= 0], np.moveaxis(dx, a, 0)[placed >= 0])
        dx = np.moveaxis(total, 0, a)
    return dx


def _cropped(y: Array, crop: Pairs | None) -> Array:
    if crop is None:
        return y
    more = [(0, max(end - n, 0)) for n, (_, end) in zip(y.shape[2:], crop)]
    wide = np.pad(y, [(0, 0), (0, 0), *more])
    return wide[(slice(None), slice(None), *(slice(begin, end) for begin, end in crop))]


def _uncropped(dy: Array, shape: tuple[int, ...], crop: Pairs | None) -> Array:
    if crop is None:
        return dy
    back = np.zeros((*shape[:2], *(max(n, end) for n, (_, end) in zip(shape[2:], crop))), dy.dtype)
    back[(slice(None), slice(None), *(slice(begin, end) for begin, end in crop))] = dy
    return back[(slice(None), slice(None), *(slice(0, n) for n in shape[2:]))]


def _outer(factors: tuple[tuple[float, ...], ...]) -> Array:
    total: Array = np.ones(())
    for axis in factors:
        total = np.multiply.outer(total, np.asarray(axis))
    return total


def _turned(w: Array | None) -> Array | None:
    return None if w is None else np.ascontiguousarray(w[(slice(None), slice(None), *[slice(None, None, -1)] * (w.ndim - 2))])
