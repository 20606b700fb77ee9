"""What `vjp` records while an operator runs, one node per operator and one per change of view around it; and the way back.

Nothing is recorded unless a tape is active in this context, so the ordinary call pays one context look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .backends.protocol import Array, Arrays
from .errors import ArgumentError, ArrayError, UnsupportedError

Pull = Callable[[Arrays, tuple[bool, ...]], Arrays]
"""(gradients of the outputs, which inputs' gradients are wanted) -> gradients of the inputs."""

Pulled = Callable[[Any], tuple[Any, ...]]
"""g -> the gradients of the arguments."""

Twice = Callable[[Arrays, Arrays, tuple[bool, ...]], tuple[Arrays, Arrays]]
"""(gradients of the outputs, cotangents of the gradients pull gave, which inputs are wanted) -> (gradients of those
gradients of the outputs, gradients of the inputs); see backends/protocol."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One step. Arrays are known by identity, and held, so that an identity cannot be reused meanwhile. `twice` is None where
    there is no double backward."""

    name: str
    inputs: Arrays
    outputs: tuple[Array, ...]
    pull: Pull
    twice: Twice | None = None


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

    def pull(gradients: Arrays, want: tuple[bool, ...]) -> Arrays:
        return (None if gradients[0] is None else inverse(gradients[0]),)

    def twice(gradients: Arrays, cotangents: Arrays, want: tuple[bool, ...]) -> tuple[Arrays, Arrays]:
        return (None if cotangents[0] is None else change(cotangents[0]),), (None,)

    record(Node("view", (array,), (result,), pull, twice))
    return result


@dataclass(frozen=True, slots=True)
class Step:
    """One node as a pull went through it: the gradients that arrived, and which inputs wanted theirs."""

    node: Node
    arriving: Arrays
    want: tuple[bool, ...]


class Pullback:
    """pull(g) gives the gradients of sum(g * result) by the arguments; vjp(pull, g) those and the way back from them."""

    def __init__(self, recorded: Tape, arguments: Sequence[Any], wanted: Sequence[int], outputs: tuple[Any, ...]) -> None:
        self._nodes, self._arguments, self._wanted, self._outputs = recorded.nodes, arguments, wanted, outputs

    def __call__(self, g: Any) -> tuple[Array | None, ...]:
        return self._gradients(seeds(self._outputs, self._outputs, g))

    def differentiated(self, args: tuple[Any, ...], wrt: Any, kwargs: dict[str, Any]) -> tuple[Any, Pulled]:
        """(the gradients, pull2): pull2(cotangents) gives the gradient by g, and then one per argument.

        Raises ArgumentError: anything but g is given; and pull2 UnsupportedError: an operator without double backward.
        """
        if len(args) != 1 or wrt is not None or kwargs:
            raise ArgumentError(
                "a pull takes the gradient g alone",
                given={"arguments": len(args), "wrt": wrt, "keywords": sorted(kwargs)},
                operator="vjp",
                hint="vjp(pull, g)",
            )
        steps: list[Step] = []
        result = self._gradients(seeds(self._outputs, self._outputs, args[0]), steps)

        def pull2(cotangents: Any) -> tuple[Any, ...]:
            return self._again(args[0], steps, seeds(result, self._arguments, cotangents))

        return result, pull2

    def _gradients(self, gradients: dict[int, Array], steps: list[Step] | None = None) -> tuple[Array | None, ...]:
        """Gradients of the arguments from those of any recorded arrays; `steps` gets the way they took."""
        alive = {id(self._arguments[i]) for i in self._wanted}
        for node in self._nodes:
            if any(a is not None and id(a) in alive for a in node.inputs):
                alive.update(id(o) for o in node.outputs)
        for node in reversed(self._nodes):
            arriving = tuple(gradients.get(id(o)) for o in node.outputs)
            want = tuple(a is not None and id(a) in alive for a in node.inputs)
            if not any(want) or all(a is None for a in arriving):
                continue
            if steps is not None:
                steps.append(Step(node, arriving, want))
            add(gradients, node.inputs, node.pull(arriving, want))
        return tuple(gradients.get(id(a)) if i in self._wanted else None for i, a in enumerate(self._arguments))

    def _again(self, g: Any, steps: Sequence[Step], cotangents: dict[int, Array]) -> tuple[Any, ...]:
        """(gradient by g, one per argument) of sum(cotangent * gradient): the steps of the pull the other way round, which
        leave gradients of recorded arrays, which return to the arguments as ever."""
        of_arrays: dict[int, Array] = {}
        for step in reversed(steps):
            inputs = zip(step.node.inputs, step.want, strict=True)
            arriving = tuple(cotangents.get(id(a)) if a is not None and wanted else None for a, wanted in inputs)
            if all(a is None for a in arriving):
                continue
            if step.node.twice is None:
                raise UnsupportedError("the operator has no double backward", operator=step.node.name)
            of_gradients, others = step.node.twice(step.arriving, arriving, step.want)
            add(cotangents, step.node.outputs, of_gradients)
            add(of_arrays, step.node.inputs, others)
        parts = g if isinstance(g, tuple) else (g,)
        by_g = tuple(
            None if part is None else cotangents.get(id(y), np.zeros_like(y))
            for part, y in zip(parts, self._outputs, strict=False)
        )
        by_arguments = tuple(
            np.zeros_like(a) if found is None and i in self._wanted else found
            for i, (a, found) in enumerate(zip(self._arguments, self._gradients(of_arrays), strict=True))
        )
        return (by_g if isinstance(g, tuple) else by_g[0], *by_arguments)


def add(gradients: dict[int, Array], arrays: Sequence[Array | None], more: Sequence[Array | None]) -> None:
    """Sum gradients by the identity of their array."""
    for array, gradient in zip(arrays, more, strict=True):
        if array is not None and gradient is not None:
            before = gradients.get(id(array))
            gradients[id(array)] = gradient if before is None else before + gradient


def seeds(results: Sequence[Any], arrays: Sequence[Any], g: Any) -> dict[int, Array]:
    """What a pull starts from: the parts of g, each like its result, by the identity of the array of that place."""
    arriving = g if isinstance(g, tuple) else (g,)
    if len(arriving) > len(results):
        raise ArrayError(
            "g has more parts than the result",
            required=f"at most {len(results)}: {len(arriving)}",
            hint="one part per result, None where nothing flows back",
        )
    found: dict[int, Array] = {}
    for place, (part, y, array) in enumerate(zip(arriving, results, arrays, strict=False)):
        if part is None:
            continue
        if y is None:
            raise ArrayError(f"part {place} of g belongs to no gradient", given={"g": part}, hint="None in its place")
        try:
            given = part if isinstance(part, np.ndarray) else np.asarray(part, y.dtype)
        except (TypeError, ValueError):
            raise ArrayError("g is no array of numbers", given={"g": type(part).__name__}, hint="numpy.ones_like(y)") from None
        if given.dtype != y.dtype and given.dtype.newbyteorder("=") == y.dtype:
            given = given.astype(y.dtype)  # only the byte order differs
        if given.shape != y.shape or given.dtype != y.dtype:
            raise ArrayError(
                "g does not fit the result",
                given={"g": given},
                required=f"shape {y.shape}, dtype {y.dtype.name}",
                hint="numpy.ones_like(y)",
            )
        found[id(array)] = given
    return found


__all__ = ["Node", "Pull", "Pullback", "Tape", "Twice", "active", "record", "recording", "view"]
