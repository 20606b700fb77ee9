"""Measuring the ways of a convolution beside each other, instead of choosing by predictions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ... import settings
from ...errors import ArgumentError
from ...plan import ConvPlan
from ...plan.kinds import Direction, Layout
from . import conv_choice, conv_tuned
from .conv_directions import backward, declines, forward, relation

GAIN = 0.97
"""A way must take less than this share of the chosen one's time to be remembered in its place."""

WHATS = ("forward", "data", "weights")


@dataclass(frozen=True, slots=True)
class Measured:
    """One direction of a convolution: the way chosen by prediction, the fastest, and every way's milliseconds."""

    what: str
    key: str
    chosen: str
    fastest: str
    ms: dict[str, float]


def tune(plan: ConvPlan, images: int = 1, seconds: float = 0.3) -> list[Measured]:
    """Measure which algorithm computes a convolution of so many images fastest here, and take it from now on.

    y and both gradients are measured, `seconds` each, on the threads allowed. What is found is remembered in a file, for this
    processor and this version; `astride tune --show` shows it, `astride tune --forget` and `astride.use(tuned=False)` do
    without. Algorithms round in different places, so results may differ from untuned ones in their last digits.

    >>> import astride
    >>> plan = astride.plan("conv", (8, 64, 56, 56), w_shape=(64, 64, 3, 3), padding=1, dtype="float32")
    >>> [one.what for one in astride.tune(plan, images=8)]  # doctest: +SKIP
    ['forward', 'data', 'weights']

    Raises:
        ArgumentError: the plan is no convolution that the CPU backend computes, or nothing is to be computed.
    """
    reason = declines(plan) if isinstance(plan, ConvPlan) else "it is no convolution"
    found = [] if reason else measure(plan, images, seconds)
    if not found:
        raise ArgumentError(
            "the plan cannot be tuned",
            given={"plan": plan, "images": images},
            because=reason or "its type is computed in another one, or nothing is to be computed",
        )
    remember(found)
    return found


def measure(plan: ConvPlan, images: int, seconds: float = 0.3) -> list[Measured]:
    """Time every way that takes a plan's directions, in turns, on the threads allowed here; the least time counts.

    Empty where the backend declines the plan, or nothing is computed.
    """
    first, transposed = plan.layout is Layout.CHANNELS_FIRST, plan.direction is Direction.TRANSPOSED
    sizes = plan.input_sizes
    shape = (images, plan.in_channels, *sizes) if first else (images, *sizes, plan.in_channels)
    y_shape = plan.output_shape(shape, plan.weight_shape, None)
    if declines(plan) or plan.dtype not in ("float32", "float64") or 0 in (*shape, *y_shape):
        return []
    rng = np.random.default_rng(0)
    x, w, dy = (rng.standard_normal(s).astype(plan.dtype) for s in (shape, plan.weight_shape, y_shape))
    y, saved = forward(plan, x, w, None, out=np.empty_like(dy), save=True)
    assert saved is not None
    kept = saved
    calls: dict[str, Callable[[], object]] = {
        "forward": lambda: forward(plan, x, w, None, out=y, save=False),
        "data": lambda: backward(plan, dy, kept, want=(True, False, False)),
        "weights": lambda: backward(plan, dy, kept, want=(False, True, False)),
    }
    most = settings.current().winograd
    found = []
    for what in WHATS:
        kind, how = ("weights", relation(plan, transposed)) if what == "weights" else ("gather", relation(plan, what == "data"))
        ways = conv_choice.candidates(kind, how, images, first, most)
        best = dict.fromkeys(ways, float("inf"))
        end = time.perf_counter() + seconds
        for turn in range(1000):
            for way in ways:
                with conv_choice.forced(way):
                    begin = time.perf_counter()
                    calls[what]()
                    took = time.perf_counter() - begin
                best[way] = min(best[way], took) if turn else best[way]  # the first turn compiles
            if time.perf_counter() > end and turn >= 3:
                break
        fastest = min(ways, key=best.__getitem__)
        fastest = fastest if best[fastest] < GAIN * best[ways[0]] else ways[0]
        at = conv_choice.key(kind, how, images, first, most)
        found.append(Measured(what, at, ways[0], fastest, {way: round(t * 1e3, 5) for way, t in best.items()}))
    return found


def remember(found: list[Measured]) -> None:
    """From now on, here and in later processes, take what was fastest."""
    conv_tuned.remember({one.key: {"way": one.fastest, "ms": one.ms} for one in found})
    conv_choice.forget()
