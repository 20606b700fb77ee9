"""Convolution and Deconvolution: shapes, values by hand, gradients, several bottoms, any axis."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers import Blob
from astride.layers.convolution import Convolution
from astride.layers.deconvolution import Deconvolution
from astride.rules import caffe

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(5)


def conv(**fields: Any) -> Convolution:
    options = {name: fields.pop(name) for name in ("axis", "bias") if name in fields}
    return Convolution(partial(caffe.convolution, **fields), **options)


def deconv(**fields: Any) -> Deconvolution:
    options = {name: fields.pop(name) for name in ("axis", "bias") if name in fields}
    return Deconvolution(partial(caffe.deconvolution, **fields), **options)


def test_by_hand() -> None:
    bench = Bench(conv(num_output=1, kernel_size=2), [np.arange(9.0).reshape(1, 1, 3, 3)])
    bench.layer.params[0].data[...] = [[[[1, 0], [0, 1]]]]
    bench.layer.params[1].data[...] = 0.5
    #  0 1 2
    #  3 4 5     each window: upper left + lower right + 0.5
    #  6 7 8
    np.testing.assert_array_equal(bench.forward()[0], [[[[4.5, 6.5], [10.5, 12.5]]]])


def test_deconvolution_by_hand() -> None:
    bench = Bench(deconv(num_output=1, kernel_size=2, stride=2, bias=False), [np.array([[[[1.0, 2.0]]]])])
    bench.layer.params[0].data[...] = [[[[1, 10], [100, 1000]]]]
    np.testing.assert_array_equal(bench.forward()[0], [[[[1, 10, 2, 20], [100, 1000, 200, 2000]]]])


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({"num_output": 3, "kernel_size": 3}, (2, 2, 5, 4)),
        ({"num_output": 4, "kernel_size": 3, "stride": 2, "pad": 1, "group": 2}, (2, 2, 5, 5)),
        ({"num_output": 2, "kernel_size": 2, "dilation": 2, "bias": False}, (1, 2, 4, 5)),
        ({"num_output": 2, "kernel_h": 1, "kernel_w": 3, "pad_w": 1, "pad_h": 0}, (1, 3, 3, 4)),
        ({"num_output": 2, "kernel_size": [3]}, (2, 2, 6)),
        ({"num_output": 2, "kernel_size": (2, 1, 2)}, (1, 2, 3, 2, 3)),
        ({"num_output": 2, "kernel_size": 2, "axis": 2}, (2, 2, 3, 4, 3)),
        ({"num_output": 2, "kernel_size": 2, "axis": -3}, (2, 3, 3, 3)),
    ],
)
@pytest.mark.parametrize("make", [conv, deconv])
def test_gradient(make: Any, fields: dict[str, Any], shape: tuple[int, ...]) -> None:
    check_gradient(Bench(make(**dict(fields)), [RANDOM.normal(size=shape)]))


def test_several_bottoms_share_the_weights() -> None:
    bottoms = [RANDOM.normal(size=(1, 2, 4, 4)), RANDOM.normal(size=(1, 2, 4, 4))]
    bench = Bench(conv(num_output=2, kernel_size=3), bottoms, tops=2)
    check_gradient(bench)
    one = Bench(conv(num_output=2, kernel_size=3), bottoms[1:])
    for mine, theirs in zip(one.layer.params, bench.layer.params, strict=True):
        mine.data[...] = theirs.data
    np.testing.assert_array_equal(bench.forward()[1], one.forward()[0])


def test_only_wanted_gradients() -> None:
    bench = Bench(conv(num_output=2, kernel_size=3), [RANDOM.normal(size=(1, 2, 4, 4))])
    tops = bench.forward()
    bench.layer.param_wanted = [False, True]
    bench.backward([np.ones_like(tops[0])], [False])
    assert (bench.bottom[0].diff == 7e7).all(), "an unwanted bottom's diff is left alone"
    assert not bench.layer.params[0].has_diff
    np.testing.assert_allclose(bench.layer.params[1].diff, [4, 4])


def test_parameter_gradients_accumulate() -> None:
    bench = Bench(conv(num_output=2, kernel_size=3), [RANDOM.normal(size=(1, 2, 4, 4))])
    tops = bench.forward()
    bench.backward([np.ones_like(tops[0])], [True])
    once = [p.diff.copy() for p in bench.layer.params]
    input_once = bench.bottom[0].diff.copy()
    bench.backward([np.ones_like(tops[0])], [True])
    for parameter, diff in zip(bench.layer.params, once, strict=True):
        np.testing.assert_allclose(parameter.diff, 2 * diff)
    np.testing.assert_array_equal(bench.bottom[0].diff, input_once)


def test_reshape_keeps_the_weights_and_plans_anew() -> None:
    bench = Bench(conv(num_output=1, kernel_size=3), [RANDOM.normal(size=(1, 1, 4, 4))])
    before = bench.layer.params[0].data.copy()
    bench.values = [RANDOM.normal(size=(2, 1, 6, 5))]
    assert bench.forward()[0].shape == (2, 1, 4, 3)
    np.testing.assert_array_equal(bench.layer.params[0].data, before)
    check_gradient(bench)


def test_other_channels_are_refused() -> None:
    bench = Bench(conv(num_output=1, kernel_size=3), [np.zeros((1, 2, 4, 4))])
    with pytest.raises(ArgumentError, match=r"weights for 3 channels: \(1, 3, 3, 3\)"):
        bench.layer.reshape([Blob((1, 3, 4, 4), "float64")], bench.top)
