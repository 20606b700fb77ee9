"""Meets the crafted files in a limited process: one JSON line for each on standard output."""

from __future__ import annotations

import json
import sys
import time

from .crafted import crafted
from .targets import attempt, limit_process


def main(first: int) -> None:
    """From the case of this number on."""
    cases = crafted()
    limit_process()
    for number, (name, target, content) in enumerate(cases[first:], first):
        print(json.dumps({"begin": number, "name": name}), flush=True)
        start = time.process_time()
        outcome, what = attempt(target, content)
        seconds = time.process_time() - start
        print(json.dumps({"number": number, "outcome": outcome, "what": what, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
