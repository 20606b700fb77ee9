"""Users' functions of one window, by the name under which plans know them.

A plan is plain data and a function is not, so a plan holds a name. Definitions live as long as the operator made of them, or a
result that still needs them; a plan loaded elsewhere finds its function once the module that defines it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from ..errors import ArgumentError

NUMERIC = "numeric"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Definition:
    """A function of one window, and where its gradient comes from: a function of (window, y), "numeric", or nowhere.

    `drivers` holds what has been compiled for it.
    """

    name: str
    function: Callable[[Any], Any]
    gradient: Callable[[Any, Any], Any] | str | None
    drivers: dict[str, Callable[..., Any]] = field(default_factory=dict)


_known: WeakValueDictionary[str, Definition] = WeakValueDictionary()


def register(definition: Definition) -> str:
    """The name for plans: `module.function`, numbered where another living definition has it."""
    function = definition.function
    name = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', definition.name)}"
    free, number = name, 1
    while free in _known:
        number += 1
        free = f"{name}#{number}"
    _known[free] = definition
    return free


def definition_of(name: str) -> Definition:
    """The definition a plan names. Raises ArgumentError: nobody defines it here, or nobody any more."""
    found = _known.get(name)
    if found is None:
        raise ArgumentError(
            "the plan's function is not defined here",
            given={"function": name},
            hint=f"import {name.rpartition('.')[0]}, and keep the operator",
        )
    return found
