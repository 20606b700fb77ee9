"""Global pooling: every reduction over planes of one to three axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class GlobalCase:
    """An array's shape, and what pools it."""

    name: str
    shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


CASES = tuple(
    GlobalCase(f"{reduce}, {rank} axes, {layout}", shape, dict(reduce=reduce, layout=layout))
    for reduce in ("average", "max", "min", "lp")
    for rank, sizes in ((1, (5,)), (2, (3, 4)), (3, (2, 3, 2)))
    for layout, shape in (("channels_first", (2, 3, *sizes)), ("channels_last", (2, *sizes, 3)))
)
