"""Proposal against a plain form of it, the least side, and its texts: PVANet's and py-faster-rcnn's in Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, ArrayError
from astride.layers._anchors import anchors
from astride.layers.proposal import Proposal, Small

from . import boxes as plain
from .gradients import Bench

RATIOS, SCALES = (0.5, 1.0, 2.0), (1.0, 2.0)
ANCHORS, SIZE = 6, (3, 4)


def inputs(seed: int = 0, image: Any = (48.0, 60.0, 1.0)) -> list[Any]:
    random = np.random.RandomState(seed)
    scores = random.permutation(np.linspace(0.01, 0.99, 2 * ANCHORS * 12)).reshape(1, 2 * ANCHORS, *SIZE)
    return [scores, random.normal(size=(1, 4 * ANCHORS, *SIZE)) * 0.3, np.array([image])]


def expected(given: list[Any], least: tuple[float, float], small: Small, before: int, after: int, threshold: float) -> Any:
    scores, moves, image = given
    height, width = image[0, :2]
    rows = []
    for y, x in np.ndindex(*SIZE):
        for a, anchor in enumerate(anchors(16, RATIOS, SCALES)):
            x1, y1, x2, y2 = anchor + np.array([x, y, x, y]) * 16
            dx, dy, dw, dh = moves[0, 4 * a : 4 * a + 4, y, x]
            w, h = x2 - x1 + 1, y2 - y1 + 1
            cx, cy = x1 + w / 2 + dx * w, y1 + h / 2 + dy * h
            w, h = w * math.exp(dw), h * math.exp(dh)
            corners = [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]
            limits = [width - 1, height - 1] * 2
            box = [max(min(c, limit), 0) for c, limit in zip(corners, limits, strict=True)]
            score = scores[0, ANCHORS + a, y, x]
            if box[3] - box[1] + 1 < least[0] or box[2] - box[0] + 1 < least[1]:
                if small is Small.LEFT_OUT:
                    continue
                score = 0.0
            rows.append((score, box))
    rows = sorted(rows, key=lambda row: -row[0])[:before]
    kept = plain.greedy([box for _, box in rows], threshold, pixel=1.0)[:after]
    return np.array([[0, *rows[k][1]] for k in kept]), np.array([rows[k][0] for k in kept])


@pytest.mark.parametrize("small", list(Small))
@pytest.mark.parametrize(("before", "after", "threshold"), [(6000, 300, 0.7), (30, 5, 0.3)])
def test_against_the_plain_form(small: Small, before: int, after: int, threshold: float) -> None:
    given = inputs(image=(48.0, 60.0, 1.5, 0.5)) if small is Small.LAST else inputs(image=(48.0, 60.0, 1.5))
    layer = Proposal(ratios=RATIOS, scales=SCALES, least=12, before=before, after=after, threshold=threshold, small=small)
    bench = Bench(layer, given, tops=2)
    assert bench.top[0].shape == (min(ANCHORS * 12, before, after), 5), "room for all"
    regions, scores = bench.forward()
    least = (18.0, 6.0) if small is Small.LAST else (18.0, 18.0)
    boxes, best = expected(given, least, small, before, after, threshold)
    assert 1 < len(boxes) <= after
    np.testing.assert_allclose(regions, boxes, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(scores.ravel(), best)
    assert scores.shape == ((len(boxes),) if small is Small.LAST else (len(boxes), 1))


def test_nothing_large_enough() -> None:
    regions = Bench(Proposal(ratios=RATIOS, scales=SCALES, least=1000), inputs()).forward()[0]
    assert regions.shape == (0, 5)


def test_no_gradient() -> None:
    bench = Bench(Proposal(ratios=RATIOS, scales=SCALES), inputs())
    bench.backward(bench.forward(), [True, True, False])
    assert not bench.bottom[0].diff.any() and not bench.bottom[1].diff.any()


def test_refusals() -> None:
    scores, moves, image = inputs()
    for wrong in ([scores, moves[:, 1:], image], [np.concatenate([scores] * 2), moves, image], [scores, moves, image[:, :2]]):
        with pytest.raises(ArgumentError, match="do not belong together"):
            Bench(Proposal(ratios=RATIOS, scales=SCALES), wrong)
    with pytest.raises(ArgumentError, match="feat_stride > 0"):
        Proposal(stride=0)
    with pytest.raises(ArgumentError, match="ratio > 0"):
        Proposal(ratios=())
    bench = Bench(Proposal(ratios=RATIOS, scales=SCALES), [scores, moves, np.array([[0.0, 60, 1]])])
    with pytest.raises(ArrayError, match="no size of an image"):
        bench.forward()


NET = """
input: "scores" input: "moves" input: "info"
input_shape {{ dim: 1 dim: {} dim: 3 dim: 4 }} input_shape {{ dim: 1 dim: {} dim: 3 dim: 4 }} input_shape {{ dim: 1 dim: {} }}
layer {{ name: "p" bottom: "scores" bottom: "moves" bottom: "info" top: "rois" {} }}
"""


def test_text_of_pvanet() -> None:
    fields = "ratio: 0.5 ratio: 1 ratio: 2 scale: 1 scale: 2 min_size: 12 pre_nms_topn: 40 post_nms_topn: 7 nms_thresh: 0.5"
    text = NET.format(12, 24, 4, f'type: "Proposal" top: "best" proposal_param {{ {fields} }}')
    scores, moves, info = inputs(image=(48.0, 60.0, 1.5, 0.5))
    for dialect in (None, "openvino"):
        net = load_caffe(text, dialect=dialect)
        found = net.forward(scores=scores, moves=moves, info=info)
        boxes, best = expected([scores, moves, info], (18.0, 6.0), Small.LAST, 40, 7, 0.5)
        np.testing.assert_allclose(found["rois"], boxes, rtol=0, atol=1e-4)
        np.testing.assert_allclose(found["best"], best, rtol=0, atol=1e-6)
        again = load_caffe(net.to_prototxt()).forward(scores=scores, moves=moves, info=info)
        np.testing.assert_array_equal(again["rois"], found["rois"])


PYTHON = """type: "Python" python_param {{ module: "rpn.proposal_layer" layer: "ProposalLayer" param_str: "{}" }}"""


@pytest.mark.parametrize(
    ("param_str", "count"),
    [
        ("'feat_stride': 16", 9),
        ("{'feat_stride': 16, 'scales': [1, 2], 'ratios': [0.5, 1, 2]}", 6),
        ("'feat_stride': 16\\n'scales': !!python/tuple [4, 8, 16, 32]", 12),
        ("feat_stride: 16", 9),
    ],
)
def test_python_layer_is_built_in(param_str: str, count: int) -> None:
    net = load_caffe(NET.format(2 * count, 4 * count, 3, PYTHON.format(param_str)))
    layer = net.layer("p")
    assert isinstance(layer, Proposal) and (layer.before, layer.after, layer.least) == (6000, 300, 16)
    if count == 6:
        scores, moves, info = inputs()
        found = net.forward(scores=scores, moves=moves, info=info)["rois"]
        boxes, _ = expected([scores, moves, info], (16.0, 16.0), Small.LEFT_OUT, 6000, 300, 0.7)
        np.testing.assert_allclose(found, boxes, rtol=0, atol=1e-4)
    assert "rpn.proposal_layer" in net.to_prototxt()


@pytest.mark.parametrize(
    ("param_str", "says"),
    [
        ("'feat_stride': 16, 'unknown': 3", "no such parameter"),
        ("'feat_stride': [1, 2]", "feat_stride is a number"),
        ("!!python/object/apply:os.system ['true']", "no number nor a list of numbers"),
        ("'feat_stride': __import__('os')", "no number nor a list of numbers"),
        ("'scales': [1" + " " * 2000, "longer than any"),
    ],
)
def test_other_parameters_are_refused(param_str: str, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        load_caffe(NET.format(18, 36, 3, PYTHON.format(param_str)))


def test_the_callers_class_goes_first() -> None:
    class ProposalLayer:
        """Stands in for py-faster-rcnn's own."""

        def setup(self, bottom: Any, top: Any) -> None: ...

        def reshape(self, bottom: Any, top: Any) -> None:
            top[0].reshape(1, 5)

        def forward(self, bottom: Any, top: Any) -> None:
            top[0].data[...] = 7

    text = NET.format(18, 36, 3, PYTHON.format("'feat_stride': 16"))
    assert (load_caffe(text, python_layers=(ProposalLayer,)).forward()["rois"] == 7).all()
