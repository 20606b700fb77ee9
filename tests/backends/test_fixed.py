"""Frozen arrays: nobody can write to them, so kernels keep what they make of them, exactly as long as they live."""

from __future__ import annotations

import contextlib
import gc
from typing import Any

import numpy as np
import pytest

import astride
from astride.backends.cpu import conv_choice, kept
from astride.backends.fixed import is_frozen, owner


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool"])
def test_what_is_frozen_cannot_change(dtype: str) -> None:
    given = np.arange(24).reshape(2, 3, 4).astype(dtype)[:, ::-1]
    w = astride.frozen(given)
    assert is_frozen(w) and w.dtype == given.dtype and np.array_equal(w, given) and w.flags.c_contiguous
    for view in (w, w[1:], w.T, owner(w)):
        assert is_frozen(view)
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
    given[...] = 0
    assert w.any() and astride.frozen(w) is w and astride.frozen(w[1]).base is not None


def test_marked_read_only_is_not_frozen() -> None:
    w = np.ones(3)
    w.flags.writeable = False
    assert not is_frozen(w) and is_frozen(astride.frozen(w))
    assert not is_frozen(astride.frozen(np.zeros((0, 3))))
    with pytest.raises(TypeError, match="objects"):
        astride.frozen(np.array([None]))


def test_made_once_and_gone_with_the_array() -> None:
    calls: list[int] = []

    def make() -> Any:
        calls.append(1)
        return np.ones(3)

    w, before = astride.frozen(np.arange(6.0).reshape(2, 3)), kept.counted()[0]
    once = kept.kept(w, "double", make)
    assert kept.kept(w, "double", make) is once and len(calls) == 1
    assert kept.kept(w[1], "double", make) is not once and len(calls) == 2, "another part of it"
    assert kept.kept(w, "half", make) is not once and len(calls) == 3, "something else"
    further = kept.kept(once, "twice", make)
    assert kept.kept(once, "twice", make) is further and len(calls) == 4, "made of what is kept"
    assert kept.counted()[0] == before + 4
    del w, once, further
    gc.collect()
    assert kept.counted()[0] == before
    plain = np.ones(3)
    assert kept.kept(plain, "double", make) is not kept.kept(plain, "double", make)


@pytest.mark.parametrize("shape", [(1, 8, 9, 9), (2, 64, 16, 16), (1, 4, 20)])
def test_convolutions_of_frozen_weights_are_the_same(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, shape).astype(np.float32)
    w = rng.integers(-3, 4, (40, shape[1], *[3] * (len(shape) - 2))).astype(np.float32)
    fixed = astride.frozen(w)
    for _ in range(3):
        y = astride.conv(x, w, padding=1, backend="cpu")
        assert np.array_equal(astride.conv(x, fixed, padding=1, backend="cpu"), y)
        again, pull = astride.vjp(astride.conv, x, fixed, padding=1, backend="cpu")
        assert np.array_equal(again, y) and np.array_equal(pull(y)[0], astride.vjp(astride.conv, x, w, padding=1)[1](y)[0])
        w += 1
        fixed = astride.frozen(w)


def test_quantised_weights_are_kept_too() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(0, 256, (1, 9, 6, 6)).astype(np.uint8), rng.integers(0, 256, (5, 9, 3, 3)).astype(np.uint8)
    before = kept.counted()[0]
    fixed = astride.frozen(w)
    for _ in range(2):
        y = astride.conv_integer(x, fixed, w_zero_point=7, backend="cpu")
        assert np.array_equal(y, astride.conv_integer(x, w, w_zero_point=7, backend="reference"))
    assert kept.counted()[0] == before + 1, "with the sums of each output channel behind them"


@pytest.mark.parametrize("way", ["tiles", "slabs", "planes", "sub-pixel", "winograd", "few outputs", "depthwise moved", "quads"])
def test_images_of_all_sizes_share_what_is_kept(way: str) -> None:
    """Weights are packed once, not once for each size that comes along."""
    rng = np.random.default_rng(1)
    kernel = {"planes": 1, "sub-pixel": 2}.get(way, 3)
    operator: Any = {"sub-pixel": astride.conv_transpose, "quads": astride.conv_integer}.get(way, astride.conv)
    options: dict[str, Any] = {"stride": 2} if way == "sub-pixel" else {}
    dtype = np.int8 if way == "quads" else np.float32
    inputs = 6
    if way == "depthwise moved":
        inputs, options = 1, {"groups": 6}
    w = astride.frozen(rng.integers(-3, 4, (6, inputs, kernel, kernel)).astype(dtype))
    counts = []
    for size in (5, 8, 11):
        x = rng.integers(-3, 4, (1, 6, size, size + 1)).astype(dtype)
        expected = operator(x, w, backend="reference", **options)
        with contextlib.nullcontext() if way == "quads" else conv_choice.forced(way):
            assert np.array_equal(operator(x, w, backend="cpu", **options), expected)
        counts.append(kept.counted()[0])
    assert counts == counts[:1] * 3
