"""Boxes: codes that undo each other, overlaps and suppression against the plain forms, anchors as they are known."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArrayError
from astride.layers._anchors import anchors, everywhere, inside, regressed
from astride.layers._boxes import Code, areas, best_first, decoded, encoded, overlaps, suppressed
from astride.layers._rois import half_away

from . import boxes as plain

RANDOM = np.random.RandomState(50)
PRIOR = np.array([[0.25, 0.25, 0.75, 0.5]])
VARIANCE = np.array([[0.5, 0.5, 0.25, 0.25]])


@pytest.mark.parametrize(
    ("code", "in_target", "expected"),
    [
        (Code.CORNER, True, [1.25, 2.25, 0.75, 0.5]),
        (Code.CORNER, False, [0.75, 1.25, 0.75, 0.5]),
        (Code.CORNER_SIZE, True, [0.75, 0.75, 0.75, 0.5]),
        (Code.CORNER_SIZE, False, [0.5, 0.5, 0.75, 0.5]),
        # the centre (1/2, 3/8) moves by 1 and 2 sizes, the size stays
        (Code.CENTER_SIZE, True, [0.75, 0.75, 1.25, 1.0]),
        (Code.CENTER_SIZE, False, [0.5, 0.5, 1.0, 0.75]),
    ],
)
def test_decoded_by_hand(code: Code, in_target: bool, expected: list[float]) -> None:
    offsets = np.array([[1.0, 2.0, 0.0, 0.0]])
    np.testing.assert_array_equal(decoded(offsets, PRIOR, VARIANCE, code, in_target=in_target), [expected])


def test_sizes_grow_exponentially() -> None:
    offsets = np.array([[0.0, 0.0, 4 * np.log(2.0), 4 * np.log(0.5)]])
    box = decoded(offsets, PRIOR, VARIANCE, Code.CENTER_SIZE, in_target=False)
    np.testing.assert_allclose(box, [[0.0, 0.3125, 1.0, 0.4375]], rtol=0, atol=1e-15)


@pytest.mark.parametrize("code", list(Code))
@pytest.mark.parametrize("in_target", [True, False])
def test_encoded_is_the_inverse(code: Code, in_target: bool) -> None:
    found, priors = plain.random_boxes(RANDOM, 20), plain.random_boxes(RANDOM, 20)
    variances = np.full_like(priors, 0.1)
    offsets = encoded(found, priors, variances, code, in_target=in_target)
    np.testing.assert_allclose(decoded(offsets, priors, variances, code, in_target=in_target), found, rtol=0, atol=1e-12)


def test_priors_have_sizes() -> None:
    flat = np.array([[0.25, 0.5, 0.75, 0.5]])
    for code in (Code.CENTER_SIZE, Code.CORNER_SIZE):
        with pytest.raises(ArrayError, match="a prior has no width or no height"):
            decoded(PRIOR, flat, VARIANCE, code, in_target=True)
    with pytest.raises(ArrayError, match="a box has no width or no height"):
        encoded(flat, PRIOR, VARIANCE, Code.CENTER_SIZE, in_target=True)
    np.testing.assert_array_equal(decoded(PRIOR, flat, VARIANCE, Code.CORNER, in_target=True), PRIOR + flat)


@pytest.mark.parametrize("pixel", [0.0, 1.0])
def test_overlaps(pixel: float) -> None:
    a = RANDOM.randint(-5, 9, (30, 4)).astype(float)
    b = RANDOM.randint(-5, 9, (20, 4)).astype(float)
    found = overlaps(a[:, None], b[None], pixel=pixel)
    for i, j in np.ndindex(*found.shape):
        assert found[i, j] == plain.jaccard(a[i], b[j], pixel), (a[i], b[j])


def test_overlaps_by_hand() -> None:
    box = np.array([0.0, 0.0, 2.0, 2.0])
    others = np.array([[1, 1, 3, 3], [2, 0, 4, 2], [0, 0, 2, 2], [0.5, 0.5, 1.5, 1.5], [2, 2, 0, 0]], float)
    np.testing.assert_array_equal(overlaps(box, others), [1 / 7, 0, 1, 1 / 4, 0])
    np.testing.assert_array_equal(areas(others), [4, 4, 4, 1, 0])
    np.testing.assert_array_equal(areas(others, pixel=1.0), [9, 9, 9, 4, 0])


@pytest.mark.parametrize(("threshold", "eta", "pixel"), [(0.3, 1.0, 0.0), (0.7, 0.9, 0.0), (0.5, 1.0, 1.0), (0.0, 1.0, 0.0)])
def test_suppressed(threshold: float, eta: float, pixel: float) -> None:
    boxes = plain.random_boxes(RANDOM, 120) * (100 if pixel else 1)
    kept = suppressed(boxes, threshold, eta=eta, pixel=pixel)
    assert kept.tolist() == plain.greedy(boxes, threshold, eta, pixel)
    assert 1 < len(kept) < 120
    np.testing.assert_array_equal(suppressed(boxes, threshold, eta=eta, pixel=pixel, most=2), kept[:2])


def test_suppression_of_boxes_that_are_no_numbers() -> None:
    boxes = np.array([[0, 0, 1, 1], [np.nan] * 4, [0, 0, 1, 1]])
    assert suppressed(boxes, 0.5).tolist() == [0, 1], "no overlap is more than any threshold, as in C"
    assert suppressed(np.empty((0, 4)), 0.5).tolist() == []


def test_suppression_of_infinite_boxes_says_nothing() -> None:
    """Weights that nobody trained make them: warnings are errors here."""
    big, inf = 3e38, np.inf
    boxes = np.array([[-inf, 0, inf, 0], [-inf, 1, inf, 2], [-big, -big, big, big], [0, 0, 1, 1], [4, 4, 5, 5]], np.float32)
    assert areas(boxes)[2] == inf and areas(boxes)[3] == 1
    assert {3, 4} <= set(suppressed(boxes, 0.5).tolist()), "finite boxes beside them stay"
    assert overlaps(boxes[3], boxes[3]) == 1 and overlaps(boxes[3], boxes[4]) == 0
    assert overlaps(boxes[:, None], boxes[None]).shape == (5, 5)


def test_best_first() -> None:
    scores = np.array([0.5, np.nan, 0.75, 0.5, -np.inf, 0.25, 0.5])
    assert best_first(scores).tolist() == [2, 0, 3, 6, 5]
    assert best_first(scores, above=0.25).tolist() == [2, 0, 3, 6]
    assert best_first(scores, top_k=2).tolist() == [2, 0]
    assert best_first(scores, top_k=0).tolist() == []


def test_anchors_are_the_known_ones() -> None:
    """The nine that py-faster-rcnn's authors print, of base 16; 24 and a half is rounded to the even 24 there, to 25 in C."""
    assert anchors(16, (0.5, 1, 2), (8, 16, 32)).tolist() == [
        [-84, -40, 99, 55],
        [-176, -88, 191, 103],
        [-360, -184, 375, 199],
        [-56, -56, 71, 71],
        [-120, -120, 135, 135],
        [-248, -248, 263, 263],
        [-36, -80, 51, 95],
        [-80, -168, 95, 183],
        [-168, -344, 183, 359],
    ]
    halves = [(box[3] - box[1] + 1) for even in (True, False) for box in anchors(49, (0.5,), (1,), even=even)]
    assert halves == [34, 35]


def test_anchors_everywhere_moved_and_clipped() -> None:
    own = np.array([[0.0, 0, 3, 1], [-1, -1, 1, 1]])
    at = everywhere(own, (2, 2), 8)
    assert at.tolist() == [[x + a, y + b, x + c, y + d] for y in (0, 8) for x in (0, 8) for a, b, c, d in own.tolist()]
    moved = regressed(np.array([[0.0, 0, 3, 1]]), np.array([[0.5, -1.0, np.log(2.0), 0.0]]))
    np.testing.assert_allclose(moved, [[0, -2, 8, 0]], atol=1e-12)  # centre (2, 1) to (4, -1), width 4 to 8, height 2
    np.testing.assert_array_equal(inside(np.array([[-3.0, 2, 50, 99]]), 10, 20), [[0, 2, 19, 9]])


def test_half_away() -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, -2.4, 8388609.0, 0.0], np.float32)
    assert half_away(values).tolist() == [1, 2, 3, -1, -2, 0, -2, 8388609, 0]
