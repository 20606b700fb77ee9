"""Whatever is given where a framework's function needs an argument, it answers with arrays or an error of astride's own."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import astride
from astride.like import FRAMEWORKS

GIVEN: list[Any] = [None, "abc", [], {}, 2.5, np.zeros(0), np.ones((1, 1, 4, 4), complex)]
FILTERS = ("w", "W", "B", "weight", "filters", "filter", "rhs", "kernel", "weights", "inputs_kernel")
ELEMENTWISE = ("add", "max", "min")
"""JAX's computations are NumPy's functions of two arrays, and answer as those do."""


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_of_a_framework(framework: str) -> None:
    tried = refused = 0
    module = import_module(f"astride.like.{framework}")
    for name in module.__all__:
        function = getattr(module, name)
        if not callable(function) or isinstance(function, type) or (framework == "jax" and name in ELEMENTWISE):
            continue
        needed = [
            p for p in inspect.signature(function).parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        ]
        for place in range(len(needed)):
            for value in GIVEN:
                values = [value if i == place else plain(p.name, i) for i, p in enumerate(needed)]
                own = [v for v, p in zip(values, needed, strict=True) if p.kind is not p.KEYWORD_ONLY]
                keywords = {p.name: v for v, p in zip(values, needed, strict=True) if p.kind is p.KEYWORD_ONLY}
                tried += 1
                try:
                    function(*own, **keywords)
                except astride.AstrideError:
                    refused += 1
    assert tried and refused > tried // 2


def plain(name: str, place: int) -> Any:
    """What could be meant by an argument of that name."""
    if place == 0:
        return np.ones((1, 2, 4, 4), np.float32)
    return np.ones((2, 2, 2, 2), np.float32) if name in FILTERS else 2
