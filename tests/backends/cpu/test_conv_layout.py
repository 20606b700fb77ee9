"""Matrices transposed: every number arrives, and nothing behind or before them is touched."""

from __future__ import annotations

import numpy as np
import pytest

from astride.backends.cpu.conv_layout import transpose

SHAPES = [(60, 16, 9), (6, 9, 16), (3, 5, 7), (1, 1, 9), (2, 40, 3), (2, 3, 40), (4, 17, 15), (1, 100, 9), (2, 33, 20)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrices_of_all_sizes(shape: tuple[int, int, int], dtype: str) -> None:
    x = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    around = np.full(x.size + 64, -1, dtype)
    y = around[32:-32].reshape(shape[0], shape[2], shape[1])
    transpose(x, y, shape[1])
    assert np.array_equal(y, x.swapaxes(1, 2))
    assert (around[:32] == -1).all() and (around[-32:] == -1).all()
