"""From nodes to a network's parts: every layer set up and shaped, nothing allocated yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ArgumentError, ArrayError, AstrideError
from ..layers import Blob, Parameter
from ..plan import Shape
from .graph import Node, check_tops, insert_splits
from .memory import Ledger, refuse
from .need import Need, analyse
from .parameters import Sharing


@dataclass(slots=True)
class Parts:
    """A network before its memory exists."""

    nodes: list[Node]
    blobs: dict[str, Blob]
    bottoms: list[list[Blob]]
    tops: list[list[Blob]]
    learnable: list[Parameter]
    inputs: list[str]
    outputs: list[str]


def assemble(given: Sequence[Node], dtype: str, allowed: int | None) -> Parts:
    """Set up and shape layer by layer, and stop at the first that cannot be or would not fit in memory."""
    nodes = insert_splits(given)
    check_tops(nodes)
    _distinct(nodes)
    parts = Parts(nodes, {}, [], [], [], [], [])
    sharing, ledger = Sharing(), Ledger()
    for node in nodes:
        bottom = [parts.blobs[name] for name in node.bottoms]
        top = [parts.blobs.setdefault(name, Blob((), dtype)) for name in node.tops]
        parts.bottoms.append(bottom)
        parts.tops.append(top)
        node.layer.name = node.name
        try:
            node.layer.setup(bottom, top)
            sharing.add(node)
            node.layer.reshape(bottom, top)
            ledger.add([*top, *node.layer.params])
            refuse(ledger.total, allowed)
        except AstrideError as error:
            blame(error, node, bottom)
            raise
        if node.layer.type == "Input":
            parts.inputs += node.tops
    parts.learnable = sharing.learnable
    parts.outputs = _unread(nodes)
    return parts


def _unread(nodes: Sequence[Node]) -> list[str]:
    """Blobs that nobody reads after they were last written, by name as Caffe sorts them."""
    left: set[str] = set()
    for node in nodes:
        left -= set(node.bottoms)
        left |= set(node.tops)
    return sorted(left)


def with_diffs(parts: Parts, need: Need) -> int:
    """Bytes of everything, gradients included where some layer will compute them."""
    ledger = Ledger()
    ledger.add(parts.blobs.values())
    ledger.add(parts.learnable)
    for i, runs in enumerate(need.layers):
        if runs:
            ledger.add(parts.tops[i], diff=True)
            ledger.add([blob for blob, wanted in zip(parts.bottoms[i], need.bottoms[i], strict=True) if wanted], diff=True)
            ledger.add(parts.nodes[i].layer.params, diff=True)
    return ledger.total


def needs(parts: Parts, *, force: bool) -> Need:
    """The analysis of backward over these parts."""
    return analyse(parts.nodes, [node.layer.params for node in parts.nodes], force=force)


def blame(error: AstrideError, node: Node, bottom: Sequence[Blob]) -> None:
    """Add to an error the layer it happened in, its type and the shapes that came in."""
    operator = error.operator or ""
    if node.where not in operator:
        error.operator = f"{node.where}: {operator}" if operator else node.where
    for name, blob in zip(node.bottoms, bottom, strict=True):
        error.given.setdefault(f'bottom "{name}"', blob.shape)
    if node.line is not None:
        error.given.setdefault("line", node.line)


def shapes_of(bottom: Sequence[Blob], top: Sequence[Blob]) -> list[Shape]:
    """The shapes of a layer's blobs, to be compared with by `same_shapes`."""
    return [blob.shape for blob in (*bottom, *top)]


def same_shapes(ran: list[Shape] | None, bottom: Sequence[Blob], top: Sequence[Blob]) -> None:
    """Raise ArrayError where blobs were reshaped after the layer ran forward. A layer that did not run says so itself."""
    now = shapes_of(bottom, top)
    if ran is not None and ran != now:
        raise ArrayError(
            "blobs were reshaped after the forward pass",
            given={"shapes": now},
            required=f"the shapes of the forward pass: {ran}",
            hint="forward, then backward",
        )


def _distinct(nodes: Sequence[Node]) -> None:
    names: dict[str, Node] = {}
    for node in nodes:
        if node.name in names:
            raise ArgumentError(
                "two layers have this name, so weights could not be told apart",
                given={"name": node.name, "lines": [n.line for n in (names[node.name], node)]},
                required="one layer a name in one phase",
                operator=node.where,
                hint=f'name: "{node.name}_2"',
            )
        names[node.name] = node
