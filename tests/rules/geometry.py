"""Plans as windows a person can read, and the size formulas of the frameworks, written down a second time."""

from __future__ import annotations

from typing import Any

import astride


def windows(op: str, n: int, *, rules: str, **arguments: Any) -> list[list[int]]:
    """The taps of each window along one axis, those in the padding included."""
    plan = astride.plan(op, (1, 1, n), rules=rules, **arguments)
    axis = plan.axes[0]
    return [list(axis.taps(i)) for i in range(axis.out)]


def size(op: str, n: int, *, rules: str, **arguments: Any) -> int:
    """How many windows there are along one axis."""
    out: int = astride.plan(op, (1, 1, n), rules=rules, **arguments).axes[0].out
    return out


def size_or_none(op: str, n: int, *, rules: str, **arguments: Any) -> int | None:
    """As `size`; None where the rules refuse the arguments."""
    try:
        return size(op, n, rules=rules, **arguments)
    except astride.ArgumentError:
        return None


def ceiling(a: int, b: int) -> int:
    return (a + b - 1) // b
