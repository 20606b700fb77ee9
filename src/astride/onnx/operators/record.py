"""What an operator's entry says, and what it is handed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...backends.protocol import Array


@dataclass(frozen=True, slots=True)
class Call:
    """One node being run: its inputs (None where absent), attributes, which outputs are wanted, and the opset."""

    inputs: list[Array | None]
    attributes: dict[str, Any]
    wanted: list[bool]
    opset: int


@dataclass(frozen=True, slots=True)
class Operator:
    """How a node of one type is run: how many inputs it may have, how many it must, and its attributes' names, those
    without a default among them in `needed`."""

    run: Callable[[Call], list[Any]]
    inputs: int
    required: int
    attributes: frozenset[str]
    needed: frozenset[str] = frozenset()
