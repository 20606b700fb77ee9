"""Pooling beside other libraries, and beside a copy of the same bytes.

    python benchmarks/pooling.py --quick                                            a look, in seconds
    python benchmarks/pooling.py --run 1 --record benchmarks/results/pooling.jsonl   one of three runs
    python benchmarks/pooling.py --summary benchmarks/results/pooling.jsonl          what all runs say

Every row (case, layout, direction, threads) times astride and each rival that has that pooling, in turns, after their answers
were compared; a row whose answers differ names the rival and leaves it out. Medians of the turns, and as spread half the
distance between the quartiles over the median. `ratio` is the best rival's median over astride's: above 1 is faster. A row
fails where it is below 1 by more than both spreads in three of three runs. `copy` is the speed of a copy of as many bytes as
the pooling reads and writes, in the same turns, over astride's.

A run that was interrupted goes on where it stopped, if it is given the same --run, --record and commit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LAYOUTS = {"nchw": "channels_first", "nhwc": "channels_last"}
WHATS = ("forward", "argmax", "backward")
SHORTEST = 3e-4
"""Seconds that one turn of one contestant takes at least: shorter calls are repeated within it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="only cases whose name has this in it (a regular expression)")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--what", nargs="+", choices=WHATS, default=list(WHATS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0.5, help="of each row, after its compilations")
    parser.add_argument("--quick", action="store_true", help="every fifth case, one thread, little time")
    parser.add_argument("--run", type=int, default=1, help="the number this run has in the records")
    parser.add_argument("--record", type=Path, help="append a line of JSON a row to this file")
    parser.add_argument("--summary", type=Path, help="time nothing; say what the runs in this file found")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.summary:
        summarise(read(options.summary))
    elif options.child:
        time_rows(options)
    else:
        in_children(options)


def in_children(options: argparse.Namespace) -> None:
    """A process for each number of threads: only at its start can all libraries be told."""
    for threads in options.threads[:1] if options.quick else options.threads:
        if hasattr(os, "sched_getaffinity") and threads > len(os.sched_getaffinity(0)):
            print(f"no {threads} processors here", file=sys.stderr)
            continue
        words = [sys.executable, __file__, *sys.argv[1:], "--threads", str(threads), "--child"]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        subprocess.run(words, env=environment, check=True)


def time_rows(options: argparse.Namespace) -> None:
    """Time every row of this process's number of threads that is not in the record yet."""
    (count,) = options.threads
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    from pooling_cases import CASES
    from pooling_rivals import installed

    import astride

    astride.configure(threads=count)
    versions = {"astride": astride.__version__, **installed()}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    about = {"benchmark": "pooling", "run": options.run, "commit": commit, "machine": processor(), "versions": versions}
    seen = {key(row): row["commit"] for row in read(options.record)} if options.record else {}
    chosen = [case for case in CASES if re.search(options.cases, case.name)]
    for case in chosen[::5] if options.quick and not options.cases else chosen:
        for layout in options.layouts:
            for what in options.what:
                row: dict[str, Any] = {**about, "case": case.name, "layout": layout, "what": what, "threads": count}
                if (what == "argmax" and case.op != "max_pool") or seen.get(key(row)) == commit:
                    continue
                row |= timed(case, LAYOUTS[layout], what, list(versions)[1:], 0.08 if options.quick else options.seconds)
                print(line(row), flush=True)
                if options.record:
                    with open(options.record, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


def timed(case: Any, layout: str, what: str, names: list[str], seconds: float) -> dict[str, Any]:
    """One row: medians and spreads of all who take part."""
    import numpy as np
    import pooling_rivals as rivals

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
    source = np.ones(max(moved // 8, 1), np.float32)
    calls["copy"] = copying(source)
    found = {name: (statistics.median(times), spread(times)) for name, times in turns(calls, seconds).items()}
    own, own_spread = found.pop("astride")
    copied = found.pop("copy")[0]
    best = min(found, key=lambda name: found[name][0], default=None)
    row = {
        "ms": own * 1e3,
        "spread": own_spread,
        "rivals": {name: [round(t * 1e3, 5), round(s, 3)] for name, (t, s) in found.items()},
        "best": best,
        "ratio": found[best][0] / own if best else None,
        "noise": max(own_spread, found[best][1]) if best else own_spread,
        "copy": copied / own,
        "GB_per_s": moved / own / 1e9,
        "differing": differing,
    }
    below = rivals.im2col(case, layout, what, x, dy)
    if below is not None:
        begin = time.perf_counter()
        below()
        row["im2col_ms"] = (time.perf_counter() - begin) * 1e3
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()}


def copying(source: Any) -> Callable[[], Any]:
    """A copy on all threads of this process, into memory that is there."""
    try:
        import torch
    except ImportError:
        import numpy as np

        target = np.empty_like(source)
        return lambda: np.copyto(target, source)
    given = torch.from_numpy(source)
    there = torch.empty_like(given)
    return lambda: there.copy_(given)


def turns(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Seconds of each call, turn by turn: everyone in every turn, each time in the same order but begun elsewhere.

    Whoever takes a fifth of the row's time for one call takes part in three turns only.
    """
    repeats, slow = {}, set()
    for name, call in calls.items():
        call()
        begin = time.perf_counter()
        call()
        took = time.perf_counter() - begin
        repeats[name] = max(int(SHORTEST / max(took, 1e-7)), 1)
        if took > seconds / 5:
            slow.add(name)
    order, times = list(calls), {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 3:
        for name in order:
            call, count = calls[name], repeats[name]
            if name in slow and len(times[name]) >= 3:
                continue
            begin = time.perf_counter()
            for _ in range(count):
                call()
            times[name].append((time.perf_counter() - begin) / count)
        order.append(order.pop(0))
    return times


def spread(times: list[float]) -> float:
    """Half the distance between the quartiles, over the median."""
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / 2 / middle


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row is about."""
    return tuple(row[name] for name in ("case", "layout", "what", "threads", "run"))


def line(row: dict[str, Any]) -> str:
    """A row for people."""
    ratio = f"{row['ratio']:6.2f}" if row["ratio"] else "     -"
    rivals = " ".join(f"{name} {ms:.3f}" for name, (ms, _) in row["rivals"].items())
    differ = f"  differing: {', '.join(row['differing'])}" if row["differing"] else ""
    head = f"{row['case']:26}{row['layout']:5}{row['what']:9}{row['threads']} {row['ms']:9.3f} ms +-{row['spread']:4.0%}"
    return f"{head}  x{ratio} +-{row['noise']:4.0%}  copy {row['copy']:4.0%}  {rivals}{differ}"


def read(path: Path | None) -> Iterator[dict[str, Any]]:
    """The rows recorded so far; the last of those that are about the same thing counts."""
    if path is None or not path.exists():
        return
    rows = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        rows[key(row)] = row
    yield from rows.values()


def fails(row: dict[str, Any]) -> bool:
    """Whether the best rival was faster by more than the spread."""
    return row["ratio"] is not None and row["ratio"] < 1 - row["noise"]


def summarise(rows: Iterator[dict[str, Any]]) -> None:
    """Geometric means of the ratios, and the rows that fail in three runs of three."""
    found = list(rows)
    runs = sorted({row["run"] for row in found})
    groups: dict[tuple[Any, ...], list[float]] = {}
    by_row: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in found:
        by_row.setdefault(key(row)[:-1], []).append(row)
        if row["ratio"] is not None:
            groups.setdefault((row["layout"], row["what"], row["threads"]), []).append(row["ratio"])
    print(f"{len(by_row)} rows, runs {', '.join(map(str, runs))}; geometric means of the ratio to the best rival:")
    for (layout, what, threads), ratios in sorted(groups.items()):
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"  {layout} {what:9}{threads} threads  {mean:5.2f}   least {min(ratios):5.2f}   {len(ratios)} ratios")
    failing = [rows_ for rows_ in by_row.values() if len(rows_) >= 3 and all(fails(row) for row in rows_)]
    print(f"failing in each of three runs or more: {len(failing)}")
    for rows_ in failing:
        print("  " + line(min(rows_, key=lambda row: row["ratio"])))


def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for text in info.read_text(encoding="utf-8").splitlines():
            if text.startswith("model name"):
                return f"{text.partition(':')[2].strip()}, {os.cpu_count()} CPUs"
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs"


if __name__ == "__main__":
    main()
