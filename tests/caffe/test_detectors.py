"""Whole detectors as their texts have them: an SSD that learns, Faster R-CNN and R-FCN that follow the image's size."""

from __future__ import annotations

from typing import Any

import numpy as np

from astride.caffe import load_caffe
from astride.net import Net

SSD = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 24 dim: 24 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 1 dim: 1 dim: 3 dim: 8 } } include { phase: TRAIN } }
layer {
  name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 12 kernel_size: 3 stride: 4 pad: 1 weight_filler { type: "xavier" } }
}
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer {
  name: "n" type: "Normalize" bottom: "c" top: "n"
  norm_param { across_spatial: false channel_shared: false scale_filler { type: "constant" value: 4 } }
}
layer {
  name: "loc" type: "Convolution" bottom: "n" top: "loc"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } }
}
layer { name: "loc_perm" type: "Permute" bottom: "loc" top: "loc_perm" permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "loc_flat" type: "Flatten" bottom: "loc_perm" top: "loc_flat" }
layer {
  name: "conf" type: "Convolution" bottom: "n" top: "conf"
  convolution_param { num_output: 12 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } }
}
layer { name: "conf_perm" type: "Permute" bottom: "conf" top: "conf_perm" permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "conf_flat" type: "Flatten" bottom: "conf_perm" top: "conf_flat" }
layer {
  name: "prior" type: "PriorBox" bottom: "n" bottom: "data" top: "prior"
  prior_box_param { min_size: 8 max_size: 12 aspect_ratio: 2 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }
}
layer {
  name: "loss" type: "MultiBoxLoss" bottom: "loc_flat" bottom: "conf_flat" bottom: "prior" bottom: "label" top: "loss"
  propagate_down: true propagate_down: true propagate_down: false propagate_down: false
  multibox_loss_param { num_classes: 3 code_type: CENTER_SIZE overlap_threshold: 0.5 neg_overlap: 0.5 mining_type: MAX_NEGATIVE }
  include { phase: TRAIN }
}
layer {
  name: "rows" type: "Reshape" bottom: "conf_flat" top: "rows" reshape_param { shape { dim: 0 dim: -1 dim: 3 } }
  include { phase: TEST }
}
layer { name: "odds" type: "Softmax" bottom: "rows" top: "odds" softmax_param { axis: 2 } include { phase: TEST } }
layer { name: "odds_flat" type: "Flatten" bottom: "odds" top: "odds_flat" include { phase: TEST } }
layer {
  name: "out" type: "DetectionOutput" bottom: "loc_flat" bottom: "odds_flat" bottom: "prior" top: "out" include { phase: TEST }
  detection_output_param {
    num_classes: 3 code_type: CENTER_SIZE keep_top_k: 10 confidence_threshold: 0.5 nms_param { nms_threshold: 0.45 top_k: 20 }
  }
}
"""

TRUTH = np.array(
    [[0, 1, 0, 0.1, 0.1, 0.5, 0.5, 0], [0, 2, 0, 0.6, 0.5, 0.95, 0.9, 0], [1, 2, 0, 0.2, 0.3, 0.6, 0.7, 0]], np.float32
)[None, None]


def learned(net: Net, steps: int, rate: float, **inputs: Any) -> list[float]:
    """The losses of plain gradient descent on one batch."""
    losses = []
    for _ in range(steps):
        net.clear_param_diffs()
        losses.append(float(net.forward(**inputs)["loss"]))
        net.backward()
        for parameter in net.learnable:
            parameter.data[...] -= rate * parameter.diff
    return losses


def test_an_ssd_learns_where_things_are() -> None:
    """One text for both phases; after training the detections are the boxes it was taught."""
    images = np.random.RandomState(0).normal(size=(2, 3, 24, 24)).astype(np.float32)
    train = load_caffe(SSD, phase="TRAIN", seed=1)
    losses = learned(train, 150, 0.08, data=images, label=TRUTH)
    assert losses[-1] < 0.05 < 2 < losses[0]
    test = load_caffe(SSD, phase="TEST")
    test.share_params(train)
    found = test.forward(data=images)["out"][0, 0]
    assert found.shape == (3, 7)
    np.testing.assert_array_equal(found[:, :2], TRUTH[0, 0, :, :2])
    np.testing.assert_allclose(found[:, 3:], TRUTH[0, 0, :, 3:7], rtol=0, atol=0.05)


def test_priors_learn_nothing() -> None:
    net = load_caffe(SSD, phase="TRAIN", seed=1)
    images = np.random.RandomState(0).normal(size=(2, 3, 24, 24)).astype(np.float32)
    net.forward(data=images, label=TRUTH)
    net.backward()
    assert all(parameter.diff.any() for parameter in net.learnable)
    assert not net.blobs["prior"].diff.any()


FASTER_RCNN = """
input: "data" input_shape { dim: 1 dim: 3 dim: 64 dim: 96 }
input: "im_info" input_shape { dim: 1 dim: 3 }
layer {
  name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 8 kernel_size: 16 stride: 16 weight_filler { type: "xavier" } }
}
layer {
  name: "score" type: "Convolution" bottom: "c" top: "score"
  convolution_param { num_output: 12 kernel_size: 1 weight_filler { type: "gaussian" std: 0.5 } }
}
layer {
  name: "pred" type: "Convolution" bottom: "c" top: "pred"
  convolution_param { num_output: 24 kernel_size: 1 weight_filler { type: "gaussian" std: 0.05 } }
}
layer { name: "two" type: "Reshape" bottom: "score" top: "two" reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 0 } } }
layer { name: "prob" type: "Softmax" bottom: "two" top: "prob" }
layer { name: "back" type: "Reshape" bottom: "prob" top: "back" reshape_param { shape { dim: 0 dim: 12 dim: -1 dim: 0 } } }
layer {
  name: "proposal" type: "Python" bottom: "back" bottom: "pred" bottom: "im_info" top: "rois"
  python_param {
    module: "rpn.proposal_layer" layer: "ProposalLayer" param_str: "{'feat_stride': 16, 'scales': [1, 2]}"
  }
}
HEAD
layer { name: "cls" type: "Softmax" bottom: "cls_score" top: "cls" }
"""

POOLED = """
layer {
  name: "pool" type: "ROIPooling" bottom: "c" bottom: "rois" top: "pool"
  roi_pooling_param { pooled_w: 2 pooled_h: 2 spatial_scale: 0.0625 }
}
layer {
  name: "cls_score" type: "InnerProduct" bottom: "pool" top: "cls_score"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } }
}
"""

VOTED = """
layer {
  name: "maps" type: "Convolution" bottom: "c" top: "maps"
  convolution_param { num_output: 45 kernel_size: 1 weight_filler { type: "xavier" } }
}
layer {
  name: "bins" type: "PSROIPooling" bottom: "maps" bottom: "rois" top: "bins"
  psroi_pooling_param { output_dim: 5 group_size: 3 spatial_scale: 0.0625 }
}
layer { name: "votes" type: "Pooling" bottom: "bins" top: "votes" pooling_param { pool: AVE kernel_size: 3 stride: 3 } }
layer { name: "cls_score" type: "Reshape" bottom: "votes" top: "cls_score" reshape_param { shape { dim: -1 dim: 5 } } }
"""


def check_two_stages(head: str) -> None:
    net = load_caffe(FASTER_RCNN.replace("HEAD", head), seed=3)
    for size in ((64, 96), (80, 64)):
        image = np.random.RandomState(1).normal(size=(1, 3, *size)).astype(np.float32)
        found = net.forward(data=image, im_info=np.array([[*size, 1.0]]))["cls"]
        rois = net.blobs["rois"].data
        assert rois.shape == (len(found), 5) and found.shape == (len(found), 5) and 1 < len(found) <= 300
        assert (rois[:, 1:3] >= 0).all() and (rois[:, 3] <= size[1] - 1).all() and (rois[:, 4] <= size[0] - 1).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(net.compile()(data=image, im_info=np.array([[*size, 1.0]]))["cls"], found)


def test_faster_rcnn() -> None:
    check_two_stages(POOLED)


def test_rfcn() -> None:
    check_two_stages(VOTED)
