"""Convolution of float16 and bfloat16 in parts: to the bit what whole arrays give, without a widened copy of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.backends.cpu.compiled import skip_unread

import astride
from astride import dispatch
from astride.backends.cpu import conv_choice, conv_directions, conv_half
from astride.backends.cpu.conv_directions import relation
from astride.backends.epilogue import Epilogue

Array = NDArray[Any]

DTYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def clear() -> None:
    """Cut anew."""
    conv_half.bands_of.cache_clear()
    conv_directions._bands.cache_clear()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    clear()
    yield
    clear()


CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("conv", (2, 20, 50, 31), (33, 20, 3, 3), {"padding": 1}),
    ("conv", (1, 16, 40, 40), (24, 16, 5, 3), {"padding": ((4, 0), (1, 2)), "stride": 2}),
    ("conv", (3, 40, 40, 28), (16, 40, 1, 1), {}),
    ("conv", (2, 24, 60, 20), (24, 1, 3, 3), {"padding": 1, "groups": 24}),
    ("conv", (1, 3, 70, 70), (16, 3, 7, 7), {"padding": 3, "stride": 2}),
    ("conv", (2, 8, 500), (8, 4, 4), {"groups": 2, "dilation": 3, "padding": 5}),
    ("conv", (1, 4, 30, 9, 10), (6, 4, 3, 2, 3), {"padding": 1}),
    ("conv_transpose", (2, 12, 40, 17), (12, 9, 4, 4), {"stride": 2, "padding": 1}),
    ("conv_transpose", (1, 7, 50), (7, 5, 3), {"stride": 3}),
]


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_parts_are_the_whole(monkeypatch: pytest.MonkeyPatch, case: Any, dtype: str, layout: str) -> None:
    """In every way that computes it, forward and for the gradient of x."""
    skip_unread(dtype)
    op, shape, w_shape, options = case
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s, np.float32).astype(DTYPES[dtype]) for s in (shape, w_shape))
    if layout == "channels_last":
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    plan = astride.plan(op, x.shape, w_shape=w.shape, dtype=dtype, layout=layout, **options)
    first = layout == "channels_first"
    y, saved = dispatch.forward(plan, x, w, save=True, backend="cpu")
    dy = rng.standard_normal(y.shape, np.float32).astype(y.dtype)

    def result(back: bool) -> Array:
        if not back:
            return dispatch.forward(plan, x, w, backend="cpu")[0].view(np.uint16)
        assert saved is not None
        dx = dispatch.backward(plan, dy, saved, want=(True, False, False), backend="cpu")[0]
        assert dx is not None
        return dx.view(np.uint16)

    for back in (False, True):
        for way in conv_choice.candidates("gather", relation(plan, back), len(x), first, 4):
            found = []
            for together in (1 << 40, 3000):
                monkeypatch.setattr(conv_half, "NUMBERS_AT_ONCE", together)
                clear()
                with conv_choice.forced(way):
                    found.append(result(back))
            assert np.array_equal(found[0], found[1]), (way, back)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bands_are_cut(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """So that the test above sees some."""
    monkeypatch.setattr(conv_half, "NUMBERS_AT_ONCE", 3000)
    plan = astride.plan("conv", (2, 20, 50, 31), w_shape=(33, 20, 3, 3), dtype=dtype, padding=1)
    bands = conv_half.bands_of(relation(plan, False))
    assert [band.windows for band in bands] == [(0, 12), (12, 24), (24, 36), (36, 48), (48, 50)]
    assert [band.pixels for band in bands] == [(0, 13), (11, 25), (23, 37), (35, 49), (47, 50)]


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_band_of_one_window(monkeypatch: pytest.MonkeyPatch, dtype: str, layout: str) -> None:
    """It reads one pixel, so along its axis there is nothing more to see; it lies along that axis nevertheless."""
    skip_unread(dtype)
    monkeypatch.setattr(conv_half, "NUMBERS_AT_ONCE", 500)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, s).astype(DTYPES[dtype]) for s in ((2, 8, 13, 9), (5, 8, 1, 1)))
    if layout == "channels_last":
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    plan = astride.plan("conv", x.shape, w_shape=w.shape, dtype=dtype, layout=layout)
    how = relation(plan, False)
    assert conv_half.bands_of(how)[-1].windows == (12, 13) and conv_half.bands_of(how)[-1].pixels == (12, 13)
    expected = dispatch.forward(plan, x, w, backend="reference")[0]
    for way in conv_choice.candidates("gather", how, len(x), layout == "channels_first", 4):
        with conv_choice.forced(way):
            assert np.array_equal(dispatch.forward(plan, x, w, backend="cpu")[0], expected), way


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding(dtype: str) -> None:
    """Every narrow number there and back; halves to the even one; what is too large is an infinity."""
    skip_unread(dtype)
    kind = DTYPES[dtype]
    bits = np.arange(1 << 16, dtype=np.uint16).view(kind)
    bits = np.tile(bits[np.isfinite(bits.astype(np.float32))], 6).reshape(1, 1, -1)
    plan = astride.plan("conv", bits.shape, w_shape=(1, 1, 1), dtype=dtype)
    one = np.ones((1, 1, 1), kind)
    found = dispatch.forward(plan, bits, one, backend="cpu")[0]
    assert conv_half.takes(bits, found)
    assert np.array_equal((found + np.zeros((), kind)).view(np.uint16), (bits + np.zeros((), kind)).view(np.uint16))
    for factor in (1.0078125, 3, 1e4):
        w = np.full((1, 1, 1), factor).astype(kind)
        with np.errstate(over="ignore"):
            expected = (bits.astype(np.float32) * w.astype(np.float32)).astype(kind)
        assert np.array_equal(dispatch.forward(plan, bits, w, backend="cpu")[0], expected)


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_whole_array_is_widened(dtype: str, layout: str) -> None:
    skip_unread(dtype)
    x = np.ones((1, 32, 400, 400) if layout == "channels_first" else (1, 400, 400, 32), DTYPES[dtype])
    w = np.ones((32, 32, 3, 3), DTYPES[dtype])
    plan = astride.plan("conv", x.shape, w_shape=w.shape, dtype=dtype, padding=1, layout=layout)
    out = np.empty(x.shape, x.dtype)
    dispatch.forward(plan, x, w, out=out, backend="cpu")
    tracemalloc.start()
    dispatch.forward(plan, x, w, out=out, backend="cpu")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < x.nbytes // 2


def test_endings_follow_rounding() -> None:
    skip_unread("float16")
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(s, np.float32).astype(np.float16) for s in ((2, 16, 90, 90), (16, 16, 3, 3)))
    plan = astride.plan("conv", x.shape, w_shape=w.shape, dtype="float16", padding=1)
    plain = dispatch.forward(plan, x, w, backend="cpu")[0]
    residual = rng.standard_normal(plain.shape, np.float32).astype(np.float16)
    ending = Epilogue(slope=0.125, high=1.0)
    found = dispatch.forward(plan, x, w, backend="cpu", epilogue=ending, residual=residual)[0]
    ending.apply(plain, residual)
    assert np.array_equal(found, plain)
