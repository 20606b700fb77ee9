"""Packages that only some sources need, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import BackendUnavailable


def needed(package: str, what: str) -> Any:
    """The package. Raises BackendUnavailable with the command that installs it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise BackendUnavailable(
            f"{what} needs a package that is not installed",
            given={"package": package},
            because=str(error),
            hint=f'pip install "astride[data]", or pip install {package}',
        ) from error
