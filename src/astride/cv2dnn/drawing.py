"""A network as Graphviz text."""

from __future__ import annotations

from collections.abc import Sequence

from ..net import Net, Node


def as_dot(net: Net, nodes: Sequence[Node]) -> str:
    """A node a layer, with its type and the shapes of its outputs; an edge for each that reads from another."""
    own = {node.name: node for node in net.nodes}
    lines = [f"digraph {_quoted(net.name or 'G')} {{", "  node [shape=box]"]
    maker: dict[str, str] = {}
    for node in nodes:
        shapes = [" x ".join(map(str, net.blobs[name].shape)) for name in own[node.name].tops]
        label = "\\n".join([_escaped(node.name), node.layer.type, *shapes])
        lines.append(f'  {_quoted(node.name)} [label="{label}"]')
        lines += [f"  {_quoted(maker[name])} -> {_quoted(node.name)}" for name in node.bottoms]
        maker.update(dict.fromkeys(node.tops, node.name))
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
