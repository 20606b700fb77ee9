"""Comments of an old text carried over into the text that its upgrade printed.

    carry(old, new, origins) -> new with the comments of old

A comment belongs to what it stands beside, or before; it goes beside or before the same thing in the new text. A field is
the same if it has the same name (or the name that V0 and V1 called it by) in the same layer, whatever message around it is
new. What is gone leaves its comments at the beginning of its layer, a layer that is gone before the next one.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<open>[{<])|(?P<close>[}>])|(?P<symbol>[\[\]:,;])|(?P<other>[^\s\#"'A-Za-z_{}<>\[\]:,;]+)"""
)

RENAMED = {
    "biasterm": "bias_term",
    "kernelsize": "kernel_size",
    "batchsize": "batch_size",
    "meanfile": "mean_file",
    "cropsize": "crop_size",
    "shuffle_images": "shuffle",
    "blobs_lr": "lr_mult",
    "weight_decay": "decay_mult",
    "blob_share_mode": "share_mode",
    "solver_type": "type",
    **{f"det_{name}": name for name in ("fg_threshold", "bg_threshold", "fg_fraction", "context_pad", "crop_mode")},
}
"""V0's and V1's names of fields -> today's."""

_TEXT = -1  # the "layer" of what stands outside of layers
_INPUT = -2  # the layer that `input` fields have become


class Key(NamedTuple):
    """What a field is called in both texts: its layer, its names below it, and how many of that name came before."""

    layer: int
    path: tuple[str, ...]
    nth: int = 0


class Anchor(NamedTuple):
    """Where a comment stands: `before` a field, `beside` it, before its closing bracket (`last`), or beside that (`after`)."""

    place: str
    key: Key


class _Field(NamedTuple):
    path: tuple[str, ...]
    layer: int
    key: Key


_ROOT = _Field((), _TEXT, Key(_TEXT, ()))


class _Keys:
    """Gives the fields of one text their keys, in order."""

    def __init__(self) -> None:
        self.layers = 0
        self.counts: dict[Key, int] = {}

    def field(self, name: str, around: _Field, origins: Sequence[int | None] | None = None) -> _Field:
        """The field that begins here; `origins` for a new text, whose layers are numbered as they were in the old one."""
        path, layer = (*around.path, name), around.layer
        if len(path) == 1 and name in ("layer", "layers"):
            origin = self.layers if origins is None else origins[self.layers]
            layer, self.layers = _INPUT if origin is None else origin, self.layers + 1
        return _Field(path, layer, self.key(path, layer))

    def key(self, path: tuple[str, ...], layer: int) -> Key:
        """What the field is called in both texts."""
        if path in (("input",), ("input_dim",), ("input_shape",)):
            return Key(_INPUT, ())
        if path == ("layers", "layer"):
            return Key(layer, ())
        inner = path if layer == _TEXT else path[1:]
        # Formats differ in the messages around a layer's fields: V0 has one, V1 a list for each of today's `param`s.
        kept = tuple(name for name in inner[:-1] if not name.endswith("param") and name != "layer")
        key = Key(layer, (*kept, RENAMED.get(inner[-1], inner[-1])) if inner else ())
        self.counts[key] = self.counts.get(key, -1) + 1
        return key._replace(nth=self.counts[key])


def carry(old: str, new: str, origins: Sequence[int | None]) -> str:
    """The canonical text `new` with the comments of `old`. `origins[i]` is the old layer that layer i of `new` came from."""
    comments = _Reader().read(old)
    if not comments:
        return new
    # Not splitlines: strings may hold other characters that it takes for line ends.
    lines = new.removesuffix("\n").split("\n")
    places = {anchor: at for at, anchors in enumerate(_anchors(lines, origins)) for anchor in anchors}
    layers = sorted(
        (key.layer, at) for (place, key), at in places.items() if place == "before" and not key.path and key.layer >= 0
    )
    before: dict[int, list[str]] = {}
    beside: dict[int, list[str]] = {}
    for anchor, text in comments:
        at = places.get(anchor)
        if at is not None and anchor.place in ("beside", "after"):
            beside.setdefault(at, []).append(text)
        else:
            before.setdefault(_refuge(anchor.key, places, layers, len(lines)) if at is None else at, []).append(text)
    result = []
    for at, line in enumerate([*lines, ""]):
        indent = line[: len(line) - len(line.lstrip())] + ("  " if line.strip() == "}" else "")
        result += [indent + text for text in before.get(at, [])]
        if at < len(lines):
            result.append("  ".join([line, *beside.get(at, [])]))
    return "\n".join(result) + "\n"


def _refuge(key: Key, places: dict[Anchor, int], layers: list[tuple[int, int]], end: int) -> int:
    """The line before which comments go whose own place is gone."""
    opened = places.get(Anchor("before", Key(key.layer, ())))
    if opened is not None:
        return opened + 1
    following = bisect.bisect_left(layers, (key.layer, -1))
    return layers[following][1] if key.layer >= 0 and following < len(layers) else end


class _Reader:
    """Reads a text for its comments. Whether the text is right is the parser's concern."""

    def __init__(self) -> None:
        self.keys = _Keys()
        self.found: list[tuple[Anchor, str]] = []
        self.waiting: list[str] = []
        self.open: list[_Field] = [_ROOT]
        self.current = _ROOT
        self.closed = False
        self.last = Anchor("last", _ROOT.key)

    def read(self, text: str) -> list[tuple[Anchor, str]]:
        """Every comment of the text, and where it stands."""
        value, lists = False, 0
        for match in _TOKEN.finditer(text):
            kind, word = match.lastgroup, match.group()
            if kind == "comment":
                self.comment(
                    word.rstrip(), not lists and not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
                )
                continue
            if kind == "name" and not value and not lists:
                self.begin(word)
            elif kind == "open":
                if self.closed:  # the next message of a list
                    self.begin(self.current.path[-1])
                self.open.append(self.current)
                lists = 0
            elif kind == "close" and len(self.open) > 1:
                self.current = self.open.pop()
                self.closed = True
                self.stand("last", self.current.key, "after")
            lists = max(0, lists + {"[": 1, "]": -1}.get(word, 0)) if kind == "symbol" else lists
            value = word == ":"
        self.stand("last", _ROOT.key, "last")
        return self.found

    def begin(self, name: str) -> None:
        """A field begins."""
        self.closed = False
        self.current = self.keys.field(name, self.open[-1])
        self.stand("before", self.current.key, "beside")

    def comment(self, text: str, alone: bool) -> None:
        """A comment alone on its line waits for what follows; another belongs to what it stands beside."""
        if alone:
            self.waiting.append(text)
        else:
            self.found.append((self.last, text))

    def stand(self, place: str, key: Key, beside: str) -> None:
        """Something the comments before it can stand at, and those beside it."""
        self.found += [(Anchor(place, key), text) for text in self.waiting]
        self.waiting.clear()
        self.last = Anchor(beside, key)


def _anchors(lines: Sequence[str], origins: Sequence[int | None]) -> Iterator[list[Anchor]]:
    """For each line of a canonical text the anchors it is the place of."""
    keys, opened = _Keys(), [_ROOT]
    for line in lines:
        word = line.strip()
        if word == "}":
            key = opened.pop().key
            yield [Anchor("last", key), Anchor("after", key)]
            continue
        field = keys.field(re.split("[: ]", word, maxsplit=1)[0], opened[-1], origins)
        if re.fullmatch(r"\w+ {", word):
            opened.append(field)
        yield [Anchor("before", field.key), Anchor("beside", field.key)]
