"""Net: a network that runs forward and backward, keeping every blob."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError, AstrideError, UnsupportedError
from ..layers import ArraySource, Blob, Layer, Parameter, Source
from ..layers.memory_data import MemoryData
from ..plan import Shape
from .arrays import real
from .build import assemble, blame, needs, same_shapes, shapes_of, with_diffs
from .format import Format
from .graph import Node, Phase
from .memory import limit, refuse
from .need import Need, mark_sums
from .place import Host, Place
from .program import Program

if TYPE_CHECKING:
    from ..backends.webgpu.device import Device

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Hooks:
    """Functions of a layer's place in the order, called before and after each layer's part of a pass."""

    before_forward: list[Callable[[int], object]] = field(default_factory=list)
    after_forward: list[Callable[[int], object]] = field(default_factory=list)
    before_backward: list[Callable[[int], object]] = field(default_factory=list)
    after_backward: list[Callable[[int], object]] = field(default_factory=list)


class Net:
    """A network of layers.

    inputs, outputs   names of blobs: those the caller fills, and those nobody reads once they are written
    blobs             name -> Blob, whose data and diff are live views
    params            layer name -> its parameters; `learnable` lists each once, shared ones under their owner
    layers, nodes     the layers in the order they run, and their places in the graph
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        *,
        name: str = "",
        phase: Phase = Phase.TEST,
        force_backward: bool = False,
        debug_info: bool = False,
        dtype: str = "float32",
        random: np.random.RandomState | None = None,
        max_memory: int | None = None,
        format: Format | None = None,
    ) -> None:
        self.name, self.phase, self.dtype, self.debug_info, self.format = name, phase, dtype, debug_info, format
        # Asked once: later on the network's own memory would be missing from what is free.
        self._allowed = limit(max_memory)
        self._parts = parts = assemble(nodes, dtype, self._allowed)
        self.nodes, self.blobs, self.learnable = parts.nodes, parts.blobs, parts.learnable
        self.inputs, self.outputs = parts.inputs, parts.outputs
        self.layers: list[Layer] = [node.layer for node in self.nodes]
        self.params: dict[str, list[Parameter]] = {n.name: n.layer.params for n in self.nodes if n.layer.params}
        self.loss = 0.0
        self.hooks = Hooks()
        self._place: Place = Host()
        self._ran: dict[int, list[Shape]] = {}  # the shapes each layer last ran forward with
        self._need = needs(parts, force=force_backward)
        self._keep(self._need)
        refuse(with_diffs(parts, self._need), self._allowed)
        self._fill(random or np.random.RandomState())

    def _fill(self, random: np.random.RandomState) -> None:
        for parameter in self.learnable:
            parameter.fill(random)
        # Drawn last, so that the fillers' numbers do not depend on which layers are random.
        for layer in self.layers:
            layer.key = int(random.randint(0, 2**63, dtype=np.int64)) if layer.random else 0
        for layer, top in zip(self.layers, self._parts.tops, strict=True):
            layer.begin(top)

    def layer(self, name: str) -> Layer:
        """The layer of that name. Raises ArgumentError with the names there are."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ArgumentError("the network has no such layer", given={"layer": name}, required=_listed(n.name for n in self.nodes))

    # -- forward

    def forward(self, /, **inputs: Any) -> dict[str, Array]:
        """Run every layer; the outputs by name, as copies.

        Inputs are copied into their blobs, and the network is reshaped where a size differs. Without arguments the
        blobs are used as they are.
        Raises ArgumentError: no such input; ArrayError: no array of real numbers; and what the layers raise, with the
        layer's name, its type and the shapes.
        """
        arrays = {name: self._input(name, value) for name, value in inputs.items()}
        changed = {name: a.shape for name, a in arrays.items() if a.shape != self.blobs[name].shape}
        if changed:
            self.reshape(**changed)
        for name, array in arrays.items():
            self.blobs[name].data[...] = array
        self.run_forward()
        return {name: self.blobs[name].data.copy() for name in self.outputs}

    def run_forward(self, start: int = 0, end: int | None = None) -> float:
        """Run the layers from `start` to `end`, both included. The sum of their weighted losses."""
        loss = 0.0
        for i in range(start, len(self.nodes) if end is None else end + 1):
            node, bottom, top = self.nodes[i], self._parts.bottoms[i], self._parts.tops[i]
            for hook in self.hooks.before_forward:
                hook(i)
            try:
                node.layer.reshape(bottom, top)
                self._place.forward(node.layer, bottom, top)
            except AstrideError as error:
                blame(error, node, bottom)
                raise
            self._ran[i] = shapes_of(bottom, top)
            for weight, blob in zip(node.loss_weights, top, strict=True):
                if weight:
                    loss += weight * float(blob.data.sum())
            if self.debug_info:
                self._report("Forward", node, [(n, "data", b.data) for n, b in zip(node.tops, top, strict=True)])
            for hook in self.hooks.after_forward:
                hook(i)
        self._place.finish()
        self.loss = loss
        return loss

    # -- backward

    def backward(self, /, **top_diffs: Any) -> dict[str, Array]:
        """Gradients of the inputs by name, as copies; parameters' gradients are added to their diff.

        Without arguments losses start from their weight, other outputs from their diff as it stands, and only what
        Caffe would compute is computed: nothing without a loss or `force_backward`, and then the answer is zeros.
        With arguments the named outputs start from these, other outputs that are no loss from zero, and gradients
        flow down to the inputs.
        Raises ArgumentError: no such output, or one that passes no gradient; ArrayError: another shape
               UnsupportedError: forward has kept too little
        """
        for name, value in top_diffs.items():
            self._check_gradient(name, real(name, value))
        need = self._forced() if top_diffs else self._need
        if top_diffs:
            for name in self.outputs:
                self.blobs[name].diff[...] = top_diffs.get(name, 0)
        self.seed_losses(top_diffs)
        self.run_backward(need=need)
        return {name: self._gradient(self.blobs[name]) for name in self.inputs}

    def run_backward(self, start: int | None = None, end: int = 0, *, need: Need | None = None) -> None:
        """Run the layers backward from `start` down to `end`, both included, from the diffs as they stand."""
        need = need or self._need
        mark_sums(self.nodes, need)
        for i in range(len(self.nodes) - 1 if start is None else start, end - 1, -1):
            for hook in self.hooks.before_backward:
                hook(i)
            if need.layers[i]:
                self._layer_backward(i, need)
            for hook in self.hooks.after_backward:
                hook(i)
        self._place.finish()

    def not_run(self, start: int, end: int) -> list[int]:
        """The layers from `start` down to `end` that run backward, but have never run forward."""
        return [i for i in range(end, start + 1) if self._need.layers[i] and i not in self._ran]

    def _layer_backward(self, i: int, need: Need) -> None:
        node, bottom, top = self.nodes[i], self._parts.bottoms[i], self._parts.tops[i]
        node.layer.param_wanted = need.params[i]
        try:
            same_shapes(self._ran.get(i), bottom, top)
            self._place.backward(node.layer, top, need.bottoms[i], bottom)
        except AstrideError as error:
            blame(error, node, bottom)
            raise
        if self.debug_info:
            seen = [(n, "diff", b.diff) for n, b, w in zip(node.bottoms, bottom, need.bottoms[i], strict=True) if w]
            self._report("Backward", node, seen)

    def _check_gradient(self, name: str, diff: Array) -> None:
        if name not in self.outputs:
            raise ArgumentError("there is no such output", given={"name": name}, required=_listed(self.outputs))
        if diff.shape != self.blobs[name].shape:
            raise ArrayError(
                "the gradient has another shape than the output",
                given={name: diff},
                required=f"shape == {self.blobs[name].shape}: {diff.shape}",
            )
        maker = next(node for node in reversed(self.nodes) if name in node.tops)
        if maker.tops.index(name) in maker.layer.silent and diff.any():
            raise ArgumentError("this output passes no gradient", given={"name": name}, operator=maker.where, hint=f"no {name}=")

    @staticmethod
    def _gradient(blob: Blob) -> Array:
        return blob.diff.copy() if blob.has_diff else np.zeros(blob.shape, blob.dtype)

    def seed_losses(self, given: Collection[str] = ()) -> None:
        """Write each loss's weight into its diff, where backward begins; those that are given are left alone."""
        for node, top in zip(self.nodes, self._parts.tops, strict=True):
            for name, weight, blob in zip(node.tops, node.loss_weights, top, strict=True):
                if weight and name not in given:
                    blob.diff[...] = weight

    def _keep(self, need: Need) -> None:
        self._kept = need
        for layer, runs in zip(self.layers, need.layers, strict=True):
            layer.keep = runs

    def _forced(self) -> Need:
        """The need of every gradient. Where forward kept too little it runs again, if that gives the same numbers."""
        need = needs(self._parts, force=True)
        if self._kept.layers != need.layers:
            self._keep(need)
            overwritten = any(name in node.tops for node in self.nodes for name in node.bottoms if name in self.inputs)
            moves_on = any(layer.random or layer.stateful or isinstance(layer, MemoryData) for layer in self.layers)
            if not overwritten and not moves_on:
                self.run_forward()
        return need

    def to(self, device: str | Device) -> Self:
        """Move to "webgpu" or a device, where every layer then runs, or back to "cpu"; `data` and `diff` follow when looked at.

        Raises BackendUnavailable: no device; UnsupportedError: no float32, or layers without a kernel, all of them named.
        """
        from .device import place_of

        before, self._place = self._place, place_of(device, self.nodes, self.dtype)
        before.leave()
        return self

    # -- parameters and shapes

    def clear_param_diffs(self) -> None:
        """Set the gathered gradients of all parameters to zero."""
        for parameter in self.learnable:
            if parameter.has_diff:
                parameter.diff.fill(0)

    def reshape(self, /, **shapes: Shape) -> None:
        """Give inputs other shapes and let everything follow. Where a layer cannot, all is as before.

        Raises ArgumentError: no such input, more memory than allowed; and what the layers raise.
        """
        for name in shapes:
            self._known_input(name)
        before = {name: self.blobs[name].shape for name in shapes}
        try:
            for name, shape in shapes.items():
                self.blobs[name].reshape(tuple(shape))
            self._shape_layers()
            refuse(with_diffs(self._parts, self._kept), self._allowed)
        except AstrideError:
            for name, shape in before.items():
                self.blobs[name].reshape(shape)
            self._shape_layers()
            raise

    def _shape_layers(self) -> None:
        for node, bottom, top in zip(self.nodes, self._parts.bottoms, self._parts.tops, strict=True):
            try:
                node.layer.reshape(bottom, top)
            except AstrideError as error:
                blame(error, node, bottom)
                raise

    def share_params(self, other: Net) -> None:
        """Use the other network's parameters, by layer name: what one learns the other knows. Layers it lacks keep their own."""
        for name, params in self.params.items():
            theirs = other.params.get(name)
            if theirs is None:
                continue
            self._same_shapes(name, [p.shape for p in theirs])
            for mine, its in zip(params, theirs, strict=True):
                mine.share(its)

    def copy_params(self, arrays: Mapping[str, Sequence[Array]]) -> None:
        """Copy values into the parameters, by layer name; layers that are not named keep theirs."""
        for name, values in arrays.items():
            self._same_shapes(name, [np.shape(v) for v in values])
            for parameter, value in zip(self.params[name], values, strict=True):
                parameter.data[...] = value

    def _same_shapes(self, name: str, shapes: Sequence[Shape]) -> None:
        own = [p.shape for p in self.params.get(name, [])]
        if own != list(shapes):
            raise ArrayError(
                "the parameters do not fit the layer",
                given={"layer": name, "parameters": list(shapes)},
                required=f"shapes == {own}: {list(shapes)}",
                hint="a layer of another name, to be filled anew",
            )

    # -- data and random numbers

    @property
    def sources(self) -> dict[str, Source | None]:
        """Where each data layer draws from."""
        return {layer.name: layer.source for layer in self.layers if isinstance(layer, MemoryData)}

    def set_source(self, name: str, source: Source | None) -> None:
        """Let a data layer draw from this source. Raises ArgumentError: no such data layer; ArrayError: other shapes."""
        layer = self.layer(name)
        if not isinstance(layer, MemoryData):
            raise ArgumentError("this layer draws no data", given={"layer": name}, required=_listed(self.sources))
        layer.source = source

    def set_input_arrays(self, data: Any, labels: Any) -> None:
        """Let the first data layer draw from these arrays, in their order: data (N, C, H, W), labels of N elements."""
        if not self.sources:
            raise ArgumentError("the network has no data layer", given={"inputs": self.inputs}, hint="net.forward(data=...)")
        data, labels = np.asarray(data), np.asarray(labels)
        self.set_source(next(iter(self.sources)), ArraySource(data, labels.reshape(-1)))

    @property
    def batch_size(self) -> int:
        """How many samples a pass takes: the first size of the first input or data blob."""
        for node in self.nodes:
            if not node.bottoms:
                shape = self.blobs[node.tops[0]].shape
                return shape[0] if shape else 1
        return 1

    @property
    def draws(self) -> int:
        """Forward passes that the random layers have made."""
        return max((layer.draws for layer in self.layers if layer.random), default=0)

    @draws.setter
    def draws(self, passes: int) -> None:
        for layer in self.layers:
            layer.draws = passes

    # -- use

    def compile(self, outputs: Sequence[str] | str | None = None) -> Program:
        """A program that computes these blobs (default: the outputs) with the weights of now, frozen and folded.

        Raises UnsupportedError: a network that trains; ArgumentError: no such blob.
        """
        return Program(self, outputs)

    # -- files

    def save(self, path: str | PathLike[str], *, diffs: bool = False) -> None:
        """Write the network with its weights, and their gradients if asked for, atomically, in the format it came in."""
        self._format().save(self, path, diffs=diffs)

    def to_prototxt(self) -> str:
        """The network as text, with the inputs' shapes of now."""
        return self._format().text(self)

    def _format(self) -> Format:
        if self.format is None:
            raise UnsupportedError("this network came from no file, so it has no format to be written in")
        return self.format

    # -- small things

    def _input(self, name: str, value: Any) -> Array:
        self._known_input(name)
        return real(name, value)

    def _known_input(self, name: str) -> None:
        if name not in self.inputs:
            raise ArgumentError(
                "there is no such input",
                given={"name": name},
                required=_listed(self.inputs),
                hint="net.set_input_arrays(data, labels)" if self.sources else None,
            )

    def _report(self, direction: str, node: Node, seen: list[tuple[str, str, Array]]) -> None:
        for name, what, array in seen:
            mean = float(np.abs(array).mean()) if array.size else 0.0
            log.info("[%s] Layer %s, blob %s %s: %.6g", direction, node.name, name, what, mean)

    def __repr__(self) -> str:
        return f"<Net {self.name!r} {self.phase}: {len(self.layers)} layers, inputs {self.inputs}, outputs {self.outputs}>"


def _listed(names: Any) -> str:
    found = list(names)
    return f"one of {', '.join(found)}" if found else "none: the network has none"


__all__ = ["Blob", "Net"]
