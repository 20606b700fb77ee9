"""A network on a device: every layer's part of a pass encoded as kernels, blobs and gradients tensors that stay there.

A layer keeps its shapes, options and plans on the host; what it would compute there is computed by the functions that
`on_device` lists for its type. Layers without bottoms bring data from the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.webgpu.commands import CommandBuffer
from ..backends.webgpu.device import Device, shared
from ..backends.webgpu.recipe import Recipe, encode
from ..backends.webgpu.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError
from ..layers import Blob, Layer
from ..layers.blob import Store
from ..plan import Shape
from .graph import Node
from .mirror import mirror_of
from .place import Host, Place


class DeviceSide:
    """What a network has on a device: the work that is being encoded, and what each layer has kept for its gradient."""

    def __init__(self, device: Device, nodes: Sequence[Node]) -> None:
        from .on_device import form_of

        self.device = device
        self.kept: dict[Layer, Any] = {}
        self._stores: dict[int, Store] = {}
        self._commands: CommandBuffer | None = None
        self._forms = {node.layer: form_of(node.layer) for node in nodes if node.bottoms}

    @property
    def commands(self) -> CommandBuffer:
        """What the next kernels are encoded into."""
        if self._commands is None:
            self._commands = CommandBuffer(self.device)
        return self._commands

    def send(self) -> None:
        """Send what is encoded; later work, and reading, comes after it."""
        commands, self._commands = self._commands, None
        if commands is not None:
            commands.commit()

    def finish(self) -> None:
        """The end of a pass: all is sent, and views that somebody holds are brought up to date."""
        self.send()
        for store in self._stores.values():
            mirror_of(store).settle()

    # -- a layer's part

    def forward(self, layer: Layer, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """Encode a layer's forward pass; one without bottoms runs on the host."""
        if not bottom:
            layer.forward(bottom, top)
            return
        self.kept.pop(layer, None)
        self._forms[layer].forward(self, layer, bottom, top)

    def backward(self, layer: Layer, top: Sequence[Blob], want: Sequence[bool], bottom: Sequence[Blob]) -> None:
        """Encode a layer's gradients: the wanted bottoms' diff is overwritten, parameters' diffs are added to."""
        if bottom:
            self._forms[layer].backward(self, layer, top, want, bottom)

    def keep(self, layer: Layer, value: Any) -> None:
        """Keep what a layer's gradient needs, if anybody will ask for one."""
        if layer.keep:
            self.kept[layer] = value

    # -- blobs

    def data(self, blob: Blob, shape: Shape | None = None) -> Tensor:
        """A blob's data on the device, in its own shape or another."""
        return self._up(blob.memory()[0], blob, shape)

    def diff(self, blob: Blob, shape: Shape | None = None) -> Tensor:
        """A blob's gradient on the device."""
        return self._up(blob.memory()[1], blob, shape)

    def put(self, blob: Blob, tensor: Tensor) -> None:
        """Let a blob's data be this tensor, which nobody writes to again."""
        self._write(blob.memory()[0], tensor)

    def put_diff(self, blob: Blob, tensor: Tensor) -> None:
        """Let a blob's gradient be this tensor."""
        self._write(blob.memory()[1], tensor)

    def add_diff(self, blob: Blob, tensor: Tensor) -> None:
        """Add to a parameter's gradient."""
        from ..backends.webgpu.dense_recipe import accumulate

        before = self.diff(blob, tensor.shape)
        self.put_diff(blob, self.run(accumulate(tensor.size), "out", tensor.shape, a=before, b=tensor))

    def run(self, recipe: Recipe, name: str, shape: Shape, **tensors: Tensor) -> Tensor:
        """Encode a recipe whose one result has this name and shape; the result."""
        out = self.device.empty(shape)
        encode(recipe, self.commands, {**tensors, name: out})
        return out

    def zeros(self, shape: Shape) -> Tensor:
        made = self.device.empty(shape)
        self.commands.clear(made)
        return made

    def _up(self, store: Store, blob: Blob, shape: Shape | None) -> Tensor:
        self._stores[id(store)] = store
        return mirror_of(store).on(self.device, blob.shape if shape is None else shape, blob.count)

    def _write(self, store: Store, tensor: Tensor) -> None:
        self._stores[id(store)] = store
        mirror_of(store).write(tensor, self)

    def leave(self) -> None:
        """Bring everything to the host, and forget the device."""
        for store in self._stores.values():
            mirror = mirror_of(store)
            if mirror.newer and mirror.tensor is not None:
                store.view((mirror.tensor.size,), mirror.tensor.size)
            store.mirror = None


def place_of(name: str | Device, nodes: Sequence[Node], dtype: str) -> Place:
    """Where a network that moves to "cpu", "webgpu" or a device computes. What its layers had kept for gradients is dropped.

    Raises ArgumentError: no such place; BackendUnavailable: no device; UnsupportedError: numbers that the device has not, or
    layers without a kernel, all of them named.
    """
    if name == "cpu":
        _drop(nodes)
        return Host()
    if not isinstance(name, Device) and name != "webgpu":
        raise ArgumentError(
            "there is no such place", given={"device": name}, required='one of "cpu", "webgpu", an astride.gpu.Device'
        )
    if dtype != "float32":
        raise UnsupportedError("a network on a device computes in float32", given={"dtype": dtype})
    device = name if isinstance(name, Device) else shared()
    from .on_device import declines

    asked = {node.where: declines(node.layer, node) for node in nodes if node.bottoms}
    reasons = {where: reason for where, reason in asked.items() if reason is not None}
    if reasons:
        raise UnsupportedError("layers of this network have no kernel on a device", reasons=reasons, hint='net.to("cpu")')
    _drop(nodes)
    return DeviceSide(device, nodes)


def _drop(nodes: Sequence[Node]) -> None:
    """What layers have kept for their gradients does not move."""
    for node in nodes:
        node.layer._saved = []
