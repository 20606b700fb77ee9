"""Kernels and pads far larger than the input cost what the input does; results larger than memory are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.backends.ladder import climb

import astride
from astride import dispatch, settings
from astride.backends.protocol import Kernel, offset_dtype
from astride.backends.reference._windows import counts_between, counts_inside, places, taps
from astride.plan import Axis, ExplicitAxis, StridedAxis

AXES: tuple[Axis, ...] = (
    StridedAxis(size=6, kernel=3, out=4),
    StridedAxis(size=6, kernel=3, stride=2, pad_lo=1, pad_hi=1, out=3),
    StridedAxis(size=6, kernel=40, stride=7, pad_lo=30, pad_hi=30, out=4),
    StridedAxis(size=6, kernel=40, stride=9, pad_lo=40, pad_hi=40, out=6),
    StridedAxis(size=5, kernel=7, stride=2, dilation=3, pad_lo=11, pad_hi=9, out=4),
    StridedAxis(size=8, kernel=2, stride=3, pad_lo=-2, pad_hi=-1, out=2),
    StridedAxis(size=4, kernel=9, stride=2, dilation=2, pad_lo=12, pad_hi=12, out=9, input_dilation=3),
    StridedAxis(size=4, kernel=5, stride=1, pad_lo=4, pad_hi=4, out=14, input_dilation=3),
    StridedAxis(size=0, kernel=2, pad_lo=2, pad_hi=2, out=3),
    StridedAxis(size=2, kernel=4, out=0),
    ExplicitAxis(size=6, starts=(0, 2, 2), ends=(3, 2, 6)),
)


def read(axis: Axis) -> set[tuple[int, int, int]]:
    """(window, place in the kernel, pixel) of every tap inside the input, by trying each."""
    step = axis.input_dilation if isinstance(axis, StridedAxis) else 1
    every = ((i, k, p) for i in range(axis.out) for k, p in enumerate(axis.taps(i)))
    return {(i, k, p // step) for i, k, p in every if 0 <= p < axis.stretched and p % step == 0}


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_taps_are_those_inside_the_input(axis: Axis) -> None:
    windows, pixels = np.arange(axis.out), np.arange(axis.size)
    by_tap = [(i, tap.offset, p) for tap in taps((axis,)) for i, p in zip(tap.of(windows), tap.read(pixels), strict=True)]
    by_place = [(w.window[0], k, p) for w in places((axis,)) for k, p in zip(w.offsets, w.pixels[0], strict=True)]
    expected = read(axis)
    assert set(by_tap) == set(by_place) == expected
    assert len(by_tap) == len(by_place) == len(expected)
    assert [tap.offset for tap in taps((axis,))] == sorted({k for _, k, _ in expected})
    assert counts_inside(axis).tolist() == [sum(i == window for i, _, _ in expected) for window in range(axis.out)]


@pytest.mark.parametrize("axis", [axis for axis in AXES if isinstance(axis, StridedAxis)], ids=str)
def test_taps_between_two_positions_are_counted(axis: StridedAxis) -> None:
    for lo, hi in ((0, 3), (-axis.pad_lo, axis.size + axis.pad_hi), (-2, 1), (5, 5)):
        if lo <= hi:
            assert counts_between(axis, lo, hi).tolist() == [sum(lo <= p < hi for p in axis.taps(i)) for i in range(axis.out)]


@pytest.mark.parametrize("op", ["max_pool", "min_pool", "avg_pool", "lp_pool"])
@pytest.mark.parametrize("kernel", [3000, 2 * 10**5])
def test_a_pooling_kernel_far_larger_than_the_input(op: str, kernel: int) -> None:
    x = np.random.default_rng(0).random((2, 3, 6, 6), np.float32)
    plan = astride.plan(op, x.shape, kernel=kernel, padding=kernel // 2, stride=10)
    expected = {"max_pool": x.max((2, 3)), "min_pool": x.min((2, 3)), "lp_pool": np.sqrt((x**2).sum((2, 3)))}
    for rung in climb(plan):
        y, saved = dispatch.forward(plan, x, save=True, backend=rung)
        mean = x.sum((2, 3)) / (36 if plan.divisor.value == "valid" else kernel**2)
        assert np.allclose(y[..., 0, 0], expected.get(op, mean), atol=0, rtol=1e-5), rung
        assert saved is not None
        (dx, _) = dispatch.backward(plan, np.ones_like(y), saved)
        if op in ("max_pool", "min_pool"):
            assert dx is not None and np.array_equal(dx, x == y), rung


def test_a_mean_over_a_million_squared() -> None:
    x = np.ones((1, 1, 6, 6), np.float32)
    assert np.allclose(astride.avg_pool(x, kernel=10**6, rules="mps"), 36e-12, atol=0)


@pytest.mark.parametrize("op", ["conv", "conv_transpose"])
def test_weights_that_meet_no_pixel_are_left_out(op: str) -> None:
    """Their gradient is 0, and what they hold does not matter."""
    generator = np.random.default_rng(1)
    x, w = generator.random((2, 2, 6), np.float32), generator.random((2, 2, 3000), np.float32)
    plan = astride.plan(op, x.shape, w_shape=w.shape, padding=1499)
    met = slice(1495, 1505) if op == "conv" else slice(1494, 1506)
    results = []
    for rung in climb(plan):
        y, saved = dispatch.forward(plan, x, w, save=True, backend=rung)
        assert saved is not None
        dx, dw, _ = dispatch.backward(plan, np.ones_like(y), saved)
        assert dx is not None and dw is not None
        assert not dw[..., : met.start].any() and not dw[..., met.stop :].any() and dw[..., met].all(), rung
        results.append((y, dx, dw))
        spoilt = np.full_like(w, np.nan)
        spoilt[..., met] = w[..., met]
        assert np.allclose(dispatch.forward(plan, x, spoilt, backend=rung)[0], y), rung
    for rung, result in zip(climb(plan), results, strict=True):
        assert all(np.allclose(a, b, rtol=1e-4) for a, b in zip(result, results[0], strict=True)), rung


def test_a_result_larger_than_memory_is_refused() -> None:
    x, w = np.ones((1, 1, 6, 6), np.float32), np.ones((1, 1, 3, 3), np.float32)
    with pytest.raises(astride.ArgumentError, match=r"(?s)conv_transpose.*500003, 500003.*1000012000036 <= \d+"):
        astride.conv_transpose(x, w, stride=10**5)


def test_where_free_memory_is_not_known_only_the_impossible_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "free_memory", lambda: None)
    settings.refuse_beyond_memory("it", (2**40,), "float32", 4, "less")
    with pytest.raises(astride.ArgumentError, match="does not fit"):
        settings.refuse_beyond_memory("it", (2**62,), "float32", 4, "less")


def test_an_input_that_grows_beyond_memory_is_refused() -> None:
    with pytest.raises(astride.ArgumentError, match=r"(?s)max_pool \[mps\]: the input with its padding.*4000000000000 <= \d+"):
        astride.max_pool(np.ones((1, 1, 6, 6), np.float32), kernel=10**6, rules="mps")


def test_a_kernel_out_of_memory_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(*arguments: Any, **options: Any) -> Any:
        raise MemoryError("no room for 1 TiB")

    plan = astride.plan("max_pool", (1, 1, 4), kernel=2)
    monkeypatch.setattr(dispatch, "choose", lambda *_: dispatch.Choice("reference", Kernel("full", forward, forward), ()))
    with pytest.raises(astride.ArgumentError, match=r"(?s)max_pool: the kernel needs more memory.*no room for 1 TiB"):
        dispatch.forward(plan, np.ones((1, 1, 4), np.float32))


def test_offsets_of_great_windows() -> None:
    assert [offset_dtype(n).name for n in (255, 256, 2**32 - 1, 2**32, 2**53)] == [
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "uint64",
    ]
    with pytest.raises(astride.UnsupportedError, match=str(2**53 + 1)):
        offset_dtype(2**53 + 1)
