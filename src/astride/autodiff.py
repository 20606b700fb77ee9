"""Gradients of one operator: `vjp` runs it and hands back the way its gradients return; `check_gradient` tries them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import tape
from .backends.protocol import Array
from .errors import ArgumentError, UnsupportedError
from .tape import Pullback

Pull = Callable[[Any], tuple[Any, ...]]

MODULES = ("astride.ops.", "astride.like.")
"""Where functions live that record what they do. Anything else would lose the arithmetic between two operators."""

SAMPLES = 400
"""Elements of one array that check_gradient tries; of larger arrays a random choice."""


def vjp(fn: Callable[..., Any], *args: Any, wrt: Sequence[int] | int | None = None, **kwargs: Any) -> tuple[Any, Pull]:
    """Run one operator and return (its result, pull), where pull(g) gives the gradients of sum(g * result).

    Shapes    pull returns one entry per positional argument: an array of its shape and dtype, or None where it is no
              floating array or not in `wrt` (positions; default all). Keyword arrays get none. g is like the result;
              with several results g belongs to the first, or is a tuple with None where nothing flows back
    Numbers   computed by the backend that ran forward; pull may be called again and again. The arrays given are held,
              not copied: they must not change before the last pull
              vjp(pull, g) is the double backward of every operator with a window, but not of functions of your own:
              (pull(g), pull2), where pull2(a cotangent per gradient) gives the gradient by g, then one per argument
    Raises    UnsupportedError: fn is not an operator of astride, a window_op or a function of astride.like; pull2 of any
              other operator
              ArgumentError: `wrt` names a position that holds no floating array; ArrayError: g does not fit
    Example
    >>> import numpy as np, astride
    >>> from astride.like import pytorch as F
    >>> y, pull = astride.vjp(F.max_pool1d, np.array([[[1.0, 3.0, 2.0, 2.0]]]), 2)
    >>> pull(np.ones_like(y))[0].tolist()
    [[[0.0, 1.0, 1.0, 0.0]]]
    """
    if isinstance(fn, Pullback):
        return fn.differentiated(args, wrt, kwargs)
    _require_operator(fn)
    # a fresh view of each array, so that an array given twice has two identities
    own = [a.view() if isinstance(a, np.ndarray) else a for a in args]
    floating = [i for i, a in enumerate(own) if isinstance(a, np.ndarray) and a.dtype.kind not in "iub"]
    wanted = floating if wrt is None else list(wrt) if isinstance(wrt, Sequence) else [wrt]
    for i in wanted:
        if i not in floating:
            raise ArgumentError(
                f"argument {i!r} is no floating array",
                given={"wrt": wrt},
                required=f"positions among {floating}",
                operator="vjp",
                hint=f"wrt={tuple(floating)}" if floating else "floating arrays as positional arguments",
            )
    with tape.recording() as recorded:
        result = fn(*own, **kwargs)
    return result, Pullback(recorded, own, wanted, result if isinstance(result, tuple) else (result,))


@dataclass(frozen=True, slots=True)
class Difference:
    """One argument's gradient against differences. Errors are relative to the argument's largest gradient."""

    argument: int
    tried: int
    kinks: int
    error: float
    worst: tuple[int, ...] | None
    analytic: float
    numeric: float


@dataclass(frozen=True, slots=True)
class GradientReport:
    """What check_gradient found: true where every argument's error is within the tolerance."""

    name: str
    tolerance: float
    differences: tuple[Difference, ...]

    def __bool__(self) -> bool:
        return all(d.error <= self.tolerance for d in self.differences)

    def __str__(self) -> str:
        lines = [f"{self.name}: {'gradients agree' if self else 'GRADIENTS DIFFER'} (tolerance {self.tolerance:g})"]
        for d in self.differences:
            line = f"  argument {d.argument}: error {d.error:.2e} over {d.tried} elements"
            if d.kinks:
                line += f", {d.kinks} at a kink left out (tie or zero within the step)"
            if d.error > self.tolerance:
                line += f"; at {d.worst} analytic {d.analytic:.6g}, numeric {d.numeric:.6g}"
            lines.append(line)
        return "\n".join(lines)


def check_gradient(
    fn: Callable[..., Any],
    *args: Any,
    wrt: Sequence[int] | None = None,
    tolerance: float = 1e-6,
    step: float = 1e-5,
    projection: int = 0,
    **kwargs: Any,
) -> GradientReport:
    """Compare an operator's gradients with central differences of a random projection of its result, in float64.

    Floating arguments are taken as float64. Where the slopes to the left and to the right differ (a tie, a zero, a
    kink within `step`), no derivative exists; such elements are counted in the report and left out. `projection` seeds
    the projection, so that the operator's own keywords, `seed` among them, all reach the operator.

    Raises    UnsupportedError: fn is not an operator of astride or a function of astride.like
              ArgumentError: no floating array among the arguments
    Example
    >>> import numpy as np, astride
    >>> from astride.like import pytorch as F
    >>> bool(astride.check_gradient(F.lp_pool2d, np.random.default_rng(0).normal(size=(1, 1, 4, 4)), 2.0, 2))
    True
    """
    own = [a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype.kind not in "iub" else a for a in args]
    for name, given in kwargs.items():
        if isinstance(given, np.ndarray) and given.dtype.kind not in "iub":
            kwargs[name] = given.astype(np.float64)
    if not any(isinstance(a, np.ndarray) and a.dtype.kind not in "iub" for a in own):
        raise ArgumentError(
            "there is no floating array to differentiate by",
            given={"arguments": len(own)},
            operator=getattr(fn, "__name__", None),
            hint="x.astype('float64')",
        )
    result, pull = vjp(fn, *own, wrt=wrt, **kwargs)
    first = result[0] if isinstance(result, tuple) else result
    rng = np.random.default_rng(projection)
    weights = rng.normal(size=first.shape)
    gradients = pull(weights)

    def value() -> float:
        y = fn(*own, **kwargs)
        return float((weights * (y[0] if isinstance(y, tuple) else y)).sum())

    differences = [
        _difference(i, own[i], gradient, value, step, rng) for i, gradient in enumerate(gradients) if gradient is not None
    ]
    return GradientReport(getattr(fn, "__name__", "operator"), tolerance, tuple(differences))


def _difference(
    argument: int, x: Array, gradient: Array, value: Callable[[], float], step: float, rng: np.random.Generator
) -> Difference:
    places = rng.permutation(x.size)[:SAMPLES]
    middle = value()
    scale = max(float(np.abs(gradient).max(initial=0.0)), 1e-12)
    worst, error, kinks, at = None, 0.0, 0, (0.0, 0.0)
    for flat in places:
        place = tuple(int(i) for i in np.unravel_index(flat, x.shape))
        kept = x[place]
        h = step * max(1.0, abs(float(kept)))
        x[place] = kept + h
        above = value()
        x[place] = kept - h
        below = value()
        x[place] = kept
        right, left, central = (above - middle) / h, (middle - below) / h, (above - below) / (2 * h)
        if abs(right - left) > 1e-3 * max(abs(right), abs(left), scale) + 1e-6:
            kinks += 1
            continue
        off = abs(central - float(gradient[place])) / max(scale, abs(central))
        if not off <= error:
            # a NaN is as wrong as can be, and stays the worst
            worst, error, at = place, math.inf if math.isnan(off) else off, (float(gradient[place]), central)
    return Difference(argument, len(places), kinks, error, worst, *at)


def _require_operator(fn: Any) -> None:
    from .ops.window_reduce import WindowOperator  # here, so that importing astride does not pay for it

    if isinstance(fn, WindowOperator):
        return
    module, name = getattr(fn, "__module__", "") or "", getattr(fn, "__name__", "")
    if not module.startswith(MODULES) or getattr(sys.modules.get(module), name, None) is not fn:
        raise UnsupportedError(
            f"{getattr(fn, '__name__', fn)!r} is not one operator of astride",
            operator="vjp",
            because="arithmetic between two operators is not recorded",
            hint="vjp of each operator by itself, e.g. astride.max_pool or a function of astride.like.pytorch",
        )


__all__ = ["Difference", "GradientReport", "check_gradient", "vjp"]
