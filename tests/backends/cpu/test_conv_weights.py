"""The gradient of the weights in all its ways: whole numbers are exact, threads change nothing, padding is never multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride import dispatch
from astride.backends.cpu import conv_choice, conv_weights_packed
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.conv_pack import packed
from astride.backends.cpu.conv_unpack import unpack

Array = NDArray[Any]

CASES: list[tuple[str, tuple[int, ...], int, int, dict[str, Any]]] = [
    ("conv", (3, 3, 17, 20), 33, 5, {"stride": 2, "padding": 3}),
    ("conv", (2, 1, 12, 12), 20, 5, {}),
    ("conv", (37, 3, 8, 7), 33, 5, {"padding": 2}),
    ("conv", (2, 50, 9, 8), 70, 3, {"padding": ((1, 2), (0, 1))}),
    ("conv", (2, 64, 14, 14), 128, 1, {}),
    ("conv", (9, 20, 4, 4), 12, 3, {"padding": 1, "dilation": 2}),
    ("conv", (1, 66, 60, 7), 34, 2, {"groups": 2, "stride": (2, 1)}),
    ("conv", (2, 6, 40), 8, 4, {"padding": ((7, 7),), "stride": 3}),
    ("conv", (1, 13, 3, 5, 6), 17, 3, {"padding": 1}),
    ("conv", (2, 5, 6, 6), 5, 3, {"groups": 5, "padding": 1}),
    ("conv", (1, 2, 2, 2), 3, 2, {"padding": ((9, -2), (0, 0))}),
    ("conv_transpose", (2, 16, 7, 7), 12, 2, {"stride": 2}),
    ("conv_transpose", (1, 40, 5, 6), 21, 4, {"stride": 2, "padding": 1}),
]


def gradient(op: str, shape: tuple[int, ...], out: int, kernel: int, options: dict[str, Any], backend: str, **how: Any) -> Array:
    """By a backend, channels first or last, of whole numbers."""
    groups, dtype = options.get("groups", 1), how.get("dtype", "float32")
    kernels = (kernel,) * (len(shape) - 2)
    w_shape = (shape[1], out // groups, *kernels) if op == "conv_transpose" else (out, shape[1] // groups, *kernels)
    x_shape = shape if how["layout"] == "channels_first" else (shape[0], *shape[2:], shape[1])
    plan = astride.plan(op, x_shape, w_shape=w_shape, dtype=dtype, layout=how["layout"], **options)
    rng = np.random.default_rng(0)
    x, w = rng.integers(-3, 4, x_shape).astype(dtype), rng.integers(-3, 4, w_shape).astype(dtype)
    y, saved = dispatch.forward(plan, x, w, None, save=True, backend=backend)
    assert saved is not None
    dy = rng.integers(-3, 4, y.shape).astype(dtype)
    if how.get("infinite"):
        dy.flat[0] = np.inf
    with astride.use(threads=how.get("threads", 1)), np.errstate(invalid="ignore"):
        dw = dispatch.backward(plan, dy, saved, want=(False, True, False))[1]
    assert dw is not None
    return dw


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize("way", ["tiles", "packed"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_whole_numbers_are_exact(case: Any, layout: str, way: str) -> None:
    expected = gradient(*case, "reference:im2col", layout=layout)
    depthwise = case[4].get("groups", 1) == case[1][1]
    with conv_choice.forced("tiles" if depthwise else way):
        for threads in (1, 2, 3):
            assert np.array_equal(gradient(*case, "cpu", layout=layout, threads=threads), expected)
        wide = gradient(*case, "cpu", layout=layout, dtype="float64")
    assert np.array_equal(wide, expected) and wide.dtype == np.float64


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize("case", CASES[:6], ids=str)
def test_padding_is_not_multiplied(case: Any, layout: str) -> None:
    """An infinite gradient meets only taps that lie inside, as the reference has it."""
    with np.errstate(invalid="ignore"):
        expected = gradient(*case, "reference:loops2", layout=layout, infinite=True)
    got = gradient(*case, "cpu", layout=layout, infinite=True)
    assert np.array_equal(got, expected, equal_nan=True) and (np.isfinite(got).any() or case[3] == 1)


def test_chunks_that_do_not_fit_are_declined() -> None:
    far = astride.plan("conv", (1, 48, 4, 300, 300), w_shape=(32, 48, 3, 3, 3), padding=1)
    near = astride.plan("conv", (1, 48, 4, 30, 30), w_shape=(32, 48, 3, 3, 3), padding=1)
    assert not conv_weights_packed.takes(relation(far, False), 1)
    assert conv_weights_packed.takes(relation(near, False), 1)


UNPACKED = [
    ((40, 3, 3, 5), 1),
    ((6, 2, 1, 1), 3),
    ((64, 16, 2, 2), 1),
    ((7, 1, 3, 1), 7),
    ((34, 70, 3, 3), 1),
    ((33, 2, 20, 20), 1),
    ((64, 3, 40, 35), 1),
]
"""Weights, and groups: few and many channels, runs shorter than a vector, more taps than a stage has places for."""


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize(("shape", "groups"), UNPACKED)
def test_unpacking_is_packing_back(shape: tuple[int, ...], groups: int, flip: bool, turned: bool) -> None:
    size = max(shape)
    plan = astride.plan("conv", (1, shape[1] * groups, size, size), w_shape=shape, groups=groups, flip=flip)
    how = relation(plan, turned)
    w = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    once = packed(how, w)
    back = np.empty_like(w)
    unpack(how, np.stack([once, once, once]), back)
    assert np.array_equal(back, 3 * w)
