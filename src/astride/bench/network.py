"""A network's layers timed one by one, forward and backward: what `astride time` shows.

The whole network runs each time, and what a layer took is noted as it passes; of its times the median counts. The first pass,
in which memory is made and kernels are compiled, is not counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..layers import ArraySource
from ..layers.memory_data import MemoryData
from ..net import Net
from ..plan import Shape


@dataclass(slots=True)
class LayerTime:
    """Seconds of each pass through one layer; none of `backward` for a layer that has no gradient to compute."""

    name: str
    type: str
    top: Shape
    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)

    def median(self, direction: str) -> float | None:
        """The median of `forward` or `backward`."""
        times: list[float] = getattr(self, direction)
        return statistics.median(times) if times else None


@dataclass(slots=True)
class NetworkTime:
    """Every layer, and the whole passes. `stopped` says why there is no backward pass, where there is none."""

    layers: list[LayerTime]
    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    stopped: str | None = None


def time_network(
    net: Net, iterations: int, *, backward: bool = True, progress: Callable[[], object] = lambda: None
) -> NetworkTime:
    """Run the network `iterations` times and once before. `progress` is called after each of them.

    Raises what the layers raise in forward; a backward pass that a layer lacks is left out, and `stopped` says so.
    """
    result = NetworkTime([_layer(net, i) for i in range(len(net.nodes))])
    begun = [0.0]
    hooks = net.hooks
    notes: dict[str, Callable[[int], object]] = {
        "before_forward": lambda i: begun.__setitem__(0, perf_counter()),
        "after_forward": lambda i: result.layers[i].forward.append(perf_counter() - begun[0]),
        "before_backward": lambda i: begun.__setitem__(0, perf_counter()),
        "after_backward": lambda i: result.layers[i].backward.append(perf_counter() - begun[0]),
    }
    for name, note in notes.items():
        getattr(hooks, name).append(note)
    try:
        for turn in range(iterations + 1):
            if turn <= 1:
                _forget(result)
            _pass(net, result, backward)
            progress()
    finally:
        for name, note in notes.items():
            getattr(hooks, name).remove(note)
    return result


def _layer(net: Net, i: int) -> LayerTime:
    node = net.nodes[i]
    return LayerTime(node.name, node.layer.type, net.blobs[node.tops[0]].shape if node.tops else ())


def _pass(net: Net, result: NetworkTime, backward: bool) -> None:
    start = perf_counter()
    net.run_forward()
    result.forward.append(perf_counter() - start)
    if not backward or result.stopped is not None:
        return
    net.clear_param_diffs()
    start = perf_counter()
    try:
        net.backward(**_gradients(net))
    except UnsupportedError as error:
        result.stopped = str(error).splitlines()[0]
        for layer in result.layers:
            layer.backward.clear()
        result.backward.clear()
        return
    result.backward.append(perf_counter() - start)


def _gradients(net: Net) -> dict[str, Any]:
    """Ones for every output that passes a gradient, so that everything below is computed."""
    makers = {top: node for node in net.nodes for top in node.tops}
    return {
        name: np.zeros(net.blobs[name].shape)
        if makers[name].tops.index(name) in makers[name].layer.silent
        else np.ones(net.blobs[name].shape)
        for name in net.outputs
    }


def _forget(result: NetworkTime) -> None:
    """Begin anew. A backward pass is tried again: layers with state keep what it needs from the second forward pass on."""
    for layer in result.layers:
        layer.forward.clear()
        layer.backward.clear()
    result.forward.clear()
    result.backward.clear()
    result.stopped = None


def fill(net: Net, *, weights: bool) -> None:
    """Random inputs and samples; with `weights` also for parameters that are zero throughout."""
    rng = np.random.default_rng(0)
    for name in net.inputs:
        net.blobs[name].data[...] = rng.normal(size=net.blobs[name].shape)
    for layer in net.layers:
        if isinstance(layer, MemoryData) and layer.source is None:
            shape = next(net.blobs[node.tops[0]].shape for node in net.nodes if node.layer is layer)
            layer.source = ArraySource(rng.normal(size=shape).astype(np.float32), np.zeros(shape[0], np.float32))
    if weights:
        for parameter in net.learnable:
            if not parameter.data.any():
                parameter.data[...] = rng.uniform(0.01, 0.1, parameter.shape)
