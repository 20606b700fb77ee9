"""Pooling with channels last in each of its ways, against the reference: cells, whole windows, blocks that give, whole images.

Numbers are small integers, so sums are exact in any order; averages divide by powers of two where they are compared so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import astride
from astride import dispatch
from astride.backends.cpu import pool_last_cells, pool_last_quick, schedule_last
from astride.backends.cpu.gradients import Gradient
from astride.backends.cpu.pool_last_cells import Cells

CHANNELS = (1, 2, 7, 16, 20, 33, 64, 96)


def both(op: str, size: tuple[int, ...], channels: int, dtype: str = "float32", **options: Any) -> tuple[Any, Any]:
    """(y, offsets, dx) of the CPU backend and of the reference."""
    rng = np.random.default_rng(5)
    plan = astride.plan(op, (2, *size, channels), layout="channels_last", dtype=dtype, **options)
    x = rng.integers(-9, 10, (2, *size, channels)).astype(dtype)
    results = []
    for backend in ("cpu", "reference"):
        y, saved = dispatch.forward(plan, x, save=True, backend=backend)
        assert saved is not None
        dy = np.random.default_rng(6).integers(-8, 9, y.shape).astype(dtype) * np.asarray(4, dtype)
        (dx,) = [g for g in dispatch.backward(plan, dy, saved) if g is not None]
        results.append((y, saved.offsets, dx))
    return results[0], results[1]


def equal(pair: tuple[Any, Any]) -> None:
    for a, b in zip(*pair, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(2, 2, 0), (3, 2, 1), (3, 2, ((0, 1), (0, 1))), (3, 1, 1), (2, 3, 0), (5, 1, 2), ((1, 4), (1, 2), (0, 1))],
)
def test_extremes_by_cells(channels: int, kernel: Any, stride: Any, padding: Any) -> None:
    for size in ((9, 8), (4, 13)):
        equal(both("max_pool", size, channels, kernel=kernel, stride=stride, padding=padding))


@pytest.mark.parametrize("op", ["max_pool", "min_pool"])
def test_three_axes(op: str) -> None:
    equal(both(op, (6, 5, 7), 33, kernel=2, stride=2))
    equal(both(op, (6, 5, 7), 16, kernel=3, stride=2, padding=1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", CHANNELS)
def test_averages(channels: int, dtype: str) -> None:
    equal(both("avg_pool", (8, 8), channels, dtype, kernel=2, stride=2))
    equal(both("avg_pool", (9, 11), channels, dtype, kernel=2, stride=1))
    equal(both("avg_pool", (8, 8), channels, dtype, kernel=8))


def test_average_whose_sum_leaves_the_type() -> None:
    """Nine gradients whose sum is infinite and whose shares' sum is not."""
    plan = astride.plan("avg_pool", (1, 6, 6, 16), kernel=3, stride=1, padding=1, layout="channels_last")
    x = np.ones((1, 6, 6, 16), np.float32)
    y, saved = dispatch.forward(plan, x, save=True, backend="cpu")
    assert saved is not None
    dx = dispatch.backward(plan, np.full(y.shape, 2e38, np.float32), saved)[0]
    assert dx is not None
    np.testing.assert_allclose(dx[0, 2:4, 2:4], 2e38, rtol=1e-6)


@pytest.mark.parametrize("channels", CHANNELS)
def test_large_windows_give(channels: int) -> None:
    equal(both("max_pool", (19, 15), channels, kernel=9, stride=1, padding=4))
    equal(both("max_pool", (21, 20), channels, kernel=17, stride=2, padding=8))


def test_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient that is large enough is stored another way, and is the same."""
    shape = (1, 100, 200, 112)
    assert np.prod(shape) * 4 >= schedule_last.STREAMED
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.float32)
    plan = astride.plan("max_pool", shape, kernel=3, stride=2, layout="channels_last")
    y, saved = dispatch.forward(plan, x, save=True, backend="cpu")
    assert saved is not None
    streamed = dispatch.backward(plan, y, saved)[0]
    monkeypatch.setattr(schedule_last, "STREAMED", 1 << 62)
    np.testing.assert_array_equal(streamed, dispatch.backward(plan, y, saved)[0])


def test_cells_have_every_tap_once() -> None:
    for kernel, stride in (((1, 3, 3), (1, 2, 2)), ((1, 5, 4), (1, 1, 3)), ((2, 2, 2), (2, 2, 2)), ((1, 1, 2), (1, 1, 3))):
        cells = Cells(kernel, stride)
        taps = [cells.tap(p, w) for p in cells.pixels() for w in cells.windows()]
        assert sorted(t for t in taps if t is not None) == list(range(int(np.prod(kernel))))


def test_what_is_written_out() -> None:
    plan = astride.plan("max_pool", (1, 8, 8, 8), kernel=3, stride=2, layout="channels_last")
    assert pool_last_cells.takes(Gradient.of(plan), (1, 3, 3), (1, 2, 2))
    assert not pool_last_cells.takes(Gradient.of(plan), (1, 7, 7), (1, 1, 1))
    from astride.backends.cpu.schedule import spec_of

    assert pool_last_quick.way_of(spec_of(plan, True), (1, 3, 3)) == pool_last_quick.Whole((1, 3, 3))
    assert pool_last_quick.way_of(spec_of(plan, True), (1, 9, 9)) is None


@pytest.mark.parametrize("channels", [5, 16, 50, 96])
def test_zeros_and_nan_keep_their_order(channels: int) -> None:
    """Signs of zeros and NaN in whole windows: by each framework's rule, to the bit."""
    rng = np.random.default_rng(3)
    x = rng.integers(-2, 2, (2, 9, 10, channels)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = -0.0
    x[rng.random(x.shape) < 0.02] = np.nan
    for rules in ("explicit", "pytorch", "tensorflow", "jax", "onnxruntime"):
        plan = astride.plan("max_pool", x.shape, kernel=3, stride=2, rules=rules, layout="channels_last")
        y, saved = dispatch.forward(plan, x, save=True, backend="cpu")
        expected, judged = dispatch.forward(plan, x, save=True, backend="reference")
        assert saved is not None and judged is not None
        np.testing.assert_array_equal(y, expected)
        number = ~np.isnan(y)
        np.testing.assert_array_equal(np.signbit(y[number]), np.signbit(expected[number]))
        if saved.offsets is not None:
            np.testing.assert_array_equal(saved.offsets, judged.offsets)
