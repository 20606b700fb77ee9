"""Rows of a benchmark beside other libraries, and the record of them: what the benchmarks of operators share.

A `Benchmark` says what its rows are: cases, layouts, directions, numbers of threads. Each number of threads has a process of
its own, since only at its start can all libraries be told. A run that was interrupted goes on where it stopped, if it is given
the same run, record and commit.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .field import Field, Lineup, field, spread

Row = dict[str, Any]

LAYOUTS = {"nchw": "channels_first", "nhwc": "channels_last"}

MAIN = "from astride.bench.race import child; child()"

KEEPING = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32), "MALLOC_TOP_PAD_": str(1 << 26)}
"""Variables by which glibc keeps memory that was freed. Otherwise a library whose results are large can spend half of its time on
pages that it gave back and asks for again; whether it does depends on what its process did before."""

_GROUP: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(Lineup):
    """What a benchmark measures. `timed(case, layouts, what, field, seconds)` gives one row a layout, `takes(case, what)`
    says whether a case has that row, `fails(row)` whether astride was too slow, `line(row)` is a row for people."""

    name: str
    whats: tuple[str, ...]
    cases: Sequence[Any]
    seconds: float
    takes: Callable[[Any, str], bool]
    timed: Callable[[Any, Sequence[str], str, Field, float], dict[str, Row]]
    fails: Callable[[Row], bool]
    line: Callable[[Row], str]


def named(name: str) -> Benchmark:
    """One of the benchmarks: "convolution" or "pooling"."""
    from importlib import import_module

    found: Benchmark = import_module(f".{name}", __package__).BENCHMARK
    return found


def parser(about: Benchmark, description: str | None) -> argparse.ArgumentParser:
    """The options that the benchmarks share."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--cases", default="", help="only cases whose name has this in it (a regular expression)")
    made.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    made.add_argument("--what", nargs="+", choices=about.whats, default=list(about.whats))
    made.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    made.add_argument("--seconds", type=float, default=about.seconds, help="of each row, after its compilations")
    made.add_argument("--quick", action="store_true", help="every fifth case, one thread, little time")
    made.add_argument("--run", type=int, default=1, help="the number this run has in the records")
    made.add_argument("--record", type=Path, help="append a line of JSON a row to this file")
    made.add_argument("--fails-of", type=Path, help="only the rows that fail in this record")
    made.add_argument("--summary", type=Path, help="time nothing; say what the runs in this file found")
    return made


def main(name: str, description: str | None) -> None:
    """The command line of a benchmark."""
    about = named(name)
    options = parser(about, description).parse_args()
    if options.summary:
        summarise(about, read(options.summary))
        return
    for row in rows(name, sys.argv[1:], options.threads[:1] if options.quick else options.threads):
        print(about.line(row), flush=True)


def rows(name: str, words: Sequence[str], threads: Iterable[int]) -> Iterator[Row]:
    """The rows of a benchmark as they are found, by a process for each number of threads. `words` are the options.

    Raises subprocess.CalledProcessError: a process ended early; what it said went to stderr.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for count in threads:
        if count > available:
            print(f"no {count} processors here", file=sys.stderr)
            continue
        command = [sys.executable, "-c", MAIN, name, *words, "--threads", str(count)]
        environment = {**os.environ, **KEEPING, "OMP_NUM_THREADS": str(count), "OPENBLAS_NUM_THREADS": str(count)}
        # A group of its own: if it is killed, the system wakes and ends the processes that it had stopped.
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **_GROUP) as process:
            assert process.stdout is not None
            try:
                for text in process.stdout:
                    if text.startswith("{"):
                        yield json.loads(text)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)


def child() -> None:
    """Time every row of this process's number of threads that is not in the record yet; a line of JSON for each."""
    about = named(sys.argv.pop(1))
    options = parser(about, None).parse_args()
    (count,) = options.threads
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    from .. import settings

    settings.configure(threads=count)
    seconds = 0.16 * about.seconds if options.quick else options.seconds
    at = commit()
    with field(about) as entered:
        head = {"benchmark": about.name, "run": options.run, "commit": at, "machine": processor(), "versions": entered.versions}
        for case, what, wanted in _groups(about, options, at):
            for layout, measured in about.timed(case, wanted, what, entered, seconds).items():
                row = {**head, "case": case.name, "layout": layout, "what": what, "threads": count, **measured}
                print(json.dumps(row), flush=True)
                if options.record:
                    with open(options.record, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


def _groups(about: Benchmark, options: argparse.Namespace, at: str) -> Iterator[tuple[Any, str, list[str]]]:
    """What is timed together: a case, a direction, and the layouts that are asked for and not in the record yet."""
    (count,) = options.threads
    seen = {key(row): row["commit"] for row in read(options.record)}
    failed = {key(row)[:-1] for row in read(options.fails_of) if about.fails(row)}
    chosen = [case for case in about.cases if re.search(options.cases, case.name)]
    for case in chosen[::5] if options.quick and not options.cases else chosen:
        for what in about.whats:
            if what not in options.what or not about.takes(case, what):
                continue
            keys = {layout: (case.name, layout, what, count, options.run) for layout in options.layouts}
            wanted = [layout for layout, one in keys.items() if seen.get(one) != at]
            wanted = [layout for layout in wanted if not options.fails_of or keys[layout][:-1] in failed]
            if wanted:
                yield case, what, wanted


def beside(own: Sequence[float], rivals: Mapping[str, Sequence[float]]) -> Row:
    """Medians in milliseconds and spreads of astride and its rivals, and the best rival's median over astride's."""
    middle, noise = statistics.median(own), spread(own)
    found = {name: (statistics.median(times), spread(times)) for name, times in rivals.items()}
    best = min(found, key=lambda name: found[name][0], default=None)
    return {
        "ms": middle * 1e3,
        "spread": noise,
        "rivals": {name: [round(t * 1e3, 5), round(s, 3)] for name, (t, s) in found.items()},
        "best": best,
        "ratio": found[best][0] / middle if best else None,
        "noise": max(noise, found[best][1]) if best else noise,
    }


def rounded(row: Row) -> Row:
    """The row with numbers of five digits behind the point."""
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()}


def key(row: Row) -> tuple[Any, ...]:
    """What a row is about."""
    return tuple(row[name] for name in ("case", "layout", "what", "threads", "run"))


def head(row: Row) -> str:
    """The beginning of a row for people: what it is about, its time and how it compares."""
    ratio = f"{row['ratio']:6.2f}" if row["ratio"] else "     -"
    what = f"{row['case']:26}{row['layout']:5}{row['what']:9}{row['threads']}"
    return f"{what} {row['ms']:9.3f} ms +-{row['spread']:4.0%}  x{ratio} +-{row['noise']:4.0%}"


def tail(row: Row) -> str:
    """The end of a row for people: the rivals' times, and who gave other numbers."""
    rivals = " ".join(f"{name} {ms:.3f}" for name, (ms, _) in row["rivals"].items())
    return rivals + (f"  differing: {', '.join(row['differing'])}" if row["differing"] else "")


def read(path: Path | None) -> Iterator[Row]:
    """The rows recorded so far; the last of those that are about the same thing counts."""
    if path is None or not path.exists():
        return
    found = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        found[key(row)] = row
    yield from found.values()


GROUP = ("layout", "what", "threads")


def means(found: Iterable[Row], by: Sequence[str] = GROUP) -> dict[tuple[Any, ...], tuple[float, float, int]]:
    """By layout, direction and threads, or by other fields: the geometric mean of the ratios, the least, and how many there
    are."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in found:
        if row["ratio"] is not None:
            groups.setdefault(tuple(row.get(name, "") for name in by), []).append(row["ratio"])
    return {
        group: (math.exp(statistics.fmean(map(math.log, ratios))), min(ratios), len(ratios))
        for group, ratios in sorted(groups.items())
    }


def summarise(about: Benchmark, recorded: Iterator[Row]) -> None:
    """Geometric means of the ratios, each row's median over its runs, and the rows that fail in three runs of three."""
    found = list(recorded)
    runs = sorted({row["run"] for row in found})
    by_row: dict[tuple[Any, ...], list[Row]] = {}
    for row in found:
        by_row.setdefault(key(row)[:-1], []).append(row)
    # Rows that failed were measured again: they count once.
    once = [{**same[0], "ratio": _middle([row["ratio"] for row in same])} for same in by_row.values()]
    print(f"{len(by_row)} rows, runs {', '.join(map(str, runs))}; geometric means of the ratio to the best rival:")
    for (layout, what, threads), (mean, least, count) in means(once).items():
        print(f"  {layout} {what:9}{threads} threads  {mean:5.2f}   least {least:5.2f}   {count} ratios")
    for (way, threads), (mean, least, count) in means(once, ("way", "threads")).items() if "way" in once[-1] else ():
        print(f"  {way:20}{threads} threads  {mean:5.2f}   least {least:5.2f}   {count} ratios")
    wanted = min(len(runs), 3)
    failing = [same for same in by_row.values() if len(same) >= wanted and all(about.fails(row) for row in same)]
    print(f"failing in each of {wanted} runs or more: {len(failing)}")
    for same in sorted(failing, key=lambda same: min(row["ratio"] for row in same)):
        print("  " + about.line(min(same, key=lambda row: row["ratio"])))


def _middle(ratios: Sequence[float | None]) -> float | None:
    there = [ratio for ratio in ratios if ratio is not None]
    return statistics.median(there) if there else None


def commit() -> str:
    """The commit of the sources that are measured; empty where they are not in a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def processor() -> str:
    """The processor's name, the vectors that kernels use on it, and how many there are."""
    from ..backends.cpu.machine import machine

    vectors = {64: "avx512", 32: "avx2", 16: "128 bit"}.get(machine().vector_bytes, "plain")
    info, name = Path("/proc/cpuinfo"), platform.processor() or platform.machine()
    if info.exists():
        for text in info.read_text(encoding="utf-8").splitlines():
            if text.startswith("model name"):
                name = text.partition(":")[2].strip()
                break
    return f"{name}, {vectors}, {os.cpu_count()} CPUs"


def threads() -> int:
    """The threads of this process: its affinity says, and every library is told the same."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else int(os.environ.get("OMP_NUM_THREADS", "1"))


def library_version(modules: Mapping[str, str], name: str) -> str | None:
    """A library's version, None where it is not installed; `modules` has the names of modules called otherwise. It learns how
    many threads it may use."""
    if name == "astride":
        from .. import settings

        settings.configure(threads=threads())
        return version("astride")
    try:
        module = import_module(modules.get(name, name))
        if name == "onnxruntime":
            import_module("onnx")
    except ImportError:
        return None
    if module.__name__ == "torch":
        module.set_num_threads(threads())
    return str(module.__version__).split("-")[0]
