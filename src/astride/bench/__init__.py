"""Timing: what `astride bench` runs.

ladder.py     the rungs of the reference beside each other
child.py      the same in a process of its own, on one thread
"""

from __future__ import annotations

from .child import on_one_thread
from .ladder import DIRECTIONS, RUNGS, WINDOWS, Problem, Timed, measure, problems

__all__ = ["DIRECTIONS", "RUNGS", "WINDOWS", "Problem", "Timed", "measure", "on_one_thread", "problems"]
