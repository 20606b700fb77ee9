"""Field reports about Metal Performance Shaders, PyTorch on MPS and Core ML: each with the value that is right."""

from __future__ import annotations

import numpy as np
import pytest

import astride
from astride.errors import ArgumentError
from astride.like import pytorch as F


@pytest.mark.parametrize(("offset", "expected"), [(0, [1, 3]), (1, [2, 4])])
def test_apple_01_windows_are_centred(offset: int, expected: list[float]) -> None:
    x = np.array([[[1.0, 2, 3, 4]]])
    assert astride.max_pool(x, kernel=2, stride=2, offset=(offset,), size=(2,), rules="mps")[0, 0].tolist() == expected
    if offset == 1:  # kernel // 2 - pad
        assert F.max_pool1d(x, 2)[0, 0].tolist() == expected


def test_apple_03_averages_at_the_edge() -> None:
    ones = np.ones((1, 1, 3, 3))
    window = dict(kernel=3, stride=1, offset=(0, 0), size=(3, 3), rules="mps")
    assert (astride.avg_pool(ones, **window, edge="clamp") == 1).all()
    zero = astride.avg_pool(ones, **window, edge="zero")[0, 0]
    np.testing.assert_allclose([zero[0, 0], zero[0, 1], zero[1, 1]], [4 / 9, 6 / 9, 1])


def test_apple_04_a_kernel_that_is_not_turned() -> None:
    x, w = np.array([[[1.0, 0.0]]]), np.array([[[1.0, 2.0, 3.0]]])
    theirs = astride.conv_transpose(x, w, stride=2, rules="mps", size=(5,), kernel_offset=(-1,))[0, 0]
    torch = F.conv_transpose1d(x, np.ascontiguousarray(w[..., ::-1]), stride=2)[0, 0]
    assert theirs.tolist() == torch.tolist() == [3, 2, 1, 0, 0]


def test_apple_06_windows_outside_the_input() -> None:
    x = np.arange(24.0).reshape(1, 1, 4, 6)
    y, indices = F.max_pool2d(x, 1, stride=2, ceil_mode=True, return_indices=True)
    assert y.shape == indices.shape == (1, 1, 2, 3) and y[0, 0].tolist() == [[0, 2, 4], [12, 14, 16]]
    assert F.avg_pool2d(x, 1, stride=2, ceil_mode=True).tolist() == y.tolist()


def test_apple_08_a_window_of_zeros_is_zero() -> None:
    x = np.concatenate([np.full(18000, 3.4e6), np.zeros(500)]).astype(np.float32).reshape(1, 1, -1)
    y = F.avg_pool1d(x, 5, stride=1)
    assert y.min() == 0 and (y[0, 0, 18000:] == 0).all()


def test_apple_09_gradients_do_not_depend_on_strides() -> None:
    x = np.random.default_rng(9).normal(size=(2, 5, 5, 3))
    view = np.moveaxis(x, -1, 1)
    assert not view.flags.c_contiguous
    y, pull = astride.vjp(F.avg_pool2d, view, 2)
    dy = np.moveaxis(np.ascontiguousarray(np.moveaxis(y, 1, -1)), -1, 1)
    plain = astride.vjp(F.avg_pool2d, np.ascontiguousarray(view), 2)[1](np.ascontiguousarray(dy))[0]
    np.testing.assert_array_equal(pull(dy)[0], plain)


def test_apple_10_what_the_cpu_refuses() -> None:
    with pytest.raises(ArgumentError, match="kernel"):
        F.max_pool2d(np.ones((1, 1, 1, 4)), 2)
    with pytest.raises(ArgumentError, match="output_padding"):
        F.conv_transpose1d(np.ones((1, 1, 4)), np.ones((1, 1, 3)), output_padding=2)


def test_apple_11_two_taps_and_stride_two() -> None:
    assert F.conv_transpose1d(np.ones((1, 1, 2)), np.ones((1, 1, 2)), stride=2).tolist() == [[[1, 1, 1, 1]]]
    rng = np.random.default_rng(11)
    x, w = rng.normal(size=5), rng.normal(size=16)
    whole = np.zeros(4 * 8 + 16)
    for i in range(5):
        whole[8 * i : 8 * i + 16] += x[i] * w
    np.testing.assert_allclose(F.conv_transpose1d(x[None, None], w[None, None], stride=8, padding=4)[0, 0], whole[4:-4])


def test_apple_13_output_padding_without_padding() -> None:
    rng = np.random.default_rng(13)
    x, w = rng.normal(size=(1, 3, 4)), rng.normal(size=(3, 1, 3))
    y = F.conv_transpose1d(x, w, stride=2, output_padding=1, groups=3)
    assert y.shape == (1, 3, 10)
    for c in range(3):
        whole = np.zeros(10)
        for i in range(4):
            whole[2 * i : 2 * i + 3] += x[0, c, i] * w[c, 0]
        np.testing.assert_allclose(y[0, c], whole)
