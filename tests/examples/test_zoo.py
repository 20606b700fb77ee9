"""The zoo: each network's text is what its definition writes, has the published size, and runs both ways."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import astride
from astride.explain.layer import parameter_counts, parameter_text

ZOO = Path(__file__).resolve().parents[2] / "examples" / "zoo"

SIZES = {
    # parameters that are learned, as the papers' authors or well-known ports count them, and the outputs' shapes
    "lenet": (431_080, {"prob": (64, 10)}),
    "alexnet": (60_965_224, {"prob": (10, 1000)}),
    "caffenet": (60_965_224, {"prob": (10, 1000)}),
    "vgg16": (138_357_544, {"prob": (1, 1000)}),
    "vgg19": (143_667_240, {"prob": (1, 1000)}),
    "googlenet": (6_998_552, {"prob": (10, 1000)}),
    "squeezenet_v1.0": (1_248_424, {"prob": (1, 1000, 1, 1)}),
    "squeezenet_v1.1": (1_235_496, {"prob": (1, 1000, 1, 1)}),
    "resnet50": (25_557_032, {"prob": (1, 1000)}),
    "mobilenet_v1": (4_231_976, {"prob": (1, 1000, 1, 1)}),
    "mobilenet_v2": (3_504_872, {"prob": (1, 1000, 1, 1)}),
    "densenet121": (7_978_856, {"prob": (1, 1000, 1, 1)}),
    "fcn8s": (134_362_751, {"score": (1, 21, 500, 500)}),
    "hed": (14_716_171, {"sigmoid-fuse": (1, 1, 400, 400)}),
    "segnet": (29_449_355, {"prob": (1, 11, 360, 480)}),
    "unet": (31_030_658, {"prob": (1, 2, 388, 388)}),
    "openpose_body": (52_311_446, {"net_output": (1, 57, 46, 46)}),
    "ssd300": (26_285_486, {"detection_out": (1, 1, 1, 7)}),
    "ssd300_train": (26_285_486, {"mbox_loss": ()}),
    "faster_rcnn_vgg16": (137_078_239, {"bbox_pred": (300, 84), "cls_prob": (300, 21)}),
    "mtcnn_p": (6_632, {"prob1": (1, 2, 1, 1), "conv4-2": (1, 4, 1, 1)}),
    "mtcnn_r": (100_178, {"prob1": (1, 2), "conv5-2": (1, 4)}),
    "mtcnn_o": (389_040, {"prob1": (1, 2), "conv6-2": (1, 4), "conv6-3": (1, 10)}),
}

QUICK = {"lenet", "mtcnn_p", "mtcnn_r", "mtcnn_o", "squeezenet_v1.1", "mobilenet_v1"}
BOXES = [[0, 7, 0, 0.1, 0.2, 0.5, 0.6, 0], [0, 3, 1, 0.4, 0.4, 0.9, 0.8, 0]]
INPUTS = {"label": np.array([[BOXES]], np.float32), "im_info": np.array([[600, 800, 1]], np.float32)}

SILENT = {
    # what lies behind the proposals learns through their boxes, which have no gradient
    "faster_rcnn_vgg16": ("rpn_",),
    # only sources whose boxes match learn from an image
    "ssd300_train": ("conv4_3_norm", "fc7_mbox", "conv6_", "conv7_", "conv8_", "conv9_"),
    # the maximum of nine numbers is seldom a negative one, from which slopes learn
    "mtcnn_r": ("prelu",),
    "mtcnn_o": ("prelu",),
}


def test_texts_are_what_the_definitions_write() -> None:
    done = subprocess.run([sys.executable, ZOO / "write.py", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"out of date: {done.stdout}{done.stderr}"
    assert {path.stem for path in ZOO.glob("*.prototxt")} == set(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_size_as_published(name: str) -> None:
    net = astride.load_caffe(ZOO / f"{name}.prototxt")
    count, outputs = SIZES[name]
    assert parameter_counts(net)[1] == count
    assert f"{count:,} " in parameter_text(net), "what `astride show` prints"
    assert outputs.items() <= {blob: net.blobs[blob].shape for blob in net.outputs}.items()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in SIZES])
def test_forward_and_backward_with_random_weights(name: str) -> None:
    net = astride.load_caffe("force_backward: true\n" + (ZOO / f"{name}.prototxt").read_text())
    random = np.random.default_rng(0)
    for layer, p in ((layer, p) for layer, ps in net.params.items() for p in ps):
        spread = np.sqrt(2 / np.prod(p.shape[1:])) if len(p.shape) > 1 else 0.05
        spread *= 1e-3 if layer == "fc1000" else 1  # sixteen sums have grown by then, and a certain answer has no gradient
        p.data[...] = random.standard_normal(p.shape, np.float32) * spread + (1 if len(p.shape) == 1 else 0)
    shapes = {blob: (1, *net.blobs[blob].shape[1:]) for blob in net.inputs}
    outputs = net.forward(**{blob: INPUTS.get(blob, random.standard_normal(s, np.float32)) for blob, s in shapes.items()})
    assert all(np.isfinite(values).all() for values in outputs.values())
    if name == "ssd300":
        assert outputs["detection_out"].shape[3] == 7
        return  # boxes are chosen, which has no gradient; ssd300_train has the same body
    tops = {blob: random.standard_normal(values.shape, np.float32) for blob, values in outputs.items()}
    gradients = net.backward(**({} if name == "ssd300_train" else tops))
    image = gradients[net.inputs[0]]
    assert image.shape == shapes[net.inputs[0]] and np.isfinite(image).all() and np.abs(image).max() > 0
    learned = [p for layer in net.params.values() for p in layer if p.lr_mult]
    assert all(np.isfinite(p.diff).all() for p in learned)
    still = {layer for layer, ps in net.params.items() if ps[0].lr_mult and not np.abs(ps[0].diff).max() > 0}
    assert all(layer.startswith(SILENT.get(name, ())) for layer in still), f"no gradient reached {still}"
