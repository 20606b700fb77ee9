"""Pixels that share places of the cache are copied to a better distance, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import astride
from astride.backends.cpu import conv_choice
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.conv_spread import ALIAS, pitch, spread

CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 5, 6, 1024), (130, 1024, 1, 1), {}),
    ((1, 7, 7, 1024), (33, 1024, 3, 3), {"padding": 1}),
    ((1, 9, 8, 2048), (300, 1024, 2, 2), {"groups": 2, "stride": 2}),
    ((3, 4, 1024), (150, 1024, 1), {}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "w_shape", "options"), CASES, ids=str)
def test_copied_pixels_give_the_same(shape: Any, w_shape: Any, options: dict[str, Any], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, s).astype(dtype) for s in (shape, w_shape))
    plan = astride.plan("conv", shape, w_shape=w_shape, dtype=dtype, layout="channels_last", **options)
    assert relation(plan, False).spreads
    expected = astride.conv(x, w, layout="channels_last", backend="reference:im2col", **options)
    for threads in (1, 2, 3):
        with astride.use(backend="cpu", threads=threads), conv_choice.forced("tiles"):
            assert np.array_equal(astride.conv(x, w, layout="channels_last", **options), expected)


@pytest.mark.parametrize("rows", [1, 37])
def test_spread_rows(rows: int) -> None:
    x = np.arange(rows * 2048, dtype=np.float32).reshape(rows, 2048)
    made = spread(x)
    assert np.array_equal(made, x) and made.strides == (pitch(2 * ALIAS), 4) and pitch(2 * ALIAS) % ALIAS


def test_few_products_are_not_worth_it() -> None:
    plan = astride.plan("conv", (1, 1024, 9, 9), w_shape=(20, 1024, 1, 1))
    assert not relation(plan, False).spreads
