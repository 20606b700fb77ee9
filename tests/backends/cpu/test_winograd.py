"""Winograd's convolution against the reference: shapes, pads, channels, images, infinities, exactness, threads, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu import winograd
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.conv_pack import packed, packed_bias
from astride.backends.cpu.winograd_forms import FORMS
from astride.backends.epilogue import RECTIFIED
from astride.plan import ConvPlan

Array = NDArray[Any]

SHAPES: list[tuple[tuple[int, int, int, int], int, Any, int]] = [
    ((1, 3, 3, 1), 1, 0, 1),
    ((2, 4, 9, 5), 7, 1, 1),
    ((1, 14, 14, 32), 32, 1, 1),
    ((3, 17, 13, 33), 70, ((0, 2), (1, 3)), 1),
    ((5, 7, 7, 16), 40, 2, 1),
    ((2, 13, 15, 66), 34, 1, 2),
    ((1, 12, 10, 300), 20, ((-1, 1), (0, -2)), 1),
    ((1, 1, 1, 4), 4, 4, 1),
]
"""x as (N, H, W, I), output channels, padding, groups."""


def made(rng: np.random.Generator, case: Any, dtype: str, whole: bool = False) -> tuple[ConvPlan, Array, Array, Array]:
    """A plan, channels last, and its x, w and b."""
    shape, outputs, padding, groups = case

    def some(*sizes: int) -> Array:
        values = rng.integers(-3, 4, sizes) if whole else rng.standard_normal(sizes)
        return values.astype(dtype)

    w_shape = (outputs, shape[-1] // groups, 3, 3)
    plan = astride.plan("conv", shape, w_shape=w_shape, dtype=dtype, padding=padding, groups=groups, layout="NHWC")
    assert isinstance(plan, ConvPlan)
    return plan, some(*shape), some(*w_shape), some(outputs)


def computed(plan: ConvPlan, x: Array, w: Array, b: Array | None, tile: int, to_input: bool = False) -> Array:
    """What Winograd's kernel gives, of any size; `to_input` for the gradient of x, from that of y."""
    how = relation(plan, to_input)
    y = np.full((len(x), *(axis.out for axis in how.axes), how.outputs), 7, x.dtype)
    winograd.compute(how, x, packed(how, w), packed_bias(how, b, x.dtype), y, tile)
    return y


def planes(x: Array) -> Array:
    """Channels first."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def computed_first(plan: ConvPlan, x: Array, w: Array, b: Array | None, tile: int) -> Array:
    """What Winograd's kernel gives from planes, with the channels moved last to be compared."""
    how = relation(plan, False)
    y = np.full((len(x), how.outputs, *(axis.out for axis in how.axes)), 7, x.dtype)
    winograd.compute(how, planes(x), packed(how, w), packed_bias(how, b, x.dtype), y, tile, True)
    return np.moveaxis(y, 1, -1)


def expected(plan: ConvPlan, x: Array, w: Array, b: Array | None = None) -> Array:
    pads = [(axis.pad_lo, axis.pad_hi) for axis in plan.axes]
    y = astride.conv(x, w, b, padding=pads, groups=plan.groups, layout="NHWC", backend="reference")
    return np.asarray(y)


@pytest.mark.parametrize("tile", FORMS)
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_any_shape(case: Any, tile: int) -> None:
    plan, x, w, b = made(np.random.default_rng(1), case, "float64")
    y = expected(plan, x, w, b)
    assert np.abs(computed(plan, x, w, b, tile) - y).max() < 1e-12 * np.abs(y).max()


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_whole_numbers_are_exact(case: Any) -> None:
    """F(2, 3) multiplies by 1/2 and 1/4 at most, so sums of small whole numbers have no rounding."""
    plan, x, w, b = made(np.random.default_rng(2), case, "float32", whole=True)
    y = expected(plan, x, w, b)
    assert np.array_equal(computed(plan, x, w, b, 2), y)


@pytest.mark.parametrize("tile", FORMS)
@pytest.mark.parametrize("case", [*SHAPES, ((1, 5, 80, 3), 17, 1, 1)], ids=str)
def test_channels_first_give_the_same(case: Any, tile: int) -> None:
    plan, x, w, b = made(np.random.default_rng(11), case, "float32")
    x[0, 0, -1, 0] = np.inf
    assert np.array_equal(computed_first(plan, x, w, b, tile), computed(plan, x, w, b, tile), equal_nan=True)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("tile", FORMS)
def test_below_zero_is_zero(tile: int, first: bool) -> None:
    """The same as doing so afterwards, to the last bit."""
    plan, x, w, b = made(np.random.default_rng(13), SHAPES[3], "float32")
    x[0, 3, 4, 5], x[1, 3, 4, 5] = np.nan, -np.inf
    how, given = relation(plan, False), planes(x) if first else x
    outs = tuple(axis.out for axis in how.axes)
    shape = (len(x), how.outputs, *outs) if first else (len(x), *outs, how.outputs)
    plain, rectified = np.empty(shape, "float32"), np.empty(shape, "float32")
    weights, bias = packed(how, w), packed_bias(how, b, x.dtype)
    winograd.compute(how, given, weights, bias, plain, tile, first)
    winograd.compute(how, given, weights, bias, rectified, tile, first, epilogue=RECTIFIED)
    assert (plain < 0).any() and np.isnan(plain).any()
    assert np.array_equal(rectified, np.maximum(plain, 0), equal_nan=True)


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_the_gradient_of_x(case: Any) -> None:
    plan, x, w, _ = made(np.random.default_rng(3), case, "float32", whole=True)
    y, pull = astride.vjp(
        astride.conv, x, w, padding=[(axis.pad_lo, axis.pad_hi) for axis in plan.axes], groups=plan.groups, layout="NHWC",
        backend="reference",
    )  # fmt: skip
    dy = np.asarray(y % 5 - 2)
    assert np.array_equal(computed(plan, dy, w, None, 2, to_input=True), pull(dy)[0])


def test_the_gradient_is_the_adjoint() -> None:
    """<conv x, dy> = <x, dx> to rounding, whatever the numbers."""
    plan, x, w, _ = made(np.random.default_rng(4), SHAPES[3], "float64")
    y = computed(plan, x, w, None, 2)
    dy = np.cos(y)
    dx = computed(plan, dy, w, None, 2, to_input=True)
    assert abs((y * dy).sum() - (x * dx).sum()) < 1e-10 * np.abs(y * dy).sum()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("tile", FORMS)
@pytest.mark.parametrize("case", SHAPES[1:6], ids=str)
def test_what_is_not_finite_lies_where_windows_have_it(case: Any, tile: int, bad: float) -> None:
    plan, x, w, b = made(np.random.default_rng(5), case, "float32", whole=True)
    x[0, 1, 2, 0], x[-1, -1, -1, -1] = bad, bad
    y, found = expected(plan, x, w, b), computed(plan, x, w, b, tile)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(y))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(y))
    np.testing.assert_allclose(found, y, rtol=1e-4, atol=1e-3)


def test_padding_meets_no_weight() -> None:
    """Taps that only padding meets may be anything: they are skipped, not multiplied."""
    plan, x, w, b = made(np.random.default_rng(6), ((1, 1, 6, 4), 4, 1, 1), "float32", whole=True)
    w[:, :, 0], w[:, :, 2] = np.inf, np.nan
    y = computed(plan, x, w, b, 2)
    assert np.isfinite(y).all()
    assert np.array_equal(y, expected(plan, x, w, b))


def test_large_numbers_do_not_overflow_on_the_way() -> None:
    """A transform's sums may be infinite where those of windows are not."""
    plan, x, w, _ = made(np.random.default_rng(7), ((1, 6, 6, 1), 1, 0, 1), "float32")
    x[:], w[:] = 3e38, 0
    w[..., 1, 1] = 1
    assert np.array_equal(computed(plan, x, w, None, 2), x[:, 1:-1, 1:-1])


def test_threads_do_not_show() -> None:
    plan, x, w, b = made(np.random.default_rng(8), ((5, 22, 19, 40), 50, 1, 1), "float32")
    results = []
    for threads in (1, 2, 5):
        with astride.use(threads=threads):
            results.append(computed(plan, x, w, b, 2).tobytes())
    assert results[0] == results[1] == results[2]


def test_an_image_is_computed_alike_in_any_company() -> None:
    plan, x, w, b = made(np.random.default_rng(9), ((5, 9, 19, 40), 50, 1, 1), "float32")
    assert np.array_equal(computed(plan, x[3:4], w, b, 2)[0], computed(plan, x, w, b, 2)[3])


@pytest.mark.parametrize(("tile", "most"), [(2, 6e-7), (4, 1e-5)])
def test_errors_stay_below_what_is_stated(tile: int, most: float) -> None:
    plan, x, w, b = made(np.random.default_rng(10), ((1, 14, 14, 256), 64, 1, 1), "float32")
    y = expected(plan, x.astype("float64"), w.astype("float64"), b.astype("float64"))
    assert np.abs(computed(plan, x, w, b, tile) - y).max() < most * np.abs(y).max()


def test_what_is_declined_has_a_reason() -> None:
    def reason(shape: tuple[int, ...], w_shape: tuple[int, ...], tile: int = 2, **options: Any) -> str | None:
        plan = astride.plan("conv", shape, w_shape=w_shape, dtype="float32", layout="channels_last", **options)
        assert isinstance(plan, ConvPlan)
        return winograd.declines(relation(plan, False), tile)

    assert reason((1, 28, 28, 64), (64, 64, 3, 3)) is None
    assert reason((1, 28, 28, 64), (64, 64, 3, 3), 0) == "Winograd's form is switched off"
    assert reason((1, 28, 28, 64), (64, 64, 3, 3), stride=2) == "windows are not 3x3 with stride 1"
    assert reason((1, 28, 28, 64), (64, 64, 5, 5)) == "windows are not 3x3 with stride 1"
    assert reason((1, 28, 64), (64, 64, 3)) == "windows are not 3x3 with stride 1"
    assert reason((1, 28, 28, 64), (64, 1, 3, 3), groups=64) == "each channel is by itself"


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("most", [0, 2, 4])
def test_calls_take_it_where_settings_say_so(layout: str, most: int) -> None:
    """float16 is computed in float32 like everything narrow; the gradients go the same ways."""
    rng = np.random.default_rng(12)
    x, w, b = (rng.integers(-2, 3, shape) for shape in ((2, 20, 20, 32), (32, 32, 3, 3), (32,)))
    x = x if layout == "NHWC" else planes(x)
    results = []
    for dtype, backend in (("float32", "cpu"), ("float16", "cpu"), ("float32", "reference")):
        with astride.use(winograd=most, backend=backend):
            y, pull = astride.vjp(astride.conv, *(a.astype(dtype) for a in (x, w, b)), padding=1, layout=layout)
            results.append([np.asarray(a, "float64") for a in (y, *pull(np.asarray(np.rint(y) % 3 - 1, dtype)))])
    share = 1e-5 if most == 4 else 0
    for value, exact in zip(results[0], results[2], strict=True):
        np.testing.assert_allclose(value, exact, rtol=0, atol=share * np.abs(exact).max())
    np.testing.assert_allclose(results[1][0], results[2][0], rtol=1e-3, atol=share * np.abs(results[2][0]).max())
