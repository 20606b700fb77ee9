"""The picture of the ladder: a bar for every time, longer for longer, nothing over the edge."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from astride.bench import DIRECTIONS, RUNGS, Timed
from astride.draw.ladder import SHADES, draw_ladder, duration, times

SECONDS = dict(zip(RUNGS, (1.5, 0.04, 0.003, 0.0003, 0.00021), strict=True))
TIMED = [
    Timed(op, direction, layout, rung, seconds * (2 if layout == "NCHW" else 1), 5, True)
    for op in ("conv", "max_pool")
    for layout in ("NHWC", "NCHW")
    for direction in DIRECTIONS
    for rung, seconds in SECONDS.items()
]


def test_bars_are_as_long_as_times() -> None:
    root = ET.fromstring(draw_ladder(TIMED, note="on a small machine").svg())
    boxes = [node for node in root.iter() if node.tag.endswith("rect") and node.get("rx") == "2"]
    for shade in SHADES.values():
        widths = [float(box.get("width", "0")) for box in boxes if box.get("fill") == shade][1:]
        assert len(widths) == 2 * len(DIRECTIONS) * len(RUNGS)
        assert widths[:4] == sorted(widths[:4], reverse=True)
    texts = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert texts.count("loops4") == 4 and "conv, forward" in texts and "max_pool, backward" in texts
    assert "1.5 s" in texts and "210 us (7,143x)" in texts and "on a small machine" in texts


@pytest.mark.parametrize("part", [TIMED, TIMED[:5], [Timed("conv", "forward", "NCHW", "loops4", 1.0, 1, True)]])
def test_pictures_are_drawn(part: list[Timed]) -> None:
    image = np.asarray(Image.open(io.BytesIO(draw_ladder(part).png())).convert("RGB"))
    inked = (image < 250).any(axis=2)
    assert 0.005 < inked.mean() < 0.5
    assert not inked[:, -8:].any() and not inked[-8:].any(), "something reaches over the edge"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(2.0, "2 s"), (0.99996, "1 s"), (0.0417, "41.7 ms"), (0.001, "1 ms"), (0.00021, "210 us"), (2e-8, "0.02 us")],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_ratios() -> None:
    assert times(1.52) == "1.5x" and times(9.96) == "10x" and times(12345.6) == "12,346x"
