"""astride.like.pytorch as the table that PyTorch's own samples (OpInfo) are run against: name -> (forward, vjp)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import astride
from astride.like import pytorch as F


def gradient_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """vjp(g, *args, **kwargs) -> one gradient per positional argument."""
    return lambda g, *args, **kwargs: astride.vjp(function, *args, **kwargs)[1](g)


TABLE = {name: (getattr(F, name), gradient_of(getattr(F, name))) for name in F.__all__}
