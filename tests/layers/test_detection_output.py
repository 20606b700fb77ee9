"""DetectionOutput against a plain form of it, its edges, and its text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers._boxes import Code, decoded
from astride.layers.detection_output import DetectionOutput

from . import boxes as plain
from .gradients import Bench

PRIORS, CLASSES, IMAGES = 40, 4, 2


def inputs(shared: bool, seed: int = 0) -> list[Any]:
    random = np.random.RandomState(seed)
    kinds = 1 if shared else CLASSES
    places = random.normal(size=(IMAGES, PRIORS * kinds * 4))
    scores = random.permutation(np.linspace(0, 1, IMAGES * PRIORS * CLASSES)).reshape(IMAGES, -1)
    return [places, scores, plain.prior_blob(plain.random_boxes(random, PRIORS))]


def expected(bottoms: list[Any], shared: bool, options: dict[str, Any]) -> list[list[float]]:
    """The table, one box and one class at a time."""
    places, scores = (b.reshape(IMAGES, PRIORS, -1) for b in bottoms[:2])
    priors, variances = bottoms[2].reshape(2, PRIORS, 4)
    rows = []
    for image in range(IMAGES):
        own = []
        for label in range(CLASSES):
            if label == options.get("background", 0):
                continue
            at = 0 if shared else label
            boxes = decoded(
                places[image, :, 4 * at : 4 * at + 4], priors, variances, options["code"], in_target=options["in_target"]
            )
            found = sorted(range(PRIORS), key=lambda p: -scores[image, p, label])
            found = [p for p in found if scores[image, p, label] > options["confidence"]][: options["top_k"]]
            kept = plain.greedy([boxes[p] for p in found], options["threshold"], options["eta"])
            own += [[image, label, scores[image, found[k], label], *boxes[found[k]]] for k in kept]
        best = sorted(own, key=lambda row: -row[2])[: options["keep_top_k"]]
        rows += sorted(best, key=lambda row: (row[1], -row[2]))
    return rows


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("code", list(Code))
@pytest.mark.parametrize(
    "more",
    [
        {"in_target": False, "threshold": 0.45, "eta": 1.0, "top_k": 20, "keep_top_k": 12},
        {"in_target": True, "threshold": 0.8, "eta": 0.9, "top_k": 30, "keep_top_k": 200, "background": 2},
    ],
)
def test_against_the_plain_form(shared: bool, code: Code, more: dict[str, Any]) -> None:
    options = {"code": code, "confidence": 0.3, **more}
    bottoms = inputs(shared, seed=len(code))
    found = Bench(DetectionOutput(CLASSES, shared=shared, **options), bottoms).forward()[0]
    rows = np.array(expected(bottoms, shared, options))
    assert found.shape == (1, 1, len(rows), 7)
    np.testing.assert_array_equal(found[0, 0], rows)


def test_all_boxes_count_without_limits() -> None:
    bottoms = inputs(True)
    found = Bench(DetectionOutput(CLASSES, background=-1, threshold=1.0), bottoms).forward()[0][0, 0]
    assert len(found) == IMAGES * PRIORS * CLASSES
    assert set(found[:, 1]) == {0, 1, 2, 3}
    assert (np.diff(found[:PRIORS, 2]) < 0).all()


def test_nothing_found_is_a_row_for_each_image() -> None:
    found = Bench(DetectionOutput(CLASSES, confidence=2.0), inputs(True)).forward()[0]
    np.testing.assert_array_equal(found[0, 0], [[i, -1, -1, -1, -1, -1, -1] for i in range(IMAGES)])


def test_nothing_in_one_image_only_is_no_row() -> None:
    bottoms = inputs(True)
    bottoms[1][0] = 0
    found = Bench(DetectionOutput(CLASSES, confidence=0.1), bottoms).forward()[0][0, 0]
    assert len(found) and set(found[:, 0]) == {1}


def test_refined_priors() -> None:
    """RefineDet: what an image's first places make of the priors is what its second ones move."""
    random = np.random.RandomState(3)
    bottoms = inputs(True)
    first = random.normal(size=(IMAGES, PRIORS * 4))
    something = random.uniform(size=(IMAGES, PRIORS, 2))
    options = {"code": Code.CENTER_SIZE, "confidence": 0.05, "threshold": 0.5}
    found = Bench(
        DetectionOutput(CLASSES, objectness=0.4, **options), [*bottoms, something.reshape(IMAGES, -1), first]
    ).forward()[0][0, 0]
    priors, variances = bottoms[2].reshape(2, PRIORS, 4)
    rows = []
    for image in range(IMAGES):
        moved = decoded(first[image].reshape(-1, 4), priors, variances, Code.CENTER_SIZE, in_target=False)
        scores = bottoms[1][image : image + 1].reshape(PRIORS, CLASSES).copy()
        scores[something[image, :, 1] < 0.4] = np.eye(CLASSES)[0]
        one = [bottoms[0][image : image + 1], scores.reshape(1, -1), plain.prior_blob(moved)]
        table = Bench(DetectionOutput(CLASSES, **options), one).forward()[0][0, 0]
        table[:, 0] = image
        rows.append(table)
    np.testing.assert_array_equal(found, np.concatenate(rows))


def test_refusals() -> None:
    places, scores, priors = inputs(True)
    with pytest.raises(ArgumentError, match=f"4 for each prior and image: {IMAGES * PRIORS * 4 - IMAGES} == 2 [*] 40 [*] 4"):
        Bench(DetectionOutput(CLASSES), [places[:, 1:], scores, priors])
    with pytest.raises(ArgumentError, match="scores are not as many"):
        Bench(DetectionOutput(CLASSES + 1), [places, scores, priors])
    with pytest.raises(ArgumentError, match="not what PriorBox makes"):
        Bench(DetectionOutput(CLASSES), [places, scores, priors[0]])
    with pytest.raises(ArgumentError, match="priors >= 1"):
        Bench(DetectionOutput(2**32 - 1), [np.empty((1, 0)), np.empty((1, 0)), np.empty((1, 2, 0))])
    with pytest.raises(ArgumentError, match="different numbers of images"):
        Bench(DetectionOutput(CLASSES), [places[:1], scores, priors])
    with pytest.raises(ArgumentError, match="3 or 5 bottoms: 4"):
        Bench(DetectionOutput(CLASSES), [places, scores, priors, scores])
    for options, says in (({"eta": 0.0}, "0 < eta <= 1"), ({"threshold": -1.0}, "nms_threshold >= 0: -1"), ({"eta": 1.5}, "eta")):
        with pytest.raises(ArgumentError, match=says):
            DetectionOutput(CLASSES, **options)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="num_classes >= 1"):
        DetectionOutput(0)
    bench = Bench(DetectionOutput(CLASSES, code=Code.CENTER_SIZE), [places, scores, np.zeros_like(priors)])
    with pytest.raises(ArrayError, match="a prior has no width"):
        bench.forward()
    bench = Bench(DetectionOutput(CLASSES), [places, scores, priors])
    with pytest.raises(UnsupportedError, match="detections have no gradient"):
        bench.backward(bench.forward(), [True, False, False])


NET = """
input: "loc" input: "conf" input: "priors"
input_shape {{ dim: 2 dim: 160 }} input_shape {{ dim: 2 dim: 160 }} input_shape {{ dim: 1 dim: 2 dim: 160 }}
layer {{
  name: "out" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "priors" top: "out"
  detection_output_param {{ {} code_type: CENTER_SIZE keep_top_k: 15 confidence_threshold: 0.25
    nms_param {{ nms_threshold: 0.45 top_k: 20 }} }}
}}
"""


def test_text(caplog: pytest.LogCaptureFixture) -> None:
    arrays = [a.astype(np.float32) for a in inputs(True)]
    net = load_caffe(NET.format("num_classes: 4 save_output_param { output_directory: 'results' }"), dialect="ssd")
    assert "detections are not written to files" in caplog.text
    assert net.blobs["out"].shape == (1, 1, 1, 7)
    named = dict(zip(net.inputs, arrays, strict=True))
    found = net.forward(**named)["out"]
    layer = DetectionOutput(4, code=Code.CENTER_SIZE, keep_top_k=15, confidence=0.25, threshold=float(np.float32(0.45)), top_k=20)
    np.testing.assert_allclose(found, Bench(layer, arrays).forward()[0], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found, load_caffe(net.to_prototxt()).forward(**named)["out"])
    np.testing.assert_array_equal(found, net.compile()(**named)["out"])
    again = net.forward(**{**named, "conf": np.zeros_like(arrays[1])})["out"]
    np.testing.assert_array_equal(again[0, 0, :, :2], [[0, -1], [1, -1]])


def test_text_needs_the_classes() -> None:
    with pytest.raises(ArgumentError, match="the number of classes is not given"):
        load_caffe(NET.format(""))
