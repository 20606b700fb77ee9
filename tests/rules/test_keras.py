"""Keras' rules: TensorFlow's windows, sizes of its own for transposed convolution, and causal padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import astride
from astride.like import keras as K
from astride.plan.kinds import Tie
from astride.rules import keras

X = np.array([1.0, 2]).reshape(1, 2, 1)
W = np.array([1.0, 10, 100]).reshape(3, 1, 1)


@pytest.mark.parametrize(
    ("padding", "output_padding", "expected"),
    [
        ("same", None, [1, 10, 102, 20]),
        ("same", 0, [10, 102, 20]),
        ("same", 1, [1, 10, 102, 20]),
        ("valid", None, [1, 10, 102, 20, 200]),
        ("valid", 0, [1, 10, 102, 20, 200]),
    ],
)
def test_an_absent_output_padding_is_none_of_the_given_ones(padding: str, output_padding: Any, expected: list[float]) -> None:
    """T16, T17."""
    assert K.conv_transpose(X, W, 2, padding, output_padding).ravel().tolist() == expected


def test_sizes_people_met() -> None:
    """CONV-01: 2 x 3, kernel 3, stride 2, "same"."""
    for output_padding, expected in ((None, (4, 6)), (0, (3, 5)), (1, (4, 6))):
        y = K.conv_transpose(np.ones((1, 2, 3, 1)), np.ones((3, 3, 1, 1)), 2, "same", output_padding)
        assert y.shape[1:3] == expected


def test_causal_pads_in_front_alone() -> None:
    for d in (1, 2, 3):
        axis = keras.conv((1, 1, 8), (1, 1, 3), padding="causal", dilation=d).axes[0]
        assert (axis.pad_lo, axis.pad_hi, axis.out) == (2 * d, 0, 8)
    w = np.array([[[1.0, 10, 100]]])
    y = astride.conv(np.arange(1.0, 5).reshape(1, 1, 4), w, padding="causal", rules="keras")
    assert y.ravel().tolist() == [100, 210, 321, 432]


def test_pools() -> None:
    assert keras.max_pool((1, 1, 8, 8), kernel=2).tie is Tie.LEADING_NAN
    x = np.arange(1.0, 6).reshape(1, 5, 1)
    assert K.max_pool(x, 2).ravel().tolist() == [2, 4]  # strides default to pool_size
    assert K.average_pool(x, 2, 2, "same").ravel().tolist() == [1.5, 3.5, 5]
    assert K.max_pool(x.transpose(0, 2, 1), 2, data_format="channels_first").shape == (1, 1, 2)


def test_depthwise_channels(rng: np.random.Generator) -> None:
    y = K.depthwise_conv(np.ones((1, 1, 1, 3)), np.arange(12.0).reshape(1, 1, 3, 4))
    assert y.ravel().tolist() == list(range(12))
    for fn, w in ((K.conv, (3, 2, 2, 3)), (K.depthwise_conv, (3, 2, 2, 3)), (K.conv_transpose, (3, 2, 3, 2))):
        assert astride.check_gradient(fn, rng.normal(size=(1, 5, 4, 2)), rng.normal(size=w), 1, "same")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: K.conv(np.ones((1, 8, 1)), W, 2, "same", None, 2), "a stride and a dilation above 1 exclude each other"),
        (lambda: K.conv(np.ones((1, 8, 1)), W, 1, "causal"), 'required  "valid" or "same"'),
        (lambda: K.max_pool(np.ones((1, 8, 1)), 2, padding=1), 'required  "valid" or "same"'),
        (lambda: K.max_pool(np.ones((1, 8, 1)), 2, data_format="NWC"), "there is no such data_format"),
        (lambda: K.conv(np.ones((1, 8, 3)), np.ones((3, 2, 1))), "kernel does not fit inputs"),
        (lambda: K.depthwise_conv(np.ones((1, 8, 3)), np.ones((3, 2, 1))), "kernel does not fit inputs"),
        (lambda: K.conv(np.ones((1, 8, 8, 3)), np.ones((3, 3, 1))), "kernel has another rank than inputs"),
        (lambda: keras.conv((1, 1, 8, 8), (1, 1, 3, 3), padding="causal"), "is for one spatial axis"),
        (lambda: keras.max_pool((1, 1, 8), kernel=2, dilation=2), "these rules have no dilation"),
        (lambda: keras.conv((1, 1, 8), (1, 1, 3), padding=1), 'pad by "valid" and "same" only'),
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(astride.AstrideError) as raised:
        call()
    assert says in str(raised.value)
