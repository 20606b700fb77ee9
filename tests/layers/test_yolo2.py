"""YOLO v2's Region, YoloDetectionOutput and RegionLoss: against loops over boxes as the ports have them, and their texts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.caffe.dialects.choose import read_text, text_dialect
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.region import Region
from astride.layers.region_loss import RegionLoss, Scales
from astride.layers.yolo_detection_output import YoloDetectionOutput

from .gradients import Bench

RANDOM = np.random.RandomState(31)
ANCHORS = [(0.7, 0.9), (1.9, 2.1)]
CLASSES, WIDTH = 3, 8
Row = list[float]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def softmax(values: Any) -> Row:
    e = [math.exp(v) for v in values]
    return [v / sum(e) for v in e]


def iou(a: Row, b: Row) -> float:
    def along(k: int) -> float:
        return min(a[k] + a[k + 2] / 2, b[k] + b[k + 2] / 2) - max(a[k] - a[k + 2] / 2, b[k] - b[k + 2] / 2)

    common = 0.0 if along(0) < 0 or along(1) < 0 else along(0) * along(1)
    return common / (a[2] * a[3] + b[2] * b[3] - common)


def box_of(v: Any, i: int, j: int, n: int, side: int) -> Row:
    sizes = [math.exp(v[2 + k]) * ANCHORS[n][k] / side for k in (0, 1)]
    return [(i + sigmoid(v[0])) / side, (j + sigmoid(v[1])) / side, *sizes]


# Region


@pytest.mark.parametrize("coords", [4, 5])
def test_region_by_planes(coords: int) -> None:
    x = RANDOM.normal(size=(2, 2 * (coords + 1 + CLASSES), 2, 3))
    y = Bench(Region(classes=CLASSES, boxes=2, coords=coords), [x]).forward()[0]
    for n, box, j, i in np.ndindex(2, 2, 2, 3):
        first = box * (coords + 1 + CLASSES)
        v, got = x[n, first : first + coords + 1 + CLASSES, j, i], y[n, first : first + coords + 1 + CLASSES, j, i]
        expected = [sigmoid(v[0]), sigmoid(v[1]), *v[2:coords], sigmoid(v[coords]), *softmax(v[coords + 1 :])]
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("softmaxed", [False, True])
def test_region_by_rows(softmaxed: bool) -> None:
    """Rows, columns, anchors, numbers: the first number of the second place is the ninth of the first image's first row."""
    x = RANDOM.normal(size=(1, 2 * WIDTH, 2, 2))
    y = Bench(Region(classes=CLASSES, boxes=2, rows=True, softmax=softmaxed), [x]).forward()[0].reshape(2, 2, 2, WIDTH)
    for j, i, box in np.ndindex(2, 2, 2):
        v = x[0, box * WIDTH : (box + 1) * WIDTH, j, i]
        classes = softmax(v[5:]) if softmaxed else v[5:]
        np.testing.assert_allclose(y[j, i, box], [*v[:4], sigmoid(v[4]), *classes], rtol=1e-12)


@pytest.mark.parametrize(
    ("fields", "dialect", "options"),
    [
        ("classes: 3 num: 2", "region", {}),
        ("num_classes: 3 num: 2 thresh: 0.2", "region", {}),
        ("classes: 3 boxes_of_each_grid: 2", "yolo2", {"rows": True, "softmax": False}),
        ("classes: 3 boxes_of_each_grid: 2 softmax: true", "yolo2", {"rows": True}),
    ],
)
def test_region_text(fields: str, dialect: str, options: dict[str, Any]) -> None:
    text = 'input: "x" input_shape { dim: [1, 16, 2, 2] } layer { name: "r" type: "Region" bottom: "x" top: "y" region_param { '
    text += fields + " } }"
    assert text_dialect(read_text(text).used) == dialect
    x = RANDOM.normal(size=(1, 16, 2, 2))
    net = load_caffe(text)
    expected = Bench(Region(classes=3, boxes=2, **options), [x]).forward()[0]
    np.testing.assert_allclose(net.forward(x=x)["y"], expected, rtol=1e-5, atol=1e-6)
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()


def test_region_refused() -> None:
    with pytest.raises(ArgumentError, match="coords >= 4"):
        Region(classes=3, boxes=2, coords=3)
    with pytest.raises(ArgumentError, match="other channels"):
        Bench(Region(classes=3, boxes=2), [np.zeros((1, 15, 2, 2))])
    bench = Bench(Region(classes=3, boxes=2), [np.zeros((1, 16, 2, 2))])
    bench.forward()
    with pytest.raises(UnsupportedError, match="no gradient"):
        bench.backward([np.ones((1, 16, 2, 2))], [True])


# YoloDetectionOutput


def found(maps: list[Any], confidence: float, most: float, *, ordered: bool) -> list[Row]:
    rows: list[Row] = []
    for x in maps:
        side = x.shape[2]
        for n, j, i, box in np.ndindex(x.shape[0], side, side, 2):
            v = x[n, box * WIDTH : (box + 1) * WIDTH, j, i]
            likely = softmax(v[5:])
            sure = sigmoid(v[4]) * max(likely)
            if sure >= confidence:
                rows.append([sure, likely.index(max(likely)), *box_of(v, i, j, box, side)])
    if ordered:
        rows.sort(key=lambda r: -r[0])
    kept: list[Row] = []
    for row in rows:
        if all(iou(row[2:], k[2:]) < most for k in kept):
            kept.append(row)
    return kept


@pytest.mark.parametrize(("confidence", "most"), [(0.01, 0.45), (0.2, 0.1), (0.3, 0.9)])
def test_detections_by_loop(confidence: float, most: float) -> None:
    maps = [RANDOM.normal(size=(1, 16, side, side)) for side in (3, 5)]
    layer = YoloDetectionOutput(classes=3, boxes=2, anchors=ANCHORS, confidence=confidence, overlap=most)
    rows = found(maps, confidence, most, ordered=True)
    expected = [[0, c + 1, s, x - w / 2, y - h / 2, x + w / 2, y + h / 2] for s, c, x, y, w, h in rows]
    assert expected
    np.testing.assert_allclose(Bench(layer, maps).forward()[0][0, 0], expected, rtol=1e-12)


def test_early_detections_are_kept_in_order_and_say_sizes() -> None:
    x = RANDOM.normal(size=(1, 16, 3, 3))
    text = """input: "x" input_shape { dim: [1, 16, 3, 3] }
    layer { name: "d" type: "DetectionOutput" bottom: "x" top: "y" detection_output_param { classes: 3 num_box: 2
      confidence_threshold: 0.1 nms_threshold: 0.3 biases: [0.7, 0.9, 1.9, 2.1] } }"""
    assert text_dialect(read_text(text).used) == "yolo2"
    rows = found([x], 0.1, 0.3, ordered=False)
    expected = [[0, c, s, *box] for s, c, *box in rows]
    assert [r[0] for r in rows] != sorted((r[0] for r in rows), reverse=True)
    for dialect in (None, "yolo2"):
        net = load_caffe(text, dialect=dialect)
        np.testing.assert_allclose(net.forward(x=x)["y"][0, 0], expected, rtol=1e-4, atol=1e-6)


def test_detections_text_and_nothing_found() -> None:
    text = """input: "x" input_shape { dim: [2, 16, 3, 3] }
    layer { name: "d" type: "YoloDetectionOutput" bottom: "x" top: "y" yolo_detection_output_param { num_classes: 3 num_box: 2
      confidence_threshold: 0.1 nms_threshold: 0.3 biases: [0.7, 0.9, 1.9, 2.1] } }"""
    net = load_caffe(text)
    x = RANDOM.normal(size=(2, 16, 3, 3))
    rows = found([x], 0.1, 0.3, ordered=True)
    np.testing.assert_allclose(net.forward(x=x)["y"][0, 0, :, 2], [r[0] for r in rows], rtol=1e-5)
    np.testing.assert_array_equal(net.forward(x=np.full(x.shape, -900.0))["y"], [[[[n] + [-1] * 6 for n in range(2)]]])
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()
    with pytest.raises(ArgumentError, match="number of classes"):
        load_caffe(text.replace("num_classes: 3", ""))
    with pytest.raises(ArgumentError, match="four numbers"):
        load_caffe(text.replace("num_box: 2", "num_box: 2 coords: 5"))


def test_detections_refused() -> None:
    with pytest.raises(ArgumentError, match="has an anchor"):
        YoloDetectionOutput(classes=3, boxes=3, anchors=ANCHORS)
    layer = YoloDetectionOutput(classes=3, boxes=2, anchors=ANCHORS)
    for shape in ((1, 15, 3, 3), (1, 16, 3, 4)):
        with pytest.raises(ArgumentError, match="channels or sides"):
            Bench(layer, [np.zeros(shape)])
    with pytest.raises(ArgumentError, match="one image"):
        Bench(YoloDetectionOutput(classes=3, boxes=2, anchors=ANCHORS, early=True), [np.zeros((2, 16, 3, 3))])
    bench = Bench(layer, [np.zeros((1, 16, 1, 1))])
    with pytest.raises(UnsupportedError):
        bench.backward(bench.forward(), [True])


# RegionLoss


def wrong(x: Any, labels: Any, scales: Scales, threshold: float, *, match: bool, rescore: bool, pulled: bool) -> Any:
    """delta, number by number."""
    count, _, side, _ = x.shape
    delta = np.zeros(x.shape)

    def pull(at: tuple[int, int, int, int], truth: Row, scale: float) -> None:
        n, box, j, i = at
        v, d = x[n, box * WIDTH :, j, i], delta[n, box * WIDTH :, j, i]
        for k, place in ((0, i), (1, j)):
            s = sigmoid(v[k])
            d[k] = -scale * (truth[k] * side - place - s) * s * (1 - s)
        for k in (0, 1):
            d[2 + k] = -scale * (math.log(truth[2 + k] * side / ANCHORS[box][k]) - v[2 + k])

    for n in range(count):
        rows = []
        for row in labels[n].tolist():
            if not row[3]:
                break
            rows.append(row)
        for j, i, box in np.ndindex(side, side, 2):
            v = x[n, box * WIDTH : (box + 1) * WIDTH, j, i]
            o = sigmoid(v[4])
            best = max([iou(box_of(v, i, j, box, side), row[1:]) for row in rows], default=0.0)
            delta[n, box * WIDTH + 4, j, i] = 0 if best > threshold else scales.nothing * o * o * (1 - o)
            if pulled:
                truth = [(i + 0.5) / side, (j + 0.5) / side, ANCHORS[box][0] / side, ANCHORS[box][1] / side]
                pull((n, box, j, i), truth, 0.01)
        for row in rows:
            i, j = int(row[1] * side), int(row[2] * side)
            best, box = 0.0, 0
            for b in (0, 1):
                v = x[n, b * WIDTH : (b + 1) * WIDTH, j, i]
                sizes = [a / side for a in ANCHORS[b]] if match else box_of(v, i, j, b, side)[2:]
                shared = iou([0, 0, *sizes], [0, 0, *row[3:]])
                if shared > best:
                    best, box = shared, b
            v, d = x[n, box * WIDTH : (box + 1) * WIDTH, j, i], delta[n, box * WIDTH : (box + 1) * WIDTH, j, i]
            pull((n, box, j, i), row[1:], scales.coords * (1 if rescore else 2 - row[3] * row[4]))
            o = sigmoid(v[4])
            wanted = iou(box_of(v, i, j, box, side), row[1:]) if rescore else 1.0
            d[4] = -scales.object * (wanted - o) * o * (1 - o)
            for c, p in enumerate(softmax(v[5:])):
                d[5 + c] = -scales.classes * ((c == int(row[0])) - p)
    return delta


LABELS = np.zeros((2, 1, 6, 5))
LABELS[0, 0, :3] = [[2, 0.3, 0.6, 0.4, 0.5], [0, 0.9, 0.1, 0.1, 0.2], [1, 0.35, 0.62, 0.2, 0.2]]
LABELS[1, 0, 0] = [1, 0.5, 0.5, 0.7, 0.9]
LABELS[1, 0, 2] = [1, 0.1, 0.1, 0.7, 0.9]  # behind a row of zeros, so not read


@pytest.mark.parametrize("match", [True, False])
@pytest.mark.parametrize("rescore", [True, False])
@pytest.mark.parametrize("threshold", [0.1, 0.6])
def test_loss_by_loop(match: bool, rescore: bool, threshold: float) -> None:
    x = RANDOM.normal(scale=0.7, size=(2, 16, 4, 4))
    scales = Scales(object=5.0, nothing=1.5, classes=2.0, coords=3.0)
    layer = RegionLoss(
        classes=3, boxes=2, anchors=ANCHORS, scales=scales, threshold=threshold, match_anchors=match, rescore=rescore
    )
    bench = Bench(layer, [x, LABELS])
    for pulled in (True, False):
        layer.seen = 0 if pulled else 12800
        delta = wrong(x, LABELS[:, 0], scales, threshold, match=match, rescore=rescore, pulled=pulled)
        np.testing.assert_allclose(bench.forward()[0], (delta**2).sum() / 2, rtol=1e-12)
        bench.backward([np.array(3.0)], [True, False])
        np.testing.assert_allclose(bench.bottom[0].diff, delta * 3 / 2, rtol=1e-9, atol=1e-14)


def test_loss_counts_images() -> None:
    layer = RegionLoss(classes=3, boxes=2, anchors=ANCHORS)
    bench = Bench(layer, [np.ones((2, 16, 2, 2)), np.zeros((2, 3, 5))])
    first = bench.forward()[0]
    assert layer.seen == 2 and layer.stateful
    layer.seen = 12800
    assert bench.forward()[0] < first
    layer.forget()
    np.testing.assert_array_equal(bench.forward()[0], first)


TEXT = """input: "x" input_shape { dim: [2, 16, 4, 4] } input: "l" input_shape { dim: [2, 1, 6, 5] } force_backward: true
layer { name: "r" type: "RegionLoss" bottom: "x" bottom: "l" top: "loss" region_loss_param { num_class: 3 num: 2 thresh: 0.6
  rescore: 0 biases: [0.7, 0.9, 1.9, 2.1] } }"""


@pytest.mark.parametrize("dialect", [None, "yolo", "yolo2"])
def test_loss_text(dialect: str | None) -> None:
    x = RANDOM.normal(size=(2, 16, 4, 4))
    net = load_caffe(TEXT, dialect=dialect)
    delta = wrong(x, LABELS[:, 0], Scales(), 0.6, match=True, rescore=False, pulled=True)
    np.testing.assert_allclose(net.forward(x=x, l=LABELS)["loss"], (delta**2).sum() / 2, rtol=1e-5)
    np.testing.assert_allclose(net.backward()["x"], delta / 2, rtol=1e-4, atol=1e-6)
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()


def test_loss_refused() -> None:
    with pytest.raises(UnsupportedError, match="no tree"):
        load_caffe(TEXT.replace("rescore: 0", 'softmax_tree: "9k.tree"'))
    with pytest.raises(ArgumentError, match="anchor with sides"):
        RegionLoss(classes=3, boxes=2, anchors=[(1, 1), (1, 0)])
    layer = RegionLoss(classes=3, boxes=2, anchors=ANCHORS)
    for shapes in (
        ((1, 15, 2, 2), (1, 3, 5)),
        ((1, 16, 2, 3), (1, 3, 5)),
        ((1, 16, 2, 2), (2, 3, 5)),
        ((1, 16, 2, 2), (1, 3, 8)),
    ):
        with pytest.raises(ArgumentError, match="do not belong together"):
            Bench(layer, [np.zeros(s) for s in shapes])
    x = np.zeros((1, 16, 2, 2))
    for label in ([3, 0.5, 0.5, 0.1, 0.1], [0, 1.0, 0.5, 0.1, 0.1], [0, 0.5, 0.5, 0.1, -0.1], [0, math.nan, 0.5, 0.1, 0.1]):
        with pytest.raises(ArrayError, match="no box in the image"):
            Bench(layer, [x, np.array([[label]])]).forward()
    bench = Bench(layer, [x, np.zeros((1, 1, 5))])
    with pytest.raises(UnsupportedError, match="labels have no gradient"):
        bench.backward(bench.forward(), [True, True])
