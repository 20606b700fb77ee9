"""The layers' pages, from the code: what the class says of itself, Caffe's fields, and the shapes of the page's own example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from astride.caffe import load_caffe
from astride.caffe.dialects import schema
from astride.caffe.translate import TRANSLATORS
from astride.errors import AstrideError
from astride.layers import LAYERS, ArraySource, Layer, layer_class
from astride.layers.fillers import FILLERS
from astride.net import Net, Phase
from astride.proto import read_prototxt

PAGES = Path(__file__).parent / "layers"
EXAMPLE = re.compile(r"^```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^(?P<label>[A-Za-z_]+) {2,}(?P<text>\S.*)$")
EVERYWHERE = ("name", "type", "bottom", "top", "phase", "loss_weight", "param", "propagate_down", "include", "exclude")
Table = Callable[[list[str], list[list[str]]], str]


class Half:
    """What the Python layer of its page does."""

    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...] = bottom[0].data / 2


def fed(*shapes: tuple[int, ...]) -> Mapping[str, Any]:
    """A source of zeros for the data layer called "data"."""
    return {"sources": {"data": ArraySource(*(np.zeros((4, *shape)) for shape in shapes))}}


GIVEN: Mapping[str, Mapping[str, Any]] = {
    "AnnotatedData": fed((3, 8, 8), ()),
    "Data": fed((3, 8, 8), ()),
    "DenseImageData": fed((3, 8, 8), (1, 8, 8)),
    "HDF5Data": fed((3, 8, 8), ()),
    "ImageData": fed((3, 8, 8), ()),
    "Python": {"python_layers": (Half,)},
    "WindowData": fed((3, 8, 8), ()),
}
"""What load_caffe needs for a page's example besides its text."""


def write(folder: Path, table: Table) -> None:
    """Write what docs/layers/*.md include."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(LAYERS, key=str.lower)
    contents = ["```{toctree}", ":maxdepth: 1", "", *(LAYERS[kind] for kind in names), "```", ""]
    (folder / "toctree.md").write_text("\n".join(contents), encoding="utf-8")
    (folder / "common.md").write_text(common(table), encoding="utf-8")
    for kind in names:
        (folder / f"{LAYERS[kind]}.md").write_text(page(kind, table), encoding="utf-8")


def page(kind: str, table: Table) -> str:
    """One layer: its text, how it stands in a network, the example's shapes, its fields."""
    text = example(kind)
    fields = [part for name in messages_of(kind, text) for part in (f"### `{name}`\n", fields_of(name, table))]
    return "\n".join(
        [
            described(inspect.getdoc(layer_class(kind)) or ""),
            "## In a network\n",
            facts(layer_class(kind)),
            "The example below has these shapes:\n",
            table(["blob", "shape"], shapes(network(kind), kind)),
            "## Fields\n",
            *(fields or ["None of its own.\n"]),
        ]
    )


def network(kind: str) -> Net:
    """The page's example, loaded."""
    return load_caffe(example(kind), seed=0, **GIVEN.get(kind, {}))


def example(kind: str) -> str:
    """The network that the page shows. Raises ValueError where it shows none."""
    file = PAGES / f"{LAYERS[kind]}.md"
    found = EXAMPLE.search(file.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{file.name} has no ```text block with a network")
    return found["text"]


# The class's own text


def described(text: str) -> str:
    """A docstring as Markdown: labelled lines become definitions, indented ones code, everything else paragraphs."""
    parts: list[str] = []
    lines = text.splitlines()
    while lines:
        found = LABEL.match(lines[0])
        if found:
            lines.pop(0)
            more = _taken(lines, lambda line: line.startswith("  "))
            label = f"`{found['label']}`" if found["label"].islower() else found["label"]
            parts.append("\n: ".join([label, *_entries([found["text"], *more])]) + "\n")
        elif lines[0].startswith("    "):
            code = _taken(lines, lambda line: line.startswith("    "))
            parts.append("\n".join(["```text", *(line[4:] for line in code), "```", ""]))
        elif lines[0].strip():
            prose = _taken(lines, lambda line: bool(line.strip()) and not LABEL.match(line) and line[0] != " ")
            parts.append(escaped(" ".join(prose)) + "\n")
        else:
            lines.pop(0)
    return "\n".join(parts)


def escaped(text: str) -> str:
    """Text in which only code spans mean anything to Markdown; files are code."""
    pieces = re.split(r"(`[^`]*`|\S+\.[ch]pp)", text)
    pieces[::2] = [re.sub(r"([\\*_<>\[\]#])", r"\\\1", piece) for piece in pieces[::2]]
    pieces[1::2] = [piece if piece.startswith("`") else f"`{piece}`" for piece in pieces[1::2]]
    return re.sub(r"^([-+=])", r"\\\1", "".join(pieces))


def _entries(lines: list[str]) -> list[str]:
    """A label's text: one entry, and another wherever a line begins with `name:`."""
    entries: list[str] = []
    for line in (line.strip() for line in lines):
        if entries and not re.match(r"[A-Za-z_]+: ", line):
            entries[-1] += f" {line}"
        else:
            entries.append(line)
    return [escaped(entry) for entry in entries]


def _taken(lines: list[str], belongs: Callable[[str], bool]) -> list[str]:
    """The lines from the first on that belong, taken away."""
    taken: list[str] = []
    while lines and belongs(lines[0]):
        taken.append(lines.pop(0))
    return taken


# How it stands in a network


def facts(layer: type[Layer]) -> str:
    """What the class declares, as a list."""
    rows = [f"bottoms: {counted(layer.bottoms)}", f"tops: {counted(layer.tops)}"]
    if layer.in_place:
        rows.append("in place: the top may be the bottom")
    if layer.shares:
        rows.append("memory: the tops use the bottom's, unless a later layer overwrites it in place")
    if layer.is_loss:
        rows.append("loss: the first top counts with weight 1 unless `loss_weight` says otherwise")
    if layer.silent:
        rows.append("without gradient: top " + " and ".join(str(i + 1) for i in sorted(layer.silent)))
    return "".join(f"- {row}\n" for row in rows)


def counted(limits: tuple[int, int | None]) -> str:
    """A number, or from which to which."""
    least, most = limits
    if most is None:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def shapes(net: Net, kind: str) -> list[list[str]]:
    """The bottoms, tops and parameters of the network's one layer of that type."""
    node = next(node for node in net.nodes if node.layer.type == kind)
    rows = [["bottom " + _plain(name), str(net.blobs[name].shape)] for name in node.bottoms]
    rows += [["top " + _plain(name), str(net.blobs[name].shape)] for name in node.tops]
    return rows + [[f"parameter {i}", str(p.shape)] for i, p in enumerate(node.layer.params)]


def _plain(name: str) -> str:
    """A blob's name as the text has it, without what a split adds."""
    return f"`{re.sub(r'_[^_]+_[0-9]+_split_[0-9]+$', '', name)}`"


# Caffe's fields


class Reader:
    """A layer's message that notes which of its parts are looked at."""

    def __init__(self, message: Any, seen: list[str]) -> None:
        self._message, self._seen = message, seen

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_param") and name not in self._seen:
            self._seen.append(name)
        return getattr(self._message, name)


def messages_of(kind: str, text: str) -> list[str]:
    """The parts of a layer's message that its translation reads: `pooling_param` and the like."""
    layers = read_prototxt(text.encode(), "NetParameter", schema=schema()).message.layer
    seen: list[str] = []
    with suppress(AstrideError):  # of a file or class that the text names
        TRANSLATORS[kind](Reader(next(layer for layer in layers if layer.type == kind), seen), Phase.TEST)
    return seen


def fields_of(part: str, table: Table) -> str:
    """Every field of a part of the layer's message, with its default."""
    grammar = schema()
    owner = grammar.type("LayerParameter").fields[part].type
    return table(["field", "type", "default"], [_field(owner, name) for name in grammar.type(owner).fields])


def common(table: Table) -> str:
    """Fields that every layer has, and those of a filler."""
    filler = [_field("FillerParameter", name) for name in schema().type("FillerParameter").fields]
    return "\n".join(
        [
            table(["field", "type", "default"], [_field("LayerParameter", name) for name in EVERYWHERE]),
            "## Fillers\n",
            "How parameters begin: `weight_filler`, `bias_filler` and the like are a FillerParameter, of type "
            + _listed(FILLERS)
            + ". Uniform draws repeat Caffe's bit for bit.\n",
            table(["field", "type", "default"], filler),
        ]
    )


def _field(owner: str, name: str) -> list[str]:
    grammar = schema()
    field = grammar.type(owner).fields[name]
    kind = field.type
    if field.kind == "enum":
        kind = " ".join(f"`{value}`" for value in grammar.enum_values(owner, field))
    return [f"`{name}`", f"{kind}, repeated" if field.repeated else kind, f"`{field.default}`" if field.default else ""]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
