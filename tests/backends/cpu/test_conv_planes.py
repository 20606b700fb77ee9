"""Windows of one pixel, channels first: whole numbers are exact whether pixels are copied or not, with all that ends a sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import astride
from astride import dispatch
from astride.backends.cpu import conv_choice, conv_planes
from astride.backends.cpu.conv_directions import relation
from astride.backends.epilogue import Epilogue

CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("conv", (2, 70, 14, 14), (130, 70, 1, 1), {}),
    ("conv", (1, 33, 9, 7), (20, 33, 1, 1), {}),
    ("conv", (1, 1024, 6, 8), (97, 1024, 1, 1), {}),
    ("conv", (1, 40, 32, 32), (30, 40, 1, 1), {}),
    ("conv", (2, 60, 13, 12), (300, 20, 1, 1), {"groups": 3, "stride": (2, 1)}),
    ("conv", (1, 300, 700), (100, 300, 1), {}),
    ("conv_transpose", (2, 130, 5, 9), (130, 110, 1, 1), {}),
    ("conv_transpose", (1, 24, 3, 4, 5), (24, 7, 1, 1, 1), {"groups": 2}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("op", "shape", "w_shape", "options"), CASES, ids=str)
def test_whole_numbers_are_exact(op: str, shape: Any, w_shape: Any, options: dict[str, Any], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, s).astype(dtype) for s in (shape, w_shape))
    plan = astride.plan(op, shape, w_shape=w_shape, dtype=dtype, **options)
    assert conv_planes.takes(relation(plan, False), shape[0])
    b = rng.integers(-3, 4, plan.out_channels).astype(dtype)
    expected = dispatch.forward(plan, x, w, b, backend="reference:im2col")[0]
    for threads in (1, 2, 3):
        for weights in (w, astride.frozen(w)):
            with astride.use(threads=threads), conv_choice.forced("planes"):
                assert np.array_equal(dispatch.forward(plan, x, weights, b, backend="cpu")[0], expected)


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("outputs", [20, 110])
def test_sums_are_ended(outputs: int, slope: float, added: bool) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.integers(-3, 4, (2, 200, 7, 9)).astype(np.float32), rng.integers(-3, 4, (outputs, 200, 1, 1)).astype(np.float32)
    b = rng.integers(-9, 9, outputs).astype(np.float32)
    residual = rng.integers(-9, 9, (2, outputs, 7, 9)).astype(np.float32) if added else None
    how = relation(astride.plan("conv", x.shape, w_shape=w.shape), False)
    epilogue = Epilogue(slope=slope, low=-40.0, high=60.0)
    expected = np.einsum("nihw,oi->nohw", x, w[:, :, 0, 0]) + b[:, None, None]
    epilogue.apply(expected, residual)
    y = np.empty_like(expected)
    conv_planes.compute(how, x, w, b, y, epilogue=epilogue, residual=residual)
    assert np.array_equal(y, expected)


def test_a_plane_that_is_not_finite_stays_in_its_pixels() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((1, 150, 5, 9), np.float32), rng.standard_normal((100, 150, 1, 1), np.float32)
    x[0, 3, 2, 2] = np.inf
    with conv_choice.forced("planes"):
        y = astride.conv(x, w, backend="cpu")
    assert not np.isfinite(y[0, :, 2, 2]).any() and np.isfinite(y).sum() == y.size - 100


@pytest.mark.parametrize("large", [False, True])
def test_large_arrays_give_the_same(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether pixels are copied for x is large, and y's lines asked for."""
    monkeypatch.setattr(conv_planes, "LARGE", 1 if large else 1 << 40)
    monkeypatch.setattr(conv_planes, "FRESH", 1 if large else 1 << 40)
    rng = np.random.default_rng(3)
    x, w = rng.integers(-3, 4, (2, 260, 9, 13)).astype(np.float32), rng.integers(-3, 4, (50, 260, 1, 1)).astype(np.float32)
    how = relation(astride.plan("conv", x.shape, w_shape=w.shape), False)
    conv_planes.schedule.cache_clear()
    assert bool(conv_planes.schedule(how, 2, 0).slot) == large
    y = np.empty((2, 50, 9, 13), np.float32)
    conv_planes.compute(how, x, w, None, y)
    conv_planes.schedule.cache_clear()
    assert np.array_equal(y, np.einsum("nihw,oi->nohw", x, w[:, :, 0, 0]))
