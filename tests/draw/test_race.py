"""The picture of a benchmark beside other libraries: bars to the right where astride is faster, and nothing over the edge."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from astride.draw.ladder import SHADES
from astride.draw.race import draw_race

RATIOS = {"faster": 2.0, "slower": 0.5, "far": 100.0, "alone": None}
ROWS = [
    {"case": case, "what": what, "layout": layout, "threads": threads, "ratio": ratio}
    for threads in (1, 2)
    for case, ratio in RATIOS.items()
    for what in ("forward", "data", "weights")
    for layout in ("nchw", "nhwc")
]


def test_bars_begin_at_the_line() -> None:
    root = ET.fromstring(draw_race(ROWS, "Beside others", note="on a small machine").svg())
    boxes = [node for node in root.iter() if node.tag.endswith("rect") and node.get("rx") == "1"]
    assert len(boxes) == 2 * 3 * 2 * 3, "who has no ratio has no bar"
    faster, slower, far = (boxes[i] for i in (0, 2, 4))
    assert {box.get("fill") for box in boxes} == set(SHADES.values())
    left, width = (float(slower.get(name, "0")) for name in ("x", "width"))
    assert float(faster.get("x", "0")) == left + width, "both end at the line"
    assert float(faster.get("width", "0")) == width and float(far.get("width", "0")) == pytest.approx(3 * width, rel=0.01)
    texts = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert {"1 thread", "2 threads", "2.00", "0.50", "100.00", "alone", "on a small machine"} <= set(texts)


def test_the_picture_is_drawn() -> None:
    image = np.asarray(Image.open(io.BytesIO(draw_race(ROWS, "Beside others").png())).convert("RGB"))
    inked = (image < 250).any(axis=2)
    assert 0.005 < inked.mean() < 0.5 and not inked[:, -8:].any() and not inked[-8:].any()
