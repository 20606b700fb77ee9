"""Convolution beside other libraries, and beside the most this machine can multiply and add.

Every group (case, direction, threads) times astride in both layouts and each rival in the layouts it has, in turns, after
their answers were compared; a row whose answers differ names the rival and leaves it out. A rival takes part in the rows of both
layouts with the better of its times: whoever asks for a convolution may choose. `peak` is astride's speed over the machine's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from . import convolution_rivals as rivals
from .convolution_cases import CASES, Case
from .peak import peak
from .race import LAYOUTS, Benchmark, Call, Row, beside, head, installed, rounded, tail, turns

WHATS = ("forward", "data", "weights")

LEAST = 0.95
"""A row below this ratio fails."""

SAME = 1e-3
"""Answers may differ by so much of the largest number."""


def timed(case: Case, layouts: Sequence[str], what: str, names: Sequence[str], seconds: float) -> dict[str, Row]:
    """The rows of one case and direction, by layout."""
    arrays = filled(case)
    ours = {layout: rivals.astride(case, LAYOUTS[layout], what, arrays) for layout in layouts}
    calls = {f"astride {layout}": contestant.call for layout, contestant in ours.items()}
    expected = [np.asarray(one.first(one.call())) for one in ours.values()]
    differing = [] if all(same(answer, expected[0]) for answer in expected) else ["astride"]
    for name in names:
        for layout in layouts if name == "jax" else layouts[:1]:
            rival = rivals.RIVALS[name](case, LAYOUTS[layout], what, arrays)
            if rival is None:
                continue
            if same(rival.first(rival.call()), expected[0]):
                calls[f"{name} {layout}"] = rival.call
            else:
                differing.append(name)
    most = peak()
    slow = hopeless(calls, layouts, seconds)
    times = turns({word: call for word, call in calls.items() if word not in slow}, seconds) | slow
    most = max(most, peak())
    found = {}
    others: dict[str, Sequence[float]] = {}
    for word, one in times.items():
        name = word.split()[0]
        if name != "astride" and (name not in others or statistics.median(one) < statistics.median(others[name])):
            others[name] = one
    for layout in layouts:
        row = beside(times[f"astride {layout}"], others)
        speed = case.flops / row["ms"] / 1e6
        row |= {"GFLOP_per_s": speed, "peak_GFLOP_per_s": most, "peak": speed / most, "differing": sorted(set(differing))}
        found[layout] = rounded(row)
    return found


def hopeless(calls: dict[str, Call], layouts: Sequence[str], seconds: float) -> dict[str, list[float]]:
    """The one time of rivals that take several times as long as astride and more than the row has: turns would not help them."""
    once = {}
    for word, call in calls.items():
        begin = time.perf_counter()
        call()
        once[word] = time.perf_counter() - begin
    limit = max(4 * max(once[f"astride {layout}"] for layout in layouts), seconds / 5)
    return {word: [took] * 2 for word, took in once.items() if took > limit}


def filled(case: Case) -> rivals.Arrays:
    """Normal numbers, the weights small enough that results are of the size of one."""
    rng = np.random.default_rng(0)
    shapes = (case.x_shape, case.w_shape, (case.images, case.outputs, *case.out))
    x, w, dy = (rng.standard_normal(shape, np.float32) for shape in shapes)
    return rivals.Arrays(x, w / np.float32(np.sqrt(max(w[0].size, 1))), dy)


def same(answer: Any, expected: Any) -> bool:
    """Whether two answers agree within SAME of the largest number."""
    answer = np.asarray(answer)
    return answer.shape == expected.shape and bool(np.abs(answer - expected).max() <= SAME * np.abs(expected).max())


def fails(row: Row) -> bool:
    """Whether the best rival was clearly faster, or the answer another."""
    return "astride" in row["differing"] or (row["ratio"] is not None and row["ratio"] < LEAST)


def line(row: Row) -> str:
    """A row for people."""
    return f"{head(row)}  peak {row['peak']:4.0%}  {tail(row)}"


BENCHMARK = Benchmark(
    name="convolution",
    whats=WHATS,
    cases=CASES,
    seconds=0.7,
    installed=partial(installed, rivals.RIVALS, rivals.MODULES),
    takes=lambda case, what: True,
    timed=timed,
    fails=fails,
    line=line,
)
