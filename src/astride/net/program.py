"""A compiled network: frozen weights, what can be folded folded, and only the memory that is needed at a time.

Compiling turns the graph into steps over values that are each written once. Layers that only pass data on (Split,
Dropout and the like when the network is used) become other names of one value; linear layers behind a convolution or
inner product are folded into its weights, sums and activations into how a convolution stores (fold.py). A run reuses the
memory of values nobody reads any more.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..backends.protocol import Array
from ..errors import ArgumentError, AstrideError, UnsupportedError
from ..layers import Blob
from ..plan import Shape
from .arrays import real
from .build import blame
from .fold import fold
from .freeze import frozen
from .graph import Node, Phase

if TYPE_CHECKING:
    from .net import Net


@dataclass(slots=True)
class Step:
    """A layer, the values it reads and writes, and those nobody reads after it."""

    node: Node
    reads: list[int]
    writes: list[int]
    frees: list[int] = field(default_factory=list)


class Program:
    """`program(**inputs)` gives the outputs by name, like the network it was compiled from, and keeps no blobs.

    inputs, outputs   names, as the network's
    folded            the layers that are gone, and where they went: (layer, into)

    Weights are copies that cannot be written to: what the network learns later the program does not see. A recurrent
    layer begins every call with nothing remembered. A program may run in several threads at once.
    """

    def __init__(self, net: Net, outputs: Sequence[str] | str | None = None, *, nodes: Sequence[Node] | None = None) -> None:
        """Of the network's own graph, or of its layers as `nodes` join them (apart.py)."""
        nodes = net.nodes if nodes is None else nodes
        if net.phase is not Phase.TEST:
            raise UnsupportedError(
                "only a network in use is compiled",
                given={"phase": str(net.phase)},
                required=f"phase == TEST: {net.phase}",
                hint='load_caffe(..., phase="TEST")',
            )
        self.name, self.dtype = net.name, net.dtype
        self.inputs = list(net.inputs)
        self.outputs = [outputs] if isinstance(outputs, str) else list(net.outputs if outputs is None else outputs)
        known = list(dict.fromkeys(top for node in nodes for top in node.tops))
        for name in self.outputs:
            if name not in known:
                raise ArgumentError(
                    "the network has no such blob", given={"outputs": name}, required=f"one of {', '.join(known)}"
                )
        self.shapes: dict[str, Shape] = {name: net.blobs[name].shape for name in self.inputs}
        kept = [_frozen(node) for node in nodes]
        self.steps, self._inputs, self._outputs = _trace(kept, self.inputs, self.outputs)
        self.folded: list[tuple[str, str]] = fold(self.steps, set(self._outputs.values()))
        _release(self.steps, set(self._outputs.values()))

    def __call__(self, /, **inputs: Any) -> dict[str, Array]:
        """Run it. Every input is needed; sizes may differ from call to call where the layers allow it.

        Raises ArgumentError: an input missing or unknown; ArrayError: no array of real numbers; and what the layers raise,
        with the layer's name and the shapes.
        """
        return self.run(inputs)

    def run(self, inputs: Mapping[str, Any], watch: Callable[[Step, float], None] | None = None) -> dict[str, Array]:
        """The same; `watch` is told of every step, once it is done, and of the seconds it took."""
        if set(inputs) != set(self.inputs):
            wrong = sorted(set(inputs) ^ set(self.inputs))
            raise ArgumentError(
                "the inputs are not the program's",
                given={"inputs": sorted(inputs)},
                required=f"{', '.join(self.inputs)}; missing or unknown: {', '.join(wrong)}",
                operator=f'program "{self.name}"',
            )
        values: dict[int, Blob] = {}
        idle: list[Blob] = []
        for name, value in inputs.items():
            array = real(name, value)
            values[self._inputs[name]] = blob = Blob(array.shape, self.dtype)
            blob.data[...] = array
        for step in self.steps:
            bottom = [values[i] for i in step.reads]
            top = [idle.pop() if idle else Blob((), self.dtype) for _ in step.writes]
            # layers hold what one pass keeps; a copy a run lets threads share the program
            layer = copy.copy(step.node.layer)
            start = perf_counter()
            try:
                layer.reshape(bottom, top)
                layer.forward(bottom, top)
            except AstrideError as error:
                blame(error, step.node, bottom)
                raise
            if watch is not None:
                watch(step, perf_counter() - start)
            values.update(zip(step.writes, top, strict=True))
            idle += [values.pop(i) for i in step.frees if i in values]
        return {name: values[self._outputs[name]].data.copy() for name in self.outputs}

    def __repr__(self) -> str:
        return f"<Program {self.name!r}: {len(self.steps)} steps, inputs {self.inputs}, outputs {self.outputs}>"


def _frozen(node: Node) -> Node:
    """The node with a layer of its own, whose parameters are copies that cannot be written to."""
    layer = copy.copy(node.layer)
    layer.keep = False
    layer.copies = True  # nothing is shared: memory that two values hold could not be reused
    layer.params = [frozen(p) for p in node.layer.params]
    layer.forget()
    return Node(node.name, layer, list(node.bottoms), list(node.tops), line=node.line)


def _trace(
    nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[list[Step], dict[str, int], dict[str, int]]:
    """The steps that the outputs need, over values numbered as they are written."""
    current: dict[str, int] = {}
    first: dict[str, int] = {}
    steps: list[Step] = []
    count = 0
    for node in nodes:
        reads = [current[name] for name in node.bottoms]
        if node.layer.passes_on():
            current.update(dict.fromkeys(node.tops, reads[0]))
            continue
        writes = list(range(count, count + len(node.tops)))
        count += len(writes)
        current.update(zip(node.tops, writes, strict=True))
        if node.layer.type == "Input":
            first.update(zip(node.tops, writes, strict=True))
        elif node.tops:
            steps.append(Step(node, reads, writes))
    needed = {current[name] for name in outputs}
    kept: list[Step] = []
    for step in reversed(steps):
        if needed & set(step.writes):
            needed |= set(step.reads)
            kept.append(step)
    return kept[::-1], {name: first[name] for name in inputs}, {name: current[name] for name in outputs}


def _release(steps: Sequence[Step], outputs: set[int]) -> None:
    """Note after which step each value's memory is free: its last reader, or its writer where nobody reads it."""
    last: dict[int, Step] = {}
    for step in steps:
        for value in (*step.reads, *step.writes):
            last[value] = step
    for value, step in last.items():
        if value not in outputs:
            step.frees.append(value)


__all__ = ["Program", "Step"]
