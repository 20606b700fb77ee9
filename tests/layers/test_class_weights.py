"""SoftmaxWithLoss as SegNet has it: each place counts by its label's weight, given or one over the labels like it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError
from astride.layers.softmax_loss import SoftmaxWithLoss
from astride.plan.dense import Normalization

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(8)
SCORES = RANDOM.normal(size=(2, 3, 2, 2))
LABELS = np.array([0, 2, 2, 1, 2, 2, 0, 2], float).reshape(2, 1, 2, 2)
WEIGHTS = [0.5, 2.0, 3.0]
DIVISORS = {Normalization.FULL: 8, Normalization.BATCH_SIZE: 2, Normalization.NONE: 1}


def by_loop(weights: list[float], ignored: int | None, divisor: float) -> float:
    total = 0.0
    for n, row, column in np.ndindex(2, 2, 2):
        scores, label = SCORES[n, :, row, column], int(LABELS[n, 0, row, column])
        if label != ignored:
            total += weights[label] * (np.log(np.exp(scores).sum()) - scores[label])
    return total / divisor


@pytest.mark.parametrize("ignored", [None, 0, 2])
@pytest.mark.parametrize("normalization", list(Normalization))
@pytest.mark.parametrize("given", [True, False])
def test_values_and_gradient(given: bool, normalization: Normalization, ignored: int | None) -> None:
    options: dict[str, Any] = {"class_weights": WEIGHTS} if given else {"by_frequency": True}
    layer = SoftmaxWithLoss(ignore_label=ignored, normalization=normalization, **options)
    bench = Bench(layer, [SCORES, LABELS], tops=2)
    weights = WEIGHTS if given else [1 / 2, 1, 1 / 5]
    valid = int((ignored != LABELS).sum()) if ignored is not None else 8
    expected = by_loop(weights, ignored, DIVISORS.get(normalization, valid))
    loss, p = bench.forward()
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-12)
    check_gradient(bench, [True, False], silent=[1])


def test_equal_weights_are_none() -> None:
    plain = Bench(SoftmaxWithLoss(), [SCORES, LABELS])
    ones = Bench(SoftmaxWithLoss(class_weights=[1, 1, 1]), [SCORES, LABELS])
    np.testing.assert_allclose(ones.forward()[0], plain.forward()[0], rtol=1e-13)


def test_the_last_axis() -> None:
    """Classes along another axis than 1, and labels without one for them."""
    scores, labels = RANDOM.normal(size=(4, 5, 3)), RANDOM.randint(0, 3, (4, 5)).astype(float)
    bench = Bench(SoftmaxWithLoss(axis=-1, class_weights=WEIGHTS), [scores, labels])
    moved = Bench(SoftmaxWithLoss(class_weights=WEIGHTS), [scores.transpose(0, 2, 1), labels])
    np.testing.assert_allclose(bench.forward()[0], moved.forward()[0], rtol=1e-12)
    check_gradient(bench, [True, False])


def text(loss: str) -> str:
    return f"""
      input: "x" input_shape {{ dim: 2 dim: 3 dim: 2 dim: 2 }}
      input: "label" input_shape {{ dim: 2 dim: 1 dim: 2 dim: 2 }}
      layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "x" bottom: "label" top: "loss" {loss} }}"""


@pytest.mark.parametrize(
    ("loss", "weights", "ignored"),
    [
        ("loss_param { weight_by_label_freqs: true class_weighting: [0.5, 2, 3] }", WEIGHTS, None),
        ("loss_param { weight_by_label_freqs: true class_weighting: [0.5, 2, 3] ignore_label: 2 }", WEIGHTS, 2),
        ("loss_param { weight_by_label_freqs: true }", [1 / 2, 1, 1 / 5], None),
        ("loss_param { weight_by_label_freqs: false class_weighting: [0.5, 2, 3] }", [1.0, 1.0, 1.0], None),
        ("loss_param { class_weighting: [0.5, 2, 3] }", [1.0, 1.0, 1.0], None),
    ],
)
def test_text(loss: str, weights: list[float], ignored: int | None) -> None:
    net = load_caffe(text(loss))
    valid = int((ignored != LABELS).sum()) if ignored is not None else 8
    out = net.forward(x=SCORES, label=LABELS)
    np.testing.assert_allclose(out["loss"], by_loop(weights, ignored, valid), rtol=1e-5)
    again = load_caffe(net.to_prototxt()).forward(x=SCORES, label=LABELS)
    np.testing.assert_array_equal(again["loss"], out["loss"])


def test_a_weight_for_each_class() -> None:
    with pytest.raises(ArgumentError, match="weight for each class"):
        load_caffe(text("loss_param { weight_by_label_freqs: true class_weighting: [1, 2] }"))
