"""Timing: what `astride bench` runs.

ladder.py     the rungs of the reference beside each other
child.py      the same in a process of its own, on one thread
race.py       layers of known networks beside other libraries: turns, records, a process for each number of threads
convolution.py, pooling.py    what is measured there; *_cases.py the fixed samples, *_rivals.py the same in other libraries
integer.py    convolution of quantised numbers beside ONNX Runtime
peak.py       the most multiplications and additions that this machine does
gpu.py        kernels on a GPU by their timestamps, beside what it does at most
"""

from __future__ import annotations

from .child import on_one_thread
from .ladder import DIRECTIONS, RUNGS, WINDOWS, Problem, Timed, measure, problems

__all__ = ["DIRECTIONS", "RUNGS", "WINDOWS", "Problem", "Timed", "measure", "on_one_thread", "problems"]
