"""The graph with a value of its own for every top: what layers in place overwrite can then be asked for as well."""

from __future__ import annotations

from ..layers.split import Split
from .graph import Node
from .net import Net


def apart(net: Net) -> list[Node]:
    """The network's nodes, sharing its layers, where each top of a layer is named `layer.k` and nothing is overwritten.

    Inputs keep their names. Splits that only copy a blob for its readers are left out.
    """
    current = {name: name for name in net.inputs}
    nodes: list[Node] = []
    for node in net.nodes:
        if is_inserted_split(node):
            current.update(dict.fromkeys(node.tops, current[node.bottoms[0]]))
            continue
        bottoms = [current[name] for name in node.bottoms]
        tops = list(node.tops) if node.layer.type == "Input" else top_names(net, node)
        current.update(zip(node.tops, tops, strict=True))
        nodes.append(Node(node.name, node.layer, bottoms, tops, line=node.line))
    return nodes


def top_names(net: Net, node: Node) -> list[str]:
    """What `apart` calls a node's tops."""
    names = [f"{node.name}.{k}" for k in range(len(node.tops))]
    while any(name in net.inputs for name in names):
        names = [f"{name}'" for name in names]
    return names


def is_inserted_split(node: Node) -> bool:
    """Whether a Split was put in for a blob with several readers; one in the network's own text has a name of its own."""
    return isinstance(node.layer, Split) and node.name.endswith("_split") and node.name.startswith(f"{node.bottoms[0]}_")


__all__ = ["apart", "is_inserted_split", "top_names"]
