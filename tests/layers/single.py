"""A network of a single layer from its text: inputs as named, top y."""

from __future__ import annotations

from astride.caffe import load_caffe
from astride.net import Net

INPUT = 'layer {{ name: "{0}" type: "Input" top: "{0}" input_param {{ shape {{ {1} }} }} }}\n'


def single(layer: str, phase: str = "TEST", *, in_place: bool = False, **shapes: tuple[int, ...]) -> Net:
    """The layer named "layer" over inputs of these shapes, with gradients down to them; in place, y is the first input."""
    inputs = "".join(INPUT.format(name, " ".join(f"dim: {n}" for n in shape)) for name, shape in shapes.items())
    bottoms = " ".join(f'bottom: "{name}"' for name in shapes)
    top = next(iter(shapes)) if in_place else "y"
    return load_caffe(f'force_backward: true\n{inputs}layer {{ name: "layer" top: "{top}" {bottoms}\n{layer} }}', phase=phase)
