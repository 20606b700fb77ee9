"""astride as PyTorch's operator samples call it: a name of torch.nn.functional -> (forward, vjp)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import astride
from astride.like import pytorch as F

NAMES = tuple(F.__all__)


def entry(name: str) -> tuple[Callable[..., Any], Callable[..., Sequence[Any]]]:
    """The function, and its gradients for a given one of the (first) output."""
    fn = getattr(F, name)

    def vjp(g: Any, *args: Any, **kwargs: Any) -> Sequence[Any]:
        # arrays given by name are differentiated too where they stand for positions
        names = list(inspect.signature(fn).parameters)[len(args) :]
        given = list(args)
        for key in names:
            if not isinstance(kwargs.get(key), np.ndarray):
                break
            given.append(kwargs.pop(key))
        _, pull = astride.vjp(fn, *given, **kwargs)
        return pull(g)[: len(args)]

    return fn, vjp


TABLE = {name: entry(name) for name in NAMES}
