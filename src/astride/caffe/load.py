"""load_caffe: a network from its prototxt, with its weights."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import ArgumentError, AstrideError, PrototxtError
from ..layers import Source as Samples
from ..net import Net, Node, Phase
from ..proto import Message, Parsed, Position, Schema, Source, open_model
from .autocrop import align
from .dialects.choose import read_text
from .dialects.refused import check_refused
from .export import CaffeFormat
from .inputs import check_sources, fed_layer, source_of
from .journal import Note
from .python_layers import Allowed, PythonClasses, PythonLayers, classes
from .state import State, included
from .translate import check_types, listed, node, unknown_types
from .upgrade import Upgraded, upgrade
from .weights import load_weights, take_blobs

log = logging.getLogger(__name__)

Seed = int | np.random.RandomState | None


class Placed(NamedTuple):
    """A layer, the line it begins on, and where its type stands, as far as that is known."""

    layer: Message
    line: int | None
    type: Position | None


def load_caffe(
    prototxt: Source,
    weights: Source | None = None,
    phase: str | Phase = "TEST",
    *,
    level: int = 0,
    stages: Iterable[str] = (),
    dialect: str | None = None,
    allow_unknown_fields: bool = False,
    allow_missing: bool = False,
    python_layers: PythonLayers = (),
    max_memory: int | None = None,
    seed: Seed = None,
    sources: Mapping[str, Samples] | None = None,
) -> Net:
    """A Caffe network of any of its three formats, ready to run.

    prototxt, weights     each a path, text, bytes or an open file; without weights the fillers begin the parameters
    dialect               "bvlc", a fork's name, or several joined with "+"; by default the one whose fields the text uses
    phase, level, stages  what include and exclude rules are asked about
    allow_unknown_fields  pass over fields the schema lacks instead of listing them as an error
    allow_missing         let layers that the weights lack begin with their fillers
    python_layers         the classes that Python layers may run, or modules that hold them; none but these is run
    max_memory            bytes the network may take; by default three quarters of what is free
    seed                  for fillers and dropout; an int, or a RandomState to draw from
    sources               data layer name -> where it draws its batches from, in place of what its text names; "*" for the rest

    Raises PrototxtError: text that does not parse, with line and column; unknown fields, all at once
           UnknownLayerError: layers of unknown types, all at once, with their places
           ModelFileError: a file that is missing or something else; weights that do not fit or lack layers
           ArgumentError: layers that do not fit together; more memory than allowed; no such dialect
           UnsupportedError: fields of a fork that change numbers and that nothing here computes
    """
    stages = (stages,) if isinstance(stages, str) else stages
    python = classes(python_layers)
    parsed = _read(prototxt, dialect, allow_unknown_fields)
    net = build_net(
        parsed.message,
        phase,
        level=level,
        stages=stages,
        seed=seed,
        sources=sources,
        python_layers=python,
        max_memory=max_memory,
        lines=parsed,
    )
    if weights is not None:
        load_weights(net, weights, allow_missing=allow_missing)
    return net


def build_net(
    message: Message,
    phase: str | Phase,
    *,
    level: int = 0,
    stages: Iterable[str] = (),
    seed: Seed = None,
    sources: Mapping[str, Samples] | None = None,
    python_layers: PythonClasses | None = None,
    max_memory: int | None = None,
    dtype: str = "float32",
    lines: Parsed | None = None,
) -> Net:
    """A network from a NetParameter; `lines` knows where its parts stand in a text. Raises what load_caffe does."""
    state = State.of(as_phase(phase), level, stages, message)
    try:
        kept, placed = _filtered(message, state, lines)
        check_refused(kept, [(layer, line) for layer, line, _ in placed])
        check_types((layer, place) for layer, _, place in placed if source_of(layer, sources or {}) is None)
        nodes = _nodes(placed, state.phase, sources or {}, python_layers or Allowed())
        net = Net(
            nodes,
            name=message.name,
            phase=state.phase,
            force_backward=message.force_backward,
            debug_info=message.debug_info,
            dtype=dtype,
            random=_random(seed),
            max_memory=max_memory,
            format=CaffeFormat(kept),
        )
        for layer, _, _ in placed:
            if len(layer.blobs):
                take_blobs(net, layer.name, layer.blobs)
    except AstrideError as error:
        if lines is not None and not isinstance(error, PrototxtError):
            error.given = {"in": lines.source} | error.given
        raise
    return net


def _read(prototxt: Source, dialect: str | None, allow_unknown_fields: bool) -> Parsed:
    """The text; where fields of it are unknown, its layers of unknown types are said in the same breath."""
    opened = open_model(prototxt, expect="prototxt")
    try:
        return read_text(opened.view, dialect=dialect, name=opened.name, allow_unknown_fields=allow_unknown_fields)
    except PrototxtError as error:
        try:
            parsed = read_text(opened.view, name=opened.name, allow_unknown_fields=True)
        except PrototxtError:
            # What is wrong are not only fields: then the layers cannot be told.
            raise error from None
        unknown = unknown_types((layer, parsed.position_of(layer, "type")) for layer in parsed.message.layer)
        if unknown:
            error.given["layers of unknown types"] = listed(unknown)
        raise


def as_phase(phase: str | Phase) -> Phase:
    """A phase by its name. Raises ArgumentError: there are two."""
    try:
        return Phase(phase)
    except ValueError:
        problem = "there is no such phase"
        raise ArgumentError(problem, given={"phase": phase}, required="TRAIN or TEST", hint='phase="TEST"') from None


def _random(seed: Seed) -> np.random.RandomState:
    if isinstance(seed, np.random.RandomState):
        return seed
    if seed is not None and (not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32):
        raise ArgumentError("a seed has 32 bits", given={"seed": seed}, required=f"0 <= seed < 2**32: {seed!r}", hint="seed=1")
    return np.random.RandomState(seed)


def _filtered(message: Message, state: State, lines: Parsed | None) -> tuple[Message, list[Placed]]:
    """The message in the current format with the layers of this state only, and those layers with their places."""
    upgraded = upgrade(message, lines)
    _tell(upgraded.notes, lines)
    current = upgraded.message
    kept: Message = type(message)()
    kept.CopyFrom(current)
    for name in ("layer", "state"):
        kept.ClearField(name)
    placed: list[Placed] = []
    for layer, (line, place) in zip(current.layer, _places(upgraded, message, lines), strict=True):
        try:
            wanted = included(layer, state)
        except PrototxtError as error:
            error.within(given={"line": line} if line else None)
            raise
        if wanted:
            copy = kept.layer.add()
            copy.CopyFrom(layer)
            placed.append(Placed(copy, line, place))
    if not placed:
        raise PrototxtError(
            "the network has no layers in this state",
            given={"phase": state.phase.value, "level": state.level, "stages": sorted(state.stages)},
            required=f"one of the {len(current.layer)} layers in the text included",
            hint='phase="TRAIN"' if state.phase is Phase.TEST else 'phase="TEST"',
        )
    _tell(align([(layer, line) for layer, line, _ in placed], Schema.of(message).name), lines)
    return kept, placed


def _tell(notes: Iterable[Note], lines: Parsed | None) -> None:
    """Log notes, as warnings those of what is lost or may be meant otherwise."""
    for note in notes:
        log.log(logging.WARNING if note.lost else logging.INFO, "%s: %s", lines.source if lines else "the network", note)


def _places(upgraded: Upgraded, message: Message, lines: Parsed | None) -> list[tuple[int | None, Position | None]]:
    """For each layer of the upgraded network where the given text has it: its line, and the place of its type."""
    if lines is None:
        return [(None, None)] * len(upgraded.origins)
    given = message.layers or message.layer
    return [
        (lines.line_of(message, "input"), None)
        if origin is None
        else (lines.line_of(given[origin]), lines.position_of(given[origin], "type"))
        for origin in upgraded.origins
    ]


def _nodes(placed: Sequence[Placed], phase: Phase, sources: Mapping[str, Samples], python: PythonClasses) -> list[Node]:
    check_sources(sources, [layer.name for layer, _, _ in placed])
    nodes = []
    for layer, line, _ in placed:
        source = source_of(layer, sources)
        nodes.append(node(layer, phase, line, python) if source is None else fed_layer(layer, source, line))
    return nodes
