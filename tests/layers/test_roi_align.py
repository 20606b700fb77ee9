"""ROIAlign: both forms against loops over points; gradients, edges and texts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError
from astride.layers.roi_align import Form, ROIAlign

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(54)
HEIGHT, WIDTH = 6, 7
X = RANDOM.normal(size=(2, 3, HEIGHT, WIDTH))
ROIS = np.concatenate(
    [
        np.column_stack([RANDOM.randint(0, 2, 8), RANDOM.uniform(-2, 6, (8, 2)), RANDOM.uniform(3, 10, (8, 2))]),
        [[0, 1.5, 1.5, 1.5, 1.5], [1, 20, 20, 30, 30], [0, 5, 5, 2, 2]],
    ]
)


def point(x: Any, y: float, at: float, outside: tuple[float, float, float]) -> Any:
    """The value of every channel at a point, from the four cells around it; 0 too far outside."""
    low, down, across = outside
    if y < low or at < low or y > down or at > across:
        return np.zeros(len(x))
    y, at = min(max(y, 0), HEIGHT - 1), min(max(at, 0), WIDTH - 1)
    top, left = math.floor(y), math.floor(at)
    below, right = min(top + 1, HEIGHT - 1), min(left + 1, WIDTH - 1)
    v, h = y - top, at - left
    return (1 - v) * ((1 - h) * x[:, top, left] + h * x[:, top, right]) + v * (
        (1 - h) * x[:, below, left] + h * x[:, below, right]
    )


def averaged(pooled: tuple[int, int], scale: float, samples: int) -> Any:
    y = np.zeros((len(ROIS), 3, *pooled))
    for r, roi in enumerate(ROIS):
        x1, y1, x2, y2 = roi[1:] * scale
        high, wide = max(y2 - y1, 1) / pooled[0], max(x2 - x1, 1) / pooled[1]
        down, across = (samples, samples) if samples > 0 else (math.ceil(high), math.ceil(wide))
        for i, j in np.ndindex(*pooled):
            points = [
                point(
                    X[int(roi[0])], y1 + high * (i + (a + 0.5) / down), x1 + wide * (j + (b + 0.5) / across), (-1, HEIGHT, WIDTH)
                )
                for a, b in np.ndindex(down, across)
            ]
            y[r, :, i, j] = np.mean(points, axis=0)
    return y


def gridded(pooled: tuple[int, int], scale: float, padding: float) -> Any:
    y = np.zeros((len(ROIS), 3, pooled[0] + 1, pooled[1] + 1))
    for r, roi in enumerate(ROIS):
        x1, y1, x2, y2 = roi[1:]
        pad_x, pad_y = (x2 - x1 + 1) * padding, (y2 - y1 + 1) * padding
        x1, x2 = (x1 - pad_x) * scale - 0.5, (x2 + pad_x) * scale - 0.5
        y1, y2 = (y1 - pad_y) * scale - 0.5, (y2 + pad_y) * scale - 0.5
        if x2 <= x1 or y2 <= y1:
            continue
        for i, j in np.ndindex(*y.shape[2:]):
            at = y1 + i * (y2 - y1) / pooled[0], x1 + j * (x2 - x1) / pooled[1]
            y[r, :, i, j] = point(X[int(roi[0])], *at, (-0.5, HEIGHT - 0.5, WIDTH - 0.5))
    return y


@pytest.mark.parametrize("pooled", [(1, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("samples", [-1, 0, 1, 2])
@pytest.mark.parametrize("scale", [1.0, 0.75])
def test_average_of_points(pooled: tuple[int, int], samples: int, scale: float) -> None:
    found = Bench(ROIAlign(pooled, scale=scale, samples=samples), [X, ROIS]).forward()[0]
    np.testing.assert_allclose(found, averaged(pooled, scale, samples), rtol=0, atol=1e-13)
    assert found.any()


@pytest.mark.parametrize("padding", [0.0, 0.5])
@pytest.mark.parametrize("scale", [1.0, 0.75])
def test_grid_of_corners(padding: float, scale: float) -> None:
    found = Bench(ROIAlign((2, 3), scale=scale, form=Form.GRID, padding=padding), [X, ROIS]).forward()[0]
    assert found.shape == (len(ROIS), 3, 3, 4) and found.any()
    np.testing.assert_allclose(found, gridded((2, 3), scale, padding), rtol=0, atol=1e-13)


@pytest.mark.parametrize("form", list(Form))
def test_gradient(form: Form) -> None:
    check_gradient(Bench(ROIAlign((2, 2), form=form), [X[:, :1], ROIS]), [True, False])


def test_by_hand() -> None:
    """One point in the middle of four cells; the middle of a row between two."""
    x = np.array([[0.0, 4], [8, 12]]).reshape(1, 1, 2, 2)
    rois = np.array([[0, 0, 0, 1, 1], [0, 0, -0.5, 1, 0.5]])
    np.testing.assert_array_equal(Bench(ROIAlign((1, 1)), [x, rois]).forward()[0].ravel(), [6, 2])


def test_values_that_are_not_finite_stay_where_they_are() -> None:
    x = np.zeros((1, 1, 4, 4))
    x[0, 0, 3, 3] = np.inf
    y = Bench(ROIAlign((2, 2), samples=1), [x, np.array([[0, 0, 0, 4, 4]])]).forward()[0][0, 0]
    assert y[1, 1] == np.inf
    assert (y.ravel()[:3] == 0).all()


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="only the grid pads"):
        ROIAlign((1, 1), padding=0.5)
    bench = Bench(ROIAlign((1, 1)), [X, np.array([[0, -1e30, 0, 1e30, 1]])])
    with pytest.raises(ArgumentError, match="more points than any image has cells"):
        bench.forward()
    assert Bench(ROIAlign((1, 1), samples=2), [X, np.array([[0, -1e30, 0, 1e30, 1]])]).forward()[0].shape == (1, 3, 1, 1)


NET = """
force_backward: true
input: "x" input: "rois" input_shape {{ dim: 2 dim: 3 dim: 6 dim: 7 }} input_shape {{ dim: 11 dim: 5 }}
layer {{ name: "p" type: "ROIAlign" bottom: "x" bottom: "rois" top: "y" {} }}
"""


@pytest.mark.parametrize(
    ("fields", "dialect", "expected"),
    [
        (
            "roi_align_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.75 sampling_ratio: 2 }",
            "ascend",
            averaged((2, 3), 0.75, 2),
        ),
        ("roi_pooling_param { pooled_h: 2 pooled_w: 3 pad_ratio: 0.5 }", "cascade_rcnn", gridded((2, 3), 1.0, 0.5)),
    ],
)
def test_texts(fields: str, dialect: str, expected: Any) -> None:
    for net in (load_caffe(NET.format(fields)), load_caffe(NET.format(fields), dialect=dialect)):
        y = net.forward(x=X, rois=ROIS)["y"]
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(load_caffe(net.to_prototxt()).forward(x=X, rois=ROIS)["y"], y)
        assert net.backward(y=np.ones_like(y))["x"].any()
    with pytest.raises(ArgumentError, match="roi_end_mode"):
        load_caffe(NET.format("roi_align_param { pooled_h: 1 pooled_w: 1 roi_end_mode: 1 }"))
