"""Boxes as SSD has them: rows of xmin, ymin, xmax, ymax, as parts of the image's width and height.

Everything is computed in the arrays' own dtype, in the order SSD computes it, so that float32 rounds alike.
Source: the SSD fork of Caffe, src/caffe/util/bbox_util.cpp
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError
from ..plan import Shape
from .layer import Blobs

SOURCE = "the SSD fork of Caffe, src/caffe/util/bbox_util.cpp"

LOWEST = float(np.finfo(np.float32).min)
"""C's -FLT_MAX: no score below it counts, nor one that is no number."""


class Code(StrEnum):
    """What the four predicted numbers of a box say, seen from its prior."""

    CORNER = "CORNER"  # how far each corner is moved
    CENTER_SIZE = "CENTER_SIZE"  # how far the centre is moved, in sizes of the prior, and the logarithm of the growth
    CORNER_SIZE = "CORNER_SIZE"  # how far each corner is moved, in sizes of the prior


def decoded(offsets: Array, priors: Array, variances: Array, code: Code, *, in_target: bool) -> Array:
    """The boxes that predictions stand for. `in_target`: the variances were divided out where targets were made.

    Raises ArrayError: a prior without width or height, where the code measures in them.
    """
    moves = offsets if in_target else variances * offsets
    if code is Code.CORNER:
        return np.asarray(priors + moves)
    size, center = _sizes(priors, "prior"), _centers(priors)
    if code is Code.CORNER_SIZE:
        return np.asarray(priors + moves * np.concatenate([size, size], axis=-1))
    middle = moves[..., :2] * size + center
    with np.errstate(over="ignore"):  # scores that nobody trained: an infinite box, as in C
        half = np.exp(moves[..., 2:]) * size / 2
    return np.concatenate([middle - half, middle + half], axis=-1)


def encoded(boxes: Array, priors: Array, variances: Array, code: Code, *, in_target: bool) -> Array:
    """The predictions that would stand for these boxes: the inverse of `decoded`.

    Raises ArrayError: a box or a prior without width or height, where the code measures in them.
    """
    if code is Code.CENTER_SIZE:
        size = _sizes(priors, "prior")
        moved = (_centers(boxes) - _centers(priors)) / size
        grown = np.log(_sizes(boxes, "box") / size)
        offsets = np.concatenate([moved, grown], axis=-1)
    else:
        offsets = boxes - priors
        if code is Code.CORNER_SIZE:
            size = _sizes(priors, "prior")
            offsets = offsets / np.concatenate([size, size], axis=-1)
    return offsets if in_target else offsets / variances


def areas(boxes: Array, *, pixel: float = 0.0) -> Array:
    """Width times height, each with `pixel` added; 0 where a box is turned inside out."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinite boxes, as above
        sides = boxes[..., 2:] - boxes[..., :2]
        whole = (sides[..., 0] + pixel) * (sides[..., 1] + pixel)
    return np.asarray(np.where((sides < 0).any(axis=-1), boxes.dtype.type(0), whole))


def overlaps(a: Array, b: Array, *, pixel: float = 0.0) -> Array:
    """Intersection over union of rows of boxes; leading axes broadcast. With `pixel` 1 sides are counted in whole pixels."""
    with np.errstate(all="ignore"):
        sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]) + a.dtype.type(pixel)
        shared = sides[..., 0] * sides[..., 1]
        ratio = shared / (areas(a, pixel=pixel) + areas(b, pixel=pixel) - shared)
    return np.asarray(np.where((sides > 0).all(axis=-1), ratio, a.dtype.type(0)))


def best_first(scores: Array, *, above: float = LOWEST, top_k: int = -1) -> Array:
    """Places of the scores greater than `above`, the greatest first, equal ones as they stand; top_k of them unless negative."""
    chosen = np.flatnonzero(scores > above)
    order = chosen[np.argsort(-scores[chosen], kind="stable")]
    return order if top_k < 0 else order[:top_k]


def suppressed(boxes: Array, threshold: float, *, eta: float = 1.0, pixel: float = 0.0, most: int = -1) -> Array:
    """Of boxes given best first the places of those that stay: each that overlaps no better one that stayed by more.

    With eta < 1 every box that stays multiplies a threshold above 0.5. At most `most` stay unless negative.
    """
    worst = np.full(len(boxes), -np.inf, boxes.dtype)
    limit = boxes.dtype.type(threshold)
    columns = (*np.ascontiguousarray(boxes.T), areas(boxes, pixel=pixel), boxes.dtype.type(pixel))
    kept: list[int] = []
    start = 0
    while most < 0 or len(kept) < most:
        free = np.flatnonzero(worst[start:] <= limit)
        if not free.size:
            break
        i = start + int(free[0])
        kept.append(i)
        start = i + 1
        worst[start:] = np.maximum(worst[start:], _shared(columns, i, start))
        if eta < 1 and limit > 0.5:
            limit = limit * boxes.dtype.type(eta)
    return np.array(kept, np.int64)


def _shared(columns: tuple[Array, ...], i: int, start: int) -> Array:
    """`overlaps` of box i with those from `start` on, from columns and areas: what suppression spends its time on."""
    left, top, right, low, area, pixel = columns
    with np.errstate(all="ignore"):
        width = np.minimum(right[i], right[start:]) - np.maximum(left[i], left[start:]) + pixel
        height = np.minimum(low[i], low[start:]) - np.maximum(top[i], top[start:]) + pixel
        shared = width * height
        ratio = shared / (area[i] + area[start:] - shared)
    return np.asarray(np.where((width > 0) & (height > 0), ratio, shared.dtype.type(0)))


def priors_of(blob: Array) -> tuple[Array, Array]:
    """The boxes and the variances, (P, 4) each, of the blob (1, 2, 4 P) that PriorBox makes."""
    boxes, variances = blob.reshape(2, -1, 4)
    return boxes, variances


def check_predictions(bottom: Blobs, classes: int, location_classes: int) -> None:
    """Raise ArgumentError unless places (N, P * location_classes * 4), scores (N, P * classes) and priors (1, 2, P * 4) agree."""
    where, scores, priors = (blob.shape for blob in bottom[:3])
    count = priors[2] // 4 if len(priors) >= 3 else 0
    if not count or priors[1] != 2 or bottom[2].count != 8 * count:
        raise ArgumentError(
            "the priors are not what PriorBox makes",
            given={"priors": priors},
            required="(1, 2, 4 * priors), priors >= 1",
            because=SOURCE,
        )
    rows = where[:1] + scores[:1]
    if len(rows) < 2 or rows[0] != rows[1]:
        raise ArgumentError(
            "places and scores are of different numbers of images",
            given={"places": where, "scores": scores},
            required=f"equal first sizes: {where[:1]} == {scores[:1]}",
            because=SOURCE,
        )
    for name, blob, each in (("places", bottom[0], 4 * location_classes), ("scores", bottom[1], classes)):
        if blob.count != rows[0] * count * each:
            raise ArgumentError(
                f"the {name} are not as many as the priors ask for",
                given={name: blob.shape, "priors": count},
                required=f"{each} for each prior and image: {blob.count} == {rows[0]} * {count} * {each}",
                because=SOURCE,
                hint="num_classes and share_location as the layers before have them",
            )


def label_shape(name: str, shape: Shape, width: int) -> None:
    """Raise ArgumentError unless a blob is a table (1, 1, rows, width)."""
    if len(shape) != 4 or shape[:2] != (1, 1) or shape[3] != width:
        raise ArgumentError(
            f"the {name} are no table of this kind", given={name: shape}, required=f"(1, 1, rows, {width})", because=SOURCE
        )


def _sizes(boxes: Array, what: str) -> Array:
    sizes = boxes[..., 2:] - boxes[..., :2]
    if not (sizes > 0).all():
        bad = boxes.reshape(-1, 4)[np.flatnonzero(~(sizes > 0).all(axis=-1))[0]]
        raise ArrayError(
            f"a {what} has no width or no height",
            given={what: [float(n) for n in bad]},
            required="xmin < xmax and ymin < ymax",
            because=SOURCE,
            hint="code_type: CORNER measures in no sizes",
        )
    return np.asarray(sizes)


def _centers(boxes: Array) -> Array:
    return np.asarray((boxes[..., :2] + boxes[..., 2:]) / 2)


__all__ = [
    "LOWEST",
    "SOURCE",
    "Code",
    "areas",
    "best_first",
    "check_predictions",
    "decoded",
    "encoded",
    "label_shape",
    "overlaps",
    "priors_of",
    "suppressed",
]
