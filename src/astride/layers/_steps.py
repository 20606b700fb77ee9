"""Operators run one after the other within one layer, and the way their gradients return.

A layer that is several operators runs them through `Steps` and gets the gradients of what it began with. Arrays are
known by identity: each must be one object from where it is made to where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .. import ops
from ..backends.protocol import Array, Arrays
from ..plan import ElementwisePlan, LayoutPlan, Plan, Shape
from ..plan.dense import Function
from ..plan.layout import Move
from ..tape import Node, Pull
from .layer import nothing_kept


class Steps:
    """What one pass of a layer ran, in order. Without `keep` nothing is noted and there is no way back."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self._nodes: list[Node] = []

    def run(self, plan: Plan, *arrays: Array | None) -> Array:
        """The plan's result, fresh."""
        y, saved = ops.forward(plan, *arrays, save=self.keep)
        if saved is not None:
            kept = saved
            inputs = (*arrays, *[None] * (len(plan.roles) - len(arrays)))

            def pull(gradients: Arrays, want: tuple[bool, ...]) -> Arrays:
                assert gradients[0] is not None
                return ops.backward(plan, gradients[0], kept, want=want)

            self._nodes.append(Node(plan.op, inputs, (y,), pull))
        return y

    def apply(self, function: Function, *arrays: Array, **fields: float) -> Array:
        """One function element by element."""
        return self.run(ElementwisePlan(dtype=arrays[0].dtype.name, function=function, **fields), *arrays)  # type: ignore[arg-type]

    def take(self, x: Array, indices: Array) -> Array:
        """These places of the first axis."""
        return self.run(LayoutPlan(dtype=x.dtype.name, move=Move.TAKE), x, indices)

    def shaped(self, x: Array, shape: Shape) -> Array:
        """The same values in another shape."""
        y = x.reshape(shape).view()
        return self.note("shaped", x, y, lambda g, want: (None if g[0] is None else g[0].reshape(x.shape),))

    def parts(self, x: Array, count: int) -> list[Array]:
        """Equal parts of the last axis."""
        size = x.shape[-1] // count
        pieces = [x[..., k * size : (k + 1) * size] for k in range(count)]
        plan = LayoutPlan(dtype=x.dtype.name, move=Move.CONCAT, axis=x.ndim - 1, pieces=count)

        def pull(gradients: Arrays, want: tuple[bool, ...]) -> Arrays:
            filled = [np.zeros(p.shape, p.dtype) if g is None else g for g, p in zip(gradients, pieces, strict=True)]
            return (ops.forward(plan, *filled)[0],)

        if self.keep:
            self._nodes.append(Node("parts", (x,), tuple(pieces), pull))
        return pieces

    def note(self, name: str, x: Array, y: Array, pull: Pull) -> Array:
        """Take in a step from x to y that ran elsewhere, with a way back of its own. Returns y."""
        if self.keep:
            self._nodes.append(Node(name, (x,), (y,), pull))
        return y

    def backward(self, seeds: Iterable[tuple[Array, Array | None]], wanted: Sequence[Array]) -> list[Array | None]:
        """The gradients of the wanted arrays, where `seeds` are results and the gradients they get; None where nothing flows.

        Raises UnsupportedError where nothing was kept.
        """
        if not self.keep:
            raise nothing_kept()
        alive = {id(array) for array in wanted}
        for node in self._nodes:
            if any(id(a) in alive for a in node.inputs if a is not None):
                alive.update(id(y) for y in node.outputs)
        found: dict[int, Array] = {}
        for result, gradient in seeds:
            _add(found, result, gradient)
        for node in reversed(self._nodes):
            arriving = tuple(found.get(id(y)) for y in node.outputs)
            want = tuple(a is not None and id(a) in alive for a in node.inputs)
            if any(want) and any(g is not None for g in arriving):
                for array, gradient in zip(node.inputs, node.pull(arriving, want), strict=True):
                    _add(found, array, gradient)
        return [found.get(id(array)) for array in wanted]


def total(parts: Sequence[Array]) -> Array:
    """The sum of arrays of one shape."""
    result = parts[0]
    plan = ElementwisePlan(dtype=result.dtype.name, function=Function.ADD)
    for part in parts[1:]:
        result = ops.forward(plan, result, part)[0]
    return result


def _add(found: dict[int, Array], array: Array | None, gradient: Array | None) -> None:
    if array is not None and gradient is not None:
        before = found.get(id(array))
        found[id(array)] = gradient if before is None else total([before, gradient])


__all__ = ["Steps", "total"]
