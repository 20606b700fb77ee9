"""A network's two files with random weights, its batch normalisations with statistics that are no zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import astride


def written(text: str, folder: Path, seed: int = 1) -> tuple[str, str]:
    """The paths of the text and of weights that its fillers drew."""
    net = astride.load_caffe(text, seed=seed)
    rng = np.random.default_rng(seed)
    for name, parameters in net.params.items():
        if net.layer(name).type == "BatchNorm":
            mean, variance, factor = parameters
            mean.data[...] = rng.normal(size=mean.shape)
            variance.data[...] = rng.uniform(0.5, 2, variance.shape)
            factor.data[...] = 1.5
    prototxt, weights = folder / "net.prototxt", folder / "net.caffemodel"
    prototxt.write_text(text)
    net.save(weights)
    return str(prototxt), str(weights)


def random_input(text: str, seed: int = 1) -> Any:
    """Normal numbers of the input's shape."""
    shape = astride.load_caffe(text).blobs["data"].shape
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)
