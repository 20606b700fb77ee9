"""A canvas: shapes collected in order, then written as SVG or painted as PNG.

Units are CSS pixels; PNGs are painted at twice that. Texts are plain ASCII, which Pillow's own font covers, so that no font
needs to be installed.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

from ..errors import ArgumentError
from ..proto import atomic_write

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

INK, GREY, PALE, WHITE = "#1f2933", "#66727f", "#c9d1d9", "#ffffff"
SCALE, FINER = 2, 2
DASH = 4.0
FONT = "Helvetica, Arial, sans-serif"
MAX_SIDE = 10_000
"""Pixels of one side of a PNG; larger drawings are painted smaller."""


@dataclass(frozen=True, slots=True)
class _Box:
    at: Point
    size: Point
    fill: str | None
    stroke: str | None
    width: float
    radius: float
    dashed: bool


@dataclass(frozen=True, slots=True)
class _Line:
    points: tuple[Point, ...]
    stroke: str
    width: float
    dashed: bool


@dataclass(frozen=True, slots=True)
class _Area:
    points: tuple[Point, ...]
    fill: str


@dataclass(frozen=True, slots=True)
class _Text:
    at: Point
    text: str
    size: float
    fill: str
    anchor: Anchor
    bold: bool


@dataclass
class Canvas:
    """Width and height may be set after the drawing, when they are known."""

    width: float = 0
    height: float = 0
    shapes: list[_Box | _Line | _Area | _Text] = field(default_factory=list)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str | None = None,
        stroke: str | None = None,
        line: float = 1,
        radius: float = 0,
        dashed: bool = False,
    ) -> None:
        """A rectangle, its corners rounded by `radius`."""
        self.shapes.append(_Box((x, y), (width, height), fill, stroke, line, radius, dashed))

    def line(self, *points: Point, stroke: str = INK, width: float = 1, dashed: bool = False) -> None:
        """A line through the points."""
        self.shapes.append(_Line(points, stroke, width, dashed))

    def area(self, *points: Point, fill: str) -> None:
        """A filled polygon."""
        self.shapes.append(_Area(points, fill))

    def arrow(self, *points: Point, stroke: str = INK, width: float = 1, head: float = 5) -> None:
        """A line that ends in an arrow head."""
        (x0, y0), (x1, y1) = points[-2:]
        length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-9)
        dx, dy = (x1 - x0) / length * head, (y1 - y0) / length * head
        self.line(*points[:-1], (x1 - dx, y1 - dy), stroke=stroke, width=width)
        side = 0.55
        self.area((x1, y1), (x1 - dx - dy * side, y1 - dy + dx * side), (x1 - dx + dy * side, y1 - dy - dx * side), fill=stroke)

    def text(
        self, x: float, y: float, text: str, *, size: float = 13, fill: str = INK, anchor: Anchor = "start", bold: bool = False
    ) -> None:
        """A line of text; y is its baseline."""
        plain = text.encode("ascii", "replace").decode("ascii")
        self.shapes.append(_Text((x, y), plain, size, fill, anchor, bold))

    # -- out

    def svg(self) -> str:
        """The drawing as an SVG document."""
        w, h = _number(self.width), _number(self.height)
        size = f'width="{w}" height="{h}" viewBox="0 0 {w} {h}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family={quoteattr(FONT)}>'
        body = [f'<rect width="{w}" height="{h}" fill="{WHITE}"/>', *map(_as_svg, self.shapes)]
        return "\n".join([head, *body, "</svg>"]) + "\n"

    def png(self) -> bytes:
        """The drawing as a PNG."""
        from PIL import Image, ImageDraw

        scale = min(SCALE, MAX_SIDE / max(self.width, self.height, 1))
        # Painted twice as large and then reduced, so that slanted lines are smooth; texts are smooth by themselves.
        fine = FINER * scale
        size = (max(round(self.width * scale), 1) * FINER, max(round(self.height * scale), 1) * FINER)
        image = Image.new("RGB", size, WHITE)
        paint = ImageDraw.Draw(image)
        for shape in self.shapes:
            _paint(paint, shape, fine)
        buffer = io.BytesIO()
        image.reduce(FINER).save(buffer, "PNG", optimize=True)
        return buffer.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write a .png or .svg file, whole or not at all.

        Raises ArgumentError: another suffix; ModelFileError: it cannot be written.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".svg":
            atomic_write(path, [self.svg().encode()])
        elif suffix == ".png":
            atomic_write(path, [self.png()])
        else:
            raise ArgumentError("pictures are PNG or SVG", given={"path": str(path)}, required=".png or .svg", hint="picture.png")


def text_width(text: str, size: float = 13, *, bold: bool = False) -> float:
    """How wide a line of text will be."""
    return float(_font(round(size * 8)).getlength(text)) / 8 * (1.04 if bold else 1)


def wrapped(text: str, width: float, size: float = 13) -> list[str]:
    """The words of a text in lines no wider than `width`, unless a word is."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


@lru_cache(maxsize=64)
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _as_svg(shape: _Box | _Line | _Area | _Text) -> str:
    if isinstance(shape, _Box):
        (x, y), (w, h) = shape.at, shape.size
        attributes = f'x="{_number(x)}" y="{_number(y)}" width="{_number(w)}" height="{_number(h)}" fill="{shape.fill or "none"}"'
        if shape.radius:
            attributes += f' rx="{_number(shape.radius)}"'
        if shape.stroke:
            attributes += f' stroke="{shape.stroke}" stroke-width="{_number(shape.width)}"'
        return f"<rect {attributes}{_dashes(shape.dashed)}/>"
    if isinstance(shape, _Text):
        (x, y), weight = shape.at, ' font-weight="bold"' if shape.bold else ""
        place = f'x="{_number(x)}" y="{_number(y)}" font-size="{_number(shape.size)}" text-anchor="{shape.anchor}"'
        return f'<text {place} fill="{shape.fill}"{weight} xml:space="preserve">{escape(shape.text)}</text>'
    points = " ".join(f"{_number(x)},{_number(y)}" for x, y in shape.points)
    if isinstance(shape, _Area):
        return f'<polygon points="{points}" fill="{shape.fill}"/>'
    stroke = f'stroke="{shape.stroke}" stroke-width="{_number(shape.width)}" stroke-linejoin="round"'
    return f'<polyline points="{points}" fill="none" {stroke}{_dashes(shape.dashed)}/>'


def _dashes(dashed: bool) -> str:
    return f' stroke-dasharray="{_number(DASH)} {_number(DASH * 0.75)}"' if dashed else ""


def _paint(paint: Any, shape: _Box | _Line | _Area | _Text, scale: float) -> None:
    if isinstance(shape, _Box):
        (x, y), (w, h) = shape.at, shape.size
        corners = [x * scale, y * scale, (x + w) * scale, (y + h) * scale]
        width = max(round(shape.width * scale), 1)
        outline = None if shape.dashed else shape.stroke
        paint.rounded_rectangle(corners, shape.radius * scale, fill=shape.fill, outline=outline, width=width)
        if shape.dashed and shape.stroke:
            ring = [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)]
            _dash(paint, ring, shape.stroke, width, scale)
    elif isinstance(shape, _Text):
        place = (shape.at[0] * scale, shape.at[1] * scale)
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
        bold = shape.size * scale / 50 if shape.bold else 0
        font = _font(max(round(shape.size * scale), 1))
        paint.text(place, shape.text, font=font, fill=shape.fill, anchor=anchor, stroke_width=bold)
    elif isinstance(shape, _Area):
        paint.polygon([(x * scale, y * scale) for x, y in shape.points], fill=shape.fill)
    else:
        width = max(round(shape.width * scale), 1)
        if shape.dashed:
            _dash(paint, shape.points, shape.stroke, width, scale)
        else:
            paint.line([(x * scale, y * scale) for x, y in shape.points], fill=shape.stroke, width=width, joint="curve")


def _dash(paint: Any, points: Sequence[Point], stroke: str, width: int, scale: float) -> None:
    for (x0, y0), (x1, y1) in pairwise(points):
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        at = 0.0
        while at < length:
            a, b = at / length, min(at + DASH, length) / length
            ends = [(x0 + (x1 - x0) * t) * scale for t in (a, b)], [(y0 + (y1 - y0) * t) * scale for t in (a, b)]
            paint.line([(ends[0][0], ends[1][0]), (ends[0][1], ends[1][1])], fill=stroke, width=width)
            at += DASH * 1.75
