"""What a line in the table of layers on devices says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..layers import Blob, Layer
from ..layers.layer import nothing_kept
from .device import DeviceSide
from .graph import Node

Blobs = Sequence[Blob]


@dataclass(frozen=True, slots=True)
class Form:
    """A layer type's two directions on a device; `declines(layer, node)` is why it does not run there, or None."""

    forward: Callable[[DeviceSide, Any, Blobs, Blobs], None]
    backward: Callable[[DeviceSide, Any, Blobs, Sequence[bool], Blobs], None]
    declines: Callable[[Any, Node], str | None] = lambda layer, node: None


def kept_by(side: DeviceSide, layer: Layer) -> Any:
    """What a layer's forward pass has kept. Raises UnsupportedError: nothing."""
    if layer not in side.kept:
        raise nothing_kept()
    return side.kept[layer]


__all__ = ["Blobs", "Form", "kept_by"]
