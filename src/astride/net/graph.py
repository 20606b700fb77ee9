"""The graph of a network: which layer reads and writes which blob, and the splits that make every blob read once."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..errors import ArgumentError
from ..layers import Layer
from ..layers.split import Split


class Phase(StrEnum):
    """Whether a network learns or is used."""

    TRAIN = "TRAIN"
    TEST = "TEST"


@dataclass(slots=True)
class ParamSpec:
    """What a network's text says of one parameter. Two of one name are one parameter; None means not said."""

    name: str = ""
    lr_mult: float | None = None
    decay_mult: float | None = None
    permissive: bool = False
    """Sharing needs equal counts only, not equal shapes."""


@dataclass(slots=True)
class Node:
    """A layer in its place. `line` is where its text begins, for messages."""

    name: str
    layer: Layer
    bottoms: list[str]
    tops: list[str]
    loss_weights: list[float] = field(default_factory=list)
    propagate_down: list[bool] = field(default_factory=list)
    params: list[ParamSpec] = field(default_factory=list)
    line: int | None = None

    @property
    def where(self) -> str:
        """How messages call it."""
        return f'layer "{self.name}" ({self.layer.type})'


def check_node(node: Node) -> None:
    """Counts of blobs, loss weights and propagate_down. A loss without a top gets one of the layer's name."""
    if node.layer.is_loss and not node.tops:
        node.tops.append(node.name)
    line: dict[str, Any] = {} if node.line is None else {"line": node.line}
    for what, names, (least, most) in (("bottoms", node.bottoms, node.layer.bottoms), ("tops", node.tops, node.layer.tops)):
        if len(names) < least or (most is not None and len(names) > most):
            relation = f"{least} <= {what}" + (f" <= {most}" if most is not None else "")
            raise ArgumentError(
                f"a layer of this type has another number of {what}",
                given={what: names} | line,
                required=f"{relation}: {len(names)}",
                operator=node.where,
                hint=f"{what[:-1]}: as many as its type takes",
            )
    for what, values, names in (
        ("loss_weight", node.loss_weights, node.tops),
        ("propagate_down", node.propagate_down, node.bottoms),
    ):
        if values and len(values) != len(names):
            raise ArgumentError(
                f"{what} must be given once for each blob, or not at all",
                given={what: list(values)} | line,
                required=f"{len(names)} values: {len(values)}",
                operator=node.where,
                hint=f"{what} {len(names)} times, or not at all",
            )
    for index, weight in enumerate(node.loss_weights):
        if weight and index in node.layer.silent:
            raise ArgumentError(
                "a loss weight is given to a top that passes no gradient",
                given={"top": node.tops[index], "loss_weight": weight},
                required="loss_weight: 0 for this top",
                operator=node.where,
            )
    if not node.loss_weights:
        node.loss_weights = [1.0 if node.layer.is_loss and i == 0 else 0.0 for i in range(len(node.tops))]


def insert_splits(nodes: Sequence[Node]) -> list[Node]:
    """The nodes with a Split after every blob that is read more than once; a loss weight counts as a reader.

    Raises ArgumentError: a bottom nobody has made before, a top made twice.
    """
    readers, sources = _readers(nodes)
    taken: dict[tuple[int, int], int] = {}
    result: list[Node] = []
    for i, node in enumerate(nodes):
        for j, source in enumerate(sources[i]):
            if readers[source] > 1:
                maker = nodes[source[0]]
                node.bottoms[j] = _split_name(maker, source[1], node.bottoms[j], taken.get(source, 0))
                taken[source] = taken.get(source, 0) + 1
        result.append(node)
        for j, blob in enumerate(node.tops):
            count = readers.get((i, j), 0)
            if count > 1:
                weight = node.loss_weights[j]
                if weight:
                    # The split's first top is the loss from here on.
                    node.loss_weights[j] = 0.0
                    taken[i, j] = 1
                result.append(_split(node, j, blob, count, weight))
    return result


def _readers(nodes: Sequence[Node]) -> tuple[dict[tuple[int, int], int], list[list[tuple[int, int]]]]:
    """How often each (layer, top) is read, and which one each layer's bottoms read."""
    made: dict[str, tuple[int, int]] = {}
    readers: dict[tuple[int, int], int] = {}
    sources: list[list[tuple[int, int]]] = []
    for i, node in enumerate(nodes):
        check_node(node)
        sources.append([])
        for blob in node.bottoms:
            if blob not in made:
                raise _unknown_bottom(node, blob, nodes)
            sources[i].append(made[blob])
            readers[made[blob]] = readers.get(made[blob], 0) + 1
        for j, blob in enumerate(node.tops):
            made[blob] = (i, j)
            if node.loss_weights[j]:
                readers[i, j] = readers.get((i, j), 0) + 1
    return readers, sources


def _unknown_bottom(node: Node, blob: str, nodes: Sequence[Node]) -> ArgumentError:
    before: list[str] = []
    for other in nodes:
        if other is node:
            break
        before += other.tops
    later = [other.name for other in nodes if blob in other.tops]
    near = difflib.get_close_matches(blob, before, 1)
    hint = f'bottom: "{near[0]}"' if near else "a layer before this one with that top, or an input of that name"
    if later:
        hint = f'move layer "{later[0]}", which makes it, before this one'
    return ArgumentError(
        "nobody has made this bottom blob",
        given={"bottom": blob, "line": node.line} if node.line else {"bottom": blob},
        required="a top of a layer before it, or an input",
        operator=node.where,
        hint=hint,
    )


def _split_name(maker: Node, top: int, blob: str, index: int) -> str:
    return f"{blob}_{maker.name}_{top}_split_{index}"


def _split(maker: Node, top: int, blob: str, count: int, weight: float) -> Node:
    names = [_split_name(maker, top, blob, k) for k in range(count)]
    weights = [weight if k == 0 else 0.0 for k in range(count)]
    return Node(f"{blob}_{maker.name}_{top}_split", Split(), [blob], names, loss_weights=weights, line=maker.line)


def check_tops(nodes: Sequence[Node]) -> None:
    """Raise ArgumentError unless each top is new, or the bottom at its place of a layer that works in place.

    Memory that a later layer overwrites in place is no longer shared: the layer that would share it copies.
    """
    makers: dict[str, Node] = {}
    for node in nodes:
        for i, blob in enumerate(node.tops):
            if i < len(node.bottoms) and node.bottoms[i] == blob:
                if not node.layer.in_place:
                    raise ArgumentError(
                        "a layer of this type cannot work in place",
                        given={"bottom": blob, "top": blob},
                        required="a top of another name",
                        operator=node.where,
                        hint=f'top: "{node.name}"',
                    )
                if makers[blob].layer.shares:
                    makers[blob].layer.copies = True
            elif blob in makers:
                raise ArgumentError(
                    "two layers make this top",
                    given={"top": blob, "first made by": makers[blob].where},
                    required="one maker a blob, or a layer in place whose bottom it is and which nobody else reads",
                    operator=node.where,
                    hint=f'top: "{node.name}"',
                )
            else:
                makers[blob] = node
