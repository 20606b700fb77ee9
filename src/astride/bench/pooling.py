"""Pooling beside other libraries, and beside a copy of the same bytes.

Every row (case, layout, direction, threads) times astride and each rival that has that pooling, in turns, after their answers
were compared; a row whose answers differ names the rival and leaves it out. `copy` is the speed of a copy of as many bytes as
the pooling reads and writes, in the same turns, over astride's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from . import pooling_rivals as rivals
from .pooling_cases import CASES, Case
from .race import LAYOUTS, Benchmark, Call, Row, beside, head, installed, rounded, tail, turns

WHATS = ("forward", "argmax", "backward")


def timed(case: Case, layouts: Sequence[str], what: str, names: Sequence[str], seconds: float) -> dict[str, Row]:
    """The rows of one case and direction, by layout, each in turns of its own."""
    return {layout: _timed(case, LAYOUTS[layout], what, names, seconds) for layout in layouts}


def _timed(case: Case, layout: str, what: str, names: Sequence[str], seconds: float) -> Row:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(case.shape(layout), np.float32)
    y = rivals.astride(case, layout, "forward", x, None)()
    dy = rng.standard_normal(y.shape, np.float32)
    ours = rivals.astride(case, layout, what, x, dy)
    expected = ours()
    calls, differing = {"astride": ours}, []
    for name in names:
        call = rivals.RIVALS[name](case, layout, what, x, dy)
        if call is None:
            continue
        answer = np.asarray(call())
        if answer.shape == expected.shape and np.allclose(answer, expected, rtol=1e-4, atol=1e-5):
            calls[name] = call
        else:
            differing.append(name)
    moved = x.nbytes + y.nbytes
    calls["copy"] = copying(np.ones(max(moved // 8, 1), np.float32))
    times = turns(calls, seconds)
    copied, own = statistics.median(times.pop("copy")), times.pop("astride")
    middle = statistics.median(own)
    row = beside(own, times)
    row |= {"copy": copied / middle, "GB_per_s": moved / middle / 1e9, "differing": differing}
    below = rivals.im2col(case, layout, what, x, dy)
    if below is not None:
        begin = time.perf_counter()
        below()
        row["im2col_ms"] = (time.perf_counter() - begin) * 1e3
    return rounded(row)


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
    installed=partial(installed, rivals.RIVALS, rivals.MODULES),
    takes=takes,
    timed=timed,
    fails=fails,
    line=line,
)
