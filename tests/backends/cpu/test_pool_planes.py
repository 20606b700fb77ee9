"""Several planes at a time: bundles that overlap, bands that are cut, and gradients that windows scatter in order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import ml_dtypes  # noqa: F401 - names bfloat16 for NumPy
import numpy as np
import pytest
from tests.backends.cpu.test_random_pools import check

import astride
from astride import dispatch
from astride.backends.cpu import pool_planes, schedule
from astride.backends.cpu.machine import machine
from astride.backends.cpu.schedule import forward_schedule
from astride.backends.cpu.schedule_gradient import backward_schedule

JUDGE = "reference:im2col"
bundled = pytest.mark.skipif(machine().lanes("float") < 4, reason="this CPU's vectors are too short for bundles")


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So small a buffer that most planes are cut into bands; no schedule made with it is kept."""
    monkeypatch.setattr(schedule, "CHUNK_BYTES", 1)
    monkeypatch.setattr(pool_planes, "cut", partial(pool_planes.cut, room=6000))
    schedule.schedules.clear()
    yield
    schedule.schedules.clear()


@bundled
@pytest.mark.usefixtures("little_room")
def test_any_plan_in_bands() -> None:
    for number in range(0, 40, 3):
        check(number, 3)


@bundled
@pytest.mark.parametrize("planes", [(1, 16), (3, 7), (2, 33), (5, 64), (9, 96)])
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((13, 13), {"kernel": 3, "stride": 2}),
        ((7, 7), {"kernel": 3, "stride": 1, "padding": 1}),
        ((4, 6, 5), {"kernel": (2, 3, 2), "stride": (1, 2, 2), "dilation": (2, 1, 1)}),
        ((11,), {"kernel": 4, "stride": 3, "padding": 2}),
    ],
)
def test_bundles_of_small_planes(planes: tuple[int, int], size: tuple[int, ...], options: dict[str, Any]) -> None:
    rng = np.random.default_rng(len(size))
    x = rng.integers(-9, 9, (*planes, *size)).astype(np.float32)
    x[rng.random(x.shape) < 0.01] = np.nan
    plan = astride.plan("max_pool", x.shape, **options)
    y, saved = dispatch.forward(plan, x, save=True, backend="cpu")
    want, judged = dispatch.forward(plan, x, save=True, backend=JUDGE)
    assert forward_schedule(plan, x.shape, True).bundled == (planes[0] * planes[1] >= machine().lanes("i32"))
    np.testing.assert_array_equal(y, want)
    assert saved is not None and judged is not None
    np.testing.assert_array_equal(saved.offsets, judged.offsets)
    dy = rng.integers(-9, 9, y.shape).astype(np.float32)
    dx, wanted = (dispatch.backward(plan, dy, judged, backend=name)[0] for name in ("cpu", JUDGE))
    np.testing.assert_array_equal(dx, wanted)


@bundled
def test_a_cut_covers_every_row_once() -> None:
    rows = np.array([[max(2 * r - 1, 0), min(2 * r + 2, 40)] for r in range(20)], np.int64)
    made = pool_planes.cut(64, 16, rows, (80, 20), (160, 0), room=1 << 15)
    assert made is not None
    bands = made.table[pool_planes.ROWS :].reshape(-1, pool_planes.ROWS_OF)
    assert len(bands) > 1 and made.units == len(bands) * 4
    np.testing.assert_array_equal(np.concatenate([np.arange(b, e) for b, e, _, _ in bands]), np.arange(20))
    for begin, end, low, high in bands:
        assert low == rows[begin:end, 0].min() and high == rows[begin:end, 1].max()


def test_no_room_means_another_way() -> None:
    rows = np.array([[0, 4000]], np.int64)
    assert pool_planes.cut(64, 16, rows, (4, 0), (16000, 0)) is None
    assert pool_planes.cut(7, 16, rows[:, :] * 0, (4, 0), (4, 0)) is None


def test_windows_without_a_place_give_nothing() -> None:
    """Numbers of taps are bytes: 255 says that no tap was picked."""
    x = np.full((2, 16, 9, 9), -np.inf, np.float32)
    plan = astride.plan("max_pool", x.shape, kernel=3, stride=2, rules="caffe")
    y, saved = dispatch.forward(plan, x, save=True, backend=JUDGE)
    assert saved is not None and saved.offsets is not None
    saved.offsets[:, ::3] = 255 if saved.offsets.dtype.kind == "u" else -1
    dy = np.arange(y.size, dtype=np.float32).reshape(y.shape)
    assert backward_schedule(plan, x.shape).units == 1
    dx, wanted = (dispatch.backward(plan, dy, saved, backend=name)[0] for name in ("cpu", JUDGE))
    np.testing.assert_array_equal(dx, wanted)


@bundled
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("planes", "size"), [((1, 3), (7, 7)), ((2, 16), (7, 7)), ((3, 11), (5, 13)), ((1, 33), (2, 3, 4)), ((4, 9), (1,))]
)
@pytest.mark.parametrize("op", ["avg_pool", "lp_pool"])
def test_whole_planes(op: str, dtype: str, planes: tuple[int, int], size: tuple[int, ...]) -> None:
    """Integers in sums that every type holds: equal, whatever the order of additions."""
    rng = np.random.default_rng(len(size))
    x = rng.integers(0, 3, (*planes, *size)).astype(np.dtype(dtype))
    plan = astride.plan(op, x.shape, dtype=dtype, kernel=size, **({"p": 1.0} if op == "lp_pool" else {}))
    y, saved = dispatch.forward(plan, x, save=True, backend="cpu")
    want, judged = dispatch.forward(plan, x, save=True, backend=JUDGE)
    np.testing.assert_array_equal(y, want)
    assert saved is not None and judged is not None
    dy = rng.integers(-9, 9, y.shape).astype(y.dtype)
    dx, wanted = (dispatch.backward(plan, dy, judged, backend=name)[0] for name in ("cpu", JUDGE))
    np.testing.assert_array_equal(dx, wanted)
