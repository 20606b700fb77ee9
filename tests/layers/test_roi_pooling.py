"""ROIPooling, PSROIPooling against loops over regions, bins and cells; gradients, edges and texts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.psroi_pooling import PSROIPooling
from astride.layers.roi_pooling import ROIPooling

from . import boxes as plain
from .gradients import Bench, check_gradient, distinct

RANDOM = np.random.RandomState(53)
SIZE = (7, 9)


def regions(count: int, scale: float, images: int = 2) -> Any:
    """Regions that may leave the map, be turned inside out, and end between cells; on halves as often as not."""
    rows = RANDOM.randint(-8, 2 * max(SIZE) + 8, (count, 5)) / 2 / scale
    rows[:, 0] = RANDOM.randint(0, images, count)
    return rows


def clipped(low: float, high: float, limit: int) -> range:
    return range(min(max(math.floor(low), 0), limit), min(max(math.ceil(high), 0), limit))


def max_of_bins(x: Any, rois: Any, pooled: tuple[int, int], scale: float) -> Any:
    y = np.zeros((len(rois), x.shape[1], *pooled))
    for r, roi in enumerate(rois):
        x1, y1, x2, y2 = (plain.half_away(c * scale) for c in roi[1:])
        high, wide = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i, j in np.ndindex(*pooled):
            rows = clipped(y1 + math.floor(i * high / pooled[0]), y1 + math.ceil((i + 1) * high / pooled[0]), SIZE[0])
            columns = clipped(x1 + math.floor(j * wide / pooled[1]), x1 + math.ceil((j + 1) * wide / pooled[1]), SIZE[1])
            if rows and columns:
                y[r, :, i, j] = x[int(roi[0])][:, rows][:, :, columns].max(axis=(1, 2))
    return y


def mean_of_bins(x: Any, rois: Any, outputs: int, group: int, scale: float) -> Any:
    y = np.zeros((len(rois), outputs, group, group))
    for r, roi in enumerate(rois):
        x1, y1 = (plain.half_away(c) * scale for c in roi[1:3])
        x2, y2 = ((plain.half_away(c) + 1) * scale for c in roi[3:])
        high, wide = max(y2 - y1, 0.1) / group, max(x2 - x1, 0.1) / group
        for c, i, j in np.ndindex(outputs, group, group):
            rows = clipped(i * high + y1, (i + 1) * high + y1, SIZE[0])
            columns = clipped(j * wide + x1, (j + 1) * wide + x1, SIZE[1])
            if rows and columns:
                y[r, c, i, j] = x[int(roi[0]), (c * group + i) * group + j][rows][:, columns].mean()
    return y


@pytest.mark.parametrize("pooled", [(1, 1), (2, 3), (3, 3), (9, 1)])
@pytest.mark.parametrize("scale", [1.0, 0.0625])
def test_maximum_of_bins(pooled: tuple[int, int], scale: float) -> None:
    x = distinct(RANDOM, (2, 3, *SIZE))
    rois = regions(30, scale)
    found = Bench(ROIPooling(pooled, scale=scale), [x, rois]).forward()[0]
    np.testing.assert_array_equal(found, max_of_bins(x, rois, pooled, scale))


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("scale", [1.0, 0.125])
def test_mean_of_bins(group: int, scale: float) -> None:
    x = RANDOM.normal(size=(2, 2 * group * group, *SIZE))
    rois = regions(30, scale)
    found = Bench(PSROIPooling(2, group, scale=scale), [x, rois]).forward()[0]
    np.testing.assert_allclose(found, mean_of_bins(x, rois, 2, group, scale), rtol=0, atol=1e-14)


def test_gradients() -> None:
    rois = regions(6, 0.25)
    check_gradient(Bench(ROIPooling((2, 3), scale=0.25), [distinct(RANDOM, (2, 2, *SIZE)), rois]), [True, False])
    x = RANDOM.normal(size=(2, 8, *SIZE))
    check_gradient(Bench(PSROIPooling(2, 2, scale=0.25), [x, rois]), [True, False])


def test_first_of_equal_values_and_neighbours_that_share() -> None:
    """Five cells in three bins: [0, 2), [1, 4), [3, 5); the maximum at 1 belongs to two of them."""
    x = np.array([1, 7, 7, 2, 2], float).reshape(1, 1, 1, 5)
    bench = Bench(ROIPooling((1, 3)), [x, np.array([[0, 0, 0, 4, 0]])])
    np.testing.assert_array_equal(bench.forward()[0].ravel(), [7, 7, 2])
    bench.backward([np.array([1.0, 10, 100]).reshape(1, 1, 1, 3)], [True, False])
    np.testing.assert_array_equal(bench.bottom[0].diff.ravel(), [0, 11, 0, 100, 0])


def test_edges() -> None:
    x = np.full((1, 1, 3, 3), np.nan)
    x[0, 0, 0, 0] = -np.inf
    lowest = float(np.finfo(np.float64).min)
    outside, nan, turned = [0, 9, 9, 12, 12], [0, 0, 0, 2, 2], [0, 1, 1, 0, 0]
    bench = Bench(ROIPooling((1, 1)), [x, np.array([outside, nan, turned])])
    np.testing.assert_array_equal(bench.forward()[0].ravel(), [0, lowest, lowest])
    bench.backward([np.ones((3, 1, 1, 1))], [True, False])
    assert not bench.bottom[0].diff.any()
    assert Bench(ROIPooling((2, 2)), [x, np.empty((0, 5))]).forward()[0].shape == (0, 1, 2, 2)
    far = np.array([[0, -3e38, -3e38, 3e38, 3e38]])
    assert Bench(ROIPooling((1, 1)), [np.arange(9.0).reshape(1, 1, 3, 3), far]).forward()[0] == 8


def test_refusals() -> None:
    x, rois = np.zeros((2, 4, *SIZE)), np.zeros((3, 5))
    with pytest.raises(ArgumentError, match="1 <= pooled_h <= 4096"):
        ROIPooling((0, 1))
    with pytest.raises(ArgumentError, match="1 <= pooled_w <= 4096"):
        ROIPooling((1, 2**32 - 1))
    with pytest.raises(ArgumentError, match="spatial_scale > 0"):
        ROIPooling((1, 1), scale=0.0)
    with pytest.raises(ArgumentError, match=r"\(N, C, H, W\) and \(R, 5\)"):
        Bench(ROIPooling((1, 1)), [x, rois[:, :4]])
    with pytest.raises(ArgumentError, match="channels == output_dim"):
        Bench(PSROIPooling(2, 2, scale=1.0), [x, rois])
    with pytest.raises(ArgumentError, match="group_size >= 1"):
        PSROIPooling(2, 0, scale=1.0)
    for wrong, says in ((2, "of an image that is not there"), (-1, "of an image"), (np.nan, "a region is not finite")):
        rois[1, 0] = wrong
        for layer in (ROIPooling((1, 1)), PSROIPooling(1, 2, scale=1.0)):
            with pytest.raises(ArrayError, match=says):
                Bench(layer, [x, rois]).forward()
    rois[1, 0] = 0
    bench = Bench(ROIPooling((1, 1)), [x, rois])
    with pytest.raises(UnsupportedError, match="forward pass"):
        bench.backward([np.zeros((3, 4, 1, 1))], [True, False])
    bench.forward()
    with pytest.raises(UnsupportedError, match="regions have no gradient"):
        bench.backward([np.zeros((3, 4, 1, 1))], [True, True])


NET = """
force_backward: true
input: "x" input: "rois"
input_shape {{ dim: 1 dim: 8 dim: 7 dim: 9 }} input_shape {{ dim: 4 dim: 5 dim: 1 dim: 1 }}
layer {{ name: "p" bottom: "x" bottom: "rois" top: "y" {} }}
"""


@pytest.mark.parametrize(
    ("layer", "dialect", "shape"),
    [
        ('type: "ROIPooling" roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.25 }', "faster_rcnn", (4, 8, 2, 3)),
        ('type: "PSROIPooling" psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 0.25 }', "rfcn", (4, 2, 2, 2)),
    ],
)
def test_texts(layer: str, dialect: str, shape: tuple[int, ...]) -> None:
    x, rois = RANDOM.normal(size=(1, 8, *SIZE)).astype(np.float32), regions(4, 0.25, images=1).reshape(4, 5, 1, 1)
    for net in (load_caffe(NET.format(layer)), load_caffe(NET.format(layer), dialect=dialect)):
        y = net.forward(x=x, rois=rois)["y"]
        assert y.shape == shape
        pooled = (
            max_of_bins(x, rois.reshape(4, 5), (2, 3), 0.25)
            if len(shape) and shape[1] == 8
            else mean_of_bins(x, rois.reshape(4, 5), 2, 2, 0.25)
        )
        np.testing.assert_allclose(y, pooled, rtol=0, atol=1e-6)
        again = load_caffe(net.to_prototxt())
        np.testing.assert_array_equal(again.forward(x=x, rois=rois)["y"], y)
        gradients = net.backward(y=np.ones_like(y))
        assert gradients["x"].any() and not gradients["rois"].any()
        more = net.forward(x=x, rois=np.concatenate([rois, rois]))["y"]
        np.testing.assert_array_equal(more, np.concatenate([y, y]))
