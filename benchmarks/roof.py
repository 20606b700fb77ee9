"""Convolution beside what this machine can do at most, without rivals and without Winograd's form: how near the kernels are.

    python benchmarks/roof.py [--cases REGEX] [--record benchmarks/results/roof.jsonl]

One thread. Dense layers of 64 or more channels and maps of 14 x 14 or more are held against the multiplications and additions
that the machine does at most, measured in the same turns; layers whose channels are by themselves against the larger of that
and a copy of the bytes they read and write. `nchw` is NHWC's time over NCHW's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import astride
from astride.bench import convolution_rivals as calls
from astride.bench.convolution import WHATS, filled, way
from astride.bench.convolution_cases import CASES, Case, conv
from astride.bench.peak import peak
from astride.bench.race import LAYOUTS, commit, processor

CASES_HERE = (*CASES, conv("MobileNet dw 32 of 112", 8, 32, 112, 32, 3, 1, 1, 32))
SECONDS = 0.6


def dense(case: Case) -> bool:
    """Whether a layer is one that the peak is asked of."""
    channels = min(case.inputs, case.outputs) // case.groups
    return channels >= 64 and min(case.out) >= 14 and case.images >= 8


def depthwise(case: Case) -> bool:
    return case.groups == case.inputs == case.outputs


def moved(case: Case) -> int:
    """Bytes of x and y."""
    return 4 * (math.prod(case.x_shape) + case.images * case.outputs * math.prod(case.out))


def measured(case: Case, what: str) -> list[dict[str, Any]]:
    """A row for each layout."""
    arrays = filled(case)
    ours: dict[str, Callable[[], Any]] = {}
    for layout, form in LAYOUTS.items():
        entrant = calls.astride(case, form, what, arrays)
        assert entrant is not None
        ours[layout] = entrant.call
    source = np.ones(max(moved(case) // 8, 1), np.float32)
    target = np.empty_like(source)
    ours["copy"] = lambda: np.copyto(target, source)
    times: dict[str, list[float]] = {name: [] for name in ours}
    most, end = 0.0, time.perf_counter() + SECONDS
    for call in ours.values():
        call()
    while time.perf_counter() < end or len(times["copy"]) < 5:
        most = max(most, peak(0.002))
        for name, call in ours.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    middle = {name: statistics.median(one) for name, one in times.items()}
    least = {"peak": case.flops / most / 1e9, "copy": middle["copy"]}
    bound = "peak" if dense(case) else max(least, key=lambda name: least[name])
    return [
        {"case": case.name, "layout": layout, "what": what, "way": way(case, form, what), "ms": round(middle[layout] * 1e3, 4)}
        | {"bound": bound, "share": round(least[bound] / middle[layout], 3), "nchw": round(middle["nhwc"] / middle["nchw"], 3)}
        | {"peak_GFLOP_per_s": round(most, 1)}
        for layout, form in LAYOUTS.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="only cases whose name has this in it (a regular expression)")
    parser.add_argument("--record", type=Path, help="append a line of JSON a row to this file")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    head = {"benchmark": "roof", "commit": commit(), "machine": processor(), "threads": 1}
    astride.configure(threads=1, winograd=0)
    for case in CASES_HERE:
        if not re.search(options.cases, case.name) or not (dense(case) or depthwise(case)):
            continue
        for what in WHATS:
            for row in measured(case, what):
                print(
                    f"{row['case']:28}{row['layout']:5}{row['what']:9}{row['way']:18}{row['ms']:9.3f} ms  "
                    f"{row['share']:4.0%} of {row['bound']}, nchw {row['nchw']:.2f}",
                    flush=True,
                )
                if options.record:
                    with open(options.record, "a", encoding="utf-8") as file:
                        file.write(json.dumps({**head, **row}) + "\n")


if __name__ == "__main__":
    main()
