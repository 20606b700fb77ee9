"""LRN: by hand in both forms, gradients, in place, sizes that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.lrn import LRN

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(53)


def test_across_channels_from_its_text() -> None:
    """alpha is divided by the size: sums of squares 5, 9 and 8."""
    net = single('type: "LRN" lrn_param { local_size: 3 alpha: 3 beta: 1 k: 2 }', x=(1, 3, 1, 1))
    np.testing.assert_allclose(
        net.forward(x=np.reshape([1, 2, 2], (1, 3, 1, 1)))["y"].ravel(), [1 / 7, 2 / 11, 2 / 10], rtol=1e-6
    )


def test_within_a_channel_from_its_text() -> None:
    """alpha is divided by nine, at the corners too, and k is 1 whatever the text says."""
    layer = 'type: "LRN" lrn_param { local_size: 3 alpha: 9 beta: 1 k: 5 norm_region: WITHIN_CHANNEL }'
    y = single(layer, x=(1, 1, 3, 3)).forward(x=np.arange(1, 10).reshape(1, 1, 3, 3))["y"]
    np.testing.assert_allclose(y[0, 0, 0, 0], 1 / (1 + 1 + 4 + 16 + 25), rtol=1e-6)
    np.testing.assert_allclose(y[0, 0, 1, 1], 5 / (1 + 285), rtol=1e-6)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"size": 3, "alpha": 0.5, "beta": 0.6, "k": 2.0},
        {"size": 1},
        {"size": 4},
        {"size": 3, "axes": (2, 3), "alpha": 0.2},
        {"axes": (-1,)},
    ],
)
def test_gradient(options: dict[str, Any], in_place: bool) -> None:
    check_gradient(Bench(LRN(**options), [RANDOM.normal(size=(2, 5, 3, 4))], in_place=in_place))


@pytest.mark.parametrize("size", [0, 2, 4])
def test_an_even_size_is_refused_as_in_caffe(size: int) -> None:
    with pytest.raises(ArgumentError, match=f"local_size odd: {size}"):
        single(f'type: "LRN" lrn_param {{ local_size: {size} }}', x=(1, 3, 2, 2))


def test_no_size() -> None:
    with pytest.raises(ArgumentError, match="local_size >= 1"):
        LRN(size=0)


def test_within_a_channel_there_are_two_axes() -> None:
    with pytest.raises(ArgumentError, match="no such axis"):
        single('type: "LRN" lrn_param { norm_region: WITHIN_CHANNEL }', x=(1, 3, 4))
