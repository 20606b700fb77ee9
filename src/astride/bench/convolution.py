"""Convolution beside other libraries, and beside the most this machine can multiply and add.

Every group (case, direction, threads) times astride in both layouts and each rival in the layouts it has, in turns, each library
in a process of its own, after their answers were compared. Forward, weights are what a trained network's are, constant: those
that can bring them into an order of their own beforehand do (astride, ONNX Runtime, OpenVINO). For gradients everyone packs. A
row whose answers differ names the rival and leaves it out. A rival takes part in the rows of both layouts with the better of its
times: whoever asks for a convolution may choose. `peak` is astride's speed over the machine's.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from . import convolution_rivals as rivals
from .convolution_cases import CASES, Case
from .field import Entrant, Field
from .peak import peak
from .race import LAYOUTS, Benchmark, Row, beside, head, library_version, rounded, tail

WHATS = ("forward", "data", "weights")

LEAST = 0.95
"""A row below this ratio fails."""

SAME = 1e-3
"""Answers may differ by so much of the largest number."""


def entrants(library: str, case: Case, layouts: Sequence[str], what: str) -> dict[str, Entrant]:
    """Astride's in each layout; a rival's in the layouts it has."""
    arrays, found = filled(case), {}
    for layout in layouts if library in ("astride", "jax") else layouts[:1]:
        entrant = rivals.LIBRARIES[library](case, LAYOUTS[layout], what, arrays)
        if entrant is not None:
            found[layout] = entrant
    return found


def timed(case: Case, layouts: Sequence[str], what: str, field: Field, seconds: float) -> dict[str, Row]:
    """The rows of one case and direction, by layout."""
    entered = field.enter(case, layouts, what)
    most = peak()
    times = field.turns(entered, seconds)
    most = max(most, peak())
    found = {}
    others: dict[str, Sequence[float]] = {}
    for (library, _), one in times.items():
        if library != "astride" and (library not in others or statistics.median(one) < statistics.median(others[library])):
            others[library] = one
    for layout in layouts:
        row = beside(times["astride", layout], others)
        speed = case.flops / row["ms"] / 1e6
        row |= {"GFLOP_per_s": speed, "peak_GFLOP_per_s": most, "peak": speed / most, "differing": field.differing}
        found[layout] = rounded(row | {"way": way(case, LAYOUTS[layout], what)})
    return found


def way(case: Case, layout: str, what: str) -> str:
    """The algorithm that astride takes."""
    from ..backends.cpu import conv_choice, conv_directions

    plan = rivals.plan_of(case, layout)
    if what == "weights":
        relation = conv_directions.relation(plan, case.transposed)
        return conv_choice.weighing(relation, case.images, layout == "channels_first")
    relation = conv_directions.relation(plan, what == "data")
    return conv_choice.gathering(relation, case.images, layout == "channels_first")


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


def takes(case: Case, what: str) -> bool:
    """Whether a case has that row: all have."""
    return True


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
    libraries=tuple(rivals.LIBRARIES),
    version=partial(library_version, rivals.MODULES),
    entrants=entrants,
    same=same,
    takes=takes,
    timed=timed,
    fails=fails,
    line=line,
)
