"""Comparison of rules: which pixels each framework's windows read, what they do with them, and who computes it.

compare.py    compare(op, sizes, rules, ...) -> Comparison
windows.py    windows along an axis as plain data
formulas.py   output sizes as each framework computes them, with numbers
facts.py      a plan's choices in words
sources.py    where a rule is written
text.py       for the terminal (its windows: text_windows.py)
data.py   as plain data       (pictures: astride.draw)
layer.py      one layer of a network: its formula and operands
"""

from __future__ import annotations

from .compare import Comparison, Rung, Side, compare, windowed_operators
from .data import to_dict
from .text import render
from .windows import AxisView, Place, Tap, Window

__all__ = [
    "AxisView",
    "Comparison",
    "Place",
    "Rung",
    "Side",
    "Tap",
    "Window",
    "compare",
    "render",
    "to_dict",
    "windowed_operators",
]
