"""Every kernel that convolves can store zero for what is below zero: the same as doing so afterwards, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import astride
from astride.backends.cpu import conv_gather, conv_planes, conv_slabs, depthwise_first, depthwise_last, depthwise_moved
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.conv_pack import packed, packed_bias
from astride.dispatch import forward

WAYS: list[tuple[Any, str, tuple[int, ...], tuple[int, ...], int]] = [
    (conv_gather, "channels_last", (2, 9, 10, 20), (40, 20, 3, 3), 1),
    (conv_slabs, "channels_first", (2, 300, 9, 10), (40, 300, 3, 3), 1),
    (conv_planes, "channels_first", (2, 20, 18, 16), (40, 20, 1, 1), 1),
    (depthwise_first, "channels_first", (2, 20, 9, 18), (20, 1, 3, 3), 20),
    (depthwise_last, "channels_last", (2, 9, 10, 20), (20, 1, 3, 3), 20),
    (depthwise_moved, "channels_first", (2, 24, 5, 6), (24, 4, 3, 3), 6),
]


@pytest.mark.parametrize(("way", "layout", "shape", "w_shape", "groups"), WAYS, ids=lambda p: getattr(p, "__name__", None))
def test_below_zero_is_zero(
    way: Any, layout: str, shape: tuple[int, ...], w_shape: tuple[int, ...], groups: int
) -> None:
    rng = np.random.default_rng(5)
    x, w, b = (rng.standard_normal(s, "float32") for s in (shape, w_shape, w_shape[:1]))
    x.reshape(-1)[7] = np.nan
    pad = w_shape[-1] // 2
    plan = astride.plan("conv", shape, w_shape=w_shape, dtype="float32", padding=pad, groups=groups, layout=layout)
    how = relation(plan, False)
    tiled = way in (conv_gather, conv_slabs)
    given = (x, packed(how, w), packed_bias(how, b, w.dtype)) if tiled else (x, w, b)
    plain, rectified = (np.empty(plan.output_shape(shape, w_shape, b.shape), "float32") for _ in range(2))
    way.compute(how, *given, plain)
    way.compute(how, *given, rectified, rectify=True)
    assert (plain < 0).any() and np.isnan(plain).any()
    assert np.array_equal(rectified, np.maximum(plain, 0), equal_nan=True)


@pytest.mark.parametrize(("layout", "shape"), [("channels_first", (2, 64, 28, 28)), ("channels_last", (2, 28, 28, 64))])
@pytest.mark.parametrize("tile", [0, 2])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_whoever_computes(backend: str, tile: int, layout: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    x, w, b = (rng.standard_normal(s, "float32") for s in (shape, (64, 64, 3, 3), (64,)))
    plan = astride.plan("conv", shape, w_shape=w.shape, dtype="float32", padding=1, layout=layout)
    with astride.use(winograd=tile):
        plain, rectified = (forward(plan, x, w, b, backend=backend, rectify=rectify)[0] for rectify in (False, True))
    assert (plain < 0).any() and np.array_equal(rectified, np.maximum(plain, 0))
