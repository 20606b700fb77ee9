"""The sub-pixel form of transposed convolution and of gradients of strided ones: what the reference gives, in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu import conv_choice, conv_subpixel
from astride.backends.cpu.conv_directions import relation
from astride.backends.epilogue import Epilogue
from astride.dispatch import forward

Array = NDArray[Any]


def whole(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    return rng.integers(-3, 4, shape).astype(dtype)


def relations(seed: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Random shapes of x and w and strides, of which the last axis has whole cells."""
    rng = np.random.default_rng(seed)
    rank, phases, taps = int(rng.integers(1, 4)), int(rng.choice([2, 3, 4, 8])), int(rng.integers(1, 4))
    n, inputs, outputs = (int(v) for v in rng.integers(1, [4, 7, 40]))
    others = [int(v) for v in rng.integers(1, 4, rank - 1)]
    stride = (*(int(v) for v in rng.integers(1, 4, rank - 1)), phases)
    size = rng.integers(1, 6 if rank == 3 else 12, rank).tolist()
    return (n, inputs, *size), (inputs, outputs, *others, phases * taps), stride


def last(x: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(12))
def test_transposed(seed: int, dtype: str) -> None:
    x_shape, w_shape, stride = relations(seed)
    rng = np.random.default_rng(seed)
    x, w, b = (whole(rng, *shape, dtype=dtype) for shape in (x_shape, w_shape, w_shape[1:2]))
    expected = astride.conv_transpose(x, w, b, stride=stride, backend="reference")
    for threads in (1, 3):
        with astride.use(backend="cpu", threads=threads):
            y = given_by_subpixel(x, w, b, stride, "channels_first")
            assert y is None or np.array_equal(y, expected)
            y = given_by_subpixel(last(x), w, b, stride, "channels_last")
            assert y is not None
            assert np.array_equal(y, last(expected))


def given_by_subpixel(x: Array, w: Array, b: Array, stride: tuple[int, ...], layout: str) -> Array | None:
    """y, or None where this way cannot: channels first, of phases that divide no block."""
    plan = astride.plan("conv_transpose", x.shape, w_shape=w.shape, stride=stride, layout=layout, dtype=x.dtype.name)
    if not conv_subpixel.takes(relation(plan, False), len(x), layout == "channels_first"):
        return None
    with conv_choice.forced("sub-pixel"):
        return astride.conv_transpose(x, w, b, stride=stride, layout=layout)


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_gradient_of_a_strided_one(layout: str) -> None:
    """Windows side by side, as where images are cut into patches: few channels, many phases."""
    rng = np.random.default_rng(1)
    x, w = whole(rng, 2, 3, 12, 16), whole(rng, 20, 3, 4, 4)
    x = x if layout == "channels_first" else last(x)
    plan = astride.plan("conv", x.shape, w_shape=w.shape, stride=4, layout=layout)
    assert conv_subpixel.takes(relation(plan, True), 2, layout == "channels_first")
    y, pull = astride.vjp(astride.conv, x, w, stride=4, layout=layout, backend="reference")
    dy = np.asarray(y % 4, "float32")
    expected, (_, pull) = pull(dy)[0], astride.vjp(astride.conv, x, w, stride=4, layout=layout, backend="cpu")
    with conv_choice.forced("sub-pixel"):
        assert np.array_equal(pull(dy)[0], expected)


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize("added", [False, True])
def test_results_are_finished_as_they_are_afterwards(layout: str, added: bool) -> None:
    rng = np.random.default_rng(2)
    x, w, b = (rng.standard_normal(shape, "float32") for shape in ((2, 5, 6, 7), (5, 21, 4, 4), (21,)))
    x[0, 0, 3, 3], x[1, 2, 0, 0] = np.inf, np.nan
    x = x if layout == "channels_first" else last(x)
    plan = astride.plan("conv_transpose", x.shape, w_shape=w.shape, stride=2, layout=layout)
    y = astride.conv_transpose(x, w, b, stride=2, layout=layout, backend="reference")
    r = rng.standard_normal(y.shape, "float32") if added else None
    finish = Epilogue(slope=0.1, high=1.5)
    with astride.use(backend="cpu"), conv_choice.forced("sub-pixel"):
        plain, _ = forward(plan, x, w, b, save=False)
        fused, _ = forward(plan, x, w, b, save=False, epilogue=finish, residual=r)
    assert np.array_equal(np.isnan(plain), np.isnan(y)), "what is not finite reaches the windows that read it"
    finish.apply(plain, r)
    assert np.array_equal(plain, fused, equal_nan=True)


def test_what_it_takes() -> None:
    shape, w_shape = (1, 21, 16, 16), (21, 17, 4, 4)
    plan = astride.plan("conv_transpose", shape, w_shape=w_shape, stride=2)
    assert "sub-pixel" in conv_choice.candidates("gather", relation(plan, False), 1, True, 0)
    cut: list[dict[str, Any]] = [{"padding": 1}, {"stride": 3}, {"groups": 3}, {"dilation": 2}]
    for given in [{"stride": 2, **one} for one in cut]:
        plan = astride.plan("conv_transpose", shape, w_shape=(21, 18 // given.get("groups", 1), 4, 4), **given)
        assert not conv_subpixel.takes(relation(plan, False), 1, True), given


def test_frozen_weights_are_packed_once() -> None:
    rng = np.random.default_rng(3)
    x, w = whole(rng, 1, 21, 5, 5), astride.frozen(whole(rng, 21, 21, 4, 4))
    with astride.use(backend="cpu"):
        first = astride.conv_transpose(x, w, stride=2)
        assert np.array_equal(first, astride.conv_transpose(x, w, stride=2))
    assert np.array_equal(first, astride.conv_transpose(x, w, stride=2, backend="reference"))
