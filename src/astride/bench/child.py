"""Measuring in a process of its own, whose matrix products run on one thread.

How many threads NumPy's BLAS uses is read from the environment when NumPy is loaded, so it cannot be changed from here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import asdict

from ..errors import AstrideError
from .ladder import Problem, Timed, measure

BLAS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{library}{'_THREADS' if library.endswith('MAXIMUM') else '_NUM_THREADS'}": "1" for library in BLAS}
SCRIPT = "from astride.bench.child import answer; answer()"


def on_one_thread(found: Sequence[Problem], rounds: int, seconds: float) -> Generator[list[Timed], None, None]:
    """What `measure` finds for each problem, as it is found.

    Raises AstrideError: the process ended early; what it said went to stderr.
    """
    asked = json.dumps({"problems": [asdict(problem) for problem in found], "rounds": rounds, "seconds": seconds})
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **ONE_THREAD}
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(asked)
            child.stdin.close()
            for line in child.stdout:
                yield [Timed(**row) for row in json.loads(line)]
        except BaseException:  # interrupted, or nobody asks for the rest
            child.kill()
            raise
    if child.returncode:
        raise AstrideError("the measuring process ended early", given={"exit status": child.returncode})


def answer() -> None:
    """The child's side: problems on stdin, a line of JSON on stdout for each."""
    asked = json.load(sys.stdin)
    for problem in asked["problems"]:
        timed = measure(Problem(**problem), asked["rounds"], asked["seconds"])
        print(json.dumps([row.to_dict() for row in timed]), flush=True)
