"""OpenPose's ImResize and Nms: pixel by pixel as its kernels go, and their texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers.im_resize import ImResize
from astride.layers.nms import Nms

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(32)


def spline(v: Any, d: float) -> float:
    cube = -0.5 * v[0] + 1.5 * v[1] - 1.5 * v[2] + 0.5 * v[3]
    square = v[0] - 2.5 * v[1] + 2.0 * v[2] - 0.5 * v[3]
    return float(cube * d**3 + square * d**2 + (-0.5 * v[0] + 0.5 * v[2]) * d + v[1])


def neighbours(i: int, size: int, out: int) -> tuple[list[int], float]:
    at = (i - (out / size / 2 - 0.5)) * (size / out)
    one = max(int(at + 1e-5), 0)
    two = min(one + 1, size - 1)
    return [max(one - 1, 0), one, two, min(two + 1, size - 1)], at - one


@pytest.mark.parametrize(("shape", "size"), [((4, 5), (8, 20)), ((6, 4), (3, 4)), ((1, 3), (4, 7)), ((3, 3), (24, 24))])
def test_resized_by_loop(shape: tuple[int, int], size: tuple[int, int]) -> None:
    x = RANDOM.normal(size=(1, 2, *shape))
    bench = Bench(ImResize(size), [x])
    expected = np.empty((1, 2, *size))
    for c, y, z in np.ndindex(2, *size):
        (rows, dy), (columns, dx) = neighbours(y, shape[0], size[0]), neighbours(z, shape[1], size[1])
        expected[0, c, y, z] = spline([spline(x[0, c, row, columns], dx) for row in rows], dy)
    np.testing.assert_allclose(bench.forward()[0], expected, rtol=1e-4, atol=1e-5)  # places are float32
    if expected.size < 200:
        check_gradient(bench)


def test_the_same_size_is_the_same_and_a_slope_stays_one() -> None:
    x = RANDOM.normal(size=(1, 1, 3, 4))
    np.testing.assert_array_equal(Bench(ImResize((3, 4)), [x]).forward()[0], x)
    y = Bench(ImResize((1, 16)), [np.arange(8.0).reshape(1, 1, 1, 8)]).forward()[0].ravel()
    np.testing.assert_allclose(y[4:-4], np.arange(16)[4:-4] / 2 - 0.25, rtol=1e-6)


@pytest.mark.parametrize(
    ("fields", "size"),
    [("factor: 2.5", (7, 10)), ("target_spatial_width: 9 target_spatial_height: 5", (5, 9)), ("", (368, 368))],
)
def test_resize_text(fields: str, size: tuple[int, int]) -> None:
    text = (
        'input: "x" input_shape { dim: [1, 1, 3, 4] } layer { name: "r" type: "ImResize" bottom: "x" top: "y" imresize_param { '
    )
    net = load_caffe(text + fields + " } }", dialect="rtpose")
    assert net.blobs["y"].shape == (1, 1, *size)
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()


def test_resize_refused() -> None:
    with pytest.raises(UnsupportedError, match="disagree"):
        Bench(ImResize(), [np.zeros((2, 1, 3, 3))])
    with pytest.raises(ArgumentError, match="no size"):
        Bench(ImResize(factor=0.2), [np.zeros((1, 1, 3, 3))])
    text = 'input: "x" input_shape { dim: [1, 1, 3, 4] } layer { name: "r" type: "ImResize" bottom: "x" top: "y" imresize_param {'
    with pytest.raises(UnsupportedError, match="nothing here computes"):
        load_caffe(text + " start_scale: 0.9 } }")


# Nms


def peaks(x: Any, threshold: float, neighbours: int) -> list[list[float]]:
    h, w = x.shape
    found: list[list[float]] = []
    for j, i in np.ndindex(h, w):
        if neighbours == 8 and not (1 < i < w - 1 and 1 < j < h - 1):
            continue
        around = [
            x[j + dy, i + dx] if 0 <= j + dy < h and 0 <= i + dx < w else 0.0
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
            if (dy or dx) and (neighbours == 8 or not (dy and dx))
        ]
        if x[j, i] > threshold and x[j, i] > max(around):
            found.append([i, j, x[j, i]])
    return found


@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize("most", [3, 50])
def test_peaks_by_loop(neighbours: int, most: int) -> None:
    x = RANDOM.normal(size=(2, 3, 9, 11))
    y = Bench(Nms(threshold=0.2, most=most, parts=2, neighbours=neighbours), [x]).forward()[0]
    assert y.shape == (2, 2, most + 1, 3)
    for n, part in np.ndindex(2, 2):
        expected = peaks(x[n, part], 0.2, neighbours)
        assert y[n, part, 0].tolist() == [len(expected), 0, 0] and len(expected) > 3
        shown = expected[:most]
        np.testing.assert_array_equal(y[n, part, 1 : 1 + len(shown)], shown)
        assert not y[n, part, 1 + len(shown) :].any()


def test_equal_neighbours_are_no_peak() -> None:
    x = np.zeros((1, 1, 6, 6))
    x[0, 0, 3, 2:4] = 1
    assert not Bench(Nms(parts=1), [x]).forward()[0].any()


@pytest.mark.parametrize(("fields", "shape"), [("max_peaks: 4 num_parts: 2", (1, 2, 5, 3)), ("num_peak: 7", (1, 1, 8, 3))])
def test_nms_text(fields: str, shape: tuple[int, ...]) -> None:
    text = 'input: "x" input_shape { dim: [1, 3, 6, 6] } layer { name: "n" type: "Nms" bottom: "x" top: "y" nms_param { '
    net = load_caffe(text + fields + " threshold: 0.1 } }")
    x = np.zeros((1, 3, 6, 6))
    x[0, 0, 0, 0] = x[0, 0, 2, 3] = 1
    y = net.forward(x=x)["y"]
    assert y.shape == shape and y[0, 0, 0, 0] == (2 if "num_peak" in fields else 1)
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()


def test_nms_refused() -> None:
    with pytest.raises(ArgumentError, match="a map with a peak"):
        Nms(most=0)
    with pytest.raises(ArgumentError, match="fewer maps"):
        Bench(Nms(parts=3), [np.zeros((1, 2, 4, 4))])
    bench = Bench(Nms(parts=1), [np.zeros((1, 1, 4, 4))])
    with pytest.raises(UnsupportedError):
        bench.backward(bench.forward(), [True])
