"""SPP: bins by hand, gradients, rows of one length for images of any size."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.caffe.translate_layout import _bins
from astride.errors import ArgumentError
from astride.layers.spp import SPP

from .gradients import Bench, check_gradient, distinct

RANDOM = np.random.RandomState(39)

NET = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 3 dim: 7 dim: 9 }
layer { name: "s" type: "SPP" bottom: "data" top: "s" spp_param { pyramid_height: 3 pool: AVE } }
"""


def spp(height: int, pool: str, phase: str = "TEST") -> SPP:
    return SPP([partial(_bins, bins=2**level, pool=pool, phase=phase) for level in range(height)], random=phase == "TRAIN")


def test_by_hand() -> None:
    #  0 1 2 3      whole: 15;  halves: 5 7 13 15
    #  4 5 6 7
    #  8 ...  15
    x = np.arange(16.0).reshape(1, 1, 4, 4)
    assert Bench(spp(2, "MAX"), [x]).forward()[0].tolist() == [[15, 5, 7, 13, 15]]
    assert Bench(spp(1, "AVE"), [x]).forward()[0].tolist() == [[7.5]]


@pytest.mark.parametrize("size", [(4, 4), (6, 8), (7, 9)])
@pytest.mark.parametrize("pool", ["MAX", "AVE"])
def test_gradient(pool: str, size: tuple[int, int]) -> None:
    check_gradient(Bench(spp(3, pool), [distinct(RANDOM, (2, 2, *size))]))


def test_stochastic_in_training() -> None:
    bench = Bench(spp(2, "STOCHASTIC", "TRAIN"), [RANDOM.uniform(0.5, 1, (1, 2, 4, 4))])
    check_gradient(bench)
    first = bench.forward()[0]
    bench.layer.forward(bench.bottom, bench.top)
    assert bench.layer.draws == 2 and not np.array_equal(bench.top[0].data, first)


@pytest.mark.parametrize("height", range(6, 40, 3))
def test_every_size_gives_a_row_of_one_length(height: int) -> None:
    net = load_caffe(NET)
    x = RANDOM.normal(size=(1, 3, height, 46 - height)).astype(np.float32)
    y = net.forward(data=x)["s"]
    assert y.shape == (1, 3 * (1 + 4 + 16))
    np.testing.assert_allclose(y[0, :3], x.mean((2, 3))[0], rtol=1e-3, atol=1e-5)


def test_refusals() -> None:
    for height in (0, 17):
        with pytest.raises(ArgumentError, match="1 <= pyramid_height <= 16"):
            load_caffe(NET.replace("pyramid_height: 3", f"pyramid_height: {height}"))
    for size in (2, 3, 5):
        with pytest.raises(ArgumentError, match="too small for a level of the pyramid") as caught:
            Bench(spp(3, "MAX"), [np.zeros((1, 1, size, 8))])
        assert "bins = 4" in str(caught.value) and "on axis h" in str(caught.value)
    with pytest.raises(ArgumentError, match="four axes"):
        Bench(spp(1, "MAX"), [np.zeros((1, 1, 8))])
    with pytest.raises(ArgumentError, match="at least one level"):
        SPP([])
