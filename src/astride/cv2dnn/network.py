"""Net and Layer with the methods of `cv2.dnn`, over a network of astride.

OpenCV's names are those of layers, and every layer has an output of its own, those in place included. Layers are numbered from 1
in their order; 0 is `_input`. Where OpenCV names a layer after its output, both names are understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ArrayError, ModelFileError, UnsupportedError
from ..net import Net as AstrideNet
from ..net import Node
from ..net.apart import apart
from ..net.arrays import real
from ..net.program import Program, Step
from ..proto import atomic_write, nearest
from .costs import Costs, Shapes
from .drawing import as_dot
from .weights import freeze, matrices, replace

Array = npt.NDArray[Any]

PROGRAMS_KEPT = 4
INPUT = "_input"


class Layer:
    """One layer of a network. `blobs` are its weights: read them, or set them, as in OpenCV.

    name, type          as in the prototxt
    preferableTarget    0, the CPU
    """

    preferableTarget = 0

    def __init__(self, net: Net, node: Node | None) -> None:
        self._net, self._node = net, node
        self.name, self.type = ("", "") if node is None else (node.name, node.layer.type)

    @property
    def blobs(self) -> tuple[Array, ...]:
        """Copies of the parameters; those of one axis are columns (N, 1), rows (1, N) in an InnerProduct, as in OpenCV."""
        return () if self._node is None else matrices(self._node)

    @blobs.setter
    def blobs(self, values: Sequence[Any]) -> None:
        if self._node is None:
            raise ArgumentError("the input has no weights", given={"layer": INPUT})
        self._net._set_blobs(self._node, list(values))

    def outputNameToIndex(self, outputName: str) -> int:
        """Which of the layer's outputs has this name; 0 for a layer with one, -1 for a name that is none."""
        tops = [] if self._node is None else self._net._tops(self._node)
        if len(tops) <= 1:
            return 0
        return tops.index(outputName) if outputName in tops else -1

    def __repr__(self) -> str:
        return f"<Layer {self.name!r} ({self.type})>"


class Net:
    """A network as `cv2.dnn` shows it. `readNetFromCaffe` makes one; `Net()` is empty.

    Numbers are those of Caffe's own rules; the manual lists where OpenCV's differ. Blobs are float32. It runs forward only:
    `astride.load_caffe` has gradients.
    """

    def __init__(self, net: AstrideNet | None = None, missing: Sequence[str] = ()) -> None:
        self._net = net
        self._missing = dict.fromkeys(missing)
        self._nodes = [] if net is None else apart(net)
        self._listed = [node for node in self._nodes if node.layer.type != "Input"]
        self._by_name = {node.name: i for i, node in enumerate(self._listed, 1)}
        self._aliases = {} if net is None else self._blob_names(net)
        self._inputs = [] if net is None else list(net.inputs)
        self._given: dict[str, Array] = {}
        self._programs: dict[tuple[str, ...], Program] = {}
        self._seconds = (0.0, np.zeros(len(self._listed)))
        if net is not None:
            freeze(net)

    def _blob_names(self, net: AstrideNet) -> dict[str, int]:
        """Blob name -> the number of the layer that writes it last."""
        return {top: self._by_name[node.name] for node in net.nodes for top in node.tops if node.name in self._by_name}

    # -- running

    def setInput(self, blob: Any, name: str = "", scalefactor: float = 1.0, mean: Any = (0.0, 0.0, 0.0, 0.0)) -> None:
        """Give an input its values, (blob - mean) * scalefactor; sizes may differ from call to call.

        Shapes    as the network's input, usually (N, C, H, W); `mean` is one number a channel, or a scalar of up to four
        Raises    ArgumentError: no such input, a mean for other channels; ArrayError: no array of real numbers
        """
        self._needed()
        if name and name not in self._inputs:
            raise ArgumentError(
                "the network has no such input",
                given={"name": name},
                required=f"one of {', '.join(self._inputs)}",
                hint=nearest(name, self._inputs),
            )
        values = real(name or self._inputs[0], blob).astype(np.float32)
        offsets = np.atleast_1d(np.asarray(mean, dtype=np.float32))
        if offsets.any():
            values -= _per_channel(offsets, values)
        if scalefactor != 1:
            values *= np.float32(scalefactor)
        self._given[self._own_name(name)] = values

    def forward(
        self, *wanted: Any, outputName: str = "", outBlobNames: Sequence[str] | None = None, outputBlobs: Any = None
    ) -> Any:
        """Run the network.

        forward()                     the first output of the last layer, float32
        forward("name")               that layer's first output
        forward(["one", "another"])   a tuple of theirs
        forward([], "name")           a tuple of all the layer's outputs
        Raises ArgumentError: no such layer, an input not set; ModelFileError: weights are missing; and what layers raise
        """
        names, name = outBlobNames, outputName
        for value in wanted:
            if isinstance(value, str):
                name = value
            elif value is not None and len(value) and all(isinstance(one, str) for one in value):
                names = value
            else:
                outputBlobs = value
        if names is not None:
            return tuple(outputs[0] for outputs in self._run(list(names)))
        (outputs,) = self._run([name or self._last()])
        return outputs[0] if outputBlobs is None else outputs

    def forwardAndRetrieve(self, outBlobNames: Sequence[str]) -> tuple[tuple[Array, ...], ...]:
        """For each of these layers a tuple of all its outputs."""
        return tuple(self._run(list(outBlobNames)))

    def forwardAsync(self, outputName: str = "") -> Any:
        """Not here: run `forward` in a thread of your own, which gives the same."""
        raise UnsupportedError(
            "there is no asynchronous forward",
            because="OpenCV has it for OpenVINO's backend only",
            hint="concurrent.futures.ThreadPoolExecutor().submit(net.forward)",
        )

    def _run(self, names: list[str]) -> list[tuple[Array, ...]]:
        net = self._needed()
        nodes = [self._node(name) for name in names]
        for node in nodes:
            if not node.tops:
                raise ArgumentError("this layer has no output", given={"layer": node.name}, operator=node.where)
        wanted = tuple(dict.fromkeys(top for node in nodes for top in node.tops))
        program = self._programs.get(wanted)
        if program is None:
            self._complete()
            if len(self._programs) >= PROGRAMS_KEPT:
                del self._programs[next(iter(self._programs))]
            program = self._programs[wanted] = Program(net, wanted, nodes=self._nodes)
        unset = [name for name in net.inputs if name not in self._given]
        if unset:
            raise ArgumentError(
                "inputs were not set", given={"missing": unset}, required="setInput for each", hint="net.setInput(blob)"
            )
        seconds = np.zeros(len(self._listed))

        def watch(step: Step, took: float) -> None:
            seconds[self._by_name[step.node.name] - 1] = took

        start = perf_counter()
        found = program.run({name: self._given[name] for name in net.inputs}, watch)
        self._seconds = perf_counter() - start, seconds
        return [tuple(found[top] for top in node.tops) for node in nodes]

    def _complete(self) -> None:
        if self._missing:
            raise ModelFileError(
                f"{len(self._missing)} layers have no weights",
                given={"missing": list(self._missing)},
                required="weights for every layer that has parameters, from the .caffemodel or set by hand",
                hint='readNetFromCaffe(prototxt, caffeModel), or net.getLayer("name").blobs = [weights, bias]',
            )

    # -- layers

    def empty(self) -> bool:
        """Whether there is no network here."""
        return self._net is None

    def getLayerNames(self) -> tuple[str, ...]:
        """The layers in their order, without the input: the first has the number 1."""
        return tuple(node.name for node in self._listed)

    def getLayerId(self, layer: str) -> int:
        """A layer's number, -1 for a name that is none."""
        if layer == INPUT:
            return 0
        return self._by_name.get(layer, self._aliases.get(layer, -1))

    def getLayer(self, layerId: Any = None, *, layerName: str | None = None) -> Layer:
        """A layer by its number or name."""
        key = layerName if layerId is None else layerId
        return Layer(self, None if key in (0, INPUT) else self._node(key))

    def getLayerTypes(self) -> tuple[str, ...]:
        """The types of layers there are, sorted."""
        return tuple(sorted({node.layer.type for node in self._listed} | ({"__NetInputLayer__"} if self._inputs else set())))

    def getLayersCount(self, layerType: str) -> int:
        """How many layers are of a type."""
        return sum(node.layer.type == layerType for node in self._listed)

    def getUnconnectedOutLayers(self) -> Array:
        """The numbers of the layers none of whose outputs anybody reads, int32."""
        return np.array([self._by_name[name] for name in self.getUnconnectedOutLayersNames()], np.int32)

    def getUnconnectedOutLayersNames(self) -> tuple[str, ...]:
        """Their names."""
        read = {name for node in self._nodes for name in node.bottoms}
        return tuple(node.name for node in self._listed if node.tops and not read.intersection(node.tops))

    def getParam(self, layer: Any, numParam: int = 0) -> Array:
        """One of a layer's weights, as `Layer.blobs` has it."""
        blobs = self.getLayer(layer).blobs
        if not 0 <= numParam < len(blobs):
            raise ArgumentError(
                "the layer has no such parameter",
                given={"layer": layer, "numParam": numParam},
                required=f"0 <= numParam < {len(blobs)}",
            )
        return blobs[numParam]

    def setParam(self, layer: Any, numParam: int, blob: Any) -> None:
        """Give a layer other weights, of the same number of elements."""
        node = self._node(layer)
        values: list[Any] = [parameter.data for parameter in node.layer.params]
        self.getParam(layer, numParam)
        values[numParam] = blob
        self._set_blobs(node, values)

    def _set_blobs(self, node: Node, values: list[Any]) -> None:
        replace(self._needed(), node, values)
        self._missing.pop(node.name, None)
        self._programs.clear()

    # -- sizes and costs

    def setInputsNames(self, inputBlobNames: Sequence[str]) -> None:
        """Call the inputs otherwise, in their order."""
        names = list(inputBlobNames)
        if len(names) != len(self._inputs) or len(set(names)) != len(names):
            raise ArgumentError("each input has one name", given={"inputBlobNames": names}, required=f"{len(self._inputs)} names")
        self._inputs = names

    def setInputShape(self, inputName: str, shape: Sequence[int]) -> None:
        """Give an input another size before it has values. Not needed: `setInput` does it."""
        self._needed().reshape(**{self._own_name(inputName): tuple(int(n) for n in shape)})

    def getLayersShapes(self, netInputShapes: Any) -> tuple[Array, Shapes, Shapes]:
        """(numbers of all layers, shapes of their inputs, shapes of their outputs) for inputs of these shapes."""
        return self._costs(netInputShapes).shapes()

    def getFLOPS(self, *layer_and_shapes: Any) -> int:
        """Operations of a pass: `getFLOPS(shape)` of all layers, `getFLOPS(layerId, shape)` of one; as `Costs.flops` counts."""
        *layer, shapes = layer_and_shapes
        costs = self._costs(shapes)
        return sum(costs.flops(node) for node in ([self._node(layer[0])] if layer else self._listed))

    def getMemoryConsumption(self, *layer_and_shapes: Any) -> tuple[int, int]:
        """(bytes of weights, bytes of outputs), of all layers with the inputs, or of one."""
        *layer, shapes = layer_and_shapes
        costs = self._costs(shapes)
        nodes = [self._node(layer[0])] if layer else self._nodes
        return sum(costs.weights(node) for node in nodes), sum(costs.outputs(node) for node in nodes)

    def getPerfProfile(self) -> tuple[int, Array]:
        """(nanoseconds of the last forward, of each layer). A layer that was folded into another one, or not needed, has 0.

        OpenCV counts in ticks of `cv2.getTickFrequency()`, which is 1e9 on Linux.
        """
        total, layers = self._seconds
        return round(total * 1e9), np.round(layers * 1e9)

    def dump(self) -> str:
        """The network as a Graphviz graph: a node a layer with its type and the shapes of its outputs."""
        return as_dot(self._needed(), self._nodes)

    def dumpToFile(self, path: str | PathLike[str]) -> None:
        """The same in a file, written atomically."""
        atomic_write(path, [self.dump().encode()])

    # -- where it runs

    def setPreferableBackend(self, backendId: int) -> None:
        """Taken and without effect: everything runs on astride's own backends (`astride.configure`)."""
        _known_number("backendId", backendId)

    def setPreferableTarget(self, targetId: int) -> None:
        """Taken and without effect: the numbers are float32 on the CPU, whatever is asked for."""
        _known_number("targetId", targetId)

    def enableFusion(self, fusion: bool) -> None:
        """Taken and without effect: folding changes numbers by rounding alone."""

    def enableWinograd(self, useWinograd: bool) -> None:
        """Taken and without effect."""

    # -- inside

    def _needed(self) -> AstrideNet:
        if self._net is None:
            raise ArgumentError("this network is empty", hint="net = readNetFromCaffe(prototxt, caffeModel)")
        return self._net

    def _node(self, layer: Any) -> Node:
        self._needed()
        number = self.getLayerId(layer) if isinstance(layer, str) else layer if isinstance(layer, int | np.integer) else -1
        if not 1 <= number <= len(self._listed):
            names = list(self._by_name)
            raise ArgumentError(
                "the network has no such layer",
                given={"layer": layer},
                required=f"a name, or a number from 1 to {len(names)}",
                hint=nearest(layer, [*names, *self._aliases]) if isinstance(layer, str) else None,
            )
        return self._listed[number - 1]

    def _last(self) -> str:
        self._needed()
        return next(node.name for node in reversed(self._listed) if node.tops)

    def _tops(self, node: Node) -> list[str]:
        """A layer's tops as the prototxt has them."""
        own = next(mine for mine in self._needed().nodes if mine.name == node.name)
        return own.tops

    def _own_name(self, name: str) -> str:
        return self._needed().inputs[self._inputs.index(name) if name else 0]

    def _costs(self, shapes: Any) -> Costs:
        net = self._needed()
        given = [tuple(int(n) for n in shape) for shape in (shapes if np.ndim(shapes[0]) else [shapes])]
        if len(given) != len(net.inputs):
            raise ArgumentError(
                "each input has one shape", given={"shapes": given}, required=f"{len(net.inputs)}: {', '.join(self._inputs)}"
            )
        net.reshape(**dict(zip(net.inputs, given, strict=True)))
        return Costs(net, self._nodes)

    def __repr__(self) -> str:
        return (
            "<Net, empty>"
            if self._net is None
            else f"<Net {self._net.name!r}: {len(self._listed)} layers, inputs {self._inputs}>"
        )


def _per_channel(offsets: Array, values: Array) -> Array:
    """A mean beside the channels of a blob; those without one have 0."""
    channels = values.shape[1] if values.ndim > 1 else 0
    if len(offsets[channels:]) and offsets[channels:].any():
        raise ArrayError(
            "the mean has more channels than the blob",
            given={"mean": offsets, "blob": values},
            required=f"len(mean) <= channels: {len(offsets)} <= {channels}",
        )
    each = np.zeros(channels, np.float32)
    each[: len(offsets)] = offsets[:channels]
    return each.reshape(-1, *[1] * (values.ndim - 2))


def _known_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ArgumentError(f"{name} is one of the DNN_ numbers", given={name: value}, hint="cv2dnn.DNN_BACKEND_DEFAULT")


__all__ = ["Layer", "Net"]
