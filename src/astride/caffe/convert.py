"""Files upgraded to the current format, and networks turned from text to binary and back.

upgrade_file("old.prototxt", "new.prototxt")         text stays text, with its comments; binary stays binary
convert_file("deploy.prototxt", "net.caffemodel", weights="weights.caffemodel")
convert_file("net.caffemodel", "net.prototxt")       the network that a file of weights holds
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..errors import ArgumentError, ModelFileError, UnsupportedError
from ..proto import BlobArray, Message, NetFile, Parsed, Schema, atomic_write, format, read_caffemodel, write_caffemodel
from ..proto.blobs import declare
from ..proto.limits import MAX_TEXT_BYTES
from ..proto.sniff import Opened, open_model
from ..proto.wire_survey import survey
from .comments import carry
from .dialects.choose import read_binary, read_text
from .journal import Note
from .upgrade import Upgraded, upgrade, upgrade_solver
from .weights import blobs_by_name

Path = str | os.PathLike[str]


class Kind(StrEnum):
    """What a file holds, and how."""

    NET_TEXT = "net-text"
    NET_BINARY = "net-binary"
    SOLVER_TEXT = "solver-text"


@dataclass(frozen=True, slots=True)
class Written:
    """What was written where. Without notes an upgrade had nothing to do and copied the file as it was."""

    source: str
    target: str
    kind: Kind
    layers: int
    notes: list[Note]

    @property
    def lost(self) -> list[Note]:
        """What the new file lacks."""
        return [note for note in self.notes if note.lost]


def recognise(opened: Opened) -> Kind:
    """What a file is, by its content: a text is a solver's if it sets a field that nothing but solvers have."""
    if opened.kind == "binary":
        return Kind.NET_BINARY
    text = re.sub(r"#[^\n]*|\"[^\"\n]*\"|'[^'\n]*'", " ", str(opened.view, "utf-8", "replace"))
    names = re.findall(r"\b([A-Za-z_]\w*)\s*[:{<]", text)
    return Kind.SOLVER_TEXT if _solver_fields() & set(names) else Kind.NET_TEXT


def upgrade_file(
    source: Path,
    target: Path,
    *,
    kind: Kind | None = None,
    dialect: str | None = None,
    allow_unknown_fields: bool = False,
) -> Written:
    """Write a file in Caffe's current format, as Caffe's upgrade_net_proto_text, ..._binary and upgrade_solver_proto_text do.

    Comments of a text stay beside what they were about. A file that is current already is copied byte for byte.
    Raises ModelFileError: no Caffe file, or none that can be written; PrototxtError: the text does not parse, or cannot be
    upgraded.
    """
    opened = open_model(source, expect="Caffe file")
    kind = kind or recognise(opened)
    if kind is Kind.NET_BINARY:
        return _upgrade_binary(source, target, opened)
    name = "SolverParameter" if kind is Kind.SOLVER_TEXT else "NetParameter"
    parsed = read_text(opened.view, name, dialect=dialect, name=opened.name, allow_unknown_fields=allow_unknown_fields)
    upgraded = (upgrade_solver if kind is Kind.SOLVER_TEXT else upgrade)(parsed.message, parsed)
    if upgraded.notes:
        text = carry(str(opened.view, "utf-8", "surrogateescape"), format(upgraded.message), upgraded.origins)
        atomic_write(target, [text.encode("utf-8", "surrogateescape")])
        notes = upgraded.notes + _unknown(parsed)
    else:
        atomic_write(target, [opened.view])
        notes = []
    return Written(opened.name, os.fspath(target), kind, len(upgraded.origins), notes)


def convert_file(
    source: Path,
    target: Path,
    *,
    to: Kind | None = None,
    weights: Path | None = None,
    with_blobs: bool = False,
    dialect: str | None = None,
    allow_unknown_fields: bool = False,
) -> Written:
    """Write a network as binary or as text, in the current format.

    to           by default what the name of `target` says: .caffemodel or .binaryproto is binary, .prototxt or .pbtxt text
    weights      a .caffemodel whose blobs go into the layers of the same names
    dialect      "bvlc" or a fork's name; by default the one whose fields the file has
    with_blobs   write blobs into a text, too, which grows about fourfold; binary files always have them
    Raises ArgumentError: a name that does not say what to write; UnsupportedError: a format that is not written here;
    ModelFileError, PrototxtError: files that are missing or something else.
    """
    to = to or _by_name(target)
    opened = open_model(source, expect="Caffe file")
    message, blobs, notes = _network(opened, dialect, allow_unknown_fields)
    if weights is not None:
        notes += _insert(message, blobs, read_caffemodel(weights))
    if to is Kind.NET_BINARY:
        write_caffemodel(target, message, blobs)
    else:
        atomic_write(target, [_text(message, blobs, with_blobs, notes).encode("utf-8", "surrogateescape")])
    return Written(opened.name, os.fspath(target), to, len(message.layer), notes)


Blobs = list[Sequence[BlobArray]]


@functools.cache
def _solver_fields() -> frozenset[str]:
    """Names of fields that no message has but a solver's."""
    messages = Schema.bvlc().messages
    others = {name for key, entry in messages.items() if key != "SolverParameter" for name in entry.fields}
    return frozenset(messages["SolverParameter"].fields) - others


def _upgrade_binary(source: Path, target: Path, opened: Opened) -> Written:
    # What the layers' fields mean makes no difference here: those of forks go over as they are.
    file = read_caffemodel(source, partial=True)
    upgraded = upgrade(file.message, sized=False)
    if upgraded.notes:
        write_caffemodel(target, upgraded.message, _moved(upgraded, file))
    else:
        atomic_write(target, [opened.view])
    return Written(opened.name, os.fspath(target), Kind.NET_BINARY, len(upgraded.origins), upgraded.notes)


def _moved(upgraded: Upgraded, file: NetFile) -> Blobs:
    """A file's blobs in the order of the upgraded layers."""
    return [[] if origin is None else file.blobs[origin] for origin in upgraded.origins]


def _network(opened: Opened, dialect: str | None, allow_unknown_fields: bool) -> tuple[Message, Blobs, list[Note]]:
    """A network of any format from text or binary: its message, current and without blobs, and its blobs."""
    if opened.kind == "binary":
        file = read_binary(opened.view, dialect=dialect, name=opened.name, allow_unknown_fields=allow_unknown_fields)
        upgraded = upgrade(file.message, sized=False)
        blobs = _moved(upgraded, file)
        rest = file.message.SerializePartialToString()
        left = survey(rest, "NetParameter", Schema.of(file.message))
        notes = upgraded.notes + [Note(f"{surprise}: left out", lost=True) for surprise in left]
    else:
        if recognise(opened) is Kind.SOLVER_TEXT:
            raise ArgumentError(
                f"{opened.name} is a solver; only networks have a binary form",
                required="a prototxt of layers, or a .caffemodel",
                hint="the file that its field `net` names",
            )
        parsed = read_text(opened.view, dialect=dialect, name=opened.name, allow_unknown_fields=allow_unknown_fields)
        upgraded = upgrade(parsed.message, parsed)
        blobs = [_from_text(layer) for layer in upgraded.message.layer]
        notes = upgraded.notes + _unknown(parsed)
    message: Message = type(upgraded.message)()
    message.CopyFrom(upgraded.message)
    for layer in message.layer:
        layer.ClearField("blobs")
    return message, blobs, notes


def _from_text(layer: Message) -> list[BlobArray]:
    """The blobs that a text holds for a layer."""
    if not len(layer.blobs):
        return []
    single: Message = Schema.of(layer).message("NetParameter")()
    single.layer.add().CopyFrom(layer)
    return read_caffemodel(single.SerializePartialToString(), name=f'layer "{layer.name}"', partial=True).blobs[0]


def _insert(message: Message, blobs: Blobs, file: NetFile) -> list[Note]:
    """Put a file's blobs into the layers of the same names; notes say what had no place or got nothing."""
    found = blobs_by_name(file)
    names = {layer.name for layer in message.layer}
    for index, layer in enumerate(message.layer):
        blobs[index] = found.get(layer.name, blobs[index])
    unused = [name for name in found if name not in names]
    notes = [Note(f"weights of {len(found) - len(unused)} layers from {file.source}")]
    if unused:
        notes.append(Note(f"weights left out, as the text has no such layers: {', '.join(unused)}", lost=True))
    return notes


def _text(message: Message, blobs: Blobs, with_blobs: bool, notes: list[Note]) -> str:
    """The text of a network, with its blobs or with a note of how many numbers it lacks."""
    count = sum(blob.data.size for own in blobs for blob in own)
    if with_blobs:
        # "    data: 0.1234567" and a line break.
        if count * 20 > MAX_TEXT_BYTES:
            raise ModelFileError(
                f"{count} numbers are too many for a text, which may have {MAX_TEXT_BYTES} bytes to be read again",
                hint="leave the blobs out of the text and keep them in the .caffemodel",
            )
        for layer, own in zip(message.layer, blobs, strict=True):
            for blob in own:
                _add_numbers(layer.blobs.add(), blob)
    elif count:
        notes.append(Note(f"{count} numbers of weights left out of the text: they stay in the binary file"))
    return format(message)


def _add_numbers(proto: Message, blob: BlobArray) -> None:
    declare(proto, blob)
    double = blob.data.dtype.itemsize == 8
    (proto.double_data if double else proto.data).extend(blob.data.reshape(-1).tolist())
    if blob.diff is not None:
        (proto.double_diff if double else proto.diff).extend(blob.diff.reshape(-1).tolist())


def _unknown(parsed: Parsed) -> list[Note]:
    """Fields that were passed over when reading."""
    return [Note(f"{field.name} left out: {field.owner} has no such field", field.line, lost=True) for field in parsed.unknown]


def _by_name(target: Path) -> Kind:
    """Text or binary, by the ending of a name."""
    name = os.fspath(target).lower()
    if name.endswith((".caffemodel", ".binaryproto", ".pb")):
        return Kind.NET_BINARY
    if name.endswith((".prototxt", ".pbtxt", ".txt")):
        return Kind.NET_TEXT
    if name.endswith(".onnx"):
        raise UnsupportedError("networks are not written as ONNX yet", given={"target": name}, hint="a .prototxt or .caffemodel")
    raise ArgumentError(
        "the name of the file to write does not say what it is to hold",
        given={"target": os.fspath(target)},
        required=".prototxt for text, .caffemodel for binary",
        hint='to="net-text" or to="net-binary"; on the command line --to text or --to binary',
    )
