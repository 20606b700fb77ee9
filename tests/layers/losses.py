"""What the tests of losses share: a network from a few lines of text."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from astride.caffe import load_caffe
from astride.net import Net

Array = npt.NDArray[Any]

INPUT = 'layer {{ name: "{0}" type: "Input" top: "{0}" input_param {{ shape {{ {1} }} }} }}\n'


def network(layer: str, **shapes: tuple[int, ...]) -> Net:
    """A loss over inputs of these shapes, with gradients down to them."""
    inputs = "".join(INPUT.format(name, " ".join(f"dim: {n}" for n in shape)) for name, shape in shapes.items())
    bottoms = " ".join(f'bottom: "{name}"' for name in shapes)
    return load_caffe(f'force_backward: true {inputs} layer {{ name: "loss" top: "loss" {bottoms} {layer} }}')


def run(layer: str, **inputs: Any) -> tuple[float, dict[str, Array]]:
    """The loss of these inputs and its gradients, through a prototxt."""
    arrays = {name: np.asarray(value, np.float32) for name, value in inputs.items()}
    net = network(layer, **{name: array.shape for name, array in arrays.items()})
    return float(net.forward(**arrays)["loss"]), net.backward()
