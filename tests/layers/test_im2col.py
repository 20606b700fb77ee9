"""Im2col: rows and columns by hand, gradients, and a convolution made of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.caffe.translate_layout import _columns
from astride.errors import ArgumentError
from astride.layers.im2col import Im2col

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(38)

NET = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 3 dim: 5 dim: 6 }
layer { name: "i" type: "Im2col" bottom: "data" top: "i" convolution_param { kernel_size: 3 stride: 2 pad: 1 } }
"""


def im2col(axis: int = 1, **fields: Any) -> Im2col:
    return Im2col(partial(_columns, fields=fields), axis=axis)


def test_by_hand() -> None:
    #  0 1 2                 windows of 2 x 2:  0 1 3 4   1 2 4 5
    #  3 4 5
    x = np.arange(12.0).reshape(1, 2, 2, 3)
    y = Bench(im2col(kernel_size=2), [x]).forward()[0]
    assert y.shape == (1, 8, 1, 2)
    assert y[0, :, 0].tolist() == [[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8], [9, 10], [10, 11]]


@pytest.mark.parametrize(
    ("shape", "fields"),
    [
        ((2, 2, 4, 5), {"kernel_size": 2, "stride": 2}),
        ((1, 2, 5, 5), {"kernel_h": 3, "kernel_w": 2, "pad": 1, "dilation": 2}),
        ((2, 1, 6), {"kernel_size": 3, "pad": 1}),
        ((1, 1, 3, 3, 3), {"kernel_size": (2, 2, 1)}),
        ((2, 2, 1, 4, 4), {"kernel_size": 2, "axis": 2}),
    ],
)
def test_gradient(shape: tuple[int, ...], fields: dict[str, Any]) -> None:
    check_gradient(Bench(im2col(**fields), [RANDOM.normal(size=shape)]))


def test_axes_before_the_channels_are_one_batch() -> None:
    x = RANDOM.normal(size=(2, 3, 2, 4, 4))
    y = Bench(im2col(axis=2, kernel_size=2), [x]).forward()[0]
    flat = Bench(im2col(kernel_size=2), [x.reshape(6, 2, 4, 4)]).forward()[0]
    np.testing.assert_array_equal(y, flat.reshape(2, 3, 8, 3, 3))


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="the kernel is not given"):
        load_caffe(NET.replace("kernel_size: 3", ""))
    with pytest.raises(ArgumentError, match="larger than the padded input"):
        Bench(im2col(kernel_size=9), [np.zeros((1, 1, 4, 4))])


def test_a_convolution_is_one_product_with_it() -> None:
    both = NET + (
        'layer { name: "c" type: "Convolution" bottom: "data" top: "c" '
        'convolution_param { num_output: 4 kernel_size: 3 stride: 2 pad: 1 bias_term: false weight_filler { type: "xavier" } } }'
    )
    net = load_caffe(both, seed=1)
    for size in (5, 8):
        out = net.forward(data=RANDOM.normal(size=(2, 3, size, 6)))
        product = np.einsum("ok,nkhw->nohw", net.params["c"][0].data.reshape(4, -1), out["i"])
        np.testing.assert_allclose(out["c"], product, rtol=1e-4, atol=1e-5)
