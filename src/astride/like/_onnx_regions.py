"""ONNX's RoiAlign, put together of operators. Part of like.onnx, which exports it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError
from ..ops._run import as_array
from ..ops.avg_pool import avg_pool
from ..ops.elementwise import elementwise
from ..ops.layout import layout
from ..ops.max_pool import max_pool
from ..rules._onnx import opset_of

MODES = {"avg": "add", "max": "maximum"}
FRAMES = ("half_pixel", "output_half_pixel")


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Sample points along one axis of a region: the pixels below and above each, and their weights; 0 outside the image."""

    per_bin: int
    pixels: tuple[NDArray[np.int64], NDArray[np.int64]]
    weights: tuple[NDArray[np.float64], NDArray[np.float64]]


def RoiAlign(
    X: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str | None = None,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    opset: int = 22,
) -> Array:
    """Regions (R, 4) as x1, y1, x2, y2 of the images that batch_indices (R,) name, each as (C, output_height, output_width).

    Every bin is the mean of sampling_ratio squared points, or as many as its pixels where that is 0, each interpolated
    between four pixels; with mode="max" the greatest of their weighted pixels, as ONNX defines it, which is not the greatest
    interpolated value. Frames: "half_pixel" (the default from opset 16 on) or "output_half_pixel". float32 and float64; the
    gradient is X's alone.
    """
    x, boxes, owners = as_array(X, "X"), as_array(rois, "rois"), as_array(batch_indices, "batch_indices")
    frame = coordinate_transformation_mode or ("half_pixel" if opset >= 16 else "output_half_pixel")
    _check(x, boxes, owners, mode, frame, opset)
    size = (int(output_height), int(output_width))
    found = []
    for box, owner in zip(boxes.astype(np.float64), owners, strict=True):
        image = layout(x, np.array([owner]), move="take", axis=0)
        start, end = box[1::-1] * spatial_scale, box[:1:-1] * spatial_scale  # y before x
        axes = [
            _samples(float(a), float(b), n, bins, int(sampling_ratio), frame == "half_pixel")
            for a, b, n, bins in zip(start, end, x.shape[2:], size, strict=True)
        ]
        found.append(_region(image, axes, size, mode))
    return layout(*found, move="concat", axis=0) if found else np.zeros((0, x.shape[1], *size), x.dtype)


def _samples(start: float, end: float, pixels: int, bins: int, ratio: int, half_pixel: bool) -> Samples:
    """The points along one axis: `ratio` a bin, or a pixel each."""
    start, end = (start - 0.5, end - 0.5) if half_pixel else (start, max(end, start + 1.0))
    step = (end - start) / bins
    count = ratio if ratio > 0 else max(math.ceil(step), 0)
    within = (np.arange(count) + 0.5) / max(count, 1)
    at = (start + (np.arange(bins)[:, None] + within) * step).reshape(-1)
    inside = (at >= -1) & (at <= pixels)
    at = np.clip(at, 0, pixels - 1)
    below = at.astype(np.int64)
    share = at - below
    above = np.minimum(below + 1, pixels - 1)
    return Samples(count, (below, above), (inside * (1 - share), inside * share))


def _region(image: Array, axes: list[Samples], size: tuple[int, int], mode: str) -> Array:
    """One region (1, C, *size): the four weighted pixels around every point, combined, then pooled bin by bin."""
    rows, columns = axes
    if not rows.per_bin or not columns.per_bin:
        return np.zeros((*image.shape[:2], *size), image.dtype)
    combined: Array | None = None
    for row, height in zip(rows.pixels, rows.weights, strict=True):
        band = layout(image, row, move="take", axis=2)
        for column, width in zip(columns.pixels, columns.weights, strict=True):
            corner = layout(band, column, move="take", axis=3)
            weights = np.broadcast_to(np.outer(height, width).astype(image.dtype), corner.shape)
            term = elementwise(corner, weights, function="multiply")
            combined = term if combined is None else elementwise(combined, term, function=MODES[mode])
    assert combined is not None
    window: dict[str, Any] = {"kernel": (rows.per_bin, columns.per_bin)}
    pooled: Array = avg_pool(combined, **window) if mode == "avg" else max_pool(combined, **window)
    return pooled


def _check(x: Array, boxes: Array, owners: Array, mode: str, frame: str, opset: int) -> None:
    if opset_of(opset) < 10:
        raise ArgumentError("this opset has no RoiAlign", given={"opset": opset}, required=f"opset >= 10: {opset}")
    if mode not in MODES or frame not in FRAMES:
        raise ArgumentError(
            "RoiAlign has no such mode",
            given={"mode": mode, "coordinate_transformation_mode": frame},
            required=f"one of {', '.join(MODES)}; one of {', '.join(FRAMES)}",
        )
    if x.ndim != 4 or owners.ndim != 1 or boxes.shape != (len(owners), 4):
        raise ArrayError(
            "X, rois and batch_indices do not fit each other",
            given={"X": x, "rois": boxes, "batch_indices": owners},
            required=f"X.ndim == 4: {x.ndim};  rois.shape == (R, 4): {boxes.shape};  batch_indices.shape == (R,): {owners.shape}",
            operator="RoiAlign",
        )
