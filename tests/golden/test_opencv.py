"""Blobs and boxes against what OpenCV 4.14 gave (opencv/record.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.golden.opencv.calls import BLOBS, BOXES, IMAGES, SCORES, SOFT, SUPPRESSIONS

from astride import cv2dnn


@pytest.fixture(scope="module")
def recorded() -> Any:
    with np.load(Path(__file__).parent / "opencv" / "recorded.npz") as file:
        return dict(file)


def test_who_recorded_it(recorded: Any) -> None:
    assert str(recorded["version"]) == "4.14.0"
    assert len(recorded) == 2 + len(BLOBS) + len(SUPPRESSIONS) + 2 * len(SOFT)


@pytest.mark.parametrize("i", range(len(BLOBS)))
def test_blobs(recorded: Any, i: int) -> None:
    image, call = BLOBS[i]
    blob = cv2dnn.blobFromImage(IMAGES[image], **call)
    np.testing.assert_array_equal(blob, recorded[f"blob{i}"])
    assert blob.dtype == recorded[f"blob{i}"].dtype


@pytest.mark.parametrize("i", range(len(SUPPRESSIONS)))
def test_suppression(recorded: Any, i: int) -> None:
    assert list(cv2dnn.NMSBoxes(BOXES, SCORES, **SUPPRESSIONS[i])) == recorded[f"kept{i}"].tolist()


@pytest.mark.parametrize("i", range(len(SOFT)))
def test_soft_suppression(recorded: Any, i: int) -> None:
    updated, kept = cv2dnn.softNMSBoxes(BOXES, SCORES, **SOFT[i])
    assert list(kept) == recorded[f"soft{i}"].tolist()
    np.testing.assert_allclose(updated, recorded[f"updated{i}"], rtol=1e-6)
