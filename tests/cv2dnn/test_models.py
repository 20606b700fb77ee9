"""OpenCV's models on networks a person can follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride import ArgumentError, UnsupportedError, cv2dnn

from .files import written
from .generated import NETS, data, layer
from .ssd import ssd

FRAME = np.zeros((4, 8, 3), np.uint8)
FRAME[:, :4, 0] = FRAME[:, 4:, 2] = 200


def test_labels_of_pixels(tmp_path: Path) -> None:
    """A network that gives its input: the label is the brightest channel."""
    text = data(1, 3, 4, 8) + layer("same", "Power", "data", "same")
    net = cv2dnn.readNetFromCaffe(text)
    model = cv2dnn.SegmentationModel(net).setInputSize(8, 4)
    assert model.segment(FRAME).tolist() == [[0] * 4 + [2] * 4] * 4
    assert model.setInputSwapRB(True).segment(FRAME).tolist() == [[2] * 4 + [0] * 4] * 4


def test_the_best_class() -> None:
    text = data(1, 3, 1, 1) + layer("flat", "Flatten", "data", "flat")
    model = cv2dnn.ClassificationModel(cv2dnn.readNetFromCaffe(text)).setInputSize((1, 1)).setInputScale(0.01)
    pixel = np.array([[[100, 0, 300]]], np.float32)
    assert model.classify(pixel) == (2, 3.0)
    model.setEnableSoftmaxPostProcessing(True)
    best, score = model.classify(pixel)
    assert model.getEnableSoftmaxPostProcessing() and best == 2
    np.testing.assert_allclose(score, np.exp(3) / (np.exp(1) + 1 + np.exp(3)), rtol=1e-5)


def test_detections(tmp_path: Path) -> None:
    prototxt, weights = written(ssd(threshold=0.02), tmp_path)
    frame = np.random.default_rng(1).integers(0, 256, (50, 70, 3)).astype(np.uint8)
    model = cv2dnn.DetectionModel(prototxt, weights)
    model.setInputParams(0.02, (32, 32), (127, 127, 127))
    classes, scores, boxes = model.detect(frame, confThreshold=0.5)
    rows = model.predict(frame)[0].reshape(-1, 7)
    rows = rows[rows[:, 2] >= 0.5]
    assert classes.tolist() == rows[:, 1].tolist() and scores.tolist() == rows[:, 2].tolist()
    inside = rows[(rows[:, 3:] >= 0).all(axis=1) & (rows[:, 3:] < 0.98).all(axis=1)]
    assert len(inside)
    kept = np.flatnonzero((rows[:, 3:] >= 0).all(axis=1) & (rows[:, 3:] < 0.98).all(axis=1))
    corners = (inside[:, 3:] * np.array([70, 50, 70, 50], np.float32)).astype(int)
    np.testing.assert_array_equal(boxes[kept], np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2] + 1]))
    assert (boxes[:, :2] >= 0).all() and (boxes[:, :2] + boxes[:, 2:] <= [70, 50]).all() and (boxes[:, 2:] >= 1).all()
    assert model.detect(frame, 1.5) == ((), (), ())
    assert model.setNmsAcrossClasses(True).getNmsAcrossClasses()


def test_what_is_refused(tmp_path: Path) -> None:
    prototxt, weights = written(NETS["softmax"], tmp_path)
    model = cv2dnn.DetectionModel(weights, prototxt)
    with pytest.raises(ArgumentError, match="setInputSize"):
        model.predict(FRAME)
    with pytest.raises(UnsupportedError, match="DetectionOutput"):
        model.setInputSize(6, 5).detect(FRAME)
    with pytest.raises(UnsupportedError, match="scores of labels"):
        cv2dnn.SegmentationModel(weights, prototxt).setInputSize(6, 5).segment(FRAME)
    assert model.setOutputNames(["i"]).setPreferableTarget(0).setPreferableBackend(3).enableWinograd(True) is model
    assert model.setInputCrop(True).setInputMean(1).predict(FRAME)[0].shape == (1, 7)
