"""The operators that `run_node` claims, a file for each kind."""

from __future__ import annotations

from .record import Call, Operator
from .shapes import SHAPES
from .windows import WINDOWS

OPERATORS: dict[str, Operator] = {**WINDOWS, **SHAPES}
"""op_type -> how it is run."""

__all__ = ["OPERATORS", "Call", "Operator"]
