"""Layers of forks that OpenCV 4's Caffe reader knows: the same text, the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride import load_caffe

cv2 = pytest.importorskip("cv2")
if not hasattr(cv2.dnn, "readNetFromCaffe"):
    pytest.skip("this OpenCV reads no Caffe networks", allow_module_level=True)
pytestmark = pytest.mark.live

RANDOM = np.random.RandomState(11)


def both(layer: str, **inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The top of a layer over these inputs: (ours, OpenCV's)."""
    lines = [f'input: "{name}" input_shape {{ {" ".join(f"dim: {n}" for n in array.shape)} }}' for name, array in inputs.items()]
    bottoms = " ".join(f'bottom: "{name}"' for name in inputs)
    text = "\n".join([*lines, f'layer {{ name: "layer" {bottoms} top: "y" {layer} }}'])
    theirs = cv2.dnn.readNetFromCaffe(np.frombuffer(text.encode(), np.uint8))
    for name, array in inputs.items():
        theirs.setInput(array, name)
    return load_caffe(text).forward(**inputs)["y"], theirs.forward()


def normal(*shape: int) -> np.ndarray:
    return RANDOM.normal(scale=3, size=shape).astype(np.float32)


@pytest.mark.parametrize("kind", ["ReLU6", "Mish", "HardSwish", "Swish"])
def test_activations(kind: str) -> None:
    ours, theirs = both(f'type: "{kind}"', x=normal(2, 3, 4, 5))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_hard_sigmoid() -> None:
    ours, theirs = both('type: "HardSigmoid" hard_sigmoid_param { alpha: 0.3 beta: 0.4 }', x=normal(2, 3, 4, 5))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("group", [1, 2, 3, 6])
def test_shuffle_channel(group: int) -> None:
    ours, theirs = both(f'type: "ShuffleChannel" shuffle_channel_param {{ group: {group} }}', x=normal(2, 6, 3, 2))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", [(1, 4, 4, 6), (2, 8, 2, 4)])
def test_reorg(shape: tuple[int, ...]) -> None:
    """By a stride of 2: OpenCV reads no other from a Caffe text."""
    ours, theirs = both('type: "Reorg" reorg_param { stride: 2 }', x=normal(*shape))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("trial", range(12))
def test_interp(trial: int) -> None:
    h, w = RANDOM.randint(2, 12, 2)
    fields = f"zoom_factor: {RANDOM.randint(1, 5)}" if trial % 2 else "height: {} width: {}".format(*RANDOM.randint(2, 20, 2))
    ours, theirs = both(f'type: "Interp" interp_param {{ {fields} }}', x=normal(1, 3, h, w))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("fields", ["max_displacement: 4 pad: 4 stride_2: 2", "max_displacement: 2 pad: 2 stride_2: 1"])
def test_correlation(fields: str) -> None:
    layer = f'type: "Correlation" correlation_param {{ kernel_size: 1 stride_1: 1 {fields} }}'
    ours, theirs = both(layer, a=normal(1, 3, 8, 9), b=normal(1, 3, 8, 9))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 2, 6, 7), (2, 3, 4, 4)])
def test_flow_warp(shape: tuple[int, ...]) -> None:
    flow = normal(shape[0], 2, *shape[2:]) / 3
    ours, theirs = both('type: "FlowWarp"', image=normal(*shape), flow=flow)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_resample_is_another_thing_there() -> None:
    """OpenCV takes sample i from i * ratio; FlowNet, whose layer this is, from the middle between pixels."""
    layer = 'type: "Resample" resample_param { antialias: false height: 16 width: 20 type: LINEAR }'
    ours, theirs = both(layer, x=np.arange(80, dtype=np.float32).reshape(1, 1, 8, 10))
    assert ours.shape == theirs.shape
    assert theirs[0, 0, 0, :3].tolist() == [0, 0.5, 1]
    np.testing.assert_allclose(ours[0, 0, 0, 1:4], [0.25, 0.75, 1.25], rtol=1e-5)


def test_convolution_depthwise(tmp_path: Any) -> None:
    text = """
    input: "x" input_shape { dim: 1 dim: 4 dim: 7 dim: 6 }
    layer { name: "c" type: "ConvolutionDepthwise" bottom: "x" top: "y" convolution_param {
      num_output: 4 group: 4 kernel_size: 3 stride: 2 pad: 1 weight_filler { type: "gaussian" std: 1 } } }
    """
    net = load_caffe(text, seed=3)
    net.save(tmp_path / "w.caffemodel")
    theirs = cv2.dnn.readNetFromCaffe(np.frombuffer(text.encode(), np.uint8), np.fromfile(tmp_path / "w.caffemodel", np.uint8))
    x = normal(1, 4, 7, 6)
    theirs.setInput(x)
    np.testing.assert_allclose(net.forward(x=x)["y"], theirs.forward(), rtol=1e-4, atol=1e-4)
