"""Non-maximum suppression on boxes a person can check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride import ArgumentError, ArrayError, cv2dnn

ROW = [[0, 0, 10, 10], [5, 0, 10, 10], [10, 0, 10, 10], [40, 0, 10, 10]]
"""Neighbours share 50 of 150 units, a third; the last is alone."""
SCORES = [0.9, 0.8, 0.7, 0.6]


def test_the_best_of_those_that_overlap() -> None:
    kept = cv2dnn.NMSBoxes(ROW, SCORES, 0.5, 0.3)
    assert kept.tolist() == [0, 2, 3] and kept.dtype == np.int32
    assert cv2dnn.NMSBoxes(ROW, SCORES, 0.5, 0.34).tolist() == [0, 1, 2, 3]
    assert cv2dnn.NMSBoxes(ROW, SCORES[::-1], 0.5, 0.3).tolist() == [3, 2, 0]


def test_what_is_looked_at() -> None:
    assert cv2dnn.NMSBoxes(ROW, SCORES, 0.7, 0.3).tolist() == [0], "a score equal to the threshold is too low"
    assert cv2dnn.NMSBoxes(ROW, SCORES, 0.5, 0.3, top_k=2).tolist() == [0]
    assert cv2dnn.NMSBoxes(ROW, [0.5] * 4, 0.1, 0.3).tolist() == [0, 2, 3], "of equals the first"


def test_nothing_is_an_empty_tuple() -> None:
    assert cv2dnn.NMSBoxes(ROW, SCORES, 0.95, 0.3) == () and cv2dnn.NMSBoxes([], [], 0.5, 0.3) == ()
    assert cv2dnn.softNMSBoxes([], [], 0.5, 0.3) == ((), ())


def test_a_threshold_that_shrinks() -> None:
    boxes = [[0, 0, 10, 10], [30, 0, 10, 10], [31, 0, 10, 10]]  # the last two share 90 of 110, 0.82
    assert cv2dnn.NMSBoxes(boxes, SCORES[:3], 0.1, 0.9).tolist() == [0, 1, 2]
    assert cv2dnn.NMSBoxes(boxes, SCORES[:3], 0.1, 0.9, eta=0.95).tolist() == [0, 1], "0.9 * 0.95 * 0.95 = 0.81"


def test_classes_do_not_meet() -> None:
    assert cv2dnn.NMSBoxesBatched(ROW, SCORES, [0, 1, 0, 1], 0.5, 0.3).tolist() == [0, 1, 2, 3]
    assert cv2dnn.NMSBoxesBatched(ROW, SCORES, [0, 0, 1, 1], 0.5, 0.3).tolist() == [0, 2, 3]


def test_soft_suppression_by_hand() -> None:
    updated, kept = cv2dnn.softNMSBoxes(ROW[:2], SCORES[:2], 0.1, 0.3, method=cv2dnn.SOFT_NMSMETHOD_SOFTNMS_LINEAR)
    assert kept.tolist() == [0, 1]
    np.testing.assert_allclose(updated, [0.9, 0.8 * (1 - 1 / 3)], rtol=1e-6)
    updated, _ = cv2dnn.softNMSBoxes(ROW[:2], SCORES[:2], 0.1, 0.3, sigma=0.5)
    np.testing.assert_allclose(updated, [0.9, 0.8 * np.exp(-1 / 9 / 0.5)], rtol=1e-6)


def test_boxes_without_area() -> None:
    assert cv2dnn.NMSBoxes([[1, 1, 0, 0], [5, 5, 0, 0]], [0.9, 0.8], 0.1, 0.5).tolist() == [0], "their overlap counts as 1"


@pytest.mark.parametrize(
    ("boxes", "scores"),
    [(ROW, SCORES[:3]), ([[0, 0, 1]], [1]), (ROW, [SCORES]), ([["a"] * 4], [1]), ([[0, 0, 1, float("nan")]], [1]), (None, [1])],
)
def test_what_is_no_list_of_boxes(boxes: Any, scores: Any) -> None:
    with pytest.raises(ArrayError):
        cv2dnn.NMSBoxes(boxes, scores, 0.1, 0.5)


def test_thresholds_that_cannot_be() -> None:
    for thresholds in ((-0.1, 0.5), (0.1, -0.5), (0.1, 0.5, 0.0), (float("nan"), 0.5)):
        with pytest.raises(ArgumentError):
            cv2dnn.NMSBoxes(ROW, SCORES, *thresholds)
    with pytest.raises(ArgumentError, match="soft"):
        cv2dnn.softNMSBoxes(ROW, SCORES, 0.1, 0.5, method=3)
    with pytest.raises(ArgumentError, match="soft"):
        cv2dnn.softNMSBoxes(ROW, SCORES, 0.1, 0.5, sigma=0)
    with pytest.raises(ArrayError, match="one class"):
        cv2dnn.NMSBoxesBatched(ROW, SCORES, [0, 1], 0.1, 0.5)
