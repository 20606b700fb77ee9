"""LeNet: the text that comes with the package, and the one trained in 2014."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride import examples
from astride.caffe import load_caffe

LENET = Path(examples.__file__).parent / "lenet"


def test_deploy() -> None:
    net = load_caffe(LENET / "lenet.prototxt")
    assert net.forward(data=np.zeros((3, 1, 28, 28)))["prob"].shape == (3, 10)
    assert net.blobs["pool1"].shape[2:] == (12, 12) and net.blobs["pool2"].shape[2:] == (4, 4)
    weights = [params[0].shape for params in net.params.values()]
    assert weights == [(20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (10, 500)]


@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_train_and_test(phase: str) -> None:
    net = load_caffe(LENET / "lenet_train_test.prototxt", phase=phase, seed=0)
    rng = np.random.RandomState(0)
    net.set_input_arrays(rng.rand(128, 1, 28, 28), rng.randint(0, 10, 128))
    outputs = net.forward()
    assert 1.5 < net.loss < 4 and ("accuracy" in outputs) is (phase == "TEST")
    net.backward()
    assert all(p.diff.any() for p in net.learnable)


def test_recorded_outputs_of_trained_weights(shared: Path) -> None:
    """Weights of 2014, in the old binary format, through the present text; outputs as Caffe gave them."""
    recorded = np.load(shared / "goldens" / "models" / "lenet_v1.npz")
    weights = shared / "models" / "cifar10_everpeace" / "lenet_iter_10000.caffemodel"
    net = load_caffe(LENET / "lenet.prototxt", weights)
    x = recorded["image_u8"].astype(np.float32) * np.float32(1 / 256)
    outputs = net.forward(data=x.reshape(-1, 1, 28, 28))
    np.testing.assert_allclose(outputs["prob"], recorded["out_prob"].reshape(outputs["prob"].shape), atol=1e-4)
