"""Field reports about convolution and its transpose: each with the value its reporter should have got."""

from __future__ import annotations

import numpy as np
import pytest

import astride
from astride.explain import compare
from astride.layers.fillers import Filler
from astride.like import keras
from astride.like import onnx as O
from astride.like import pytorch as F
from astride.like import tensorflow as tf


def test_conv_01_output_padding_of_keras() -> None:
    x, w = np.ones((1, 2, 3, 1)), np.random.default_rng(1).normal(size=(3, 3, 1, 1))
    for extra, size in ((None, (4, 6)), (0, (3, 5)), (1, (4, 6))):
        y = keras.conv_transpose(x, w, strides=2, padding="same", output_padding=extra)
        assert y.shape[1:-1] == size
    # the input gradient of the convolution that takes 4x6 to 2x3
    _, pull = astride.vjp(keras.conv, np.zeros((1, 4, 6, 1)), w, strides=2, padding="same")
    np.testing.assert_allclose(keras.conv_transpose(x, w, strides=2, padding="same"), pull(x)[0])


def test_conv_03_same_of_a_transposed_convolution() -> None:
    w = np.ones((1, 1, 3, 3))
    assert O.ConvTranspose(np.ones((1, 1, 2, 2)), w, auto_pad="SAME_UPPER").shape == (1, 1, 2, 2)
    x = np.random.default_rng(3).normal(size=(1, 1, 5, 5))
    upper = O.ConvTranspose(x, w, strides=[2, 2], auto_pad="SAME_UPPER")
    lower = O.ConvTranspose(x, w, strides=[2, 2], auto_pad="SAME_LOWER")
    assert upper.shape == lower.shape == (1, 1, 10, 10)
    np.testing.assert_allclose(upper[..., 1:, 1:], lower[..., :-1, :-1])


def test_conv_04_same_upper_with_output_padding() -> None:
    y = O.ConvTranspose(
        np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), strides=[2, 2], auto_pad="SAME_UPPER", output_padding=[1, 1]
    )
    assert y.shape == (1, 1, 6, 6)


def test_conv_05_the_odd_pixel_of_output_shape() -> None:
    x, w = np.array([[[1.0, 2, 3]]]), np.array([[[1.0, 10, 100]]])
    whole = O.ConvTranspose(x, w, strides=[2])[0, 0]
    begin = O.ConvTranspose(x, w, strides=[2], output_shape=[6])[0, 0]
    end = O.ConvTranspose(x, w, strides=[2], output_shape=[6], auto_pad="SAME_UPPER")[0, 0]
    assert begin.tolist() == whole[1:].tolist() and end.tolist() == whole[:-1].tolist()


def test_conv_07_the_sampled_pixels_of_a_strided_same() -> None:
    x, w = np.zeros((1, 224, 224, 1)), np.arange(1.0, 10).reshape(3, 3, 1, 1)
    x[0, 223, 223] = 1
    theirs = tf.conv2d(x, w, 2, "SAME")[..., 0]
    padded = np.pad(x[..., 0], [(0, 0), (0, 1), (0, 1)])
    ours = F.conv2d(padded[:, None], w.transpose(3, 2, 0, 1), stride=2)[:, 0]
    np.testing.assert_array_equal(ours, theirs)
    assert np.argwhere(theirs[0]).tolist() == [[111, 111]]


def test_conv_08_same_with_a_stride_keeps_no_size() -> None:
    found = compare(
        "conv",
        (7, 5),
        ["tensorflow", "onnx"],
        kernel=3,
        stride=2,
        own={"tensorflow": {"padding": "same"}, "onnx": {"padding": "SAME_UPPER"}},
    )
    assert [axis.out for axis in found.sides[0].axes] == [axis.out for axis in found.sides[1].axes] == [4, 3]
    assert found.sides[0].formulas == ("ceil(7 / 2) = 4", "ceil(5 / 2) = 3")


def test_conv_10_depthwise_backward_in_three_axes() -> None:
    rng = np.random.default_rng(10)
    x, w = rng.normal(size=(2, 4, 3, 5, 4)), rng.normal(size=(4, 1, 3, 3, 3))
    y, pull = astride.vjp(F.conv3d, x, w, padding=1, groups=4)
    dx, dw = pull(y)
    for c in range(4):
        alone, back = astride.vjp(F.conv3d, x[:, c : c + 1], w[c : c + 1], padding=1)
        np.testing.assert_allclose(alone[:, 0], y[:, c])
        one_dx, one_dw = back(y[:, c : c + 1])
        np.testing.assert_allclose(one_dx[:, 0], dx[:, c])
        np.testing.assert_allclose(one_dw[0], dw[c])


def test_conv_11_depthwise_is_a_convolution_of_each_channel() -> None:
    rng = np.random.default_rng(11)
    x, w = rng.normal(size=(1, 256, 8, 8)), rng.normal(size=(256, 1, 3, 3))
    y = F.conv2d(x, w, padding=1, groups=256)
    for c in (0, 100, 255):
        np.testing.assert_allclose(y[:, c : c + 1], F.conv2d(x[:, c : c + 1], w[c : c + 1], padding=1))


@pytest.mark.parametrize("rung", ["loops2", "im2col"])
def test_conv_13_every_path_is_the_naive_one(rung: str) -> None:
    rng = np.random.default_rng(13)
    x, w = rng.normal(size=(1, 20, 14, 14)), rng.normal(size=(42, 20, 3, 3))
    arguments = dict(stride=2, padding=((0, 1), (0, 1)), backend=f"reference:{rung}")
    y = astride.conv(x, w, **arguments)
    assert y.shape == (1, 42, 7, 7)
    padded = np.pad(x, [(0, 0), (0, 0), (0, 1), (0, 1)])
    for i, j in ((0, 0), (3, 6), (6, 6)):
        window = padded[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        np.testing.assert_allclose(y[0, :, i, j], np.tensordot(w, window, 3), atol=1e-10)


def test_conv_14_overlaps_of_a_transposed_convolution() -> None:
    y = F.conv_transpose2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), stride=2)[0, 0]
    assert y[0].tolist() == [1, 1, 2, 1, 2, 1, 1] and y[2].tolist() == [2, 2, 4, 2, 4, 2, 2]
    w = Filler(kind="bilinear")((1, 1, 4, 4), "float64", np.random.RandomState(0))
    assert w.sum() == pytest.approx(4)  # stride 2 squared
    inside = F.conv_transpose2d(np.ones((1, 1, 6, 6)), w, stride=2, padding=1)[0, 0, 2:-2, 2:-2]
    np.testing.assert_allclose(inside, 1)
