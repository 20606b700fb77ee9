"""Small planes that are written out whole: all directions equal to the reference's to the last bit, on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride import dispatch
from astride.backends.cpu import conv_choice, depthwise_whole, depthwise_whole_weights
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.machine import machine
from astride.backends.epilogue import Epilogue

Array = NDArray[Any]
WAY = "depthwise whole"

CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("conv", (3, 5, 14, 14), (3, 3), {"padding": 1}),
    ("conv", (2, 21, 7, 7), (3, 3), {"padding": 1}),
    ("conv", (1, 4, 20, 22), (3, 3), {"stride": 2, "padding": ((0, 1), (0, 1))}),
    ("conv", (2, 3, 9, 13), (5, 4), {"stride": (1, 2), "padding": 2}),
    ("conv", (1, 6, 11, 10), (3, 2), {"dilation": (2, 3), "padding": (3, 1)}),
    ("conv", (2, 7, 31), (4,), {"stride": 2, "padding": 1}),
    ("conv", (2, 2, 5, 6), (2, 3), {"padding": ((-1, 4), (5, -2))}),
    ("conv_transpose", (2, 3, 5, 8), (4, 4), {"stride": 2, "padding": 1}),
    ("conv_transpose", (1, 9, 6, 5), (2, 3), {"stride": (3, 1)}),
]


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return rng.integers(-3, 4, shape).astype(dtype)


BOTH = [(*case, "float32") for case in CASES] + [(*case, "float64") for case in CASES[1::3]]


@pytest.mark.parametrize(("op", "shape", "kernel", "options", "dtype"), BOTH, ids=str)
def test_every_direction(op: str, shape: tuple[int, ...], kernel: tuple[int, ...], options: dict[str, Any], dtype: str) -> None:
    rng = np.random.default_rng(0)
    w_shape = (shape[1], 1, *kernel)
    plan = astride.plan(op, shape, w_shape=w_shape, groups=shape[1], dtype=dtype, **options)
    x, w, b = numbers(rng, shape, dtype), numbers(rng, w_shape, dtype), numbers(rng, shape[1:2], dtype)
    expected, saved = dispatch.forward(plan, x, w, b, backend="reference:im2col", save=True)
    assert saved is not None
    dy = numbers(rng, expected.shape, dtype)
    gradients = dispatch.backward(plan, dy, saved, backend="reference:im2col", want=(True, True, True))
    gathered = [depthwise_whole.takes(relation(plan, back), shape[0]) for back in (False, True)]
    weighed = depthwise_whole_weights.takes(relation(plan, op == "conv_transpose"))
    assert any(gathered) or machine().vector_bytes < 64
    for threads in (1, 2, 3):
        with astride.use(threads=threads), conv_choice.forced(WAY):
            if gathered[0]:
                assert np.array_equal(dispatch.forward(plan, x, w, b, backend="cpu")[0], expected)
            for k, takes in enumerate((gathered[1], weighed)):
                if takes:
                    want = tuple(k == n for n in range(3))
                    got, known = dispatch.backward(plan, dy, saved, backend="cpu", want=want)[k], gradients[k]
                    assert got is not None and known is not None and np.array_equal(got, known)


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("added", [False, True])
def test_sums_are_ended(slope: float, added: bool) -> None:
    rng = np.random.default_rng(1)
    x, w, b = (numbers(rng, shape, "float32") for shape in ((2, 6, 9, 7), (6, 1, 3, 3), (6,)))
    plan = astride.plan("conv", x.shape, w_shape=w.shape, padding=1, groups=6)
    residual = numbers(rng, x.shape, "float32") if added else None
    epilogue = Epilogue(slope=slope, low=-5.0, high=6.0)
    expected = np.array(dispatch.forward(plan, x, w, b, backend="reference:im2col")[0])
    epilogue.apply(expected, residual)
    y = np.empty_like(expected)
    depthwise_whole.compute(relation(plan, False), x, w, b, y, epilogue=epilogue, residual=residual)
    assert np.array_equal(y, expected)


def test_padding_is_skipped() -> None:
    """Infinite weights times padding is no NaN, and neither are infinities next to a row's end."""
    x, w = np.ones((1, 2, 5, 5), np.float32), np.ones((2, 1, 3, 3), np.float32)
    w[0, 0, 0], w[1, 0, :, 2], x[0, 1, 2, 4], x[0, 1, 3, 0] = np.inf, -np.inf, np.inf, np.inf
    plan = astride.plan("conv", x.shape, w_shape=w.shape, padding=1, groups=2)
    results = []
    for backend in ("cpu", "reference:im2col"):
        y, saved = dispatch.forward(plan, x, w, backend=backend, save=True)
        assert saved is not None
        dy = np.where(np.isfinite(y), 1, np.inf).astype(np.float32)
        results.append((y, *dispatch.backward(plan, dy, saved, backend=backend, want=(True, True))[:2]))
    for got, expected in zip(*results, strict=True):
        assert got is not None and expected is not None
        assert np.array_equal(got, expected, equal_nan=True)


def test_it_is_chosen_for_small_planes() -> None:
    small = astride.plan("conv", (1, 8, 4, 4), w_shape=(8, 1, 3, 3), padding=1, groups=8)
    large = astride.plan("conv", (1, 8, 99, 99), w_shape=(8, 1, 3, 3), padding=1, groups=8)
    assert conv_choice.gathering(relation(small, False), 1, True) == WAY
    assert conv_choice.weighing(relation(small, False), 1, True) == WAY
    assert not depthwise_whole.takes(relation(large, False), 1)
