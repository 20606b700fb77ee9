"""Pictures of comparisons: they show every framework, every window, and what differs."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from astride.draw import draw_comparison
from astride.explain import Comparison, compare

THREE = compare("max_pool", 8, ("caffe", "pytorch", "mps"), kernel=3, stride=2)
COMPARISONS = [
    THREE,
    compare("max_pool", 8, ("caffe", "numpy_loops"), kernel=3, stride=2),
    compare("avg_pool", (7, 9), kernel=(3, 2), stride=2),
    compare("conv", (5, 6, 7), ("pytorch", "mps"), kernel=3, padding="same"),
    compare("conv_transpose", 5, kernel=4, stride=2),
    compare("conv", 6, ("explicit",), kernel=3, padding=2, edge="mirror", rank=1),
    compare("max_unpool", 4, kernel=2),
    compare("lp_pool", 100_000, kernel=11, stride=7, rank=1),
    compare("max_pool", 8, kernel=-1),
]


def texts(comparison: Comparison) -> list[str]:
    return [node.text or "" for node in ET.fromstring(draw_comparison(comparison).svg()).iter() if node.tag.endswith("text")]


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: f"{c.op} {c.sizes}")
def test_pictures_are_drawn(comparison: Comparison) -> None:
    canvas = draw_comparison(comparison)
    picture = Image.open(io.BytesIO(canvas.png())).convert("RGB")
    image = np.asarray(picture)
    assert image.shape == (round(canvas.height * 2), round(canvas.width * 2), 3)
    assert len(picture.getcolors(1 << 24) or []) > 20
    inked = (image < 250).any(axis=2)
    assert 0.005 < inked.mean() < 0.5
    assert not inked[:, -8:].any(), "something reaches over the right edge"
    assert not inked[-8:].any(), "something reaches over the bottom"


def test_the_picture_names_what_it_shows() -> None:
    found = texts(THREE)
    assert found[0] == "max_pool of 8x8, kernel 3, stride 2"
    for text in ("caffe", "pytorch", "mps", "ceil((8 - 3) / 2) + 1 = 4", "no window 3", "no window reads 7", "unlike caffe"):
        assert text in found, text
    assert [found.count(f"window {i}") for i in range(4)] == [3, 3, 3, 2]


def test_what_else_differs_is_listed() -> None:
    found = texts(THREE)
    assert "What else differs" in found and "a NaN never wins" in found and found.count("a NaN wins") == 2
    assert "What else differs" not in texts(compare("max_pool", 8, ("caffe",), kernel=3, stride=2))


def test_refusals_are_in_the_picture() -> None:
    assert any(text.startswith("refuses: the windows do not fill") for text in texts(COMPARISONS[1]))


def test_pictures_differ_where_windows_do() -> None:
    other = draw_comparison(compare("max_pool", 8, ("caffe", "pytorch", "mps"), kernel=3, stride=3))
    assert draw_comparison(THREE).png() != other.png()
    assert draw_comparison(THREE).png() == draw_comparison(THREE).png()
