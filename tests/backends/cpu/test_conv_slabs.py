"""Convolution over slabs of planes: every way they are cut gives what the reference gives, and matrices of any size are moved."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu import conv_choice, conv_slabs
from astride.backends.cpu.compiler import compile_object, load_object
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.conv_move import mover
from astride.backends.cpu.ir import module
from astride.backends.cpu.machine import machine
from astride.backends.epilogue import Epilogue
from astride.dispatch import forward

Array = NDArray[Any]


def whole(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-3, 4, shape).astype("float32")


CASES = [
    ((3, 5, 9, 11), (7, 5, 3, 3), {"padding": 1}),
    ((9, 18, 7, 7), (40, 18, 3, 3), {"padding": 1}),
    ((2, 3, 31, 29), (8, 3, 7, 7), {"padding": 3, "stride": 2}),
    ((2, 12, 10, 13), (6, 4, 3, 2), {"groups": 3, "dilation": 2}),
    ((5, 1, 12, 12), (20, 1, 5, 5), {}),
    ((2, 6, 50), (33, 6, 5), {"padding": 2, "stride": 3}),
    ((2, 4, 5, 6, 7), (9, 4, 3, 3, 3), {"padding": 1}),
    ((2, 4, 6, 9), (3, 4, 1, 1), {"stride": 2, "padding": 1}),
    ((1, 2, 3, 3), (2, 2, 2, 2), {"padding": 5, "dilation": 4}),
    ((2, 8, 20, 9), (5, 8, 3, 3), {"padding": 6, "dilation": 6}),
]


@pytest.mark.parametrize("slab", [conv_slabs.X_BYTES, 2000, 1])
@pytest.mark.parametrize(("shape", "w_shape", "given"), CASES, ids=str)
def test_every_cut(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], w_shape: tuple[int, ...], given: dict[str, Any], slab: int
) -> None:
    monkeypatch.setattr(conv_slabs, "X_BYTES", slab)
    monkeypatch.setattr(conv_slabs, "WORTH", 0 if slab == 1 else conv_slabs.WORTH)
    conv_slabs._cut.cache_clear()
    conv_slabs.schedule.cache_clear()
    rng = np.random.default_rng(0)
    x, w, b = whole(rng, *shape), whole(rng, *w_shape), whole(rng, w_shape[0])
    results = []
    for backend in ("cpu", "reference"):
        y, pull = astride.vjp(astride.conv, x, w, b, backend=backend, **given)
        results.append((y, *pull(np.asarray(y % 4, "float32"))))
    for name, a, e in zip(("y", "dx", "dw", "db"), *results, strict=True):
        assert np.array_equal(a, e), name


LAST = [*CASES, ((3, 20, 7, 9), (40, 20, 1, 1), {}), ((2, 12, 30), (9, 12, 1), {"stride": 2})]


@pytest.mark.parametrize("slab", [conv_slabs.X_BYTES, 2000, 1])
@pytest.mark.parametrize(("shape", "w_shape", "given"), LAST, ids=str)
def test_every_cut_of_channels_last(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], w_shape: tuple[int, ...], given: dict[str, Any], slab: int
) -> None:
    monkeypatch.setattr(conv_slabs, "X_BYTES", slab)
    monkeypatch.setattr(conv_slabs, "crowded", lambda relation: True)  # else it is no candidate
    for function in (conv_slabs._cut, conv_slabs.schedule, conv_slabs.takes):
        function.cache_clear()
    rng = np.random.default_rng(0)
    x, w, b = whole(rng, shape[0], *shape[2:], shape[1]), whole(rng, *w_shape), whole(rng, w_shape[0])
    y, pull = astride.vjp(astride.conv, x, w, b, layout="channels_last", backend="reference", **given)
    expected = (y, pull(y % 4)[0])
    for threads in (1, 3):
        with astride.use(backend="cpu", threads=threads), conv_choice.forced("slabs"):
            y, pull = astride.vjp(astride.conv, x, w, b, layout="channels_last", **given)
            assert np.array_equal(y, expected[0])
            assert np.array_equal(pull(y % 4)[0], expected[1])


def test_channels_last_are_finished_as_they_are_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv_slabs, "crowded", lambda relation: True)
    rng = np.random.default_rng(4)
    x, w, b, r = (rng.standard_normal(s, "float32") for s in ((2, 9, 8, 20), (50, 20, 3, 3), (50,), (2, 7, 6, 50)))
    plan, finish = astride.plan("conv", x.shape, w_shape=w.shape, layout="channels_last"), Epilogue(slope=0.1, high=1.5)
    with astride.use(backend="cpu"), conv_choice.forced("slabs"):
        plain, _ = forward(plan, x, w, b, save=False)
        fused, _ = forward(plan, x, w, b, save=False, epilogue=finish, residual=r)
    finish.apply(plain, r)
    assert np.array_equal(plain, fused)


CROWDED = [(512, 1, "tiles"), (528, 2, "tiles"), (512, 2, "slabs"), (256, 4, "slabs")]


@pytest.mark.parametrize(("inputs", "stride", "way"), CROWDED)
def test_pixels_that_crowd_the_cache_are_copied(inputs: int, stride: int, way: str) -> None:
    plan = astride.plan("conv", (1, 800, inputs), w_shape=(256, inputs, 1), stride=stride, layout="channels_last")
    assert conv_choice.gathering(relation(plan, False), 1, first=False) == way


def test_the_cut_does_not_know_threads() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((3, 20, 30, 30), "float32"), rng.standard_normal((50, 20, 3, 3), "float32")
    results = []
    for threads in (1, 2, 5):
        with astride.use(backend="cpu", threads=threads, winograd=0):
            results.append(astride.conv(x, w, padding=1).tobytes())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_matrices_of_any_distance_are_moved(kind: str) -> None:
    f = mover(kind, machine())
    f.private = False
    (address,) = load_object(compile_object(module(f)), ("move",))
    move = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(address)
    dtype, size = ("float32", 4) if kind == "float" else ("float64", 8)
    for rows, columns in [(1, 5), (2, 40), (3, 35), (4, 16), (5, 3), (16, 16), (17, 40), (33, 7), (16, 21)]:
        x = np.arange(rows * (columns + 3)).reshape(rows, columns + 3).astype(dtype)
        for room in (0, 1):
            y = np.full((columns + 20, rows + 5 * (1 - room)), -1, dtype)
            width = y.shape[1]
            move(x.ctypes.data, y.ctypes.data, rows, columns, (columns + 3) * size, width * size, room)
            assert np.array_equal(y[:columns, :rows], x[:, :columns].T)
            if not room:
                assert (y[columns:] == -1).all() and (y[:, rows:] == -1).all()
