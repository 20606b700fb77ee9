"""Convolution of quantised numbers on the CPU: the reference's numbers to the bit, and products of bytes in every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.backends.cpu.compiled import lanes_of

import astride
from astride import dispatch
from astride.backends.cpu.machine import machine
from astride.backends.cpu.quads import dot, way
from astride.ops._run import plan as make_plan

Array = NDArray[Any]

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 16, 9, 8), (33, 16, 3, 3), {"padding": 1}),
    ((1, 3, 17, 5), (20, 3, 5, 2), {"stride": (2, 1), "padding": ((2, 0), (1, 1))}),
    ((3, 10, 12), (4, 5, 4), {"groups": 2, "dilation": 2}),
    ((2, 7, 6, 6), (7, 1, 3, 3), {"groups": 7, "padding": 1}),
    ((1, 8, 3, 4, 5), (2, 4, 2, 2, 2), {"groups": 2, "padding": 1}),
    ((1, 32, 5, 5), (8, 4, 1, 1), {"groups": 8}),
    ((2, 70, 6, 6), (5, 70, 1, 1), {"padding": ((-1, 2), (0, 0))}),
]


def operands(
    shape: tuple[int, ...], w_shape: tuple[int, ...], types: tuple[str, str, str], seed: int
) -> tuple[Array | None, ...]:
    """Over the whole range of every type; zero points one for all, one a channel or none."""
    rng = np.random.default_rng(seed)

    def bytes_of(dtype: str, of: tuple[int, ...]) -> Array:
        limits = np.iinfo(dtype)
        return np.asarray(rng.integers(limits.min, limits.max + 1, of)).astype(dtype)

    x, w, y = types
    out = w_shape[0]
    zeros = [(bytes_of(x, ()), bytes_of(w, (out,))), (None, bytes_of(w, ())), (bytes_of(x, ()), None)][seed % 3]
    b = rng.integers(-(2**31), 2**31, out).astype(np.int32) if seed % 2 else None
    scales: list[Array | None] = [None] * 4
    if y != "int32":
        scales = [np.asarray(rng.uniform(0.01, 0.1, of), np.float32) for of in ((), (out,), ())] + [bytes_of(y, ())]
    return (bytes_of(x, shape), bytes_of(w, w_shape), *zeros, b, *scales)


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize("y", ["int32", "int8", "uint8"])
@pytest.mark.parametrize("w", ["int8", "uint8"])
@pytest.mark.parametrize("x", ["int8", "uint8"])
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_the_reference_to_the_bit(case: Any, x: str, w: str, y: str, layout: str) -> None:
    shape, w_shape, options = case
    if layout == "channels_last":
        shape = (shape[0], *shape[2:], shape[1])
    plan = make_plan("conv_integer", shape, w_shape=w_shape, dtype=x, w_dtype=w, y_dtype=y, layout=layout, **options)
    for seed in range(3):
        arrays = operands(shape, w_shape, (x, w, y), seed)
        expected = dispatch.forward(plan, *arrays, backend="reference:im2col")[0]
        for threads in (1, 2):
            with astride.use(threads=threads):
                found = dispatch.forward(plan, *arrays, backend="cpu")[0]
            assert found.dtype == expected.dtype and np.array_equal(found, expected)


def test_sums_wrap_around() -> None:
    x, w = np.full((1, 4, 200, 200), 255, np.uint8), np.full((1, 4, 200, 200), 255, np.uint8)
    assert astride.conv_integer(x, w, backend="cpu").item() == (160_000 * 255 * 255 + 2**31) % 2**32 - 2**31


def test_views_of_frozen_weights_are_told_apart() -> None:
    """Their memory begins at the same place and their shapes are the same; only their strides differ."""
    rng = np.random.default_rng(5)
    x = rng.integers(-128, 128, (1, 8, 7, 7)).astype(np.int8)
    w = astride.frozen(rng.integers(-128, 128, (8, 8, 3, 3)).astype(np.int8))
    for view in (w, w.transpose(1, 0, 2, 3), w.transpose(0, 1, 3, 2), w[::-1], w):
        expected = astride.conv_integer(x, view, backend="reference")
        assert np.array_equal(astride.conv_integer(x, view, backend="cpu"), expected)


@pytest.mark.parametrize("how", ["vnni", "pairs", ""])
def test_products_of_bytes(how: str) -> None:
    here = machine()
    if how not in ("", way(here)) and not (how == "pairs" and way(here) == "vnni"):
        pytest.skip(f"this CPU has no {how!r}")
    count = here.lanes("i32")
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (256, 4)).astype(np.uint8), rng.integers(-128, 128, (256, 4)).astype(np.int8)
    a[:3], b[0], b[1], b[2] = 255, -128, 127, 0
    total = rng.integers(-(2**31), 2**31, 256).astype(np.int32)
    got = lanes_of(
        count, "i32", "i32", lambda f, x, y, z: dot(f, how, x, y, z), *(v.view(np.int32).ravel() for v in (a, b)), total
    )
    products = (a.astype(np.int64) * b).sum(1)
    assert np.array_equal(got, (products + total).astype(np.int32))


def test_gradients_are_refused() -> None:
    x, w = np.zeros((1, 4, 5, 5), np.uint8), np.zeros((1, 4, 3, 3), np.int8)
    plan = make_plan("conv_integer", x.shape, w_shape=w.shape, dtype="uint8", w_dtype="int8", y_dtype="int32")
    y, saved = dispatch.forward(plan, x, w, save=True, backend="cpu")
    assert saved is not None
    with pytest.raises(astride.UnsupportedError, match="no gradient"):
        dispatch.backward(plan, np.zeros_like(y), saved)
