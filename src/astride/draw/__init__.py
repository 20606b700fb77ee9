"""Pictures as PNG (Pillow) and SVG (text), without Graphviz and without a plotting library.

canvas.py     shapes collected once, written as either
windows.py    a comparison of rules: draw_comparison (numbers of a given input: values.py)
translation.py  a call in another framework's words: draw_translation
layout.py     where the boxes of a network go
network.py    the network itself: draw_network
"""

from __future__ import annotations

from .canvas import Canvas
from .network import draw_network
from .translation import draw_translation
from .windows import draw_comparison

__all__ = ["Canvas", "draw_comparison", "draw_network", "draw_translation"]
