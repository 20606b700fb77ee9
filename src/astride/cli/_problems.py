"""Everything that is wrong with a network's text, and the weights that are to go with it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..caffe import load
from ..caffe.dialects.choose import read_text
from ..caffe.weights import load_weights
from ..errors import AstrideError, PrototxtError
from ..explain.layer_gradients import LayerChecked, check_layers
from ..net import Net
from ..proto import Parsed

EMPTY = "the network has no layers in this state"


@dataclass(slots=True)
class Found:
    """`problems` as (where, message); `remarks` on what may be meant otherwise; for each phase that fits its counts; layers
    whose gradients were checked.
    """

    problems: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    phases: dict[str, dict[str, Any]] = field(default_factory=dict)
    layers: list[LayerChecked] = field(default_factory=list)


def check_text(path: str, weights: Path | None, *, gradients: bool, dialect: str | None = None, seed: int = 0) -> Found:
    """Read, build in both phases, load, and compare gradients: as far as each is possible. A missing file raises."""
    found = Found()
    try:
        parsed = read_text(path, dialect=dialect, allow_unknown_fields=True)
    except PrototxtError as error:
        found.problems.append(("text", str(error)))
        return found
    for unknown in parsed.unknown:
        near = f"; perhaps {unknown.nearest}" if unknown.nearest else ""
        found.problems.append(
            (f"line {unknown.line}, column {unknown.column}", f"{unknown.owner} has no field {unknown.name}{near}")
        )
    for phase in ("TRAIN", "TEST"):
        with _heard(found.remarks):
            net = _build(parsed, phase, found, seed)
        if net is None:
            continue
        found.phases[phase] = {"layers": len(net.nodes), "parameters": sum(p.count for p in net.learnable)}
        if weights is not None and not any(where == "weights" for where, _ in found.problems):
            try:
                load_weights(net, weights)
            except AstrideError as error:
                found.problems.append(("weights", str(error)))
        if gradients:
            known = {(c.layer, c.array) for c in found.layers}
            found.layers += [c for c in check_layers(net, seed=seed) if (c.layer, c.array) not in known]
    return found


@contextmanager
def _heard(remarks: list[str]) -> Iterator[None]:
    """Gather what reading a network warns of, each remark once, instead of having it written to stderr."""

    class Gather(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() not in remarks:
                remarks.append(record.getMessage())

    log, handler = logging.getLogger(load.__name__), Gather(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _build(parsed: Parsed, phase: str, found: Found, seed: int) -> Net | None:
    try:
        return load.build_net(parsed.message, phase, dtype="float64", seed=seed, lines=parsed)
    except AstrideError as error:
        message = str(error)
        if error.problem != EMPTY and all(message != known for _, known in found.problems):
            found.problems.append((f"phase {phase}", message))
        return None
