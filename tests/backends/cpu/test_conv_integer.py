"""Convolution of quantised numbers on the CPU: the reference's numbers to the bit, and products of bytes in every way."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
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


def operands(shape: tuple[int, ...], w_shape: tuple[int, ...], types: Sequence[str], seed: int) -> tuple[Array | None, ...]:
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


def random_case(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Shapes of x and w and options: one to three axes, any pads, groups of many channels and of one."""
    rank = int(rng.integers(1, 4))

    def pick(low: int, high: int) -> tuple[int, ...]:
        return tuple(int(n) for n in rng.integers(low, high, rank))

    kernel, dilation, stride = pick(1, 5), pick(1, 4), pick(1, 4)
    size = tuple((k - 1) * d + 1 + int(n) for k, d, n in zip(kernel, dilation, pick(1, 60 // rank**2), strict=True))
    padding = tuple((int(lo), int(hi)) for lo, hi in zip(pick(-1, 4), pick(0, 4), strict=True))
    if all(k == 1 for k in kernel) and rng.random() < 0.5:
        stride, padding = (1,) * rank, ((0, 0),) * rank
    groups = int(rng.choice([1, 1, 1, 2, 3, 40]))
    inputs, outputs = (groups * int(n) for n in rng.integers(1, 20 if groups > 1 else 150, 2))
    if rng.random() < 0.3:
        groups = inputs = outputs = int(rng.integers(2, 200))
    shape = (int(rng.integers(1, 4)), inputs, *size)
    return shape, (outputs, inputs // groups, *kernel), dict(stride=stride, dilation=dilation, padding=padding, groups=groups)


@pytest.mark.parametrize("seed", range(40))
def test_random_plans(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, w_shape, options = random_case(rng)
    layout = ["channels_first", "channels_last"][seed % 2]
    types = tuple(str(rng.choice(names)) for names in (["int8", "uint8"], ["int8", "uint8"], ["int32", "int8", "uint8"]))
    arrays = operands(shape, w_shape, types, seed)
    x = arrays[0]
    assert x is not None
    if layout == "channels_last":
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    kinds: dict[str, Any] = {"dtype": types[0], "w_dtype": types[1], "y_dtype": types[2]}
    plan = make_plan("conv_integer", x.shape, w_shape=w_shape, layout=layout, **kinds, **options)
    expected = dispatch.forward(plan, x, *arrays[1:], backend="reference:im2col")[0]
    for threads in (1, 3):
        with astride.use(threads=threads):
            found = dispatch.forward(plan, guarded(x), *arrays[1:], backend="cpu")[0]
        assert np.array_equal(found, expected)


def guarded(x: Array) -> Array:
    """A copy that ends where memory does that nobody may read: reading behind it would end the process."""
    page = mmap.PAGESIZE
    whole = -(-x.nbytes // page) * page
    block = mmap.mmap(-1, whole + page)
    made = np.frombuffer(block, np.uint8)
    protect = getattr(ctypes.CDLL(None), "mprotect", None)
    if protect is not None:
        assert protect(ctypes.c_void_p(made.ctypes.data + whole), ctypes.c_size_t(page), 0) == 0
    found = made[whole - x.nbytes : whole].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


@pytest.mark.parametrize("y_dtype", ["int8", "uint8"])
@pytest.mark.parametrize("groups", [1, 20])
def test_rounding_and_clipping(y_dtype: str, groups: int) -> None:
    """Halves, sums far outside, and scales that are infinite or no numbers."""
    scales = np.array([0.5, 1.5, -0.5, 2.0**-20, 3e38, np.inf, np.nan, 0, 1e-45, -np.inf] * 2, np.float32)
    x = np.arange(3 * 20 * 20).reshape(3, 20, 20).astype(np.uint8)
    w = np.ones((20, 20 // groups, 1), np.int8)
    w[:, 1:] = 0
    b = np.concatenate([np.zeros(12), np.array([-(2**31), 2**31 - 1] * 4)]).astype(np.int32)
    plan = make_plan("conv_integer", x.shape, w_shape=w.shape, dtype="uint8", w_dtype="int8", y_dtype=y_dtype, groups=groups)
    one = np.asarray(np.float32(1))
    for each in (scales, *([np.full(20, scale, np.float32) for scale in scales[:5]])):
        arrays = (x, w, np.array(7, np.uint8), None, b, one, each, one, np.array(-9).astype(y_dtype))
        expected = dispatch.forward(plan, *arrays, backend="reference:im2col")[0]
        assert np.array_equal(dispatch.forward(plan, *arrays, backend="cpu")[0], expected)


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_boxes_along_every_axis(layout: str) -> None:
    """More windows, and pixels, than a box has."""
    rng = np.random.default_rng(2)
    for size, kernel in (((5000,), (3,)), ((70, 90), (3, 5)), ((12, 30, 40), (2, 3, 3))):
        x = rng.integers(0, 256, (1, 40, *size) if layout == "channels_first" else (1, *size, 40)).astype(np.uint8)
        w = rng.integers(-128, 128, (70, 40, *kernel)).astype(np.int8)
        for more in ({}, {"padding": 1, "stride": 2}):
            options: dict[str, Any] = {"x_zero_point": 3, "layout": layout, **more}
            expected = astride.conv_integer(x, w, backend="reference:im2col", **options)
            with astride.use(threads=2):
                assert np.array_equal(astride.conv_integer(x, w, backend="cpu", **options), expected)


def test_nothing_to_compute() -> None:
    for shape, w_shape in (((0, 3, 5), (4, 3, 2)), ((2, 0, 5), (4, 0, 2)), ((2, 3, 5), (0, 3, 2))):
        x, w = np.zeros(shape, np.int8), np.zeros(w_shape, np.int8)
        found = astride.conv_integer(x, w, backend="cpu")
        assert np.array_equal(found, astride.conv_integer(x, w, backend="reference"))
