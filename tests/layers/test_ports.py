"""CReLU, Noise, DepthwiseConv, DecodeBBox, SegAccuracy and the OHEM losses: by hand, gradients, texts, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.caffe.dialects.choose import read_text, text_dialect
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.crelu import CReLU
from astride.layers.decode_bbox import DecodeBBox
from astride.layers.noise import Noise
from astride.layers.seg_accuracy import SegAccuracy

from .gradients import Bench, away_from, check_gradient
from .losses import run
from .single import single

RANDOM = np.random.RandomState(33)


# CReLU


@pytest.mark.parametrize("axis", [1, -1, 0])
@pytest.mark.parametrize("slope", [0.0, 0.25])
def test_crelu(axis: int, slope: float) -> None:
    x = away_from(RANDOM.normal(size=(2, 3, 4)))
    bench = Bench(CReLU(slope=slope, axis=axis), [x])
    halves = [np.maximum(v, 0) + slope * np.minimum(v, 0) for v in (x, -x)]
    np.testing.assert_array_equal(bench.forward()[0], np.concatenate(halves, axis))
    check_gradient(bench)


def test_crelu_text() -> None:
    net = single('type: "CReLU" crelu_param { concat_axis: 2 negative_slope: 0.5 }', x=(1, 1, 2, 1))
    out = net.forward(x=np.array([2.0, -4.0]).reshape(1, 1, 2, 1))["y"]
    np.testing.assert_array_equal(out.ravel(), [2, -2, -1, 4])
    assert single('type: "CReLU"', x=(1, 3, 2, 2)).blobs["y"].shape == (1, 6, 2, 2)
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()
    with pytest.raises(ArgumentError, match="no such axis"):
        single('type: "CReLU" crelu_param { concat_axis: 4 }', x=(1, 1, 2, 1))


# Noise


def test_noise_has_its_mean_and_deviation_and_draws_anew() -> None:
    x = RANDOM.normal(size=(200, 50))
    layer = Noise(gaussian=(1.0, 0.5))
    bench = Bench(layer, [x])
    first = bench.forward()[0] - x
    assert abs(first.mean() - 1) < 0.02 and abs(first.std() - 0.5) < 0.02
    np.testing.assert_array_equal(bench.forward()[0] - x, first)  # the same draw
    layer.forward(bench.bottom, bench.top)
    assert np.abs(bench.top[0].data - x - first).max() > 0.1
    uniform = Bench(Noise(uniform=(-2.0, 3.0)), [x]).forward()[0] - x
    assert -2 <= uniform.min() < -1.9 and 2.9 < uniform.max() <= 3
    check_gradient(Bench(Noise(gaussian=(0.0, 1.0)), [x[:2, :3]]))
    check_gradient(Bench(Noise(gaussian=(0.0, 1.0)), [x[:2, :3]], in_place=True))


@pytest.mark.parametrize(
    ("fields", "gaussian", "uniform", "testing"),
    [
        ("gaussian_std: 0.5 bias: 1 uniform_range: 9", (1.0, 0.5), None, False),
        ("uniform_range: 2 bias: 1", None, (-1.0, 3.0), False),
        ("bias: 1", None, None, False),
        ('filler_param { type: "gaussian" mean: 2 std: 3 }', (2.0, 3.0), None, True),
        ('filler_param { type: "uniform" min: -1 max: 4 }', None, (-1.0, 4.0), True),
    ],
)
def test_noise_text(fields: str, gaussian: Any, uniform: Any, testing: bool) -> None:
    text = f'type: "Noise" noise_param {{ {fields} }}'
    for phase in ("TRAIN", "TEST"):
        net = single(text, phase, x=(1, 2))
        layer = net.layers[-1]
        assert isinstance(layer, Noise) and (layer.gaussian, layer.uniform) == (gaussian, uniform)
        changes = (testing or phase == "TRAIN") and bool(gaussian or uniform)
        assert layer.random == changes and layer.passes_on() != changes
        assert (net.forward(x=np.ones((1, 2)))["y"] != 1).all() == changes


def test_noise_beside_the_one_of_pictures() -> None:
    """SSD has a NoiseParameter of other fields for its pictures."""
    text = (
        'input: "x" input_shape { dim: 1 } layer { name: "n" type: "Noise" bottom: "x" top: "y" noise_param { gaussian_std: 1 } }'
    )
    assert text_dialect(read_text(text).used) == "noise"
    ssd = 'layer { name: "d" type: "AnnotatedData" top: "x" transform_param { noise_param { prob: 0.5 jpeg: 90 } } }'
    assert "ssd" in text_dialect(read_text(ssd).used)


def test_noise_refused() -> None:
    with pytest.raises(ArgumentError, match="one kind"):
        Noise(gaussian=(0, 1), uniform=(0, 1))
    for options in ({"gaussian": (0.0, -1.0)}, {"uniform": (2.0, 1.0)}, {"uniform": (-math.inf, 1.0)}):
        with pytest.raises(ArgumentError, match="no noise has"):
            Noise(**options)
    with pytest.raises(ArgumentError, match="no such filler"):
        single('type: "Noise" noise_param { filler_param { type: "xavier" } }', x=(1, 2))


# DepthwiseConv


def test_depthwise_conv_is_depthwise_convolution() -> None:
    fields = 'convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } }'
    x = RANDOM.normal(size=(1, 3, 5, 5)).astype(np.float32)
    nets = [single(f'type: "{kind}" {fields}', x=x.shape) for kind in ("DepthwiseConv", "DepthwiseConvolution")]
    for ours, theirs in zip(nets[0].layers[-1].params, nets[1].layers[-1].params, strict=True):
        theirs.data[...] = ours.data
    assert nets[0].layers[-1].params[0].shape == (6, 1, 3, 3)
    np.testing.assert_array_equal(nets[0].forward(x=x)["y"], nets[1].forward(x=x)["y"])
    assert 'type: "DepthwiseConv"\n' in nets[0].to_prototxt()


# DecodeBBox


def test_decoded_by_hand() -> None:
    """A region of 10 by 20 pixels: its middle moves by half a width and a tenth of a height, its width doubles."""
    moves = np.array([[9, 9, 9, 9, 0.5, 0.1, math.log(2), 0.0]])
    regions = np.array([[3.0, 10, 20, 19, 39]])
    out = Bench(DecodeBBox(), [moves, regions]).forward()[0]
    assert out.shape == (1, 5, 1, 1)
    np.testing.assert_allclose(out.ravel(), [3, 10, 22, 29, 41])
    scaled = DecodeBBox(mean=(0.1, 0, 0, 0), std=(0.5, 0.5, 2, 1))
    given = [np.array([[0, 0, 0, 0, 0.8, 0.2, math.log(2) / 2, 0.0]]), regions]
    np.testing.assert_allclose(Bench(scaled, given).forward()[0].ravel(), [3, 10, 22, 29, 41])


def test_training_leaves_boxes_out() -> None:
    moves = np.zeros((3, 8))
    regions = np.array([[0.0, 0, 0, 9, 9], [0, 5, 5, 2, 2], [1, 0, 0, 4, 4]])
    overlaps = np.array([[1, 0.2], [1, 0.2], [1, 0.95]])
    kept = Bench(DecodeBBox(training=True), [moves, regions, overlaps]).forward()[0]
    np.testing.assert_array_equal(kept[..., 0, 0], regions[:1])
    assert Bench(DecodeBBox(training=True), [moves, regions]).forward()[0].shape == (2, 5, 1, 1)
    assert Bench(DecodeBBox(), [moves, regions]).forward()[0].shape == (3, 5, 1, 1)
    with pytest.raises(ArrayError, match="no region is left"):
        Bench(DecodeBBox(training=True, most=0.1), [moves, regions, overlaps]).forward()


def test_decode_text_and_refusals() -> None:
    text = 'type: "DecodeBBox" bbox_reg_param { bbox_mean: [0, 0, 0, 0] bbox_std: [0.1, 0.1, 0.2, 0.2] }'
    net = single(text, a=(2, 8), b=(2, 5))
    layer = net.layers[-1]
    assert isinstance(layer, DecodeBBox) and not layer.training and layer.std == pytest.approx((0.1, 0.1, 0.2, 0.2))
    train = single(text + " decode_bbox_param { gt_iou_thr: 0.5 }", "TRAIN", a=(2, 8), b=(2, 5), c=(2, 6)).layers[-1]
    assert isinstance(train, DecodeBBox) and train.training and train.most == 0.5
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()
    with pytest.raises(ArgumentError, match="training only"):
        single(text, a=(2, 8), b=(2, 5), c=(2, 6))
    with pytest.raises(ArgumentError, match="four numbers"):
        single(text.replace("0.2]", "0]"), a=(2, 8), b=(2, 5))
    for shapes in ({"a": (2, 12), "b": (2, 5)}, {"a": (2, 8), "b": (3, 5)}, {"a": (2, 8), "b": (2, 4)}):
        with pytest.raises(ArgumentError, match="do not belong together"):
            single(text, **shapes)
    bench = Bench(DecodeBBox(), [np.zeros((1, 8)), np.array([[0.0, 0, 0, 9, 9]])])
    with pytest.raises(UnsupportedError):
        bench.backward(bench.forward(), [True, False])


# SegAccuracy

SCORES = np.zeros((1, 3, 2, 3))
FOUND = np.array([[0, 0, 1], [1, 2, 0]])
for _c in range(3):
    SCORES[0, _c] = _c == FOUND
TRUTH = np.array([[0, 1, 1], [1, 255, 0]], float).reshape(1, 1, 2, 3)


def test_seg_accuracy_by_hand() -> None:
    """Of five pixels four are right; class 2 is neither named nor found."""
    bench = Bench(SegAccuracy(ignore=[255], shown=[1, 2]), [SCORES, TRUTH], tops=3)
    whole, one, two = (out.ravel() for out in bench.forward())
    np.testing.assert_allclose(whole, [4 / 5, (1 + 2 / 3) / 2, (2 / 3 + 2 / 3 + 1) / 3])
    np.testing.assert_allclose(one, [1, 2 / 3, 2 / 3])
    np.testing.assert_array_equal(two, [math.nan, math.nan, 1])
    np.testing.assert_array_equal(bench.forward()[0].ravel(), whole)


def test_seg_accuracy_over_passes_and_of_one_channel() -> None:
    layer = SegAccuracy(ignore=[255], reset=False)
    bench = Bench(layer, [SCORES, TRUTH])
    bench.forward()
    bench.values[1][...] = 2
    bench.forward()
    assert layer.stateful and layer.counts.tolist() == [[2, 0, 0], [1, 2, 0], [3, 2, 1]]
    layer.forget()
    assert not layer.counts.any()
    x, truth = np.array([0.5, 0.6, 0.1, 0.9]).reshape(1, 1, 1, 4), np.array([0.0, 1, 1, 1]).reshape(1, 1, 1, 4)
    np.testing.assert_allclose(Bench(SegAccuracy(), [x, truth]).forward()[0].ravel(), [3 / 4, 5 / 6, (1 / 2 + 2 / 3) / 2])


@pytest.mark.parametrize(("dialect", "fields"), [("deeplab", "reset: false"), ("pspnet", "output_label: 1")])
def test_seg_accuracy_text(dialect: str, fields: str) -> None:
    text = 'input: "s" input_shape { dim: [1, 3, 2, 3] } input: "t" input_shape { dim: [1, 1, 2, 3] }\n'
    text += 'layer { name: "a" type: "SegAccuracy" bottom: "s" bottom: "t" top: "y" seg_accuracy_param { ignore_label: 255 '
    text += fields + " }" + (' top: "one" }' if dialect == "pspnet" else " }")
    assert text_dialect(read_text(text).used) == dialect
    net = load_caffe(text, dialect=dialect)
    assert net.forward(s=SCORES, t=TRUTH)["y"].ravel()[0] == np.float32(4 / 5)
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()


def test_seg_accuracy_refused() -> None:
    with pytest.raises(ArgumentError, match="do not belong together"):
        Bench(SegAccuracy(), [SCORES, TRUTH[0]])
    for shown, tops in (([1], 1), ([3], 2), ([-1], 2)):
        with pytest.raises(ArgumentError, match="a top for all classes"):
            Bench(SegAccuracy(shown=shown), [SCORES, TRUTH], tops=tops)
    with pytest.raises(ArrayError, match="names no class"):
        Bench(SegAccuracy(), [SCORES, TRUTH]).forward()
    bench = Bench(SegAccuracy(ignore=[255]), [SCORES, TRUTH])
    with pytest.raises(UnsupportedError):
        bench.backward(bench.forward(), [True, False])


# The OHEM losses


@pytest.mark.parametrize(("fields", "divided_by"), [("", 8), ("normalization: PRE_FIXED pre_fixed_normalizer: 5", 5)])
def test_smooth_l1_loss_ohem(fields: str, divided_by: float) -> None:
    a, b = RANDOM.normal(scale=2, size=(2, 2, 3, 2, 2))
    w = RANDOM.choice([0.0, 1.0], a.shape)
    d = np.abs(w * (a - b))
    each = np.where(d < 1, d**2 / 2, d - 0.5)
    loss, gradients = run(f'type: "SmoothL1LossOHEM" top: "each" loss_param {{ {fields} }}', a=a, b=b, w=w)
    assert loss == pytest.approx(each.sum() / divided_by, rel=1e-5)
    slope = w * np.clip(w * (a - b), -1, 1) / divided_by
    np.testing.assert_allclose(gradients["a"], slope, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(gradients["b"], -slope, rtol=1e-4, atol=1e-6)
    net = single('type: "SmoothL1LossOHEM" top: "each"', a=a.shape, b=a.shape, w=a.shape)
    np.testing.assert_allclose(net.forward(a=a, b=b, w=w)["each"], each.sum(1, keepdims=True), rtol=1e-5)
    assert load_caffe(net.to_prototxt()).to_prototxt() == net.to_prototxt()
    with pytest.raises(ArgumentError):
        single('type: "SmoothL1LossOHEM"', a=(1, 2), b=(1, 2), w=(1, 2), v=(1, 2))


@pytest.mark.parametrize(
    ("fields", "divided_by"), [("ignore_label: 9", 3), ("normalization: PRE_FIXED pre_fixed_normalizer: 5", 5)]
)
def test_softmax_loss_ohem(fields: str, divided_by: float) -> None:
    x, labels = RANDOM.normal(size=(4, 3)), np.array([0, 2, 9 if "ignore" in fields else 1, 1])
    text = f'type: "SoftmaxWithLossOHEM" top: "likely" top: "each" loss_param {{ {fields} }}'
    counts = labels < 3
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    each = np.where(counts, -np.log(p[np.arange(4), np.where(counts, labels, 0)]), 0)
    loss, gradients = run(text, x=x, labels=labels)
    assert loss == pytest.approx(each.sum() / divided_by, rel=1e-5)
    expected = (p - np.eye(10)[labels][:, :3]) * counts[:, None] / divided_by
    np.testing.assert_allclose(gradients["x"], expected, rtol=1e-4, atol=1e-6)
    net = single(text, x=x.shape, labels=labels.shape)
    np.testing.assert_allclose(net.forward(x=x, labels=labels)["each"].ravel(), each, rtol=1e-5)


# What has no one definition


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("CenterObjectLoss", "center_object_loss_param { num_class: 2 share_location: true loc_loss_type: L2 }"),
        ("CenterGridLoss", "center_object_loss_param { class_type: SOFTMAX bias_scale: 64 bias_num: 1 }"),
        ("CenterObjectLoss", "center_object_loss_param { has_lm: true lm_loss_type: SMOOTH_L1 conf_loss_type: FOCALSIGMOID }"),
        ("CenterNetfocalSigmoidWithLoss", "loss_param { normalization: VALID }"),
        ("CenternetDetectionOutput", "detection_output_param { num_classes: 2 }"),
        ("Yolov3", "yolov3_param { num_class: 2 }"),
    ],
)
def test_types_without_a_definition_are_refused(kind: str, fields: str) -> None:
    text = f'input: "x" input_shape {{ dim: 1 }}\nlayer {{ name: "l" type: "{kind}" bottom: "x" top: "y" {fields} }}'
    with pytest.raises(UnsupportedError, match="no one definition") as caught:
        load_caffe(text)
    assert f'line 2: "l" of type "{kind}"' in caught.value.given["layers"][0]
