"""Net: Caffe's network class, name by name, on astride's networks. Blobs are kept, nothing is compiled.

What scripts rely on holds: `net.blobs['x'].data` is the same memory each time and outlives the network; `forward` returns
views, not copies; results of `forward(end=...)` are the tops of that layer; gradients of parameters add up until cleared.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..caffe.load import load_caffe
from ..caffe.weights import load_weights
from ..layers import Blob
from ..layers.memory_data import MemoryData
from ..layers.python import Python
from ..net import Hooks
from ..net import Net as Network
from ..proto import write_weights
from . import process
from ._calls import PHASES, Array, Arrays, FilePath, arguments, check_array, cut, existing, pieces
from .errors import CallError
from .layer import BlobVec, Importable, shown

Callback = Callable[[int], object]


class Net:
    """A network, from `Net(prototxt, phase, level=0, stages=None, weights=None)` or the older `Net(prototxt, weights, phase)`.

    blobs, params       name -> Blob, layer -> its blobs, in the network's order
    layers, layer_dict  the layers; a layer written in Python is the object itself
    inputs, outputs     lists of blob names
    top_names, bottom_names, blob_loss_weights
                        by layer, by layer, by blob

    Layers that the weights lack begin with their fillers, as in Caffe. Raises RuntimeError where a file is missing, TypeError
    where no constructor takes the arguments, and what `astride.load_caffe` raises.
    """

    def __init__(self, network_file: FilePath, *args: Any, **named: Any) -> None:
        phase, level, stages, weights = arguments(args, named)
        found = existing(network_file)
        trained = None if weights is None else existing(weights)
        net = load_caffe(
            Path(found),
            None if trained is None else Path(trained),
            PHASES[phase],
            level=level,
            stages=stages,
            allow_missing=True,
            python_layers=Importable(),
            seed=process.random(),
        )
        self._adopt(net)

    def _adopt(self, net: Network) -> None:
        self._net = net
        net.seed_losses()
        self._blobs_by_name: OrderedDict[str, Blob] = OrderedDict(net.blobs)
        self._shown = [shown(layer) for layer in net.layers]
        self._params = OrderedDict((layer.name, BlobVec(layer)) for layer in net.layers if layer.params)

    @classmethod
    def of(cls, net: Network) -> Net:
        """The face of a network of astride's."""
        made = cls.__new__(cls)
        made._adopt(net)
        return made

    # -- what there is

    @property
    def blobs(self) -> OrderedDict[str, Blob]:
        """Every blob by name, from input to output."""
        return self._blobs_by_name

    @property
    def params(self) -> OrderedDict[str, BlobVec]:
        """The parameters of each layer that has some."""
        return self._params

    @property
    def layers(self) -> list[Any]:
        """Every layer in order, splits included."""
        return self._shown

    @property
    def layer_dict(self) -> OrderedDict[str, Any]:
        """Every layer by name."""
        return OrderedDict(zip(self._layer_names, self._shown, strict=True))

    @property
    def inputs(self) -> list[str]:
        """The blobs that the caller fills."""
        return list(self._net.inputs)

    @property
    def outputs(self) -> list[str]:
        """The blobs that no layer reads."""
        return list(self._net.outputs)

    @property
    def top_names(self) -> OrderedDict[str, list[str]]:
        """layer -> the blobs it writes."""
        return OrderedDict((node.name, list(node.tops)) for node in self._net.nodes)

    @property
    def bottom_names(self) -> OrderedDict[str, list[str]]:
        """layer -> the blobs it reads."""
        return OrderedDict((node.name, list(node.bottoms)) for node in self._net.nodes)

    @property
    def blob_loss_weights(self) -> OrderedDict[str, float]:
        """blob -> its weight in the loss; 0 for most."""
        weights = dict.fromkeys(self._net.blobs, 0.0)
        for node in self._net.nodes:
            weights.update(zip(node.tops, node.loss_weights, strict=True))
        return OrderedDict(weights)

    @property
    def phase(self) -> int:
        """TRAIN or TEST."""
        return next(number for number, name in PHASES.items() if name == self._net.phase)

    @property
    def name(self) -> str:
        """The network's name."""
        return self._net.name

    # What Caffe's own Python code is built on, and scripts reach for.

    @property
    def _layer_names(self) -> list[str]:
        return [node.name for node in self._net.nodes]

    @property
    def _blob_names(self) -> list[str]:
        return list(self._net.blobs)

    @property
    def _blobs(self) -> list[Blob]:
        return list(self._net.blobs.values())

    @property
    def _inputs(self) -> list[int]:
        return [self._blob_names.index(name) for name in self._net.inputs]

    @property
    def _outputs(self) -> list[int]:
        return [self._blob_names.index(name) for name in self._net.outputs]

    @property
    def _blob_loss_weights(self) -> list[float]:
        return list(self.blob_loss_weights.values())

    def _top_ids(self, layer: int) -> list[int]:
        return [self._blob_names.index(name) for name in self._net.nodes[layer].tops]

    def _bottom_ids(self, layer: int) -> list[int]:
        return [self._blob_names.index(name) for name in self._net.nodes[layer].bottoms]

    # -- passes

    def forward(
        self, blobs: Sequence[str] | None = None, start: str | None = None, end: str | None = None, **inputs: Any
    ) -> Arrays:
        """Run from layer `start` to layer `end`, both included, and return views of the outputs and of `blobs`.

        With `end` the tops of that layer stand in for the outputs. Inputs are given all or not at all, each of the batch's
        size, and copied; to change a size, reshape first. Raises ValueError for a layer or an input that does not exist.
        """
        first, last = self._place(start, 0), self._place(end, len(self.layers) - 1)
        wanted = [*(self.outputs if end is None else self.top_names[end]), *(blobs or [])]
        if inputs:
            self._fill(inputs, self.inputs, "data", "Input blob arguments do not match net inputs.")
        self._forward(first, last)
        return {name: self.blobs[name].data for name in wanted}

    def backward(
        self, diffs: Sequence[str] | None = None, start: str | None = None, end: str | None = None, **tops: Any
    ) -> Arrays:
        """Run from layer `start` down to layer `end` and return views of the inputs' gradients and of those of `diffs`.

        With `end` the bottoms of that layer stand in for the inputs. Gradients of outputs are given all or not at all; without
        them backward begins from the diffs as they are, where losses hold their weight. Only what Caffe computes is
        computed: for gradients of inputs the network needs a loss that depends on something that learns below them, or
        `force_backward: true`.
        """
        first, last = self._place(start, len(self.layers) - 1), self._place(end, 0)
        wanted = [*(self.inputs if end is None else self.bottom_names[end]), *(diffs or [])]
        if tops:
            self._fill(tops, self.outputs, "diff", "Top diff arguments do not match net outputs.")
        self._backward(first, last)
        return {name: self.blobs[name].diff for name in wanted}

    def _forward(self, start: int, end: int) -> float:
        return self._net.run_forward(start, end)

    def _backward(self, start: int, end: int) -> None:
        for index in self._net.not_run(start, end):
            self._catch_up(index)
        self._net.run_backward(start, end)

    def _catch_up(self, index: int) -> None:
        """Let a layer see its blobs once before it runs backward, as Caffe's layers look at them only then.

        Blobs and loss stay as they are. A layer that the caller's code is part of, or chance, is left alone.
        """
        net, node = self._net, self._net.nodes[index]
        if isinstance(node.layer, Python) or node.layer.random or node.layer.stateful:
            return
        held = [(net.blobs[name], net.blobs[name].data.copy()) for name in {*node.bottoms, *node.tops}]
        hooks, net.hooks = net.hooks, Hooks()
        loss = net.loss
        try:
            net.run_forward(index, index)
        finally:
            net.hooks, net.loss = hooks, loss
            for blob, values in held:
                if blob.shape == values.shape:
                    blob.data[...] = values

    def _place(self, layer: str | None, default: int) -> int:
        return default if layer is None else self._layer_names.index(layer)

    def _fill(self, given: dict[str, Any], names: list[str], what: str, mismatch: str) -> None:
        if set(given) != set(names):
            raise CallError(mismatch, given={"arguments": sorted(given)}, required=f"all of {', '.join(names)}: no more, no less")
        for name, value in given.items():
            array, blob = np.asarray(value), self.blobs[name]
            if array.shape[:1] != blob.shape[:1]:
                raise CallError(
                    "Input is not batch sized" if what == "data" else "Diff is not batch sized",
                    given={name: array},
                    required=f"shape[0] == {blob.shape[:1]}: {array.shape[:1]}",
                    hint=f"net.blobs[{name!r}].reshape(*x.shape), or forward_all",
                )
            target = blob.data if what == "data" else blob.diff
            target[...] = array

    def forward_all(self, blobs: Sequence[str] | None = None, **inputs: Any) -> Arrays:
        """Run any number of samples in batches of the network's size; the last is filled up, and its surplus results cut off."""
        results: dict[str, list[Array]] = {name: [] for name in [*self.outputs, *(blobs or [])]}
        for batch in self._batch(inputs):
            for name, values in self.forward(blobs=blobs, **batch).items():
                results[name].extend(values.copy())
        return cut(results, len(next(iter(inputs.values()))))

    def forward_backward_all(
        self, blobs: Sequence[str] | None = None, diffs: Sequence[str] | None = None, **arrays: Any
    ) -> tuple[Arrays, Arrays]:
        """Run samples forward, and gradients of outputs backward, batch by batch: the results of both, by name."""
        outs: dict[str, list[Array]] = {name: [] for name in [*self.outputs, *(blobs or [])]}
        gradients: dict[str, list[Array]] = {name: [] for name in [*self.inputs, *(diffs or [])]}
        forth = list(self._batch({name: arrays[name] for name in self.inputs if name in arrays}))
        back = list(self._batch({name: arrays[name] for name in self.outputs if name in arrays}))
        for place in range(max(len(forth), len(back))):
            passed = self.forward(blobs=blobs, **(forth[place] if place < len(forth) else {}))
            returned = self.backward(diffs=diffs, **(back[place] if place < len(back) else {}))
            for collected, arrays_ in ((outs, passed), (gradients, returned)):
                for name, values in arrays_.items():
                    collected[name].extend(values.copy())
        count = len(next(iter(arrays.values())))
        return cut(outs, count), cut(gradients, count)

    def _batch(self, arrays: Mapping[str, Any]) -> Iterator[Arrays]:
        """Arrays of any length in pieces of the network's batch size, the last filled up with zeros."""
        return pieces(arrays, next(iter(self.blobs.values())).shape[0])

    # -- shapes, data, parameters

    def reshape(self) -> None:
        """Let every blob follow the shapes that the inputs have now."""
        self._net.reshape()

    def set_input_arrays(self, data: Any, labels: Any) -> None:
        """Let the first layer, a MemoryData layer, draw from these float32 arrays: (N, C, H, W), and (N,) or (N, 1, 1, 1).

        N is a multiple of the batch size. Raises RuntimeError as Caffe does.
        """
        labels = np.ascontiguousarray(labels)[:, None, None, None] if np.ndim(labels) == 1 else labels
        self._set_input_arrays(data, labels)

    def _set_input_arrays(self, data: Any, labels: Any) -> None:
        layer = self._net.layers[0]
        # Other data layers are built on this one.
        if not isinstance(layer, MemoryData) or layer.type != "MemoryData":
            raise CallError("set_input_arrays may only be called if the first layer is a MemoryDataLayer", given={"layer": layer})
        for name, array, sizes in (("data array", data, layer.shapes[0]), ("labels array", labels, (1, 1, 1))):
            check_array(name, array, sizes)
        if len(data) != len(labels):
            raise CallError("data and labels must have the same first dimension", given={"data": data, "labels": labels})
        if len(data) % layer.batch_size:
            raise CallError(
                "first dimensions of input arrays must be a multiple of batch size",
                given={"data": data, "batch_size": layer.batch_size},
            )
        self._net.set_input_arrays(data, labels)

    def copy_from(self, trained_file: FilePath) -> None:
        """Load the weights of layers of the same names; others keep theirs."""
        load_weights(self._net, Path(existing(trained_file)), allow_missing=True)

    def share_with(self, other: Net) -> None:
        """Use the other network's parameters, layer by layer of one name: what changes there changes here."""
        self._net.share_params(other._net)

    def save(self, filename: FilePath) -> None:
        """Write the network with its weights as .caffemodel."""
        self._net.save(filename)

    def save_hdf5(self, filename: FilePath, write_diff: bool = False) -> None:
        """Write the weights alone, and their gradients if asked for, as HDF5 in Caffe's layout."""
        diffs = {name: [blob.diff for blob in blobs] for name, blobs in self.params.items()} if write_diff else None
        write_weights(filename, {name: [blob.data for blob in blobs] for name, blobs in self.params.items()}, diffs)

    def load_hdf5(self, filename: FilePath) -> None:
        """Load weights from HDF5; the same as copy_from, which sees what a file is."""
        self.copy_from(filename)

    def clear_param_diffs(self) -> None:
        """Set the gathered gradients of all parameters to zero."""
        self._net.clear_param_diffs()

    # -- callbacks, each given the layer's index

    def before_forward(self, callback: Callback) -> None:
        """Call before each layer runs forward."""
        self._net.hooks.before_forward.append(callback)

    def after_forward(self, callback: Callback) -> None:
        """Call after each layer has run forward."""
        self._net.hooks.after_forward.append(callback)

    def before_backward(self, callback: Callback) -> None:
        """Call before each layer runs backward."""
        self._net.hooks.before_backward.append(callback)

    def after_backward(self, callback: Callback) -> None:
        """Call after each layer has run backward."""
        self._net.hooks.after_backward.append(callback)

    def __repr__(self) -> str:
        return f"<caffe.Net {self._net.name!r} {self._net.phase}: inputs {self.inputs}, outputs {self.outputs}>"


__all__ = ["Net"]
