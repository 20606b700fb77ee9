"""BoxAnnotatorOHEM: which regions stay, by image; and its text."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers.box_annotator_ohem import BoxAnnotatorOHEM

from .gradients import Bench

ROIS = np.zeros((6, 5))
ROIS[:, 0] = [0, 1, 0, 1, 0, 0]
LOSS = np.array([3.0, 1, 5, 2, 5, 4])
LABELS = np.arange(1.0, 7)
WEIGHTS = np.ones((6, 8))


def test_the_hardest_of_each_image() -> None:
    labels, weights = Bench(BoxAnnotatorOHEM(2, ignore_label=-1), [ROIS, LOSS, LABELS, WEIGHTS], tops=2).forward()
    assert labels.shape == (6, 1, 1, 1) and weights.shape == (6, 8, 1, 1)
    np.testing.assert_array_equal(labels.ravel(), [-1, 2, 3, 4, 5, -1])
    np.testing.assert_array_equal(weights[:, :, 0, 0], np.repeat([[0], [1], [1], [1], [1], [0]], 8, axis=1))


def test_equal_losses_and_places() -> None:
    rois = np.zeros((1, 5, 2, 2))
    loss = np.full((1, 1, 2, 2), 2.0)
    given = [rois, loss, np.arange(4.0).reshape(1, 1, 2, 2), np.ones((1, 3, 2, 2))]
    labels, weights = Bench(BoxAnnotatorOHEM(3, ignore_label=9), given, tops=2).forward()
    np.testing.assert_array_equal(labels.ravel(), [0, 1, 2, 9])
    np.testing.assert_array_equal(weights, np.broadcast_to([[1, 1], [1, 0]], (1, 3, 2, 2)))


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="roi_per_img >= 1"):
        BoxAnnotatorOHEM(0)
    with pytest.raises(ArgumentError, match="do not belong together"):
        Bench(BoxAnnotatorOHEM(2), [ROIS, LOSS[:5], LABELS, WEIGHTS], tops=2)
    bench = Bench(BoxAnnotatorOHEM(2), [ROIS, LOSS, LABELS, WEIGHTS], tops=2)
    with pytest.raises(UnsupportedError, match="no gradient"):
        bench.backward(bench.forward(), [False, True, False, False])


def test_text() -> None:
    shapes = ((6, 5), (6, 1), (6, 1), (6, 8))
    inputs = "".join(f'input: "i{i}" input_shape {{ dim: {a} dim: {b} }}\n' for i, (a, b) in enumerate(shapes))
    text = (
        inputs + 'layer { name: "o" type: "BoxAnnotatorOHEM" bottom: "i0" bottom: "i1" bottom: "i2" bottom: "i3" top: "labels" '
    )
    text += 'top: "weights" box_annotator_ohem_param { roi_per_img: 2 ignore_label: -7 } }'
    for dialect in (None, "rfcn"):
        net = load_caffe(text, dialect=dialect)
        found = net.forward(i0=ROIS, i1=LOSS[:, None], i2=LABELS[:, None], i3=WEIGHTS)
        np.testing.assert_array_equal(found["labels"].ravel(), [-7, 2, 3, 4, 5, -7])
        assert found["weights"].sum() == 32
        assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()


RFCN = """
force_backward: true
input: "x" input: "labels" input: "rois" input: "weights"
input_shape { dim: 6 dim: 4 } input_shape { dim: 6 } input_shape { dim: 6 dim: 5 } input_shape { dim: 6 dim: 8 }
layer {
  name: "each" type: "SoftmaxWithLoss" bottom: "x" bottom: "labels" top: "all" top: "p" top: "loss_each"
  loss_weight: 0 loss_weight: 0 loss_weight: 0 propagate_down: false propagate_down: false
}
layer {
  name: "hardest" type: "BoxAnnotatorOHEM" bottom: "rois" bottom: "loss_each" bottom: "labels" bottom: "weights"
  top: "taught" top: "taught_weights"
  propagate_down: false propagate_down: false propagate_down: false propagate_down: false
  box_annotator_ohem_param { roi_per_img: 2 ignore_label: -1 }
}
layer {
  name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "taught" top: "loss" propagate_down: true propagate_down: false
  loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 4 ignore_label: -1 }
}
layer { name: "rest" type: "Silence" bottom: "all" bottom: "p" bottom: "taught_weights" }
"""


def test_training_of_rfcn() -> None:
    """Each region's loss decides which are taught; their loss is divided by a number of the network's own."""
    random = np.random.RandomState(7)
    x, labels = random.normal(size=(6, 4)), random.randint(0, 4, 6)
    net = load_caffe(RFCN, phase="TRAIN")
    loss = float(net.forward(x=x, labels=labels, rois=ROIS, weights=WEIGHTS)["loss"])
    each = np.log(np.exp(x).sum(axis=1)) - x[np.arange(6), labels]
    np.testing.assert_allclose(net.blobs["loss_each"].data.ravel(), each, rtol=0, atol=1e-5)
    kept = np.concatenate([sorted(np.flatnonzero(ROIS[:, 0] == image), key=lambda r: -each[r])[:2] for image in (0, 1)])
    np.testing.assert_allclose(loss, each[kept].sum() / 4, rtol=1e-5)
    gradient = net.backward()["x"]
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    expected = np.zeros_like(x)
    expected[kept] = (p - np.eye(4)[labels])[kept] / 4
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6)
