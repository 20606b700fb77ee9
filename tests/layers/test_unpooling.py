"""Unpooling: by a mask and without one, sizes, gradients, and DeconvNet's texts in Caffe's middle format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.caffe.dialects.choose import read_text, text_dialect
from astride.errors import ArgumentError, ArrayError, AstrideError, UnsupportedError
from astride.layers.unpooling import Unpooling

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(11)
X = RANDOM.normal(size=(2, 2, 2, 3))
MASK = np.stack([RANDOM.permutation(24)[:6].reshape(2, 3) for _ in range(4)]).reshape(2, 2, 2, 3).astype(float)


def test_to_the_places_of_the_mask() -> None:
    bench = Bench(Unpooling(kernel=(2, 2), stride=(2, 2), size=(4, 6)), [X, MASK])
    expected = np.zeros((2, 2, 24))
    for n, c, row, column in np.ndindex(X.shape):
        expected[n, c, int(MASK[n, c, row, column])] = X[n, c, row, column]
    np.testing.assert_array_equal(bench.forward()[0], expected.reshape(2, 2, 4, 6))
    check_gradient(bench, [True, False])


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"kernel": (2, 2), "stride": (2, 2), "size": (4, 6)}, (4, 6)),
        ({"kernel": (3, 2), "stride": (2, 3)}, (5, 10)),
        ({"kernel": (1, 1)}, (3, 4)),
    ],
)
def test_to_the_first_place_of_a_window(options: dict[str, Any], size: tuple[int, int]) -> None:
    bench = Bench(Unpooling(**options), [X])
    (down, right), expected = options.get("stride", (1, 1)), np.zeros((2, 2, *size))
    expected[:, :, : 2 * down : down, : 3 * right : right] = X
    np.testing.assert_array_equal(bench.forward()[0], expected)
    check_gradient(bench)


def test_beyond_the_end() -> None:
    """All that would fall behind the top's end falls on it, and the last of them stays."""
    y = Bench(Unpooling(kernel=(2, 2), stride=(2, 2), size=(1, 3)), [X]).forward()[0]
    np.testing.assert_array_equal(y[:, :, 0], np.stack([X[:, :, 1, 0], np.zeros((2, 2)), X[:, :, 1, 2]], 2))


def test_refused() -> None:
    with pytest.raises(ArgumentError, match="count from 1"):
        Unpooling(kernel=(2, 0))
    with pytest.raises(ArgumentError, match="index for each value"):
        Bench(Unpooling(kernel=(2, 2)), [X, MASK[:1]])
    with pytest.raises(AstrideError):
        Bench(Unpooling(kernel=(2, 2)), [X[0]])
    with pytest.raises((ArgumentError, ArrayError)):
        Bench(Unpooling(kernel=(2, 2), size=(2, 2)), [X, MASK + 4]).forward()


DECONVNET = """
input: "data" input_dim: 1 input_dim: 2 input_dim: 4 input_dim: 6
layers { bottom: "data" top: "data" name: "bn" type: BN
  bn_param { scale_filler { type: "constant" value: 1 } shift_filler { type: "constant" value: 0.001 } bn_mode: INFERENCE } }
layers { bottom: "data" top: "pool" top: "mask" name: "pool" type: POOLING
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layers { bottom: "pool" bottom: "mask" top: "y" name: "y" type: UNPOOLING
  unpooling_param { unpool: MAX kernel_size: 2 stride: 2 %s } }
"""


@pytest.mark.parametrize("size", ["unpool_h: 4 unpool_w: 6", "unpool_size: 6"])
def test_text(size: str, tmp_path: Path) -> None:
    text = DECONVNET % size
    assert text_dialect(read_text(text).used) == "deconvnet"
    net = load_caffe(text)
    x = RANDOM.permutation(48).reshape(1, 2, 4, 6).astype(np.float32)
    out = net.forward(data=x)["y"]
    found = x.reshape(1, 2, 2, 2, 3, 2).transpose(0, 1, 2, 4, 3, 5).reshape(1, 2, 6, 4).max(-1)
    np.testing.assert_allclose(np.sort(out[out != 0]), np.sort(found.reshape(-1)) + 0.001, rtol=1e-6)
    if "unpool_h" in size:
        kept = out != 0
        np.testing.assert_allclose(out[kept], x[kept] + np.float32(0.001), rtol=1e-6)
    net.save(tmp_path / "net.caffemodel")
    again = load_caffe(net.to_prototxt(), tmp_path / "net.caffemodel")
    np.testing.assert_array_equal(again.forward(data=x)["y"], out)


def test_padding_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="without padding"):
        load_caffe(DECONVNET % "unpool_size: 6 pad: 1")
