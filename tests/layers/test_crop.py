"""Crop: offsets, gradients, boxes that leave the blob."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError
from astride.layers.crop import Crop

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(33)
X = RANDOM.normal(size=(2, 3, 5, 6))

NET = """
force_backward: true
input: "data" input: "like"
input_shape { dim: 1 dim: 2 dim: 5 dim: 5 } input_shape { dim: 1 dim: 9 dim: 3 dim: 2 }
layer { name: "c" type: "Crop" bottom: "data" bottom: "like" top: "out" crop_param { axis: 2 offset: 1 offset: 2 } }
"""


@pytest.mark.parametrize(
    ("axis", "offsets", "like", "box"),
    [
        (2, (), (9, 9, 3, 4), np.s_[:, :, :3, :4]),
        (2, (1,), (9, 9, 3, 4), np.s_[:, :, 1:4, 1:5]),
        (2, (2, 0), (9, 9, 3, 4), np.s_[:, :, 2:5, :4]),
        (1, (1, 0, 2), (9, 2, 5, 4), np.s_[:, 1:3, :, 2:]),
        (0, (1, 0, 0, 0), (1, 3, 5, 6), np.s_[1:]),
        (-1, (3,), (9, 9, 9, 2), np.s_[..., 3:5]),
        (2, (), (9, 9, 3, 4, 7), np.s_[:, :, :3, :4]),
    ],
)
def test_box(axis: int, offsets: tuple[int, ...], like: tuple[int, ...], box: tuple[slice, ...]) -> None:
    bench = Bench(Crop(axis=axis, offsets=offsets), [X, np.zeros(like)])
    np.testing.assert_array_equal(bench.forward()[0], X[box])
    check_gradient(bench)


@pytest.mark.parametrize(
    ("axis", "offsets", "like", "says"),
    [
        (2, (3,), (2, 3, 3, 3), r"on axis 2: 3 \+ 3 <= 5"),
        (2, (), (2, 3, 5, 7), r"on axis 3: 0 \+ 7 <= 6"),
        (1, (0, 0), (2, 3, 1, 1), "0, 1 or 3 offsets: 2"),
        (2, (), (2, 3, 5), "at least 4 axes: 3"),
        (4, (), (2, 3, 5, 6), "no such axis"),
    ],
)
def test_refusals(axis: int, offsets: tuple[int, ...], like: tuple[int, ...], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Bench(Crop(axis=axis, offsets=offsets), [X, np.zeros(like)])


def test_in_a_network_of_changing_size() -> None:
    net = load_caffe(NET)
    for size in (5, 7):
        x = RANDOM.normal(size=(1, 2, size, size)).astype(np.float32)
        y = net.forward(data=x, like=np.zeros((1, 9, 3, size - 3), np.float32))["out"]
        np.testing.assert_array_equal(y, x[:, :, 1:4, 2 : size - 1])
        gradients = net.backward(out=np.ones_like(y))
        assert gradients["data"].sum() == y.size and gradients["data"][0, 0, 0].sum() == 0
        assert not gradients["like"].any()
