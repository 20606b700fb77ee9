"""How a network is written: a format is injected by whoever read it, so that this row knows no file format."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .net import Net


class Format(Protocol):
    """Writes networks of one kind."""

    def text(self, net: Net) -> str:
        """The network as text, without weights."""
        ...

    def save(self, net: Net, path: str | PathLike[str], *, diffs: bool = False) -> None:
        """The network with its weights, and their gradients if asked for, atomically."""
        ...
