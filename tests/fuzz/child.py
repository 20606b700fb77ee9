"""The process that meets the files. Told by its parent: `python -m tests.fuzz.child FOLDER SECONDS SEED [EXAMPLES]`.

FOLDER/current holds the input in work, so that the parent still has it when this process dies of it.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from .inputs import INPUTS, corpus
from .targets import attempt, limit_process

BATCH = 200


class _Enough(Exception):
    """The time is up."""


def main(folder: Path, seconds: float, first: int, examples: int | None) -> int:
    """Work through the inputs in turn; write FOLDER/result.json and every finding's input."""
    corpus()
    limit_process()
    end = time.monotonic() + seconds
    counts: Counter[str] = Counter()
    findings: dict[str, str] = {}
    done = 0

    def one(name: str, target: str, content: bytes) -> None:
        nonlocal done
        if time.monotonic() > end or (examples is not None and done >= examples):
            raise _Enough
        done += 1
        (folder / "current").write_bytes(target.encode() + b"\n" + content)
        outcome, what = attempt(target, content)
        counts[f"{name}: {outcome}"] += 1
        if outcome == "finding" and what not in findings:
            findings[what] = f"finding_{first}_{len(findings)}"
            (folder / findings[what]).write_bytes(content)
            (folder / f"{findings[what]}.txt").write_text(f"{target}\n{what}\n", encoding="utf-8")

    try:
        for batch in range(first * 10_000, first * 10_000 + 10_000):
            for name, strategy in INPUTS.items():
                _batch(name, strategy, batch, one)
    except _Enough:
        pass
    result = {"done": done, "counts": dict(sorted(counts.items())), "findings": findings}
    (folder / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


def _batch(name: str, strategy: object, batch: int, one: object) -> None:
    assert callable(one)

    @seed(batch)
    @settings(
        max_examples=BATCH,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)  # type: ignore[arg-type]
    def run(drawn: tuple[str, bytes]) -> None:
        one(name, *drawn)

    run()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(main(Path(arguments[0]), float(arguments[1]), int(arguments[2]), int(arguments[3]) if len(arguments) > 3 else None))
