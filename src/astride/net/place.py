"""Where a network computes: on this machine, or on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..layers import Blob, Layer


class Place(Protocol):
    """Runs layers one by one, in the order of a pass."""

    def forward(self, layer: Layer, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        """A layer's forward pass."""

    def backward(self, layer: Layer, top: Sequence[Blob], want: Sequence[bool], bottom: Sequence[Blob]) -> None:
        """A layer's gradients: the wanted bottoms' diff is overwritten, parameters' diffs are added to."""

    def finish(self) -> None:
        """The end of a pass."""

    def leave(self) -> None:
        """Bring everything here: the network moves on."""


class Host:
    """This machine."""

    def forward(self, layer: Layer, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
        layer.forward(bottom, top)

    def backward(self, layer: Layer, top: Sequence[Blob], want: Sequence[bool], bottom: Sequence[Blob]) -> None:
        layer.backward(top, want, bottom)

    def finish(self) -> None:
        """Everything is here already."""

    def leave(self) -> None:
        """Everything is here already."""
