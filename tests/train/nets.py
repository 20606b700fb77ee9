"""Small networks that the tests of training share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from astride.caffe import load_solver
from astride.data import ShuffledSource
from astride.train import Solver

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "caffe" / "solvers"

NET = """
name: "small"
layer { name: "digits" type: "MemoryData" top: "data" top: "label"
  memory_data_param { batch_size: 4 channels: 1 height: 6 width: 6 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "drop" type: "Dropout" bottom: "pool" top: "pool" dropout_param { dropout_ratio: 0.3 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""

SOLVER = "base_lr: 0.05 momentum: 0.9 weight_decay: 0.01 max_iter: 10 random_seed: 3 "


def samples(count: int = 11) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Images whose bright third says their class."""
    rng = np.random.default_rng(7)
    labels = np.arange(count) % 3
    images = rng.random((count, 1, 6, 6), dtype=np.float32)
    for image, label in zip(images, labels):
        image[0, 2 * label : 2 * label + 2] += 1
    return images, labels


def small_solver(more: str = "", *, net: str = NET, prefix: Path | None = None) -> Solver:
    """A solver of the small net on shuffled samples, with a test net where `more` has test_iter."""
    source = {"digits": ShuffledSource(*samples(), seed=5)}
    test = {"digits": ShuffledSource(*samples(), seed=6)}
    policy = "" if "lr_policy" in more else 'lr_policy: "fixed" '
    text = SOLVER.replace("momentum: 0.9 ", "") if "momentum:" in more else SOLVER
    return load_solver(text + policy + more, net=net, sources=source, test_sources=test, snapshot_prefix=prefix or Path("small"))


def values(solver: Solver) -> list[bytes]:
    """Parameters and histories, bit for bit."""
    return [array.tobytes() for array in [parameter.data for parameter in solver.net.learnable] + solver.history]
