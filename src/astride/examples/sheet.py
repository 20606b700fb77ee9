"""The sheet that the demonstration draws on: its size, its colours, its type sizes, the look of a section's head."""

from __future__ import annotations

import textwrap
from typing import Any

WIDTH, HEIGHT = 16.0, 20.4
ASPECT = WIDTH / HEIGHT
"""Positions are parts of the sheet's width and height; a square `w` wide is `w * ASPECT` high."""

DARK, GREY, RING = "#1b1f24", "#6a737d", "#00b8a9"
TITLE, TEXT, SMALL = 17, 12.5, 11.5


def section(figure: Any, x: float, y: float, title: str, text: str, *, columns: int = 160) -> None:
    """A heading and what explains the part below it, in lines of at most `columns` letters."""
    figure.text(x, y, title, fontsize=TITLE, weight="bold", color=DARK, va="top")
    figure.text(x, y - 0.0165, textwrap.fill(text, columns), fontsize=TEXT, color=GREY, va="top", linespacing=1.4)
