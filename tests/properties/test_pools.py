"""What must hold of pooling on any geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compare import assert_close, assert_same
from tests.properties.geometry import PAD_MODES, SETTINGS, Windows, distinct, integers, windows

import astride
from astride.like import pytorch as F

SEEDS = st.integers(0, 2**31)


def image(geometry: Windows, seed: int) -> Any:
    return integers(seed, (2, 3, *geometry.size))


def pooled(op: str, x: Any, geometry: Windows, **arguments: Any) -> Any:
    return getattr(astride, op)(x, kernel=geometry.kernel, **geometry.arguments, **arguments)


def grown(x: Any, geometry: Windows, value: float) -> Any:
    """x with every pad written out, negative ones cropped."""
    pads = tuple((max(lo, 0), max(hi, 0)) for lo, hi in geometry.padding)
    padded = np.pad(x, ((0, 0), (0, 0), *pads), constant_values=value)
    cropped = tuple(slice(max(-lo, 0), padded.shape[a + 2] - max(-hi, 0)) for a, (lo, hi) in enumerate(geometry.padding))
    return padded[(slice(None), slice(None), *cropped)]


def rows(x: Any, geometry: Windows, out: tuple[int, ...]) -> Any:
    """All windows of a padded x, (N, C, *out, taps), written with slices alone."""
    taps = []
    for place in np.ndindex(*geometry.kernel):
        taken = tuple(
            slice(j * d, j * d + (o - 1) * s + 1, s)
            for j, d, o, s in zip(place, geometry.dilation, out, geometry.stride, strict=True)
        )
        taps.append(x[(slice(None), slice(None), *taken)])
    return np.stack(taps, axis=-1)


@SETTINGS
@given(windows(), SEEDS)
def test_extremes_are_those_of_the_windows(geometry: Windows, seed: int) -> None:
    """The definition, on input padded with what loses to everything."""
    x = image(geometry, seed)
    for op, loses, best in (("max_pool", -np.inf, np.max), ("min_pool", np.inf, np.min)):
        y = pooled(op, x, geometry)
        assert_same(y, best(rows(grown(x, geometry, loses), geometry, y.shape[2:]), axis=-1))


@SETTINGS
@given(windows(), SEEDS)
def test_means_and_norms_are_those_of_the_windows(geometry: Windows, seed: int) -> None:
    x = image(geometry, seed)
    y = pooled("avg_pool", x, geometry, divisor="kernel")
    window = rows(grown(x, geometry, 0), geometry, y.shape[2:])
    assert_close(y, window.mean(-1), 1e-14)
    real = rows(grown(np.ones_like(x), geometry, 0), geometry, y.shape[2:]).sum(-1)
    assert_close(pooled("avg_pool", x, geometry), np.where(real > 0, window.sum(-1) / np.maximum(real, 1), 0), 1e-14)
    assert_close(pooled("lp_pool", x, geometry), np.sqrt((window**2).sum(-1)), 1e-14)
    assert_close(pooled("lp_pool", x, geometry, p=3.0), np.cbrt((np.abs(window) ** 3).sum(-1)), 1e-13)


@SETTINGS
@given(windows(crop=False), SEEDS)
def test_the_first_winner_is_the_first_in_its_window(geometry: Windows, seed: int) -> None:
    """Offsets, whole windows included padding, against NumPy's argmax."""
    x = image(geometry, seed)
    y, places = pooled("max_pool", x, geometry, return_indices=True, index_base="window", start="finite", unpicked="nowhere")
    window = rows(grown(x, geometry, -np.inf), geometry, y.shape[2:])
    empty = np.isinf(window).all(-1)
    assert_same(places, np.where(empty, -1, window.argmax(-1)))


@pytest.mark.parametrize("op", ["max_pool", "min_pool", "avg_pool", "lp_pool"])
@pytest.mark.parametrize("edge", PAD_MODES)
@SETTINGS
@given(geometry=windows(ranks=(1, 2), crop=False), seed=SEEDS)
def test_an_edge_mode_is_np_pad(op: str, edge: str, geometry: Windows, seed: int) -> None:
    if edge == "mirror" and min(geometry.size) == 1:
        return
    x = image(geometry, seed)
    whole: dict[str, Any] = dict(divisor="kernel") if op == "avg_pool" else {}
    bigger = np.pad(x, ((0, 0), (0, 0), *geometry.padding), mode=PAD_MODES[edge])
    expected = getattr(astride, op)(bigger, kernel=geometry.kernel, stride=geometry.stride, dilation=geometry.dilation, **whole)
    assert_same(pooled(op, x, geometry, edge=edge, **whole), expected)


@SETTINGS
@given(windows(), SEEDS)
def test_the_maximum_of_two_images_is_the_greater_maximum(geometry: Windows, seed: int) -> None:
    x, z = image(geometry, seed), image(geometry, seed + 1)
    assert_same(
        pooled("max_pool", np.maximum(x, z), geometry),
        np.maximum(pooled("max_pool", x, geometry), pooled("max_pool", z, geometry)),
    )


@SETTINGS
@given(windows(), SEEDS)
def test_order_and_shift(geometry: Windows, seed: int) -> None:
    """Max commutes with any growing function, averages of real pixels with affine ones."""
    x = image(geometry, seed)
    y = pooled("max_pool", x, geometry)
    assert_same(pooled("max_pool", 2 * x + 7, geometry), 2 * y + 7)
    assert_same(pooled("min_pool", -x, geometry), -y)
    z = integers(seed + 3, x.shape)
    arguments: dict[str, Any] = dict(divisor="kernel")
    both = pooled("avg_pool", x + z, geometry, **arguments)
    assert_close(both, pooled("avg_pool", x, geometry, **arguments) + pooled("avg_pool", z, geometry, **arguments), 1e-14)


@SETTINGS
@given(windows(crop=False), SEEDS)
def test_gradients_conserve_what_came_in(geometry: Windows, seed: int) -> None:
    """A winner takes all; shares add up to one; an average over real pixels spreads dy whole. Empty windows drop theirs."""
    x = image(geometry, seed)
    for op, arguments in (
        ("max_pool", {}),
        ("max_pool", dict(tie="equal_share")),
        ("min_pool", dict(tie="last")),
        ("avg_pool", {}),
    ):
        y, pull = astride.vjp(getattr(astride, op), x, kernel=geometry.kernel, **geometry.arguments, **arguments)
        dy = integers(seed + 2, y.shape)
        inhabited = rows(grown(np.ones_like(x), geometry, 0), geometry, y.shape[2:]).any(-1)
        dx = pull(dy)[0]
        assert dx is not None
        assert_close(dx.sum(axis=tuple(range(2, x.ndim))), (dy * inhabited).sum(axis=tuple(range(2, x.ndim))), 1e-12, scale=100.0)


@SETTINGS
@given(windows(crop=False), SEEDS)
def test_an_average_is_a_depthwise_convolution(geometry: Windows, seed: int) -> None:
    """Its gradient too: the adjoint."""
    x = image(geometry, seed)
    taps = int(np.prod(geometry.kernel))
    w = np.full((3, 1, *geometry.kernel), 1.0 / taps)
    y, pull = astride.vjp(astride.avg_pool, x, kernel=geometry.kernel, divisor="kernel", **geometry.arguments)
    z, pull_conv = astride.vjp(astride.conv, x, w, groups=3, **geometry.arguments)
    assert_close(y, z, 1e-13)
    dy = integers(seed + 2, y.shape)
    assert_close(pull(dy)[0], pull_conv(dy)[0], 1e-13)


@SETTINGS
@given(windows(crop=False), SEEDS)
def test_l2_is_the_root_of_summed_squares(geometry: Windows, seed: int) -> None:
    x = image(geometry, seed)
    squares = pooled("avg_pool", x * x, geometry, divisor_override=1)
    assert_close(pooled("lp_pool", x, geometry), np.sqrt(squares), 1e-14)


@SETTINGS
@given(windows(ranks=(1, 2), crop=False), SEEDS)
def test_unpooling_what_was_pooled(geometry: Windows, seed: int) -> None:
    """Every maximum lands where it came from, everything else is 0; the gradient of pooling is unpooling's with sums."""
    x = distinct(seed, (2, 3, *geometry.size)) + 1
    y, indices = pooled("max_pool", x, geometry, return_indices=True)
    inhabited = indices >= 0
    if not inhabited.all():
        return
    back = astride.max_unpool(y, indices, output_size=geometry.size)
    assert_same(back[back != 0], x[back != 0])
    assert_same(pooled("max_pool", back, geometry), y)
    flat = back.reshape(2, 3, -1)
    assert_same(np.take_along_axis(flat, indices.reshape(2, 3, -1), 2).reshape(y.shape), y)


@SETTINGS
@given(st.integers(1, 3), st.integers(1, 4), SEEDS)
def test_windows_side_by_side_unpool_to_the_gradient(kernel: int, count: int, seed: int) -> None:
    x = distinct(seed, (1, 2, kernel * count, kernel * count))
    y, indices = F.max_pool2d(x, kernel, return_indices=True)
    _, pull = astride.vjp(F.max_pool2d, x, kernel)
    dy = integers(seed, y.shape)
    assert_same(pull(dy)[0], F.max_unpool2d(dy, indices, kernel))


@SETTINGS
@given(windows(), SEEDS)
def test_layouts_agree(geometry: Windows, seed: int) -> None:
    x = image(geometry, seed)
    last = np.moveaxis(x, 1, -1)
    for op in ("max_pool", "min_pool", "avg_pool", "lp_pool", "stochastic_pool"):
        y = pooled(op, x, geometry)
        assert_same(np.ascontiguousarray(np.moveaxis(pooled(op, last, geometry, layout="channels_last"), -1, 1)), y)


@SETTINGS
@given(windows(), SEEDS)
def test_a_draw_is_always_a_tap_of_its_window(geometry: Windows, seed: int) -> None:
    x = np.abs(image(geometry, seed)) + 1
    y = pooled("stochastic_pool", x, geometry, training=True, seed=seed)
    window = rows(grown(x, geometry, 0), geometry, y.shape[2:])
    assert (window == y[..., None]).any(-1).all()
    low, high = pooled("min_pool", x, geometry, empty="zero"), pooled("max_pool", x, geometry, empty="zero")
    assert ((low <= y) & (y <= high)).all()
