"""caffe.draw: a network's message as a picture of layers and blobs, without pydot and without Graphviz.

    caffe.draw.draw_net_to_file(net_param, "net.png", "LR")
    caffe.draw.get_pydot_graph(net_param, "TB").to_string()         for Graphviz, where it is installed

The graph answers to the calls of pydot's that scripts make: to_string, create, write, write_png, get_nodes, get_edges.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..caffe.state import State as NetState
from ..caffe.state import enum_name, included
from ..caffe.upgrade import upgrade
from ..draw.canvas import Canvas, text_width
from ..draw.layout import Edge, Layout, arrange
from ..errors import UnsupportedError
from ..net import Phase
from ..proto import atomic_write
from .errors import CallError
from .proto import caffe_pb2

LAYER_STYLE_DEFAULT = {"shape": "record", "fillcolor": "#6495ED", "style": "filled"}
NEURON_LAYER_STYLE = {"shape": "record", "fillcolor": "#90EE90", "style": "filled"}
BLOB_STYLE = {"shape": "octagon", "fillcolor": "#E0E0E0", "style": "filled"}
_COLOURS = {"Convolution": "#FF5050", "Deconvolution": "#FF5050", "Pooling": "#FF9900", "InnerProduct": "#CC33FF"}
_WINDOWED = {"Convolution": "convolution_param", "Deconvolution": "convolution_param", "Pooling": "pooling_param"}
DIRECTIONS = ("LR", "TB", "BT")
MARGIN, LINE = 24.0, 16.0


@dataclass
class Node:
    """A layer or a blob; `label` has a line for each thing said of it."""

    name: str
    label: list[str]
    style: dict[str, str]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height on the picture."""
        return max(text_width(line, 12) for line in self.label) + 20, LINE * len(self.label) + 12


@dataclass
class Graph:
    """A network's layers and blobs, and which lead to which."""

    title: str
    rankdir: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[Node, Node, str]] = field(default_factory=list)

    def get_nodes(self) -> list[Node]:
        """Layers and blobs."""
        return list(self.nodes)

    def get_edges(self) -> list[tuple[Node, Node, str]]:
        """From, to, and what stands beside the arrow."""
        return list(self.edges)

    def to_string(self) -> str:
        """The graph in Graphviz's language."""
        lines = [f"digraph {_quoted(self.title)} {{", f"rankdir={self.rankdir};"]
        for node in self.nodes:
            words = {**node.style, "label": "\\n".join(node.label)}
            lines.append(f"{_quoted(node.name)} [{', '.join(f'{key}={_quoted(value)}' for key, value in words.items())}];")
        for start, end, label in self.edges:
            lines.append(f"{_quoted(start.name)} -> {_quoted(end.name)} [label={_quoted(label)}];")
        return "\n".join([*lines, "}\n"])

    def create(self, prog: str | None = None, format: str = "png") -> bytes:
        """The picture: png, svg, or raw and dot for the text that Graphviz reads. `prog` is ignored."""
        makers: dict[str, Callable[[], bytes]] = {
            "png": lambda: _picture(self).png(),
            "svg": lambda: _picture(self).svg().encode(),
            "raw": lambda: self.to_string().encode(),
            "dot": lambda: self.to_string().encode(),
        }
        if format not in makers:
            raise UnsupportedError(
                "pictures of this kind are not made here",
                given={"format": format},
                required=f"one of {', '.join(makers)}",
                hint='"dot", and Graphviz makes of it what it can',
            )
        return makers[format]()

    def write(self, path: str | os.PathLike[str], prog: str | None = None, format: str = "raw") -> bool:
        """The same into a file."""
        atomic_write(path, [self.create(prog, format)])
        return True

    def create_png(self) -> bytes:
        """The picture as PNG."""
        return self.create(format="png")

    def create_svg(self) -> bytes:
        """The picture as SVG."""
        return self.create(format="svg")

    def write_png(self, path: str | os.PathLike[str]) -> bool:
        """The picture as PNG, into a file."""
        return self.write(path, format="png")

    def write_svg(self, path: str | os.PathLike[str]) -> bool:
        """The picture as SVG, into a file."""
        return self.write(path, format="svg")


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def get_pooling_types_dict() -> dict[int, str]:
    """Number -> name of the ways to pool."""
    values = caffe_pb2.PoolingParameter.PoolMethod.items()
    return {number: name for name, number in values}


def get_edge_label(layer: Any) -> str:
    """What stands beside the arrow out of a layer: its number of outputs, where it says one."""
    if layer.type == "Data":
        return f"Batch {layer.data_param.batch_size}"
    if layer.type in ("Convolution", "Deconvolution"):
        return str(layer.convolution_param.num_output)
    return str(layer.inner_product_param.num_output) if layer.type == "InnerProduct" else ""


def get_layer_lr_mult(layer: Any) -> float:
    """The first parameter's factor on the learning rate; 1 where the layer does not say."""
    return (
        float(layer.param[0].lr_mult) if layer.type in ("Convolution", "Deconvolution", "InnerProduct") and layer.param else 1.0
    )


def get_layer_label(layer: Any, rankdir: str, verbose: bool = False) -> str:
    """Name, type and windows of a layer, on lines of their own unless the graph runs from top to bottom."""
    return (" " if rankdir in ("TB", "BT") else "\\n").join(_label(layer, verbose))


def _label(layer: Any, verbose: bool = False) -> list[str]:
    lines = [layer.name, f"({layer.type})"]
    if layer.type in _WINDOWED:
        lines += _window(layer)
    if verbose and layer.param:
        lines.append(f"lr mult: {get_layer_lr_mult(layer):g}")
    return lines


def _window(layer: Any) -> list[str]:
    """Kernel, stride, pad and dilation, in words."""
    p = getattr(layer, _WINDOWED[layer.type])
    if layer.type == "Pooling":
        lines = [f"{enum_name(p, 'pool')} pooling"]
        if p.global_pooling:
            return [*lines, "kernel size: the whole plane"]
    else:
        lines = []
    for words, name, default in (("kernel size", "kernel", ""), ("stride", "stride", "1"), ("pad", "pad", "0")):
        lines.append(f"{words}: {_sizes(p, name) or default}")
    dilation = _sizes(p, "dilation") if layer.type != "Pooling" else ""
    return [*lines, f"dilation: {dilation}"] if dilation else lines


def _sizes(p: Any, name: str) -> str:
    """A geometry field, in whichever of its ways it is given."""
    whole = "kernel_size" if name == "kernel" else name
    if name != "dilation" and (p.HasField(f"{name}_h") or p.HasField(f"{name}_w")):
        return f"{getattr(p, f'{name}_h')} x {getattr(p, f'{name}_w')}"
    value = getattr(p, whole)
    if hasattr(value, "extend"):
        return " x ".join(map(str, value))
    return str(value) if p.HasField(whole) else ""


def choose_color_by_layertype(layertype: str) -> str:
    """A fill colour."""
    return _COLOURS.get(layertype, "#6495ED")


def get_pydot_graph(
    caffe_net: Any, rankdir: str = "LR", label_edges: bool = True, phase: int | None = None, display_lrm: bool = False
) -> Graph:
    """The graph of a NetParameter of any format; with a phase, of the layers that the phase has."""
    if rankdir not in DIRECTIONS:
        raise CallError("no such direction", given={"rankdir": rankdir}, required=f"one of {', '.join(DIRECTIONS)}")
    graph = Graph(caffe_net.name or "network", rankdir)
    blobs: dict[str, Node] = {}
    for layer in upgrade(caffe_net).message.layer:
        if phase is not None and not included(layer, NetState(Phase.TRAIN if phase == caffe_pb2.TRAIN else Phase.TEST)):
            continue
        in_place = len(layer.bottom) == len(layer.top) == 1 and layer.bottom[0] == layer.top[0]
        style = NEURON_LAYER_STYLE if in_place else LAYER_STYLE_DEFAULT | {"fillcolor": choose_color_by_layertype(layer.type)}
        node = Node(f"{layer.name}_{layer.type}", _label(layer, display_lrm), style)
        graph.nodes.append(node)
        for name in layer.bottom:
            graph.edges.append((_blob(graph, blobs, name), node, ""))
        for name in layer.top:
            graph.edges.append((node, _blob(graph, blobs, name), get_edge_label(layer) if label_edges else ""))
    return graph


def _blob(graph: Graph, blobs: dict[str, Node], name: str) -> Node:
    if name not in blobs:
        blobs[name] = Node(f"{name}_blob", [name], BLOB_STYLE)
        graph.nodes.append(blobs[name])
    return blobs[name]


def draw_net(caffe_net: Any, rankdir: str = "LR", ext: str = "png", phase: int | None = None, display_lrm: bool = False) -> bytes:
    """The picture of a NetParameter as the bytes of a file of that kind."""
    return get_pydot_graph(caffe_net, rankdir, phase=phase, display_lrm=display_lrm).create(format=ext)


def draw_net_to_file(
    caffe_net: Any, filename: str | os.PathLike[str], rankdir: str = "LR", phase: int | None = None, display_lrm: bool = False
) -> None:
    """The picture in a file, of the kind that its name ends in."""
    name = os.fspath(filename)
    atomic_write(name, [draw_net(caffe_net, rankdir, name.rpartition(".")[2], phase, display_lrm)])


def _picture(graph: Graph) -> Canvas:
    """The graph laid out. What a layer in place writes back has an arrow of its own in the text only."""
    index = {node.name: i for i, node in enumerate(graph.nodes)}
    edges: list[Edge] = []
    for start, end, _ in graph.edges:
        edge = (index[start.name], index[end.name])
        if edge[0] != edge[1] and edge[::-1] not in edges and edge not in edges:
            edges.append(edge)
    sideways = graph.rankdir == "LR"
    sizes = [node.size[::-1] if sideways else node.size for node in graph.nodes]
    layout = arrange(sizes, _forward(edges, len(sizes)))
    canvas = Canvas()
    canvas.width, canvas.height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    if sideways:
        canvas.width, canvas.height = canvas.height, canvas.width
    _draw_edges(canvas, graph, layout, sizes)
    for node, center in zip(graph.nodes, layout.centers, strict=True):
        _draw_node(canvas, node, *_at(graph, layout, center))
    return canvas


def _forward(edges: list[Edge], count: int) -> list[Edge]:
    """The edges without those that would close a circle, which only unusual networks have."""
    return [edge for edge in edges if edge[0] < edge[1] < count]


def _at(graph: Graph, layout: Layout, point: tuple[float, float]) -> tuple[float, float]:
    """A place of the layout, which runs downwards, in the graph's own direction."""
    x, y = point
    if graph.rankdir == "LR":
        return y + MARGIN, x + MARGIN
    return x + MARGIN, (layout.height - y if graph.rankdir == "BT" else y) + MARGIN


def _draw_edges(canvas: Canvas, graph: Graph, layout: Layout, sizes: list[tuple[float, float]]) -> None:
    for (a, b), bends in layout.bends.items():
        (ax, ay), (bx, by) = layout.centers[a], layout.centers[b]
        way = [(ax, ay + sizes[a][1] / 2), *bends, (bx, by - sizes[b][1] / 2 - 1)]
        canvas.arrow(*(_at(graph, layout, point) for point in way), stroke="#52606d", width=1.2, head=6)


def _draw_node(canvas: Canvas, node: Node, x: float, y: float) -> None:
    width, height = node.size
    canvas.box(x - width / 2, y - height / 2, width, height, fill=node.style["fillcolor"], stroke="#52606d", line=1, radius=5)
    for i, line in enumerate(node.label):
        canvas.text(x, y - height / 2 + 17 + i * LINE, line, size=12, bold=i == 0, anchor="middle")


__all__ = [
    "choose_color_by_layertype",
    "draw_net",
    "draw_net_to_file",
    "get_edge_label",
    "get_layer_label",
    "get_layer_lr_mult",
    "get_pooling_types_dict",
    "get_pydot_graph",
]
