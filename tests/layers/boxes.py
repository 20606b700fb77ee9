"""What the tests of detection share: boxes that do not touch, and the slow, plain forms that the layers are judged by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def jaccard(a: Any, b: Any, pixel: float = 0.0) -> float:
    """Intersection over union of two boxes, written as one says it."""
    width = min(a[2], b[2]) - max(a[0], b[0]) + pixel
    height = min(a[3], b[3]) - max(a[1], b[1]) + pixel
    if width <= 0 or height <= 0:
        return 0.0

    def area(box: Any) -> float:
        if box[2] < box[0] or box[3] < box[1]:
            return 0.0
        return float((box[2] - box[0] + pixel) * (box[3] - box[1] + pixel))

    return float(width * height / (area(a) + area(b) - width * height))


def greedy(boxes: Any, threshold: float, eta: float = 1.0, pixel: float = 0.0) -> list[int]:
    """Suppression of boxes given best first, each compared with all that stayed."""
    kept: list[int] = []
    for i, box in enumerate(boxes):
        if all(jaccard(box, boxes[k], pixel) <= threshold for k in kept):
            kept.append(i)
            if eta < 1 and threshold > 0.5:
                threshold *= eta
    return kept


def half_away(value: float) -> int:
    """C's round."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def random_boxes(random: np.random.RandomState, count: int) -> Array:
    """Boxes in the image, of all sizes."""
    corners = np.sort(random.uniform(0, 1, (count, 2, 2)), axis=1)
    return corners.reshape(count, 4)


def prior_blob(boxes: Array, variances: Any = (0.1, 0.1, 0.2, 0.2)) -> Array:
    """Boxes and variances as PriorBox's top has them."""
    rows = np.stack([boxes, np.broadcast_to(np.asarray(variances, boxes.dtype), boxes.shape)])
    return rows.reshape(1, 2, boxes.size)
