"""What `vjp` records while an operator runs: one node per operator, and one per change of view around it.

Nothing is recorded unless a tape is active in this context, so the ordinary call pays one context look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from .backends.protocol import Array, Arrays

Pull = Callable[[Arrays, tuple[bool, ...]], Arrays]
"""(gradients of the outputs, which inputs' gradients are wanted) -> gradients of the inputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One step. Arrays are known by identity, and held, so that an identity cannot be reused meanwhile."""

    name: str
    inputs: Arrays
    outputs: tuple[Array, ...]
    pull: Pull


@dataclass(slots=True)
class Tape:
    """The steps of one recording, in the order they ran."""

    nodes: list[Node] = field(default_factory=list)


_active: ContextVar[Tape | None] = ContextVar("astride_tape", default=None)


@contextmanager
def recording() -> Iterator[Tape]:
    """A fresh tape for this context; an outer one is set aside meanwhile."""
    tape = Tape()
    token = _active.set(tape)
    try:
        yield tape
    finally:
        _active.reset(token)


def active() -> bool:
    """True while a tape records in this context."""
    return _active.get() is not None


def record(node: Node) -> None:
    """Add a step to the active tape, if there is one."""
    tape = _active.get()
    if tape is not None:
        tape.nodes.append(node)


def view(array: Array, change: Callable[[Array], Array], inverse: Callable[[Array], Array]) -> Array:
    """`change(array)`, recorded with `inverse` as the way its gradient returns. For transposes, reshapes and the like."""
    result = change(array)
    if result is array:
        result = array.view()
    record(Node("view", (array,), (result,), lambda g, want: (None if g[0] is None else inverse(g[0]),)))
    return result


__all__ = ["Node", "Pull", "Tape", "active", "record", "recording", "view"]
