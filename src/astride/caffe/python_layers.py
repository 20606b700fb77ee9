"""Which classes a network's Python layers may be: those the caller names, and no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol

from ..errors import ArgumentError
from ..layers import Layer
from ..layers.python import Python
from ..net import Phase
from ..proto import Message
from .translate_detection import BUILT_IN_PYTHON

PHASES = {Phase.TRAIN: 0, Phase.TEST: 1}


class PythonClasses(Protocol):
    """Finds the class for the `module` and `layer` of a python_param. Raises ArgumentError where there is none."""

    def find(self, module: str, layer: str) -> Callable[[], Any]:
        """The class, or what makes an object of it."""
        ...


PythonLayers = Sequence[type[Any] | ModuleType] | PythonClasses
"""Which classes may run: a list of them and of their modules, or something that finds them."""


def classes(allowed: PythonLayers) -> PythonClasses:
    """What finds the class of a Python layer."""
    return allowed if hasattr(allowed, "find") else Allowed(allowed)


class Allowed:
    """Classes, and modules with all classes in them. Nothing is imported.

    A class is found by its name, and where two have one name by its module's; a module by its name or the last part of it.
    """

    def __init__(self, allowed: Sequence[type[Any] | ModuleType] = ()) -> None:
        allowed = (allowed,) if isinstance(allowed, type | ModuleType) else tuple(allowed)
        for each in allowed:
            if not isinstance(each, type | ModuleType):
                raise ArgumentError(
                    "python_layers are classes, or modules that hold them",
                    given={"python_layers": each},
                    required=f"a class or module: {type(each).__name__}",
                    hint="python_layers=(MyLayer,), or python_layers=(my_module,) after import my_module",
                )
        self.allowed = allowed

    def find(self, module: str, layer: str) -> type[Any]:
        """The class of that name."""
        found = [c for c in self.allowed if isinstance(c, type) and c.__name__ == layer]
        for each in self.allowed:
            if isinstance(each, ModuleType) and (each.__name__ == module or each.__name__.rpartition(".")[2] == module):
                inside = getattr(each, layer, None)
                if isinstance(inside, type):
                    found.append(inside)
        if not found:
            raise ArgumentError(
                "the class of this Python layer is not one of those that may run",
                given={"module": module, "layer": layer},
                required=f"one of python_layers: {', '.join(c.__name__ for c in self.allowed) or 'none are given'}",
                because="a network's text must not choose which code runs",
                hint=f"load_caffe(..., python_layers=({layer or 'MyLayer'},)), or --python-layer {module or 'MODULE'}",
            )
        return next((c for c in found if c.__module__ == module), found[0])


def python_layer(message: Message, phase: Phase, classes: PythonClasses) -> Layer:
    """The layer of a Python layer's message: the caller's class, or else one that is built in."""
    p = message.python_param
    try:
        found = classes.find(p.module, p.layer)
    except ArgumentError:
        built_in = BUILT_IN_PYTHON.get((p.module, p.layer))
        if built_in is None:
            raise
        return built_in(message, phase)
    return Python(found(), p.param_str, phase=PHASES[phase])
