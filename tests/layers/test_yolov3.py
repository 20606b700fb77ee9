"""Yolov3DetectionOutput: against a loop over boxes as the ports have it, nothing found, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers.yolov3_detection_output import Yolov3DetectionOutput, surest

from .gradients import Bench

RANDOM = np.random.RandomState(10)
ANCHORS = [(10.0, 14.0), (23.0, 27.0), (37.0, 58.0), (81.0, 82.0), (135.0, 169.0), (344.0, 319.0)]
MASKS, SCALES, CLASSES = [[3, 4, 5], [0, 1, 2]], [32, 16], 2
Row = tuple[float, ...]


def layer(**options: Any) -> Yolov3DetectionOutput:
    given: dict[str, Any] = {"classes": CLASSES, "boxes": 3, "anchors": ANCHORS, "masks": MASKS, "scales": SCALES}
    return Yolov3DetectionOutput(**(given | options))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def overlap(a: Row, b: Row) -> float:
    def along(k: int) -> float:
        return min(a[k] + a[k + 2] / 2, b[k] + b[k + 2] / 2) - max(a[k] - a[k + 2] / 2, b[k] - b[k + 2] / 2)

    common = 0.0 if along(2) < 0 or along(3) < 0 else along(2) * along(3)
    return common / (a[4] * a[5] + b[4] * b[5] - common)


def by_loop(maps: list[Any], confidence: float, most: float) -> list[Row]:
    found: list[Row] = []
    for x, mask, scale in zip(maps, MASKS, SCALES, strict=True):
        side = x.shape[2]
        for n, row, column, box in np.ndindex(x.shape[0], side, side, 3):
            v = x[n, box * (5 + CLASSES) : (box + 1) * (5 + CLASSES), row, column]
            width, height = ANCHORS[mask[box]]
            for c in range(CLASSES):
                sure = sigmoid(v[4]) * sigmoid(v[5 + c])
                if sure > confidence:
                    place = (column + sigmoid(v[0])) / side, (row + sigmoid(v[1])) / side
                    size = math.exp(v[2]) * width / (side * scale), math.exp(v[3]) * height / (side * scale)
                    found.append((sure, c + 1, *place, *size))
    kept: list[Row] = []
    for each in sorted(found, key=lambda r: -r[0]):
        if all(overlap(each, k) < most for k in kept):
            kept.append(each)
    return [(0, c, s, x - w / 2, y - h / 2, x + w / 2, y + h / 2) for s, c, x, y, w, h in kept]


@pytest.mark.parametrize(("confidence", "most"), [(0.01, 0.45), (0.3, 0.45), (0.3, 0.1), (0.5, 0.9)])
def test_by_loop(confidence: float, most: float) -> None:
    maps = [RANDOM.normal(size=(2, 21, side, side)) for side in (3, 6)]
    bench = Bench(layer(confidence=confidence, overlap=most), maps)
    expected = by_loop(maps, confidence, most)
    assert expected
    np.testing.assert_allclose(bench.forward()[0][0, 0], expected, rtol=1e-12)


def test_nothing_found() -> None:
    bench = Bench(layer(), [np.full((3, 21, side, side), -900.0) for side in (1, 2)])
    out = bench.forward()[0]
    np.testing.assert_array_equal(out, [[[[n] + [-1] * 6 for n in range(3)]]])


def test_the_surest_stays() -> None:
    boxes = np.array([[0.5, 0.5, 0.2, 0.2], [0.5, 0.5, 0.2, 0.1], [0.5, 0.5, 0.0, 0.0], [0.9, 0.9, 0.1, 0.1]])
    assert surest(boxes, 0.5).tolist() == [0, 2, 3]  # half of it in common is enough
    assert surest(boxes, 0.51).tolist() == [0, 1, 2, 3]
    assert surest(boxes[:0], 0.5).tolist() == []


TEXT = """
input: "coarse" input_shape { dim: 1 dim: 21 dim: 3 dim: 3 }
input: "fine" input_shape { dim: 1 dim: 21 dim: 6 dim: 6 }
layer { name: "found" type: "Yolov3DetectionOutput" bottom: "coarse" bottom: "fine" top: "found"
  yolov3_detection_output_param { num_classes: 2 num_box: 3 confidence_threshold: 0.2 nms_threshold: 0.4 mask_group_num: 2
    mask: [3, 4, 5, 0, 1, 2] anchors_scale: [32, 16]
    biases: [10, 14, 23, 27, 37, 58, 81, 82, 135, 169, 344, 319] } }
"""


def test_text() -> None:
    maps = [RANDOM.normal(size=(1, 21, side, side)).astype(np.float32) for side in (3, 6)]
    net = load_caffe(TEXT)
    out = net.forward(coarse=maps[0], fine=maps[1])["found"]
    np.testing.assert_allclose(out[0, 0], by_loop(maps, 0.2, 0.4), rtol=1e-4, atol=1e-6)
    again = load_caffe(net.to_prototxt()).forward(coarse=maps[0], fine=maps[1])["found"]
    np.testing.assert_array_equal(again, out)


@pytest.mark.parametrize(
    "options",
    [{"masks": []}, {"scales": [32]}, {"masks": [[3, 4], [0, 1]]}, {"masks": [[3, 4, 6], [0, 1, 2]]}],
)
def test_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="do not belong together"):
        layer(**options)


@pytest.mark.parametrize(
    ("shapes", "match"),
    [
        ([(1, 21, 3, 3)], "mask for each"),
        ([(1, 20, 3, 3), (1, 21, 6, 6)], "channels or sides"),
        ([(1, 21, 3, 4), (1, 21, 6, 6)], "channels or sides"),
    ],
)
def test_bottoms(shapes: list[tuple[int, ...]], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        Bench(layer(), [np.zeros(s) for s in shapes])


def test_no_gradient() -> None:
    bench = Bench(layer(), [RANDOM.normal(size=(1, 21, side, side)) for side in (1, 2)])
    bench.forward()
    with pytest.raises(UnsupportedError):
        bench.backward([np.ones(bench.top[0].shape)], [True, True])
