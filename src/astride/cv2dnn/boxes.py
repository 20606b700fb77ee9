"""Non-maximum suppression as OpenCV's DNN module does it, the order of its roundings included.

Source: OpenCV 4.14, modules/dnn/src/nms.cpp and nms.inl.hpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ArrayError

Array = npt.NDArray[Any]
SOFT_NMSMETHOD_SOFTNMS_LINEAR = SoftNMSMethod_SOFTNMS_LINEAR = 1
SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN = SoftNMSMethod_SOFTNMS_GAUSSIAN = 2


def NMSBoxes(bboxes: Any, scores: Any, score_threshold: float, nms_threshold: float, eta: float = 1.0, top_k: int = 0) -> Any:
    """Which boxes to keep: the best first, without those that overlap a kept one by more than `nms_threshold`.

    Shapes    bboxes (N, 4) as x, y, width, height; scores (N,) -> indices (K,) int32, or () where none is kept
    Numbers   overlap is intersection over union, in float64 and rounded to float32; of two boxes without area it is 1
    Edges     a score equal to `score_threshold` is too low; of equal scores the first comes first; `top_k` > 0 looks at so
              many boxes only; `eta` < 1 shrinks a `nms_threshold` above 0.5 after each box kept
    Raises    ArrayError: no (N, 4) and (N,) numbers; ArgumentError: negative thresholds, `eta` <= 0
    Source    OpenCV 4.14, modules/dnn/src/nms.cpp; equal to it on random boxes (tests/live)
    """
    boxes, found = _checked(bboxes, scores, score_threshold, nms_threshold, eta)
    return _indices(_suppressed(boxes, found, score_threshold, nms_threshold, eta, top_k))


def NMSBoxesBatched(
    bboxes: Any, scores: Any, class_ids: Any, score_threshold: float, nms_threshold: float, eta: float = 1.0, top_k: int = 0
) -> Any:
    """The same where only boxes of one class suppress each other; class_ids (N,) whole numbers."""
    boxes, found = _checked(bboxes, scores, score_threshold, nms_threshold, eta)
    classes = np.asarray(class_ids)
    if classes.shape != found.shape or (classes.size and classes.dtype.kind not in "iu"):
        raise ArrayError(
            "every box has one class", given={"class_ids": classes}, required=f"whole numbers, ({len(found)},): {classes.shape}"
        )
    if len(boxes):
        # As OpenCV keeps classes apart: each is moved so far that it meets no other.
        far = max(0.0, float((boxes[:, :2] + boxes[:, 2:]).max())) + 1
        boxes = boxes.copy()
        boxes[:, :2] += classes[:, None] * far
    return _indices(_suppressed(boxes, found, score_threshold, nms_threshold, eta, top_k))


def softNMSBoxes(
    bboxes: Any,
    scores: Any,
    score_threshold: float,
    nms_threshold: float,
    top_k: int = 0,
    sigma: float = 0.5,
    method: int = SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN,
) -> tuple[Any, Any]:
    """Soft suppression: boxes that overlap a chosen one lose score, linearly or by a Gaussian, and are taken while it suffices.

    Returns   (updated_scores (K,) float32, indices (K,) int32), in the order they were taken; ((), ()) for none
    Raises    as NMSBoxes; ArgumentError: `sigma` <= 0, a method that is neither linear (1) nor Gaussian (2)
    Source    OpenCV 4.14, modules/dnn/src/nms.cpp
    """
    boxes, left = _checked(bboxes, scores, score_threshold, nms_threshold, 1.0)
    if method not in (1, 2) or not sigma > 0:
        raise ArgumentError(
            "there is no such soft suppression",
            given={"method": method, "sigma": sigma},
            required="method 1 (linear) or 2 (Gaussian), sigma > 0",
            hint="method=SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN, sigma=0.5",
        )
    least = np.float32(score_threshold)
    left = left.copy()
    free = np.ones(len(left), bool)
    kept: list[int] = []
    updated: list[np.float32] = []
    for _ in range(len(left) if top_k <= 0 else min(top_k, len(left))):
        best = int(np.argmax(np.where(free, left, -np.inf)))
        if left[best] < least:
            break
        kept.append(best)
        updated.append(left[best])
        free[best] = False
        others = np.flatnonzero(free & (left >= least))
        overlap = _overlaps(boxes[best], boxes[others])
        if method == SOFT_NMSMETHOD_SOFTNMS_LINEAR:
            factor = np.where(overlap > np.float32(nms_threshold), 1 - overlap, np.float32(1))
        else:
            factor = np.exp(-(overlap * overlap) / np.float32(sigma))
        left[others] *= factor
    return (np.array(updated, np.float32), np.array(kept, np.int32)) if kept else ((), ())


def _suppressed(boxes: Array, scores: Array, score: float, nms: float, eta: float, top_k: int) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > np.float32(score)]
    if top_k > 0:
        order = order[:top_k]
    kept: list[int] = []
    threshold = np.float32(nms)
    for i in order:
        if kept and (_overlaps(boxes[i], boxes[kept]) > threshold).any():
            continue
        kept.append(int(i))
        if eta < 1 and threshold > 0.5:
            threshold *= np.float32(eta)
    return kept


def _overlaps(box: Array, others: Array) -> Array:
    """Intersection over union of one box with others, float32."""
    low = np.maximum(box[:2], others[:, :2])
    sides = np.minimum(box[:2] + box[2:], others[:, :2] + others[:, 2:]) - low
    common = np.where((sides > 0).all(axis=1), sides.prod(axis=1), 0.0)
    both = box[2] * box[3] + others[:, 2] * others[:, 3]
    flat = both <= np.finfo(np.float64).eps
    distance = 1 - common / np.where(flat, 1.0, both - common)
    return np.float32(1) - np.where(flat, 0.0, distance).astype(np.float32)


def _checked(bboxes: Any, scores: Any, score: float, nms: float, eta: float) -> tuple[Array, Array]:
    boxes, found = _numbers("bboxes", bboxes), _numbers("scores", scores).astype(np.float32)
    if not boxes.size and not found.size:
        boxes = boxes.reshape(0, 4)
    if found.ndim != 1 or boxes.shape != (len(found), 4):
        raise ArrayError(
            "boxes and scores do not fit each other",
            given={"bboxes": boxes, "scores": found},
            required=f"(N, 4) and (N,): {boxes.shape} and {found.shape}",
            hint="boxes as [x, y, width, height], one score each",
        )
    if np.isnan(boxes).any() or np.isnan(found).any():
        raise ArrayError("a box or score is NaN, which has no order", given={"bboxes": boxes, "scores": found})
    if not (score >= 0 and nms >= 0 and eta > 0):
        raise ArgumentError(
            "thresholds are not negative and eta is positive",
            given={"score_threshold": score, "nms_threshold": nms, "eta": eta},
            required="score_threshold >= 0, nms_threshold >= 0, eta > 0",
            because="OpenCV 4.14, modules/dnn/src/nms.cpp",
        )
    return boxes, found


def _numbers(name: str, values: Any) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArrayError(f"{name} are no numbers of one shape", given={name: type(values).__name__}, because=str(error)) from None


def _indices(kept: Sequence[int]) -> Any:
    return np.array(kept, np.int32) if kept else ()
