"""Every rule a pooling plan can state, on the CPU backend against the reference: a sample always, thousands in the long run.

Extremes, draws and integers are equal to the bit, signs of zeros included; sums lie within taps * eps of the sum of their
terms' magnitudes; and all are the same for one, two and three threads, whatever the input's strides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.backends.cpu.random_pools import FLOATS, INTEGERS, Draw, draw_of, kind_of

import astride
from astride import dispatch
from astride.backends.cpu import schedule
from astride.backends.cpu.numbers import lacks
from astride.backends.protocol import Saved
from astride.plan import PoolPlan
from astride.plan.kinds import Divisor, Reduce, Tie

JUDGE = "reference:im2col"
SAMPLE, SWEEP, BLOCK, GEOMETRIES = 36, 720, 12, 6


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One unit at a time, so that small arrays too are shared out among threads."""
    monkeypatch.setattr(schedule, "CHUNK_BYTES", 1)
    yield


@pytest.mark.parametrize("first", range(0, SAMPLE, BLOCK))
def test_sample(first: int) -> None:
    for number in range(first, first + BLOCK):
        check(number, GEOMETRIES)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SAMPLE, SWEEP, BLOCK))
def test_sweep(first: int) -> None:
    for number in range(first, first + BLOCK):
        check(number, 2 * GEOMETRIES)


def check(number: int, geometries: int) -> None:
    kind = kind_of(number)
    if lacks(kind.fields["dtype"]):
        return  # the machine that ASTRIDE_CPU names cannot read these numbers; others have the test
    for g in range(geometries):
        draw = draw_of(kind, g)
        where = f"kind {number}, geometry {g}: x {draw.x.shape}, {draw.plan!r}"
        kept = draw.x.tobytes()
        y, saved = _forward(draw, JUDGE)
        results = []
        for threads in (1, 2, 3):
            with astride.use(threads=threads):
                here, ours = _forward(draw, "cpu", out=_out(y, g + threads))
                (dx, none) = dispatch.backward(draw.plan, draw.dy, replace(ours, kernel=""), backend="cpu")
            assert none is None
            results.append((here.tobytes(), b"" if ours.offsets is None else ours.offsets.tobytes(), dx.tobytes()))
        assert len(set(results)) == 1, f"{where}: threads differ"
        assert draw.x.tobytes() == kept, f"{where}: x was changed"
        compare(here, y, forward_bound(draw, y), f"y of {where}")
        assert (saved.offsets is None) == (ours.offsets is None)
        if saved.offsets is not None:
            assert saved.offsets.dtype == ours.offsets.dtype
            assert np.array_equal(saved.offsets, ours.offsets), f"offsets of {where}"
        # Backward is judged from one record, so that roundings of y are not taken for its own.
        (judged, _) = dispatch.backward(draw.plan, draw.dy, saved, backend=JUDGE)
        (dx, _) = dispatch.backward(draw.plan, draw.dy, saved, backend="cpu")
        compare(dx, judged, backward_bound(draw, saved, judged), f"dx of {where}")


def _forward(draw: Draw, backend: str, out: Any = None) -> tuple[Any, Saved]:
    y, saved = dispatch.forward(draw.plan, draw.x, draw.uniform, save=True, backend=backend, out=out)
    assert saved is not None
    return y, saved


def _out(y: Any, way: int) -> Any:
    """No `out`, or one with gaps."""
    return np.zeros((*y.shape[:-1], 2 * y.shape[-1]), y.dtype)[..., ::2] if way % 3 == 0 else None


def compare(actual: Any, expected: Any, bound: Any, where: str) -> None:
    """Shape, dtype, NaN and infinities equal, and the rest within the bound: 0 asks for equal bits, a NaN's apart."""
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, where
    if actual.dtype.kind in "iu":
        assert np.array_equal(actual, expected), where
        return
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    if bound is None:
        same &= np.isnan(a) | (np.signbit(a) == np.signbit(e))
    else:
        with np.errstate(invalid="ignore"):
            same |= np.isfinite(e) & (np.abs(a - e) <= bound)
    if not same.all():
        place = tuple(int(i) for i in np.argwhere(~same)[0])
        allowed = "none" if bound is None else np.broadcast_to(bound, a.shape)[place]
        values = f"{a[place]} is not {e[place]}, bound {allowed}"
        raise AssertionError(f"{int((~same).sum())} of {a.size} differ, at {place} {values}: {where}")


def forward_bound(draw: Draw, y: Any) -> Any:
    """How far y may lie from the reference's; None where not at all."""
    plan = draw.plan
    if plan.reduce in (Reduce.MAX, Reduce.MIN, Reduce.STOCHASTIC) or (math.isinf(plan.p) and plan.reduce is Reduce.LP):
        return None
    size = np.abs(y.astype(np.float64))
    if plan.reduce is Reduce.AVERAGE:
        size = measure(plan, draw.x)
    factor = 1 + abs(plan.p) + 1 / abs(plan.p) if plan.reduce is Reduce.LP else 1
    return size * ((plan.taps + 8) * factor * _eps(plan.accumulate) + _eps(plan.dtype)) + _tiny(plan)


def measure(plan: PoolPlan, x: Any) -> Any:
    """The sums of the terms' magnitudes, over the divisors."""
    wide = replace(plan, dtype="float64", accumulate="float64", edge_value=abs(plan.edge_value))
    magnitudes = np.nan_to_num(np.abs(x.astype(np.float64)), nan=0.0, posinf=0.0)
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.abs(dispatch.forward(wide, magnitudes, backend=JUDGE)[0]), nan=0.0, posinf=0.0)


def backward_bound(draw: Draw, saved: Saved, dx: Any) -> Any:
    """How far dx may lie from the reference's: by the sum that |dy| gives."""
    plan = draw.plan
    if plan.reduce is Reduce.STOCHASTIC_MEAN:  # slopes are at most 2, and so is the sum of what they are made of
        terms: Any = 4.0 * plan.taps * float(np.abs(draw.dy.astype(np.float64)).max(initial=0))
    else:
        if plan.divisor is Divisor.CAFFE:  # some are negative, and sums over them would cancel: none is below 1 in magnitude
            plan = replace(plan, divisor=Divisor.OVERRIDE, divisor_override=1)
        (magnitude, _) = dispatch.backward(plan, np.abs(draw.dy), saved, backend=JUDGE)
        terms = np.nan_to_num(np.abs(magnitude.astype(np.float64)), nan=0.0, posinf=0.0)
    shared = plan.tie is Tie.EQUAL_SHARE or plan.reduce in (Reduce.STOCHASTIC_MEAN, Reduce.LP)
    powers = 1 + abs(plan.p) if plan.reduce is Reduce.LP and not math.isinf(plan.p) else 1
    return terms * ((plan.taps + 8) * powers * _eps(plan.accumulate) + (4 if shared else 1) * _eps(plan.dtype)) + _tiny(plan)


def _eps(dtype: str) -> float:
    return 0.0 if "int" in dtype else float(ml_dtypes.finfo(dtype).eps)


def _tiny(plan: PoolPlan) -> float:
    return 0.0 if "int" in plan.dtype else float(ml_dtypes.finfo(plan.dtype).smallest_subnormal)


def test_the_sample_is_varied() -> None:
    plans = [draw_of(kind_of(number), g).plan for number in range(SWEEP) for g in range(2)]
    assert len(set(plans)) > 0.9 * len(plans)
    for field in ("reduce", "layout", "start", "nan", "tie", "divisor", "rounding", "lp_form", "lp_scale", "edge", "empty"):
        assert {getattr(plan, field) for plan in plans} == set(type(getattr(plans[0], field))), field
    assert {plan.dtype for plan in plans} == {*FLOATS, *INTEGERS}


def test_wrong_results_are_found() -> None:
    """The comparison fails for one value of a sum that is off by more than its roundings, and for the other zero."""
    right = np.array([1.0, 0.0, np.nan], np.float32)
    compare(right, right, None, "itself")
    compare(right + np.float32(1e-7), right, 1e-6, "near")
    wrongs = (([1.0, -0.0, np.nan], None), ([1.1, 0.0, np.nan], 1e-6), ([1.0, 0.0, 0.0], 1e-6), ([np.inf, 0, np.nan], 1.0))
    for wrong, bound in wrongs:
        with pytest.raises(AssertionError):
            compare(np.array(wrong, np.float32), right, bound, "wrong")
