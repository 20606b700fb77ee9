"""The table of backends. A line here is all it takes to be asked."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import cast

from ..errors import ArgumentError, BackendUnavailable
from .protocol import Backend

BACKENDS: dict[str, tuple[str, str]] = {
    "cpu": ("astride.backends.cpu", "pip install llvmlite"),
    "reference": ("astride.backends.reference", "part of astride"),
    "webgpu": ("astride.backends.webgpu", "pip install 'astride[gpu]'"),
}
"""name -> (module with `BACKEND`, how to install it), in the order `auto` asks."""


@lru_cache
def backend(name: str) -> Backend:
    """The backend of that name, imported now. Raises ArgumentError: unknown; BackendUnavailable: not installed."""
    if name not in BACKENDS:
        raise ArgumentError("there is no such backend", given={"backend": name}, required=f"one of auto, {', '.join(BACKENDS)}")
    module, hint = BACKENDS[name]
    try:
        return cast(Backend, import_module(module).BACKEND)
    except ImportError as error:
        raise BackendUnavailable(f"backend {name} cannot be imported: {error}", given={"backend": name}, hint=hint) from error
