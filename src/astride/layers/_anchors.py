"""Boxes as Faster R-CNN has them: rows of x1, y1, x2, y2 in pixels, both corners part of the box.

Source: py-faster-rcnn, lib/rpn/generate_anchors.py and lib/fast_rcnn/bbox_transform.py
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..backends.protocol import Array
from ._rois import half_away


def anchors(base: float, shapes: Sequence[float], scales: Sequence[float], *, even: bool = True) -> Array:
    """Boxes around the middle of the first cell, (shapes * scales, 4) float64: every scale of the first shape, then of the next.

    base     the side of the square they are made of
    shapes   heights over widths; a shape's width, and then its height, is rounded to whole pixels
    even     halves are rounded to the even neighbour, as NumPy does, otherwise away from zero
    """
    nearest = np.round if even else half_away
    shape = np.asarray(shapes, np.float64)
    width = nearest(np.sqrt(base * base / shape))
    sides = np.stack([width, nearest(width * shape)], axis=1)[:, None] * np.asarray(scales, np.float64)[:, None]
    middle = (base - 1) / 2
    half = (sides.reshape(-1, 2) - 1) / 2
    return np.concatenate([middle - half, middle + half], axis=1)


def everywhere(boxes: Array, size: tuple[int, int], stride: float) -> Array:
    """The boxes moved to every cell of a map of this height and width, cells a stride apart: (H * W * boxes, 4)."""
    y, x = np.meshgrid(np.arange(size[0]) * stride, np.arange(size[1]) * stride, indexing="ij")
    moves = np.stack([x, y, x, y], axis=-1).reshape(-1, 1, 4)
    return np.asarray((moves + boxes).reshape(-1, 4))


def regressed(boxes: Array, deltas: Array) -> Array:
    """The boxes moved by deltas of their sizes and grown by exponentials."""
    sizes = boxes[:, 2:] - boxes[:, :2] + 1
    middle = deltas[:, :2] * sizes + (boxes[:, :2] + sizes * boxes.dtype.type(0.5))
    with np.errstate(over="ignore"):
        half = np.exp(deltas[:, 2:]) * sizes * boxes.dtype.type(0.5)
    return np.concatenate([middle - half, middle + half], axis=1)


def inside(boxes: Array, height: float, width: float) -> Array:
    """The boxes with corners moved to the border of the image where they were outside."""
    last = np.array([width - 1, height - 1, width - 1, height - 1], boxes.dtype)
    return np.asarray(np.maximum(np.minimum(boxes, last), 0))


__all__ = ["anchors", "everywhere", "inside", "regressed"]
