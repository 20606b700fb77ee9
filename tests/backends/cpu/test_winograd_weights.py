"""The gradient of weights by Winograd's form against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu import winograd_weights
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.winograd_forms import FORMS
from astride.plan import ConvPlan

Array = NDArray[Any]

SHAPES: list[tuple[tuple[int, int, int, int], int, Any, int]] = [
    ((1, 3, 3, 1), 1, 0, 1),
    ((2, 9, 7, 20), 35, 1, 1),
    ((1, 14, 14, 64), 64, 1, 1),
    ((3, 17, 13, 33), 70, ((0, 2), (1, 3)), 1),
    ((2, 13, 15, 66), 34, 1, 2),
    ((9, 6, 5, 130), 140, 1, 1),
    ((2, 12, 10, 30), 20, ((-1, 1), (0, -2)), 1),
    ((40, 28, 27, 8), 8, 1, 1),
]
"""x as (N, H, W, I), output channels, padding, groups."""


def made(rng: np.random.Generator, case: Any, dtype: str, whole: bool = False) -> tuple[ConvPlan, Array, Array]:
    """A plan, channels last, and its x and dy."""
    shape, outputs, padding, groups = case
    w_shape = (outputs, shape[-1] // groups, 3, 3)
    plan = astride.plan("conv", shape, w_shape=w_shape, dtype=dtype, padding=padding, groups=groups, layout="NHWC")
    assert isinstance(plan, ConvPlan)

    def some(*sizes: int) -> Array:
        values = rng.integers(-3, 4, sizes) if whole else rng.standard_normal(sizes)
        return values.astype(dtype)

    return plan, some(*shape), some(shape[0], *(axis.out for axis in plan.axes), outputs)


def computed(plan: ConvPlan, x: Array, dy: Array, tile: int) -> Array:
    """What Winograd's kernel gives, of any size."""
    return winograd_weights.weights_gradient(relation(plan, False), x, dy, plan.weight_shape, tile)


def expected(plan: ConvPlan, x: Array, dy: Array) -> Array:
    pads = [(axis.pad_lo, axis.pad_hi) for axis in plan.axes]
    w = np.zeros(plan.weight_shape, x.dtype)
    _, pull = astride.vjp(astride.conv, x, w, padding=pads, groups=plan.groups, layout="NHWC", backend="reference")
    return np.asarray(pull(dy)[1])


@pytest.mark.parametrize("tile", FORMS)
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_any_shape(case: Any, tile: int) -> None:
    plan, x, dy = made(np.random.default_rng(1), case, "float64")
    dw = expected(plan, x, dy)
    assert np.abs(computed(plan, x, dy, tile) - dw).max() < 1e-12 * np.abs(dw).max()


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_whole_numbers_are_exact(case: Any) -> None:
    """The last transform multiplies sums of whole numbers by 1/4 at least, which float32 holds."""
    plan, x, dy = made(np.random.default_rng(2), case, "float32", whole=True)
    assert np.array_equal(computed(plan, x, dy, 2), expected(plan, x, dy))


@pytest.mark.parametrize("tile", FORMS)
@pytest.mark.parametrize("case", [*SHAPES, ((1, 5, 80, 3), 17, 1, 1)], ids=str)
def test_channels_first_give_the_same(case: Any, tile: int) -> None:
    plan, x, dy = made(np.random.default_rng(6), case, "float32")
    how, shape = relation(plan, False), plan.weight_shape
    a, b = (np.ascontiguousarray(np.moveaxis(array, -1, 1)) for array in (x, dy))
    dw = computed(plan, x, dy, tile)
    assert np.array_equal(winograd_weights.weights_gradient(how, a, b, shape, tile, True), dw)
    a[0, 0, 0, 0] = x[0, 0, 0, 0] = np.inf
    bad = winograd_weights.weights_gradient(how, a, b, shape, tile, True)
    assert np.array_equal(bad, computed(plan, x, dy, tile), equal_nan=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("case", SHAPES[1:5], ids=str)
def test_what_is_not_finite_lies_where_windows_have_it(case: Any, bad: float) -> None:
    plan, x, dy = made(np.random.default_rng(3), case, "float32", whole=True)
    x[0, 0, 0, 0] = dy[-1, -1, -1, -1] = bad
    dw, found = expected(plan, x, dy), computed(plan, x, dy, 2)
    np.testing.assert_array_equal(found, dw)


def test_threads_do_not_show() -> None:
    plan, x, dy = made(np.random.default_rng(4), ((5, 22, 19, 130), 50, 1, 1), "float32")
    results = []
    for threads in (1, 2, 5):
        with astride.use(threads=threads):
            results.append(computed(plan, x, dy, 2).tobytes())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(("tile", "most"), [(2, 6e-7), (4, 1e-5)])
def test_errors_stay_below_what_is_stated(tile: int, most: float) -> None:
    plan, x, dy = made(np.random.default_rng(5), ((8, 28, 28, 32), 32, 1, 1), "float32")
    dw = expected(plan, x.astype("float64"), dy.astype("float64"))
    assert np.abs(computed(plan, x, dy, tile) - dw).max() < most * np.abs(dw).max()
