"""Convolution of sums of few terms, channels last: any relation gives what the reference gives, on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu import conv_choice, conv_short
from astride.backends.cpu.conv_directions import relation
from astride.backends.epilogue import Epilogue
from astride.dispatch import forward
from astride.plan import ConvPlan

Array = NDArray[Any]


def whole(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float32") -> Array:
    return rng.integers(-3, 4, shape).astype(dtype)


def plan_of(x: Array, w: Array, operator: str = "conv", **given: Any) -> ConvPlan:
    made: ConvPlan = astride.plan(operator, x.shape, w_shape=w.shape, layout="channels_last", dtype=x.dtype.name, **given)
    return made


def same(plan: ConvPlan, *arrays: Array | None) -> None:
    """Forced, on one and on three threads, against the reference."""
    with astride.use(backend="reference"):
        expected, _ = forward(plan, *arrays, save=False)
    for threads in (1, 3):
        with astride.use(backend="cpu", threads=threads), conv_choice.forced("short"):
            y, _ = forward(plan, *arrays, save=False)
        assert np.array_equal(y, expected)


CASES = [
    ((2, 9, 11, 3), (7, 3, 3, 3), {"padding": 1}),
    ((1, 30, 45, 1), (20, 1, 5, 5), {}),
    ((1, 26, 27, 3), (32, 3, 3, 3), {"stride": 2, "padding": ((0, 1), (0, 1))}),
    ((1, 1000, 1), (150, 1, 10), {"stride": 5}),
    ((3, 40, 4), (33, 4, 5), {"padding": 7, "dilation": 3}),
    ((2, 5, 6, 7, 2), (9, 2, 2, 3, 2), {"padding": 1, "stride": (1, 2, 1)}),
    ((4, 6, 9, 64), (50, 64, 1, 1), {}),
    ((2, 6, 9, 5), (3, 5, 1, 1), {"stride": 2, "padding": 1}),
    ((1, 3, 3, 2), (2, 2, 2, 2), {"padding": 5, "dilation": 4}),
    ((2, 12, 1, 2), (40, 2, 3, 1), {"padding": ((1, 1), (0, 0))}),
    ((2, 31, 35, 3), (35, 3, 11, 11), {"stride": 4, "padding": 2}),
    ((1, 16, 20, 3), (20, 3, 7, 7), {"stride": 2, "padding": 3}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "w_shape", "given"), CASES, ids=str)
def test_what_the_reference_gives(shape: tuple[int, ...], w_shape: tuple[int, ...], given: dict[str, Any], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, w, b = whole(rng, shape, dtype), whole(rng, w_shape, dtype), whole(rng, w_shape[:1], dtype)
    same(plan_of(x, w, **given), x, w, b)


@pytest.mark.parametrize("seed", range(30))
def test_any_relation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    kernel, stride, dilation = (tuple(rng.integers(1, n, rank).tolist()) for n in (4, 4, 3))
    size = tuple((rng.integers(0, (150, 30, 9)[rank - 1], rank) + (np.array(kernel) - 1) * dilation + 1).tolist())
    inputs, outputs = (int(n) for n in rng.integers(1, (20, 80)))
    padding = tuple(zip(*rng.integers(0, 3, (2, rank)).tolist(), strict=True))
    x = whole(rng, (int(rng.integers(1, 4)), *size, inputs))
    turned = bool(rng.integers(2))
    w = whole(rng, (inputs, outputs, *kernel) if turned else (outputs, inputs, *kernel))
    if turned:
        reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
        padding = tuple((min(low, n), min(high, n)) for (low, high), n in zip(padding, reach, strict=True))
    operator = "conv_transpose" if turned else "conv"
    plan = plan_of(x, w, operator, stride=stride, padding=padding, dilation=dilation, flip=bool(rng.integers(2)))
    if not conv_short.takes(relation(plan, False)):
        pytest.skip("sums are long, or pixels stretched")
    same(plan, x, w, whole(rng, (outputs,)))


@pytest.mark.parametrize("most", [1, 500, conv_short.WRITTEN])
def test_units_of_any_size(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(conv_short, "WRITTEN", most)
    rng = np.random.default_rng(1)
    x, w = whole(rng, (2, 13, 31, 2)), whole(rng, (20, 2, 3, 3))
    plan = plan_of(x, w, padding=1)
    chunks = conv_short.schedule(relation(plan, False), 2).units
    assert chunks >= conv_short.UNITS
    same(plan, x, w)


def test_sums_are_finished_as_they_are_afterwards() -> None:
    rng = np.random.default_rng(4)
    x, w, b, r = (rng.standard_normal(s, "float32") for s in ((2, 9, 8, 3), (50, 3, 3, 3), (50,), (2, 7, 6, 50)))
    plan = plan_of(x, w)
    with astride.use(backend="cpu"), conv_choice.forced("short"):
        plain, _ = forward(plan, x, w, b, save=False)
        for finish in (Epilogue(slope=0), Epilogue(slope=0.1, high=1.5)):
            for residual in (None, r):
                fused, _ = forward(plan, x, w, b, save=False, epilogue=finish, residual=residual)
                expected = plain.copy()
                finish.apply(expected, residual)
                assert np.array_equal(fused, expected)


def test_padding_is_skipped() -> None:
    x, w = np.ones((1, 6, 6, 1), "float32"), np.ones((2, 1, 3, 3), "float32")
    w[0, 0, 0, 0] = np.inf
    plan = plan_of(x, w, padding=1)
    with astride.use(backend="cpu"), conv_choice.forced("short"):
        y, _ = forward(plan, x, w, save=False)
    assert np.array_equal(y[0, 0, :, 0], [4, 6, 6, 6, 6, 4])
    assert np.isinf(y[0, 1:, 1:, 0]).all()


def test_it_is_taken_where_sums_are_short() -> None:
    x, w = np.zeros((1, 16000, 1), "float32"), np.zeros((512, 1, 10), "float32")
    with astride.use(tuned=False):
        assert conv_choice.gathering(relation(plan_of(x, w, stride=5), False), 1, False) == "short"
