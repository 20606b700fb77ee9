"""A blob's memory on a device beside that on the host, brought up to date when either side looks.

Every write on the device is a tensor of its own, so that what a layer has kept for its gradient stays true and work that is
encoded but not yet sent reads what it should. On the host, `data` and `diff` give out views that may be written to at any time:
as long as one lives, the memory goes up anew before each use, and comes down after each pass.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from ..backends.protocol import Array
from ..backends.webgpu.device import Device
from ..backends.webgpu.tensor import Tensor
from ..layers.blob import Store
from ..plan import Shape

if TYPE_CHECKING:
    from .device import DeviceSide


class Mirror:
    """The device's side of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.tensor: Tensor | None = None
        self.newer = False
        """Whether the device has written since the host last looked."""
        self.written = True
        """Whether the host may have written since the device last looked."""
        self.writer: DeviceSide | None = None

    def to_host(self, array: Array) -> None:
        """Bring the host's memory up to date; whoever asked may write to it."""
        if self.newer and self.tensor is not None:
            if self.writer is not None:
                self.writer.send()
            values = self.tensor.numpy().reshape(-1)
            count = min(len(values), len(array))
            array[:count] = values[:count]
        self.newer, self.written = False, True

    def on(self, device: Device, shape: Shape, count: int) -> Tensor:
        """The memory as a tensor on a device."""
        kept = self.tensor
        if kept is not None and (kept.device is not device or kept.generation != device.generation or kept.size != count):
            self.store.view((count,), count)  # brings it down where the device has it alone
            kept = None
        if kept is None or (not self.newer and (self.written or self.watched)):
            # not the view that `data` gives, so that nobody is taken to hold one
            array = self.store.array
            up = np.zeros(count, np.float32) if array is None else array[:count]
            if len(up) < count:
                up = np.concatenate([up, np.zeros(count - len(up), np.float32)])
            kept = self.tensor = device.tensor(up)
            self.newer = self.written = False
        return kept.reshape(*shape)

    def write(self, tensor: Tensor, writer: DeviceSide) -> None:
        """Let the memory be what a tensor holds, which nobody writes to again."""
        self.tensor, self.writer = tensor.reshape(tensor.size), writer
        self.newer, self.written = True, False

    def settle(self) -> None:
        """After a pass: views that live outside see what the device has written."""
        if self.newer and self.watched and self.store.array is not None:
            self.to_host(self.store.array)

    @property
    def watched(self) -> bool:
        """Whether somebody holds a view of the host's memory that can be written to."""
        store = self.store  # no name for the array itself, which would count as a holder
        return store.array is not None and store.array.flags.writeable and _watched(store)


def _holders(store: Store) -> int:
    """References to the array that owns the store's memory, those of this function included."""
    owner = store.array if store.array is None or store.array.base is None else store.array.base
    return sys.getrefcount(owner)


def _alone(array: Array) -> int:
    """The references there are where only a store holds this array."""
    store = Store("float32")
    store.array = array
    del array
    return _holders(store)


# How many references an interpreter counts inside a function differs between its versions: asked, not assumed.
OWNED, VIEWED = _alone(np.zeros(1, np.float32)), _alone(np.zeros((1, 1), np.float32).reshape(-1))


def _watched(store: Store) -> bool:
    owned = store.array is not None and store.array.base is None
    return _holders(store) > (OWNED if owned else VIEWED)


def mirror_of(store: Store) -> Mirror:
    """The store's mirror, made when first asked for."""
    if not isinstance(store.mirror, Mirror):
        store.mirror = Mirror(store)
    return store.mirror
