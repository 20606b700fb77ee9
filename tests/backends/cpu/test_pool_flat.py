"""Windows one pixel apart, as many as pixels: all planes as one row of numbers, against the reference to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import astride
from astride import dispatch
from astride.backends.cpu.machine import machine
from astride.backends.cpu.pool_first_flat import Flat, masks
from astride.backends.cpu.schedule import Schedule, forward_schedule
from astride.backends.cpu.schedule_gradient import backward_schedule

JUDGE = "reference:im2col"
wide = pytest.mark.skipif(machine().lanes("float") < 4, reason="this CPU's vectors are too short")

SHAPES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 16, 7, 7), {"kernel": 3, "padding": 1}),
    ((2, 19, 5, 9), {"kernel": 3, "padding": 1}),
    ((1, 3, 14, 28), {"kernel": 3, "padding": 1}),
    ((3, 21, 6, 7), {"kernel": (1, 3), "padding": (0, 1)}),
    ((2, 17, 8, 8), {"kernel": 2, "padding": ((0, 1), (1, 0))}),
    ((1, 33, 9, 6), {"kernel": 3, "dilation": 2, "padding": 2}),
    ((2, 16, 31), {"kernel": 5, "padding": 2}),
    ((1, 9, 3, 4, 5), {"kernel": (2, 1, 3), "padding": ((1, 0), (0, 0), (1, 1))}),
    ((1, 1, 2, 2), {"kernel": 3, "padding": 1}),
]


def odd_numbers(shape: tuple[int, ...], seed: int) -> Any:
    """Few different numbers, so that ties are common, zeros of both signs and infinities; NaN in one image of two."""
    rng = np.random.default_rng(seed)
    x = rng.choice(np.array([-np.inf, -2, -1, -0.0, 0.0, 1, np.inf], np.float32), shape, p=[0.1, 0.2, 0.2, 0.2, 0.15, 0.1, 0.05])
    x[::2][rng.random(x[::2].shape) < 0.02] = np.nan
    return x


@pytest.mark.parametrize("op", ["max_pool", "min_pool"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_forward_and_backward(op: str, dtype: str, number: int) -> None:
    shape, options = SHAPES[number]
    x = odd_numbers(shape, number).astype(dtype)
    plan = astride.plan(op, shape, dtype=dtype, stride=1, **options)
    y, _ = dispatch.forward(plan, x, backend="cpu")
    want, saved = dispatch.forward(plan, x, save=True, backend=JUDGE)
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(np.signbit(y), np.signbit(want))
    assert saved is not None
    dy = np.random.default_rng(number).integers(-9, 9, y.shape).astype(dtype)
    dx, wanted = (dispatch.backward(plan, dy, saved, backend=name)[0] for name in ("cpu", JUDGE))
    np.testing.assert_array_equal(dx, wanted)


@wide
def test_it_is_taken() -> None:
    plan = astride.plan("max_pool", (1, 16, 7, 7), kernel=3, stride=1, padding=1)
    schedules: list[Schedule] = [backward_schedule(plan, (1, 16, 7, 7))]
    if machine().vector_bytes >= 64:
        schedules.append(forward_schedule(plan, (1, 16, 7, 7), False))
    assert all(schedule.bundled and schedule.units == 1 for schedule in schedules)


@wide
def test_many_units_whatever_the_threads() -> None:
    x = odd_numbers((4, 40, 14, 14), 5)
    plan = astride.plan("max_pool", x.shape, kernel=3, stride=1, padding=1)
    results = []
    for threads in (1, 2, 3):
        with astride.use(threads=threads):
            y, saved = dispatch.forward(plan, x, save=True, backend="cpu")
            alone, _ = dispatch.forward(plan, x, backend="cpu")
            assert saved is not None
            dx = dispatch.backward(plan, np.arange(y.size, dtype=np.float32).reshape(y.shape), saved, backend="cpu")[0]
        np.testing.assert_array_equal(y, alone)
        results.append((alone.tobytes(), dx.tobytes()))
    assert len(set(results)) == 1


def test_masks_say_which_taps_are_inside() -> None:
    window = Flat((1, 3, 3), (1, 1, 1), (0, 1, 1))
    table = masks(window, (1, 4, 4), 2, 16)
    assert table is not None
    words = table[3:].view(np.uint16)[:9]
    inside = np.array([[(word >> p) & 1 for p in range(16)] for word in words]).reshape(3, 3, 4, 4)
    assert inside[1, 1].all()
    assert not inside[0, :, 0].any() and not inside[:, 2, :, 3].any() and inside[0, 0, 1:, 1:].all()
    assert masks(window, (1, 3, 3), 4, 16) is None  # sixteen planes fill whole vectors
