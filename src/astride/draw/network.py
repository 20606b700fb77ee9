"""A network as a picture: a box a layer, with its blobs and their shapes, and arrows to who reads them.

A layer that works in place stands in the box of the blob it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..explain.layer import LayerView, layer_views, parameter_text
from ..net import Net
from ..plan import Shape
from .canvas import GREY, PALE, Canvas, text_width
from .layout import Edge, Layout, arrange

MARGIN = 32.0
PAD, LINE = 12.0, 17.0
LEAST = 120.0
FOOT = 21.0
TOP = 92.0

KINDS: dict[str, tuple[str, str, str]] = {
    "data": ("#f1f3f5", "#7b8794", "data"),
    "weights": ("#dbeafe", "#2268b5", "weights"),
    "window": ("#dcfce7", "#1f883d", "windows without weights"),
    "loss": ("#fee2e2", "#cf222e", "loss or measure"),
    "other": ("#fff7e6", "#b45309", "anything else"),
}
"""kind -> fill, border, words of the legend"""


@dataclass(slots=True)
class _Box:
    layers: list[LayerView]
    inputs: list[tuple[int, str]] = field(default_factory=list)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """(name, what it is) of each layer in the box."""
        return [(v.name, ", ".join(p for p in (v.type, v.summary) if p)) for v in self.layers]

    @property
    def tops(self) -> tuple[tuple[str, Shape], ...]:
        return self.layers[0].tops

    @property
    def width(self) -> float:
        texts = [text_width(name, 13, bold=True) for name, _ in self.lines] + [text_width(words, 11) for _, words in self.lines]
        return max(LEAST, 2 * PAD + max(texts), sum(self.cells))

    @property
    def cells(self) -> list[float]:
        """How wide each top's cell at the foot of the box must be."""
        return [text_width(_label(*top), 11) + 2 * PAD for top in self.tops]

    @property
    def spare(self) -> float:
        """What each cell has more than it needs."""
        return (self.width - sum(self.cells)) / len(self.cells)

    @property
    def height(self) -> float:
        return PAD + 2 * LINE * len(self.layers) + 5 * (len(self.layers) - 1) + FOOT

    def exit(self, blob: str, x: float) -> float:
        """The middle of a top's cell in a box around x."""
        names = [name for name, _ in self.tops]
        k = names.index(blob)
        return x - self.width / 2 + sum(self.cells[:k]) + k * self.spare + (self.cells[k] + self.spare) / 2


def draw_network(net: Net) -> Canvas:
    """The whole network, top to bottom. Splits that only copy a blob are drawn as the forks they are."""
    boxes, edges = _graph(layer_views(net))
    layout = arrange([(box.width, box.height) for box in boxes], edges)
    canvas = Canvas()
    title = net.name or "network"
    canvas.text(MARGIN, 42, title, size=20, bold=True)
    count = sum(len(box.layers) for box in boxes)
    canvas.text(MARGIN, 64, f"{count} layers, {parameter_text(net)}, phase {net.phase.value}", fill=GREY)
    legend = _legend_width(boxes)
    canvas.width = max(layout.width + 2 * MARGIN + 60, legend + 2 * MARGIN, text_width(title, 20, bold=True) + 2 * MARGIN)
    left = (canvas.width - layout.width) / 2
    _draw_edges(canvas, boxes, edges, layout, left)
    for box, (x, y) in zip(boxes, layout.centers):
        _draw_box(canvas, box, left + x, TOP + y)
    bottom = TOP + layout.height + 6
    _legend(canvas, boxes, bottom)
    canvas.height = bottom + 46
    return canvas


def _graph(views: Sequence[LayerView]) -> tuple[list[_Box], list[Edge]]:
    """Boxes and who feeds whom; a layer in place joins the box of the blob it changes."""
    boxes: list[_Box] = []
    maker: dict[str, tuple[int, str]] = {}
    for v in views:
        if v.type == "Split":
            for top, _ in v.tops:
                maker[top] = maker[v.bottoms[0][0]]
        elif v.in_place and len(v.bottoms) == 1 and maker[v.bottoms[0][0]][1] == v.bottoms[0][0]:
            boxes[maker[v.bottoms[0][0]][0]].layers.append(v)
        else:
            boxes.append(_Box([v], [maker[name] for name, _ in v.bottoms]))
            for top, _ in v.tops:
                maker[top] = (len(boxes) - 1, top)
    return boxes, [(a, b) for b, box in enumerate(boxes) for a, _ in box.inputs]


def _kind(view: LayerView) -> str:
    if not view.bottoms:
        return "data"
    if view.type.endswith("Loss") or view.type == "Accuracy":
        return "loss"
    if view.params:
        return "weights"
    return "window" if view.type == "Pooling" else "other"


def _draw_box(canvas: Canvas, box: _Box, x: float, y: float) -> None:
    fill, border, _ = KINDS[_kind(box.layers[0])]
    top = y - box.height / 2
    canvas.box(x - box.width / 2, top, box.width, box.height, fill=fill, stroke=border, line=1.4, radius=7)
    at = top + PAD + 10
    for i, (name, words) in enumerate(box.lines):
        if i:
            canvas.line((x - box.width / 2 + 8, at - 16), (x + box.width / 2 - 8, at - 16), stroke=border, width=0.6)
        canvas.text(x, at, name, bold=True, anchor="middle")
        canvas.text(x, at + 15, words, size=11, fill=GREY, anchor="middle")
        at += 2 * LINE + 5
    foot = y + box.height / 2 - FOOT
    canvas.line((x - box.width / 2, foot), (x + box.width / 2, foot), stroke=border, width=0.8)
    for k, (blob, shape) in enumerate(box.tops):
        middle = box.exit(blob, x)
        canvas.text(middle, foot + 15, _label(blob, shape), size=11, anchor="middle")
        if k:
            edge = middle - (box.cells[k] + box.spare) / 2
            canvas.line((edge, foot), (edge, foot + FOOT), stroke=border, width=0.8)


def _draw_edges(canvas: Canvas, boxes: list[_Box], edges: list[Edge], layout: Layout, left: float) -> None:
    """Lines from the cell of a blob to the top of the box that reads it; a short grey one where nobody does."""
    read: set[tuple[int, str]] = set()
    for b, box in enumerate(boxes):
        bends = [[(left + x, TOP + y) for x, y in layout.bends[a, b]] for a, _ in box.inputs]
        starts = [left + boxes[a].exit(blob, layout.centers[a][0]) for a, blob in box.inputs]
        before = [points[-1][0] if points else start for points, start in zip(bends, starts)]
        ends = _ports(before, left + layout.centers[b][0], box.width)
        for (a, blob), start, points, end in zip(box.inputs, starts, bends, ends):
            read.add((a, blob))
            y0 = TOP + layout.centers[a][1] + boxes[a].height / 2
            y1 = TOP + layout.centers[b][1] - box.height / 2
            canvas.arrow((start, y0), *points, (end, y1 - 1), stroke="#52606d", width=1.3, head=7)
    for a, box in enumerate(boxes):
        for blob, _ in box.tops:
            if (a, blob) not in read:
                x, y = left + box.exit(blob, layout.centers[a][0]), TOP + layout.centers[a][1] + box.height / 2
                canvas.arrow((x, y), (x, y + 20), stroke="#9aa5b1", width=1.3, head=7)


def _label(blob: str, shape: Shape) -> str:
    return f"{blob}  {' x '.join(map(str, shape)) or 'one number'}"


def _ports(sources: list[float], x: float, width: float) -> list[float]:
    """Where edges enter a box, in the order of where they come from."""
    order = sorted(range(len(sources)), key=lambda i: sources[i])
    step = min(26.0, width / (len(sources) + 1))
    ports = [0.0] * len(sources)
    for place, i in enumerate(order):
        ports[i] = x + (place - (len(sources) - 1) / 2) * step
    return ports


def _present(boxes: list[_Box]) -> list[tuple[str, str, str]]:
    found = {_kind(box.layers[0]) for box in boxes}
    return [KINDS[kind] for kind in KINDS if kind in found]


def _legend_width(boxes: list[_Box]) -> float:
    return sum(26 + text_width(words, 11) + 18 for _, _, words in _present(boxes))


def _legend(canvas: Canvas, boxes: list[_Box], y: float) -> None:
    canvas.line((MARGIN, y), (canvas.width - MARGIN, y), stroke=PALE)
    x = MARGIN
    for fill, border, words in _present(boxes):
        canvas.box(x, y + 13, 18, 12, fill=fill, stroke=border, radius=3)
        canvas.text(x + 25, y + 23, words, size=11, fill=GREY)
        x += 26 + text_width(words, 11) + 18
