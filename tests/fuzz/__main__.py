"""python -m tests.fuzz --seconds 3600: random hostile files, in one process after another, and a count at the end."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

SLICE = 300.0
"""Seconds for one child: what a process gathers over time is part of the test, but not for ever."""


def run(seconds: float, folder: Path, seed: int = 1, examples: int | None = None) -> dict[str, Any]:
    """Children in turn until the time is up. A child that dies leaves its input behind, and the next one begins."""
    folder.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    findings: dict[str, str] = {}
    done = 0
    start = time.monotonic()
    while (left := seconds - (time.monotonic() - start)) > 1 and (examples is None or done < examples):
        (folder / "result.json").unlink(missing_ok=True)
        more = [] if examples is None else [str(examples - done)]
        command = [sys.executable, "-m", "tests.fuzz.child", str(folder), str(min(SLICE, left)), str(seed), *more]
        try:
            child = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=min(SLICE, left) + 60)
            died = f"exit status {child.returncode}: {child.stderr.strip()[-300:]}"
        except subprocess.TimeoutExpired:
            died = "hangs where no timer reaches"
        if (folder / "result.json").exists():
            result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            counts.update(result["counts"])
            findings |= result["findings"]
            done += result["done"]
        else:
            name = f"finding_{seed}_died"
            if (folder / "current").exists():
                (folder / "current").rename(folder / name)
            findings[died] = name
            done += 1
        seed += 1
    return {
        "seconds": round(time.monotonic() - start),
        "done": done,
        "counts": dict(sorted(counts.items())),
        "findings": findings,
    }


def _environment() -> dict[str, str]:
    # Threads of a BLAS would take most of the address space that the limit leaves.
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def main() -> int:
    """Exit status 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=Path("fuzz_findings"))
    arguments = parser.parse_args()
    result = run(arguments.seconds, arguments.findings, arguments.seed)
    print(json.dumps(result, indent=1))
    return 1 if result["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
