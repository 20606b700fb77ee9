"""The exception tree, and the one place where messages are put together.

    AstrideError
    ├── ArgumentError (ValueError)            an argument breaks a rule; raised by plan/ and rules/
    ├── ArrayError (TypeError)                an array has the wrong dtype, rank, layout or memory; raised by dispatch
    ├── UnsupportedError (NotImplementedError) nothing here computes this; carries a reason per backend
    ├── BackendUnavailable (ImportError)      a backend or extra is not installed; carries the install hint
    ├── NotFiniteError (ArithmeticError)      training met NaN or infinity; raised by train, names the first place that holds it
    └── CaffeError
        ├── PrototxtError                     text that does not parse; has line and column
        ├── ModelFileError                    a file that is not what its name says, or does not fit
        └── UnknownLayerError                 layer types nobody here knows; lists all of them at once

Inner code raises with the bare facts. The public function that was called adds its own name, the
rules and the input by `within`, so that every message has the same shape:

    max_pool [caffe]: pad is not smaller than the kernel
      given     padding = 2;  x (1, 3, 8, 8) float32
      required  pad < kernel, on axis H: 2 < 2
      because   Caffe, src/caffe/layers/pooling_layer.cpp
      try       padding=1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class AstrideError(Exception):
    """Base of every error astride raises on purpose.

    Every part of the message is an attribute: `problem`, `given`, `required`, `because`, `hint`, `operator`, `rules`.
    """

    def __init__(
        self,
        problem: str,
        *,
        given: Mapping[str, Any] | None = None,
        required: str | None = None,
        because: str | None = None,
        hint: str | None = None,
        operator: str | None = None,
        rules: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.given: dict[str, Any] = dict(given or {})
        self.required = required
        self.because = because
        self.hint = hint
        self.operator = operator
        self.rules = rules

    def within(self, *, operator: str | None = None, rules: str | None = None, given: Mapping[str, Any] | None = None) -> Self:
        """Add what only the caller knows. What is already there stays: the innermost place knows best."""
        self.operator = self.operator or operator
        self.rules = self.rules or rules
        for name, value in (given or {}).items():
            self.given.setdefault(name, value)
        return self

    def __str__(self) -> str:
        head = self.problem
        if self.operator:
            where = f"{self.operator} [{self.rules}]" if self.rules else self.operator
            head = f"{where}: {self.problem}"
        lines = [head]
        if self.given:
            lines.append("  given     " + ";  ".join(_describe(name, value) for name, value in self.given.items()))
        if self.required:
            lines.append(f"  required  {self.required}")
        if self.because:
            lines.append(f"  because   {self.because}")
        if self.hint:
            lines.append(f"  try       {self.hint}")
        return "\n".join(lines)


class ArgumentError(AstrideError, ValueError):
    """An argument breaks a rule: sizes, strides, pads, names, combinations."""


class ArrayError(AstrideError, TypeError):
    """An array does not fit the operator: dtype, rank, layout, overlap."""


class UnsupportedError(AstrideError, NotImplementedError):
    """Nothing available computes this. `reasons` says why, backend by backend."""

    def __init__(self, problem: str, *, reasons: Mapping[str, str] | None = None, **parts: Any) -> None:
        super().__init__(problem, **parts)
        self.reasons: dict[str, str] = dict(reasons or {})

    def __str__(self) -> str:
        lines = [super().__str__()]
        lines += [f"  {backend:<9} {reason}" for backend, reason in self.reasons.items()]
        return "\n".join(lines)


class BackendUnavailable(AstrideError, ImportError):
    """A backend or an optional package is missing. `hint` is the command that installs it."""


class NotFiniteError(AstrideError, ArithmeticError):
    """Training met NaN or infinity. The message names the first place that holds one."""


class CaffeError(AstrideError):
    """Anything wrong with a Caffe file or network."""


class PrototxtError(CaffeError):
    """Text that does not parse. `line` and `column` count from 1."""

    def __init__(self, problem: str, *, line: int | None = None, column: int | None = None, **parts: Any) -> None:
        super().__init__(problem, **parts)
        self.line = line
        self.column = column


class ModelFileError(CaffeError):
    """A file that is missing, is something else than its name says, or does not fit the network."""


class UnknownLayerError(CaffeError):
    """Layer types nobody here knows. `unknown` lists (line, column, layer name, type) of every one, not only the first.

    The place is that of the layer's `type` field, both numbers None where no text has it.
    """

    def __init__(
        self, problem: str, *, unknown: list[tuple[int | None, int | None, str, str]] | None = None, **parts: Any
    ) -> None:
        super().__init__(problem, **parts)
        self.unknown = list(unknown or [])


class Listing(list[str]):
    """Lines that an error message shows one below the other."""

    def __repr__(self) -> str:
        return "".join(f"\n            {line}" for line in self)


def _describe(name: str, value: Any) -> str:
    """`x (1, 3, 8, 8) float32` for anything with a shape and dtype, `name = value` for the rest."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f"{name} {shape} {dtype}"
    return f"{name} = {value!r}"
