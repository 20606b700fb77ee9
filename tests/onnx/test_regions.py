"""RoiAlign: regions of images against a loop over points, both frames and both modes, and its gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near

import astride
from astride.like import onnx

IMAGE = np.arange(16, dtype=np.float64).reshape(1, 1, 4, 4)
NONE = np.array([0])


def corners(x: Any, at: tuple[float, float]) -> list[float]:
    """The four weighted pixels around a point; zeros outside the plane by more than a pixel."""
    if any(not -1 <= p <= n for p, n in zip(at, x.shape, strict=True)):
        return [0.0] * 4
    axes = []
    for p, n in zip(at, x.shape, strict=True):
        p = min(max(p, 0.0), n - 1.0)
        low = int(p)
        axes.append([(low, 1 - (p - low)), (min(low + 1, n - 1), p - low)])
    return [wy * wx * x[iy, ix] for iy, wy in axes[0] for ix, wx in axes[1]]


def by_loops(x: Any, box: Any, size: tuple[int, int], ratio: int, mode: str, half_pixel: bool) -> Any:
    start, end = (np.array([box[1], box[0]]), np.array([box[3], box[2]]))
    start, end = (start - 0.5, end - 0.5) if half_pixel else (start, np.maximum(end, start + 1))
    step = (end - start) / size
    counts = [ratio or max(math.ceil(s), 0) for s in step]
    y = np.zeros(size)
    for i, j in np.ndindex(*size):
        points = [
            corners(x, tuple(start + ([i, j] + (np.array([a, b]) + 0.5) / counts) * step))
            for a in range(counts[0])
            for b in range(counts[1])
        ]
        if points:
            y[i, j] = np.mean([sum(p) for p in points]) if mode == "avg" else max(map(max, points))
    return y


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("frame", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
def test_equals_a_loop_over_points(mode: str, frame: str, ratio: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 3, 5, 6))
    boxes = np.concatenate([rng.uniform(-2, 4, (6, 2)), rng.uniform(2, 8, (6, 2))], axis=1)
    owners = rng.integers(0, 2, 6)
    y = onnx.RoiAlign(
        x,
        boxes,
        owners,
        mode=mode,
        sampling_ratio=ratio,
        coordinate_transformation_mode=frame,
        output_height=2,
        output_width=3,
        spatial_scale=0.5,
    )
    for r, c in np.ndindex(6, 3):
        want = by_loops(x[owners[r], c], boxes[r] * 0.5, (2, 3), ratio, mode, frame == "half_pixel")
        assert_near(y[r, c], want, 1e-12, f"region {r}, channel {c}")


def test_a_whole_image_and_a_point() -> None:
    whole = np.array([[0.0, 0, 4, 4]])
    y = onnx.RoiAlign(IMAGE, whole, NONE, output_height=2, output_width=2)
    assert y.tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    point = np.array([[1.0, 2, 1, 2]])
    assert onnx.RoiAlign(IMAGE, point, NONE, sampling_ratio=1, coordinate_transformation_mode="half_pixel").item() == 5 + 1.5
    assert onnx.RoiAlign(IMAGE, point, NONE, opset=10).item() == (9 + 10 + 13 + 14) / 4, "at least a pixel wide before opset 16"


def test_the_greatest_weighted_pixel_is_not_the_greatest_value() -> None:
    """Between 9, 10, 13 and 14 the interpolated value is 11.5, the greatest weighted pixel 14 / 4."""
    box = np.array([[1.0, 2, 2, 3]])
    arguments: dict[str, Any] = dict(sampling_ratio=1, coordinate_transformation_mode="output_half_pixel")
    assert onnx.RoiAlign(IMAGE, box, NONE, **arguments).item() == 11.5
    assert onnx.RoiAlign(IMAGE, box, NONE, mode="max", **arguments).item() == 3.5


def test_no_regions_and_regions_of_nothing() -> None:
    none = onnx.RoiAlign(IMAGE, np.zeros((0, 4)), np.zeros(0, np.int64), output_height=3)
    assert none.shape == (0, 1, 3, 1)
    assert onnx.RoiAlign(IMAGE, np.array([[3.0, 3, 1, 1]]), NONE).item() == 0


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_the_gradient(mode: str) -> None:
    x = np.random.default_rng(2).normal(size=(2, 2, 5, 4))
    boxes, owners = np.array([[0.2, 0.1, 3.3, 4.2], [1, 2, 7, 3.5]]), np.array([1, 0])
    arguments: dict[str, Any] = dict(mode=mode, sampling_ratio=2, output_height=2, output_width=2)
    assert astride.check_gradient(onnx.RoiAlign, x, boxes, owners, wrt=(0,), **arguments)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        (dict(mode="min"), astride.ArgumentError, "no such mode"),
        (dict(coordinate_transformation_mode="pixel"), astride.ArgumentError, "no such mode"),
        (dict(opset=9), astride.ArgumentError, "opset >= 10: 9"),
        (dict(rois=np.zeros((2, 4))), astride.ArrayError, "do not fit each other"),
        (dict(batch_indices=np.array([1])), astride.ArrayError, "index"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], error: type[Exception], says: str) -> None:
    arguments: dict[str, Any] = dict(rois=np.array([[0.0, 0, 2, 2]]), batch_indices=NONE) | changes
    with pytest.raises(error, match=says):
        onnx.RoiAlign(IMAGE, **arguments)
