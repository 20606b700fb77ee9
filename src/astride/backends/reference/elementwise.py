"""Element by element: one NumPy expression a function.

Where the gradient follows from the result, the result is kept; where it follows from x alone being on one side of a
kink, one byte an element (relu, abs, clip), so that the input may be overwritten by the output, as Caffe's nets do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...plan.dense import ElementwisePlan, Function
from ...plan.kinds import Nan, Tie
from ..protocol import Array, Arrays, Kernel, Saved

Real = type[np.floating[Any]]

BNLL_LIMIT = 50
"""exp(x) is not computed beyond it: the slope is 1 to the last digit long before."""


def forward(plan: ElementwisePlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """A result of x's shape; z takes part where the function has two arguments."""
    x, z = (*arrays, None)[:2]
    assert x is not None
    shapes = (x.shape, None if z is None else z.shape)
    # what floating point has no number for becomes NaN or an infinity, as the docstrings say
    with np.errstate(all="ignore"):
        kept = _two(plan, x, z, out) if z is not None else ONE[plan.function][0](plan, x, out)
    if not save:
        return out, None
    return out, Saved(shapes, x=kept.get("x"), y=kept.get("y"), extra={k: v for k, v in kept.items() if k not in ("x", "y")})


def backward(plan: ElementwisePlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy times the slope at each element; for two arrays, each one's own."""
    with np.errstate(all="ignore"):
        if plan.binary:
            gradients = _two_gradients(plan, dy, saved, want)
        else:
            gradients = (dy * ONE[plan.function][1](plan, saved, dy.dtype.type) if want[0] else None), None
    return tuple(None if g is None else np.asarray(g) for g in gradients)


# One array: what forward computes and keeps, and the slope that backward multiplies dy by

Kept = dict[str, Array]
Slope = Any
"""An array, or one number for all elements."""


def _relu(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    np.maximum(x, 0, out=out)
    if plan.slope:
        out += x.dtype.type(plan.slope) * np.minimum(x, 0)
    return {"positive": x > 0}


def _relu_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    positive = saved.extra["positive"]
    # a sum of masked terms: choosing element by element costs several times as much where signs alternate
    return real(plan.slope) * ~positive + positive if plan.slope else positive


def _elu(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    np.minimum(x, 0, out=out)
    np.expm1(out, out=out)
    out *= x.dtype.type(plan.slope)
    out += np.maximum(x, 0)
    return {"positive": x > 0, "y": out}


def _elu_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    assert saved.y is not None
    return np.where(saved.extra["positive"], real(1), saved.y + real(plan.slope))


def _sigmoid_of(x: Array, out: Array | None = None) -> Array:
    """By the hyperbolic tangent, which overflows nowhere."""
    half = x.dtype.type(0.5)
    out = np.tanh(half * x, out=out)
    out *= half
    out += half
    return out


def _sigmoid(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    return {"y": _sigmoid_of(x, out)}


def _sigmoid_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    assert saved.y is not None
    return saved.y * (1 - saved.y)


def _tanh(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    return {"y": np.tanh(x, out=out)}


def _tanh_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    assert saved.y is not None
    return 1 - saved.y * saved.y


def _abs(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    np.abs(x, out=out)
    return {"sign": (x > 0).astype(np.int8) - (x < 0).astype(np.int8)}


def _abs_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    return saved.extra["sign"]


def _bnll(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    np.abs(x, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    out += np.maximum(x, 0)
    return {"x": x}


def _bnll_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    assert saved.x is not None
    power = np.exp(np.minimum(saved.x, real(BNLL_LIMIT)))
    return power / (power + 1)


def _swish(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    np.multiply(x, _sigmoid_of(_times(x, plan.scale)), out=out)
    return {"x": x}


def _swish_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    assert saved.x is not None
    inner = _times(saved.x, plan.scale)
    gate = _sigmoid_of(inner)
    return gate + inner * gate * (1 - gate)


def _base(plan: ElementwisePlan, x: Array, out: Array | None = None) -> Array:
    """shift + scale * x, each step rounded once and left out where it does nothing."""
    inner: Array = np.multiply(x, x.dtype.type(plan.scale), out=out)
    if plan.shift:
        inner += x.dtype.type(plan.shift)
    return inner


def _power(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    real = x.dtype.type
    if plan.scale * plan.power == 0:
        # x takes no part, NaN or infinite as it may be
        out.fill(real(1) if plan.power == 0 else np.power(real(plan.shift), real(plan.power)))
        return {}
    _base(plan, x, out)
    if plan.power == 1:
        return {}
    np.power(out, real(plan.power), out=out)
    return {"x": x}


def _power_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    slope = real(plan.scale * plan.power)
    if slope == 0 or plan.power == 1:
        return slope
    assert saved.x is not None
    return slope * np.power(_base(plan, saved.x), real(plan.power - 1))


def _exp(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    np.exp(_times(x, plan.scale), out=out)
    if plan.factor != 1:
        out *= x.dtype.type(plan.factor)
    return {"y": out}


def _exp_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    assert saved.y is not None
    return _times(saved.y, plan.scale)


def _log(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    np.log(_base(plan, x, out), out=out)
    if plan.factor != 1:
        out *= x.dtype.type(plan.factor)
    return {"x": x}


def _log_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    assert saved.x is not None
    return real(plan.factor * plan.scale) / _base(plan, saved.x)


def _clip(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    low, high = x.dtype.type(plan.low), x.dtype.type(plan.high)
    np.minimum(x, high, out=out)
    np.maximum(out, low, out=out)
    if plan.nan is Nan.COMPARED:
        # C's max(low, min(x, high)) compares low < NaN, which is false
        np.copyto(out, low, where=np.isnan(x))
    return {"inside": (x >= low) & (x <= high)}


def _clip_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    return saved.extra["inside"]


def _threshold(plan: ElementwisePlan, x: Array, out: Array) -> Kept:
    out[...] = x > x.dtype.type(plan.low)
    return {}


def _threshold_slope(plan: ElementwisePlan, saved: Saved, real: Real) -> Slope:
    return real(0)


ONE: dict[Function, tuple[Callable[[ElementwisePlan, Array, Array], Kept], Callable[[ElementwisePlan, Saved, Real], Slope]]] = {
    Function.RELU: (_relu, _relu_slope),
    Function.ELU: (_elu, _elu_slope),
    Function.SIGMOID: (_sigmoid, _sigmoid_slope),
    Function.TANH: (_tanh, _tanh_slope),
    Function.ABS: (_abs, _abs_slope),
    Function.BNLL: (_bnll, _bnll_slope),
    Function.SWISH: (_swish, _swish_slope),
    Function.POWER: (_power, _power_slope),
    Function.EXP: (_exp, _exp_slope),
    Function.LOG: (_log, _log_slope),
    Function.CLIP: (_clip, _clip_slope),
    Function.THRESHOLD: (_threshold, _threshold_slope),
}


# Two arrays


def _two(plan: ElementwisePlan, x: Array, z: Array, out: Array) -> Kept:
    if plan.function is Function.ADD:
        np.add(_times(x, plan.scale), _times(z, plan.z_scale), out=out)
        return {}
    if plan.function is Function.MAXIMUM:
        return _maximum(plan, x, z, out)
    (np.multiply if plan.function is Function.MULTIPLY else np.divide)(x, z, out=out)
    if plan.scale != 1:
        out *= x.dtype.type(plan.scale)
    return {"x": x, "z": z}


def _maximum(plan: ElementwisePlan, x: Array, z: Array, out: Array) -> Kept:
    """One byte an element: who won. Comparing rules take whom the comparison leaves, so a NaN on one side wins or loses."""
    if plan.nan is Nan.PROPAGATED:
        np.maximum(x, z, out=out)
        first = (x >= z) | np.isnan(x) if plan.tie is Tie.FIRST else (x > z) | (np.isnan(x) & ~np.isnan(z))
    else:
        first = ~(z > x) if plan.tie is Tie.FIRST else x > z
        np.maximum(x, z, out=out)
        odd = np.isnan(out)
        if odd.any():
            np.copyto(out, np.where(first, x, z), where=odd)
    return {"first": first, "equal": x == z} if plan.tie is Tie.EQUAL_SHARE else {"first": first}


def _two_gradients(plan: ElementwisePlan, dy: Array, saved: Saved, want: Sequence[bool]) -> Arrays:
    if plan.function is Function.ADD:
        scales = (plan.scale, plan.z_scale)
        return tuple(np.array(_times(dy, s)) if w else None for s, w in zip(scales, want, strict=True))
    if plan.function is Function.MAXIMUM:
        first, equal = saved.extra["first"], saved.extra.get("equal")
        shares = [first, ~first]
        if equal is not None:
            shares = [np.where(equal, dy.dtype.type(0.5), s.astype(dy.dtype)) for s in shares]
        return tuple(dy * s if w else None for s, w in zip(shares, want, strict=True))
    x, z = saved.x, saved.extra["z"]
    assert x is not None
    scaled = _times(dy, plan.scale)
    if plan.function is Function.MULTIPLY:
        return (scaled * z if want[0] else None), (scaled * x if want[1] else None)
    return (scaled / z if want[0] else None), (-scaled * x / (z * z) if want[1] else None)


def _times(x: Array, scale: float) -> Array:
    return x if scale == 1 else x * x.dtype.type(scale)


KERNELS = (Kernel("numpy", forward, backward),)
