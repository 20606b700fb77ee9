"""Pooling beside other libraries, and beside a copy of the same bytes.

Every row (case, layout, direction, threads) times astride and each rival that has that pooling, in turns, each in a process of
its own, after their answers were compared; a row whose answers differ names the rival and leaves it out. `copy` is the speed of
a copy of as many bytes as the pooling reads and writes, in the same turns, over astride's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from . import pooling_rivals as rivals
from .field import Call, Entrant, Field
from .pooling_cases import CASES, Case
from .race import LAYOUTS, Benchmark, Row, beside, head, library_version, rounded, tail

WHATS = ("forward", "argmax", "backward")


def entrants(library: str, case: Case, layouts: Sequence[str], what: str) -> dict[str, Entrant]:
    """A library's in each layout it has; "copy" copies as many bytes."""
    found = {}
    for layout in layouts:
        rng, form = np.random.default_rng(0), LAYOUTS[layout]
        x = rng.standard_normal(case.shape(form), np.float32)
        y = rng.standard_normal(rivals.out_shape(case, form), np.float32)
        if library == "copy":
            found[layout] = Entrant(copying(np.ones(max(_moved(case) // 8, 1), np.float32)), None)
            continue
        call = rivals.LIBRARIES[library](case, form, what, x, y)
        if call is not None:
            found[layout] = Entrant(call)
    return found


def _moved(case: Case) -> int:
    """Bytes that a pooling reads and writes."""
    return sum(4 * math.prod(shape) for shape in (case.shape("channels_first"), rivals.out_shape(case, "channels_first")))


def timed(case: Case, layouts: Sequence[str], what: str, field: Field, seconds: float) -> dict[str, Row]:
    """The rows of one case and direction, by layout, each in turns of its own."""
    entered, found = field.enter(case, layouts, what), {}
    for layout in layouts:
        times = {library: one for (library, _), one in field.turns([key for key in entered if key[1] == layout], seconds).items()}
        own, copied, below = times.pop("astride"), statistics.median(times.pop("copy")), times.pop("im2col", None)
        middle = statistics.median(own)
        row = beside(own, times)
        row |= {"copy": copied / middle, "GB_per_s": _moved(case) / middle / 1e9, "differing": field.differing}
        if below is not None:
            row["im2col_ms"] = statistics.median(below) * 1e3
        found[layout] = rounded(row)
    return found


def same(answer: Any, expected: Any) -> bool:
    """Whether two answers agree to rounding."""
    answer = np.asarray(answer)
    return answer.shape == expected.shape and np.allclose(answer, expected, rtol=1e-4, atol=1e-5)


def known(library: str) -> str | None:
    """A library's version; who copies and the rung below are no others' and have none to be told."""
    return "" if library in ("copy", "im2col") else library_version(rivals.MODULES, library)


def copying(source: Any) -> Call:
    """A copy on all threads of this process, into memory that is there."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        target = np.empty_like(source)
        return lambda: np.copyto(target, source)
    given = torch.from_numpy(source)
    there = torch.empty_like(given)
    return lambda: there.copy_(given)


def takes(case: Case, what: str) -> bool:
    """Whether a case has that row: only maxima have places to keep."""
    return what != "argmax" or case.op == "max_pool"


def fails(row: Row) -> bool:
    """Whether the best rival was faster by more than the spread."""
    return row["ratio"] is not None and row["ratio"] < 1 - row["noise"]


def line(row: Row) -> str:
    """A row for people."""
    return f"{head(row)}  copy {row['copy']:4.0%}  {tail(row)}"


BENCHMARK = Benchmark(
    name="pooling",
    whats=WHATS,
    cases=CASES,
    seconds=0.5,
    libraries=(*rivals.LIBRARIES, "copy"),
    version=known,
    entrants=entrants,
    same=same,
    takes=takes,
    timed=timed,
    fails=fails,
    line=line,
)
