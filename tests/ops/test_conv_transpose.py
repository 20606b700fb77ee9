"""Transposed convolution by hand, the adjoint identity, and the flip identity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same

import astride
from astride.like import caffe, mps
from astride.like import pytorch as F

RUNGS = ["reference:im2col", "reference:loops2", "reference:loops3", "reference:loops4", "reference:flip"]


def row(*values: float) -> Any:
    return np.array(values, "float64")[None, None]


TWO, DIGITS = row(1, 2), row(1, 10, 100)


@pytest.mark.parametrize("backend", RUNGS)
def test_every_value_times_the_kernel(backend: str) -> None:
    #  1 10 100
    #       2  20 200
    assert astride.conv_transpose(TWO, DIGITS, stride=2, backend=backend).tolist() == [[[1, 10, 102, 20, 200]]]
    assert astride.conv_transpose(TWO, DIGITS, stride=1, backend=backend).tolist() == [[[1, 12, 120, 200]]]


@pytest.mark.parametrize("rules", ["caffe", "pytorch", "explicit"])
def test_padding_crops(rules: str) -> None:
    """Trap T16: p=1 takes a pixel from both ends."""
    assert astride.conv_transpose(TWO, DIGITS, stride=2, padding=1, rules=rules).tolist() == [[[10, 102, 20]]]


def test_output_padding() -> None:
    """Trap T31: behind the last kernel there is nothing to add but the bias; pads give real values back."""
    assert F.conv_transpose1d(TWO, DIGITS, stride=2, output_padding=1).tolist() == [[[1, 10, 102, 20, 200, 0]]]
    assert F.conv_transpose1d(TWO, DIGITS, stride=2, padding=1, output_padding=1).tolist() == [[[10, 102, 20, 200]]]
    y = F.conv_transpose1d(TWO, DIGITS, np.array([0.5]), stride=2, output_padding=1)
    assert y.tolist() == [[[1.5, 10.5, 102.5, 20.5, 200.5, 0.5]]]


def test_dilation() -> None:
    """Trap T47."""
    for y in (
        F.conv_transpose1d(TWO, DIGITS, stride=2, dilation=2),
        astride.conv_transpose(TWO, DIGITS, stride=2, dilation=2, rules="caffe"),
    ):
        assert y.tolist() == [[[1, 0, 12, 0, 120, 0, 200]]]


def test_gradients() -> None:
    y, pull = astride.vjp(astride.conv_transpose, TWO, DIGITS, np.array([0.0]), stride=2)
    dx, dw, db = pull(np.ones_like(y))
    assert dx.tolist() == [[[111, 111]]] and dw.tolist() == [[[3, 3, 3]]] and db.tolist() == [5]


def test_mps_does_not_turn_the_kernel() -> None:
    """Trap T41: zeros between the pixels, then plain correlation."""
    x, w = TWO.reshape(1, 1, 2, 1), DIGITS.reshape(1, 1, 3, 1)
    same = mps.convolution_transpose(x, w, stride_in_pixels_x=2)
    assert same.reshape(-1).tolist() == [10, 201, 20]
    full = mps.convolution_transpose(x, w, stride_in_pixels_x=2, kernel_offset_x=-1, destination_size=(5, 1))
    assert full.reshape(-1).tolist() == [100, 10, 201, 20, 2]


def test_mps_weights_turned_are_everybody_elses() -> None:
    x, w = row(1, 0), row(1, 2, 3)
    turned = mps.convolution_transpose(
        x.reshape(1, 1, 2, 1), w[..., ::-1].reshape(1, 1, 3, 1), stride_in_pixels_x=2, kernel_offset_x=-1, destination_size=(5, 1)
    )
    assert turned.reshape(-1).tolist() == F.conv_transpose1d(x, w, stride=2).reshape(-1).tolist() == [1, 2, 3, 0, 0]


def test_caffe_weights_are_in_by_out() -> None:
    x = np.ones((1, 4, 1, 1))
    w = np.arange(12.0).reshape(4, 3, 1, 1)
    y = caffe.deconvolution(x, w, num_output=6, kernel_size=1, group=2)
    assert y.reshape(-1).tolist() == [3, 5, 7, 15, 17, 19]


def test_how_often_each_pixel_is_covered() -> None:
    """Ones under ones, k=3, s=2: the checkerboard of uneven overlap."""
    y = astride.conv_transpose(np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), stride=2)[0, 0]
    line = [1, 1, 2, 1, 2, 1, 1]
    assert y[0].tolist() == line and y[2].tolist() == [2 * v for v in line]


def test_bilinear_upsampling_keeps_a_constant_inside() -> None:
    profile = np.array([0.25, 0.75, 0.75, 0.25])
    w = np.broadcast_to(np.outer(profile, profile), (2, 1, 4, 4)).copy()
    y = caffe.deconvolution(np.ones((1, 2, 5, 5)), w, num_output=2, kernel_size=4, stride=2, pad=1, group=2, bias_term=False)
    assert y.shape == (1, 2, 10, 10) and (y[:, :, 1:-1, 1:-1] == 1).all()


def test_depthwise_with_output_padding_above_the_pad() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.integers(-4, 5, (1, 3, 4, 3)).astype("float64"), rng.integers(-4, 5, (3, 1, 3, 2)).astype("float64")
    y = F.conv_transpose2d(x, w, stride=2, output_padding=1, groups=3)
    expected = np.zeros((1, 3, 10, 7))
    for i in range(4):
        for j in range(3):
            expected[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 2] += x[:, :, i : i + 1, j : j + 1] * w[None, :, 0]
    assert_same(y, expected)


@pytest.mark.parametrize("backend", RUNGS)
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_weight_that_is_cropped_adds_nothing(backend: str, bad: float) -> None:
    """The first tap of the first value falls outside the output."""
    y = astride.conv_transpose(row(1, 2, 3), row(bad, 10, 100), stride=2, padding=1, backend=backend)
    assert np.isfinite(y[0, 0]).tolist() == [True, False, True, False, True]
    assert y[0, 0, 0] == 10


# The flip identity


def turned(w: Any, groups: int) -> Any:
    """(I, O/g, *k) as the convolution's (O, I/g, *k), reversed along every spatial axis; written anew, not taken from src."""
    inner, outer = w.shape[0] // groups, w.shape[1]
    blocks = [w[g * inner : (g + 1) * inner].swapaxes(0, 1) for g in range(groups)]
    whole = np.concatenate(blocks)
    assert whole.shape[:2] == (outer * groups, inner)
    return np.ascontiguousarray(whole[(slice(None), slice(None), *[slice(None, None, -1)] * (w.ndim - 2))])


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_stride_one_is_a_convolution_with_the_kernel_turned(rank: int, groups: int, padding: int, dilation: int) -> None:
    rng = np.random.default_rng([rank, groups, padding])
    x = rng.integers(-4, 5, (2, 2 * groups, *(5, 6, 7)[:rank])).astype("float64")
    w = rng.integers(-4, 5, (2 * groups, 3, *(3, 2, 3)[:rank])).astype("float64")
    y = astride.conv_transpose(x, w, padding=padding, dilation=dilation, groups=groups)
    pads = tuple((dilation * (k - 1) - padding,) * 2 for k in w.shape[2:])
    assert_same(y, astride.conv(x, turned(w, groups), padding=pads, dilation=dilation, groups=groups))


@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("more", [0, 1])
def test_any_stride_is_one_over_a_stretched_input(stride: int, more: int) -> None:
    rng = np.random.default_rng([stride, more])
    x, w = rng.integers(-4, 5, (1, 2, 4, 5)).astype("float64"), rng.integers(-4, 5, (2, 3, 3, 4)).astype("float64")
    y = astride.conv_transpose(x, w, stride=stride, padding=1, output_padding=more)
    pads = tuple((k - 2, k - 2 + more) for k in w.shape[2:])
    assert_same(y, astride.conv(x, turned(w, 1), input_dilation=stride, padding=pads))


def test_the_flip_kernel_agrees_with_gradients() -> None:
    rng = np.random.default_rng(2)
    x, w, b = (rng.normal(size=size) for size in ((2, 4, 5, 4), (4, 3, 3, 4), (6,)))
    arguments: dict[str, Any] = dict(stride=(2, 3), padding=1, output_padding=(1, 2), groups=2)
    y, pull = astride.vjp(astride.conv_transpose, x, w, b, **arguments)
    z, pull_flip = astride.vjp(astride.conv_transpose, x, w, b, **arguments, backend="reference:flip")
    assert_near(z, y, 1e-13)
    dy = rng.normal(size=y.shape)
    for got, expected in zip(pull_flip(dy), pull(dy), strict=True):
        assert_near(got, expected, 1e-13)


def test_it_is_the_gradient_of_the_convolution() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(1, 3, 9, 8)), rng.normal(size=(4, 3, 3, 2))
    y, pull = astride.vjp(astride.conv, x, w, stride=2, padding=1)
    dy = rng.normal(size=y.shape)
    extra = tuple((n + 2 - k) % 2 for n, k in zip(x.shape[2:], w.shape[2:], strict=True))
    assert_near(pull(dy)[0], astride.conv_transpose(dy, w, stride=2, padding=1, output_padding=extra), 1e-13)
