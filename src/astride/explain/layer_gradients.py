"""A numeric gradient check of every layer of a network, in float64, each on the values it meets in a forward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import AstrideError
from ..layers import ArraySource
from ..layers.memory_data import MemoryData
from ..net import Net, Node

Array = npt.NDArray[Any]

STEP, KINK = 1e-5, 1e-3
SAMPLES = 24


@dataclass(frozen=True, slots=True)
class LayerChecked:
    """One array of one layer: its gradient against differences. Errors are relative to the array's largest gradient."""

    layer: str
    type: str
    array: str
    tried: int
    kinks: int
    error: float
    reason: str = ""

    def good(self, tolerance: float) -> bool:
        """Whether the gradient is right, or there is none to check."""
        return bool(self.reason) or self.error <= tolerance


def check_layers(net: Net, *, seed: int = 0, batch: int = 2) -> list[LayerChecked]:
    """Check a network made with dtype="float64". Its inputs and data become random, its batch small."""
    rng = np.random.default_rng(seed)
    _fill(net, rng, batch)
    found: list[LayerChecked] = []
    for i, node in enumerate(net.nodes):
        if node.bottoms:
            found += _check(net, i, node, rng)
        net.run_forward(i, i)
    return found


def _fill(net: Net, rng: np.random.Generator, batch: int) -> None:
    """Random inputs, and random samples of labels 0 and 1 for data layers; parameters that are all zero become random too."""
    for name in net.inputs:
        shape = net.blobs[name].shape
        if shape and shape[0] > batch:
            net.reshape(**{name: (batch, *shape[1:])})
        blob = net.blobs[name]
        blob.data[...] = rng.normal(size=blob.shape)
    for layer in net.layers:
        if isinstance(layer, MemoryData):
            layer.batch_size = min(layer.batch_size, batch)
    for name, source in net.sources.items():
        if source is None:
            tops = [net.blobs[top].shape[1:] for node in net.nodes if node.name == name for top in node.tops]
            arrays = [rng.normal(size=(batch, *shape)) if shape else rng.integers(0, 2, size=batch) for shape in tops]
            net.set_source(name, ArraySource(*arrays))
    for parameter in net.learnable:
        if not parameter.data.any():
            parameter.data[...] = rng.normal(scale=0.1, size=parameter.shape)


def _check(net: Net, i: int, node: Node, rng: np.random.Generator) -> list[LayerChecked]:
    """Every bottom and parameter of one layer, which has not run yet: its bottoms hold what came from above."""
    layer = node.layer
    bottoms, tops = [net.blobs[name] for name in node.bottoms], [net.blobs[name] for name in node.tops]
    values = [blob.data.copy() for blob in bottoms]
    want = [layer.allow_force_backward(k) for k in range(len(bottoms))]
    kept, draws, wanted = layer.keep, layer.draws, list(layer.param_wanted)
    layer.keep, layer.param_wanted = True, [True] * len(layer.params)

    def forward() -> None:
        layer.draws = draws
        for blob, value in zip(bottoms, values, strict=True):
            blob.data[...] = value
        net.run_forward(i, i)

    try:
        forward()
        base = [top.data.copy() for top in tops]
        weights = [rng.uniform(0.5, 1.5, size=top.shape) * (k not in _silent(layer)) for k, top in enumerate(tops)]

        def objective() -> float:
            forward()
            # Less the values at the middle, so that the sum of a large array does not round the difference away.
            return float(sum((w * (top.data - b)).sum() for w, top, b in zip(weights, tops, base, strict=True)))

        gradients = _analytic(layer, bottoms, tops, weights, want)
        named = [(f"bottom {name}", v, g) for name, v, g, w in zip(node.bottoms, values, gradients[: len(bottoms)], want) if w]
        named += [(f"parameter {k}", p.data, g) for k, (p, g) in enumerate(zip(layer.params, gradients[len(bottoms) :]))]
        found = [_compared(node, name, array, gradient, objective, rng) for name, array, gradient in named]
    except AstrideError as error:
        found = [LayerChecked(node.name, layer.type, "", 0, 0, 0.0, error.problem)]
    finally:
        layer.keep, layer.param_wanted, layer.draws = kept, wanted, draws
        for blob, value in zip(bottoms, values, strict=True):
            blob.data[...] = value
    return found


def _silent(layer: Any) -> frozenset[int]:
    """Tops that pass no gradient: masks, probabilities beside a loss, counts."""
    return frozenset(layer.silent)


def _analytic(layer: Any, bottoms: list[Any], tops: list[Any], weights: list[Array], want: list[bool]) -> list[Array]:
    """The layer's own gradients of sum(weights * tops), bottoms first."""
    for parameter in layer.params:
        parameter.diff.fill(0)
    for top, weight in zip(tops, weights, strict=True):
        top.diff[...] = weight
    layer.backward(tops, want, bottoms)
    return [blob.diff.copy() for blob in (*bottoms, *layer.params)]


def _compared(
    node: Node, name: str, array: Array, gradient: Array, objective: Callable[[], float], rng: np.random.Generator
) -> LayerChecked:
    """Central differences at some elements; one whose slopes on both sides differ stands at a kink and is left out."""
    flat, analytic = array.reshape(-1), gradient.reshape(-1)
    scale = max(float(np.abs(gradient).max(initial=0.0)), 1e-8)
    worst, kinks = 0.0, 0
    places = rng.permutation(flat.size)[:SAMPLES]
    middle = objective()
    for place in places:
        before = flat[place]
        flat[place] = before + STEP
        above = objective()
        flat[place] = before - STEP
        below = objective()
        flat[place] = before
        right, left = (above - middle) / STEP, (middle - below) / STEP
        if abs(right - left) > KINK * max(abs(right), abs(left), scale):
            kinks += 1
            continue
        error = abs((right + left) / 2 - float(analytic[place])) / max(scale, abs(right + left) / 2)
        worst = error if not error <= worst else worst
    return LayerChecked(node.name, node.layer.type, name, len(places) - kinks, kinks, worst)
