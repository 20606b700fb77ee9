"""YOLO v2's map against OpenCV 4's reader of Darknet's networks: the same boxes, objectness and classes."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from astride import load_caffe

cv2 = pytest.importorskip("cv2")
if not hasattr(cv2.dnn, "readNetFromDarknet"):
    pytest.skip("this OpenCV reads no Darknet networks", allow_module_level=True)
pytestmark = pytest.mark.live

ANCHORS = [0.7, 0.9, 1.9, 2.1, 3.3, 1.2]
CONFIG = """[net]
width={side}
height={side}
channels={channels}
[convolutional]
filters={channels}
size=1
stride=1
pad=0
activation=linear
[region]
anchors={anchors}
classes={classes}
coords=4
num={boxes}
softmax=1
thresh=0
"""


def theirs(x: np.ndarray, boxes: int, classes: int) -> np.ndarray:
    """Rows of x, y, width, height, objectness, and that times each class, in the order rows, columns, anchors."""
    channels, side = x.shape[1:3]
    anchors = ",".join(map(str, ANCHORS[: 2 * boxes]))
    text = CONFIG.format(side=side, channels=channels, boxes=boxes, classes=classes, anchors=anchors)
    passed_on = np.concatenate([np.zeros(channels), np.eye(channels).ravel()]).astype(np.float32)
    weights = struct.pack("<4i", 0, 1, 0, 0) + passed_on.tobytes()
    net = cv2.dnn.readNetFromDarknet(np.frombuffer(text.encode(), np.uint8), np.frombuffer(weights, np.uint8))
    net.setInput(x)
    return np.asarray(net.forward())


@pytest.mark.parametrize("trial", range(10))
def test_region_and_detections(trial: int) -> None:
    random = np.random.RandomState(trial)
    boxes, classes, side = random.randint(1, 4), random.randint(2, 6), random.randint(1, 7)
    width = 5 + classes
    x = random.normal(scale=1.5, size=(1, boxes * width, side, side)).astype(np.float32)
    shape = f"dim: [1, {boxes * width}, {side}, {side}]"
    net = load_caffe(
        f"""input: "x" input_shape {{ {shape} }}
        layer {{ name: "region" type: "Region" bottom: "x" top: "region"
          region_param {{ classes: {classes} num: {boxes} }} }}
        layer {{ name: "found" type: "YoloDetectionOutput" bottom: "x" top: "found" yolo_detection_output_param {{
          num_classes: {classes} num_box: {boxes} biases: {ANCHORS} confidence_threshold: 0 nms_threshold: 2 }} }}"""
    )
    out, rows = net.forward(x=x), theirs(x, boxes, classes)
    values = out["region"].reshape(boxes, width, side * side).transpose(2, 0, 1).reshape(-1, width)
    np.testing.assert_allclose(values[:, 4], rows[:, 4], rtol=1e-5)
    likely = values[:, 4:5] * values[:, 5:]
    stays = rows[:, 5:] > 0  # OpenCV has put those to 0 that a surer box of their class overlaps
    np.testing.assert_allclose(likely[stays], rows[:, 5:][stays], rtol=1e-4)
    found = out["found"][0, 0]
    order = np.argsort(-likely.max(axis=1), kind="stable")
    np.testing.assert_array_equal(found[:, 1], likely[order].argmax(axis=1) + 1)
    np.testing.assert_allclose(found[:, 2], likely[order].max(axis=1), rtol=1e-4)
    corners = np.concatenate([rows[order, :2] - rows[order, 2:4] / 2, rows[order, :2] + rows[order, 2:4] / 2], axis=1)
    np.testing.assert_allclose(found[:, 3:], corners, rtol=1e-4, atol=1e-5)
    assert stays.any(axis=1).sum() >= 1
