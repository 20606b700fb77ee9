"""Adaptive pooling on grids a person can check."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compare import assert_close, assert_same

import astride
from astride.like import pytorch as F


def test_windows_cover_the_input_and_overlap_by_one_at_most() -> None:
    for n in range(1, 12):
        for o in range(1, 15):
            (axis,) = astride.plan("adaptive_pool", (1, 1, n), output_size=o).axes
            assert axis.starts == tuple(int(np.floor(i * n / o)) for i in range(o))
            assert axis.ends == tuple(int(np.ceil((i + 1) * n / o)) for i in range(o))
            assert set().union(*(axis.taps(i) for i in range(o))) == set(range(n))
            assert all(axis.ends[i] - axis.starts[i + 1] <= 1 for i in range(o - 1))


def test_by_hand() -> None:
    #  1 2 3 4 5   three windows: 1 2   2 3 4   4 5
    x = np.arange(1.0, 6.0).reshape(1, 1, 5)
    y, pull = astride.vjp(astride.adaptive_pool, x, output_size=3)
    assert y.tolist() == [[[1.5, 3, 4.5]]]
    third = 1 / 3
    assert_close(pull(np.ones_like(y))[0], np.array([[[0.5, 0.5 + third, third, third + 0.5, 0.5]]]), 1e-15)
    y, indices = astride.adaptive_pool(x, output_size=3, reduce="max", return_indices=True)
    assert (y.tolist(), indices.tolist()) == ([[[2, 4, 5]]], [[[1, 3, 4]]])


def test_a_window_for_every_pixel_and_more() -> None:
    x = np.array([[[1.0, 2, 3]]])
    assert astride.adaptive_pool(x, output_size=3).tolist() == [[[1, 2, 3]]]
    assert astride.adaptive_pool(x, output_size=5).tolist() == [[[1, 1.5, 2, 2.5, 3]]]
    assert astride.adaptive_pool(x, output_size=6, reduce="max").tolist() == [[[1, 1, 2, 2, 3, 3]]]


def test_an_output_that_divides_the_input_is_plain_pooling(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (2, 3, 6, 8)).astype(np.float64)  # whose sums are exact in any order
    assert_same(astride.adaptive_pool(x, output_size=(3, 2)), astride.avg_pool(x, kernel=(2, 4)))
    assert_same(astride.adaptive_pool(x, output_size=(3, 2), reduce="max"), astride.max_pool(x, kernel=(2, 4)))


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_gradients(layout: str, rng: np.random.Generator) -> None:
    for shape in ((2, 3, 7), (2, 3, 5, 4), (1, 2, 3, 4, 5)):
        x = rng.normal(size=shape)
        for reduce in ("average", "max"):
            assert astride.check_gradient(astride.adaptive_pool, x, output_size=2, reduce=reduce, layout=layout)


def test_pytorch() -> None:
    """Unbatched input, None for an axis kept, indices in the plane, the last of two NaNs."""
    x = np.arange(12.0).reshape(1, 3, 4)
    assert F.adaptive_avg_pool2d(x, (None, 2)).tolist() == [[[0.5, 2.5], [4.5, 6.5], [8.5, 10.5]]]
    y, indices = F.adaptive_max_pool2d(x, 1, return_indices=True)
    assert (y.item(), indices.item(), indices.shape) == (11, 11, (1, 1, 1))
    nan = np.nan
    assert F.adaptive_max_pool1d(np.array([[[1, nan, nan, 3]]]), 1, return_indices=True)[1].item() == 2
    assert F.adaptive_avg_pool3d(np.ones((2, 2, 3, 4)), 2).shape == (2, 2, 2, 2)


def test_an_average_has_no_indices() -> None:
    with pytest.raises(astride.ArgumentError, match="an average has no indices"):
        astride.adaptive_pool(np.zeros((1, 1, 4)), output_size=2, return_indices=True)
    with pytest.raises(astride.ArgumentError, match="output_size needs one value per axis"):
        astride.adaptive_pool(np.zeros((1, 1, 4)), output_size=None)


def test_dtypes_of_a_maximum() -> None:
    """The explicit rules take what their max_pool takes; PyTorch 2.13 has no adaptive maximum of integers or bools."""
    x = np.array([[[False, True, False, False]]])
    y, indices = astride.adaptive_pool(x, output_size=2, reduce="max", return_indices=True)
    assert (y.dtype, y.tolist(), indices.tolist()) == (np.bool_, [[[True, False]]], [[[1, 2]]])
    for rung in ("loops2", "im2col"):
        assert_same(astride.adaptive_pool(x, output_size=3, reduce="max", backend=f"reference:{rung}"), x[..., [1, 1, 3]])
    for dtype in ("bool", "uint8", "int64"):
        with pytest.raises(astride.ArgumentError, match=f"no rule for {dtype} arrays"):
            F.adaptive_max_pool1d(x.astype(dtype), 2)
        with pytest.raises(astride.ArgumentError, match=f"no rule for {dtype} arrays"):
            astride.adaptive_pool(x.astype(dtype), output_size=2)
