"""The canvas: the same shapes as PNG and as SVG, whole files, nothing blank."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from astride.draw import Canvas
from astride.draw.canvas import MAX_SIDE, text_width, wrapped
from astride.errors import ArgumentError, ModelFileError

SVG = "{http://www.w3.org/2000/svg}"


def drawn() -> Canvas:
    canvas = Canvas(200, 100)
    canvas.box(10, 10, 80, 40, fill="#ff0000", stroke="#0000ff", radius=4)
    canvas.box(100, 10, 80, 40, stroke="#00aa00", dashed=True)
    canvas.line((10, 60), (90, 60), (90, 80), stroke="#000000", width=2)
    canvas.arrow((110, 80), (180, 80))
    canvas.text(10, 95, "a < b & c", size=12, bold=True)
    return canvas


def pixels(canvas: Canvas) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(canvas.png())).convert("RGB"))


def test_a_png_shows_the_shapes() -> None:
    image = pixels(drawn())
    assert image.shape == (200, 400, 3)
    assert tuple(image[60, 60]) == (255, 0, 0)
    assert tuple(image[190, 390]) == (255, 255, 255)
    text = image[170:196, 20:140]
    assert (text < 128).any()


def test_an_svg_holds_the_shapes() -> None:
    root = ET.fromstring(drawn().svg())
    assert root.attrib["viewBox"] == "0 0 200 100"
    assert [child.tag.removeprefix(SVG) for child in root] == ["rect", "rect", "rect", "polyline", "polyline", "polygon", "text"]
    assert root[-1].text == "a < b & c"


def test_texts_are_ascii() -> None:
    """The built-in font has no other signs; what it cannot show becomes a question mark, not an empty box."""
    canvas = Canvas(50, 20)
    canvas.text(0, 10, "3 × 3 → ö")
    assert ET.fromstring(canvas.svg())[-1].text == "3 ? 3 ? ?"


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("A.SVG", b"<svg")])
def test_files_by_their_suffix(tmp_path: Path, name: str, begins: bytes) -> None:
    drawn().save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="PNG or SVG"):
        drawn().save(tmp_path / "a.pdf")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot write"):
        drawn().save(tmp_path / "none" / "a.png")


def test_an_enormous_drawing_is_painted_smaller() -> None:
    canvas = Canvas(20, 2 * MAX_SIDE)
    canvas.box(0, 0, 20, 2 * MAX_SIDE, fill="#ff0000")
    assert max(Image.open(io.BytesIO(canvas.png())).size) <= MAX_SIDE


def test_text_is_measured_and_wrapped() -> None:
    assert 0 < text_width("iii") < text_width("mmm") < text_width("mmm", 26)
    lines = wrapped("the quick brown fox jumps over the lazy dog", 90)
    assert len(lines) > 2 and " ".join(lines) == "the quick brown fox jumps over the lazy dog"
    assert all(text_width(line) <= 90 for line in lines)
    assert wrapped("unbreakable" * 5, 10) == ["unbreakable" * 5]
