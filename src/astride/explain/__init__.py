"""Comparison of rules: which pixels each framework's windows read, what they do with them, and who computes it.

compare.py    compare(op, sizes, rules, ...) -> Comparison
windows.py    windows along an axis as plain data
formulas.py   output sizes as each framework computes them, with numbers
facts.py      a plan's choices in words
sources.py    where a rule is written
values.py     what each answer makes of a given input
text.py       for the terminal (its windows: text_windows.py, its numbers: text_values.py)
data.py       as plain data       (pictures: astride.draw)
translate.py  translate(source, call, target, ...) -> Translation, the same operation in another framework
              spelling/ reads and writes calls, search.py tries ways, steps.py computes them, trials.py compares
layer.py      one layer of a network: its formula and operands
"""

from __future__ import annotations

from .compare import Comparison, Rung, Side, compare, windowed_operators
from .data import to_dict
from .text import render
from .text_translation import render_translation, translation_to_dict
from .translate import Translation, translate
from .windows import AxisView, Place, Tap, Window

__all__ = [
    "AxisView",
    "Comparison",
    "Place",
    "Rung",
    "Side",
    "Tap",
    "Translation",
    "Window",
    "compare",
    "render",
    "render_translation",
    "to_dict",
    "translate",
    "translation_to_dict",
    "windowed_operators",
]
