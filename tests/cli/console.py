"""Running commands as a user does, in this process: what they print, where, and with which exit status."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from astride.cli import app


@dataclass(frozen=True)
class Done:
    """A command that ran."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of stdout, without spaces at their ends."""
        return [line.rstrip() for line in self.out.splitlines()]

    def data(self) -> Any:
        """stdout as JSON; nothing else may be there, and no number that JSON lacks."""
        return json.loads(self.out, parse_constant=lambda word: (_ for _ in ()).throw(ValueError(word)))


def astride(*words: object, status: int = 0) -> Done:
    """Run `astride words...`; the exit status must be the expected one."""
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="astride", env={"COLUMNS": "80", "TERM": "dumb"})
    done = Done(result.exit_code, result.stdout, result.stderr)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert done.status == status, f"{words} ended with {done.status}\n{done.out}\n{done.err}"
    return done


NET = """
name: "stripes"
layer { name: "samples" type: "MemoryData" top: "data" top: "label" include { phase: TRAIN }
        memory_data_param { batch_size: 16 channels: 1 height: 6 width: 6 } }
layer { name: "samples" type: "MemoryData" top: "data" top: "label" include { phase: TEST }
        memory_data_param { batch_size: 10 channels: 1 height: 6 width: 6 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = """
net: "net.prototxt"
base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 max_iter: 30 display: 10 random_seed: 1
test_iter: 2 test_interval: 15 snapshot_prefix: "stripes"
"""
DEPLOY = """
name: "stripes"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 dim: 6 dim: 6 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip" inner_product_param { num_output: 2 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


def stripes(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of vertical (0) and horizontal (1) stripes with noise, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pattern = np.tile([0.0, 1.0], 3)
    images = np.stack([np.tile(pattern, (6, 1)).T if label else np.tile(pattern, (6, 1)) for label in labels])[:, None]
    return (images + rng.normal(scale=0.1, size=images.shape)).astype(np.float32), labels.astype(np.int64)


def workshop(folder: Path) -> Path:
    """A folder with a network, a solver, samples and weights that tell stripes apart."""
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(SOLVER)
    (folder / "deploy.prototxt").write_text(DEPLOY)
    images, labels = stripes(64, 0)
    np.savez(folder / "train.npz", data=images, labels=labels)
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels)
    held, truth = stripes(20, 1)
    np.savez(folder / "test.npz", images=held, label=truth)
    return folder
