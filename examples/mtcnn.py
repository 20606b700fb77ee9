"""Find faces, and their eyes, noses and mouths, with MTCNN's three Caffe networks.

    python examples/mtcnn.py photo.jpg --models model/ --out faces.png --stages stages.png

MTCNN (Zhang, Zhang, Li, Qiao: Joint Face Detection and Alignment using Multi-task Cascaded Convolutional Networks, 2016) looks
at a photo three times: det1 runs over the whole photo at many sizes and proposes squares, det2 throws most of them away and
moves the rest, det3 decides and marks five points. The networks are the authors' own, trained in Caffe:

    https://github.com/kpzhang93/MTCNN_face_detection_alignment   (MIT licence; the model folders are below code/codes)
    det1.prototxt det1.caffemodel det2.prototxt det2.caffemodel det3.prototxt det3.caffemodel

The cascade around them is the hundred lines below; the rest draws. It needs NumPy, Pillow and astride, nothing else.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageOps

import astride

Floats = NDArray[np.float64]

CELL, STRIDE = 12, 2  # det1 judges squares of 12 pixels, one every 2
SHRINK = 0.709  # from one level of the pyramid to the next: half the area

GREEN, PINK, DARK = "#39e58c", "#d81b60", "#10241a"
GROUND, PAPER, EDGE, INK, GREY, LEAF = "#f3f1ec", "#fffefb", "#cfcbc1", "#1f2b33", "#6d7780", "#0c8f5a"
POINTS = ("eye", "eye", "nose", "mouth", "mouth")  # the left one first, as one sees them


@dataclass(frozen=True)
class Faces:
    """What was found: boxes as x1 y1 x2 y2 score, landmarks as x of five points and then their y."""

    boxes: Floats
    landmarks: Floats


@dataclass(frozen=True)
class Stages:
    """What each network left of one photo of `size` (width, height): squares of det1 and det2, the faces of det3."""

    size: tuple[int, int]
    proposed: Floats
    refined: Floats
    faces: Faces


class Mtcnn:
    """The three networks and the cascade that leads from one to the next."""

    def __init__(self, models: Path, *, smallest: int = 40, thresholds: tuple[float, float, float] = (0.6, 0.7, 0.7)) -> None:
        self.propose, self.refine, self.decide = (
            astride.load_caffe(models / f"{name}.prototxt", models / f"{name}.caffemodel") for name in ("det1", "det2", "det3")
        )
        self.smallest, self.thresholds = smallest, thresholds

    def __call__(self, photo: Image.Image) -> Faces:
        return self.stages(photo).faces

    def stages(self, photo: Image.Image) -> Stages:
        """The faces of a photo, and what led to them."""
        photo = photo.convert("RGB")
        proposed = self.proposals(photo)
        refined = self.refined(photo, proposed)
        return Stages(photo.size, proposed, refined, self.decided(photo, refined))

    def proposals(self, photo: Image.Image) -> Floats:
        """Squares in which det1 sees a face at one of the sizes of the photo."""
        found = [np.empty((0, 9))]  # box, score, and what moves its four sides
        for scale in self.scales(photo):
            level = photo.resize((math.ceil(photo.width * scale), math.ceil(photo.height * scale)), Image.Resampling.BILINEAR)
            # det1 is convolutions only: each level gives the network, and its map of answers, another size.
            answer = self.propose.forward(data=blob([level]))
            score, move = answer["prob1"][0, 1], answer["conv4-2"][0]
            ix, iy = np.nonzero(score >= self.thresholds[0])
            corner = np.stack([ix, iy], axis=1) * STRIDE
            square = np.concatenate([corner, corner + CELL], axis=1) / scale
            rows = np.concatenate([square, score[ix, iy, None], move[:, ix, iy].T], axis=1, dtype=np.float64)
            found.append(rows[suppress(rows, 0.5)])
        rows = np.concatenate(found)
        rows = rows[suppress(rows, 0.7)]
        return squared(moved(rows[:, :5], rows[:, 5:]))

    def scales(self, photo: Image.Image) -> Iterator[float]:
        """The factors by which the photo shrinks: faces of each size become about CELL pixels on one level."""
        scale = CELL / self.smallest
        while min(photo.size) * scale > CELL:
            yield scale
            scale *= SHRINK

    def refined(self, photo: Image.Image, boxes: Floats) -> Floats:
        """The squares that det2, too, takes for faces, closer to them."""
        if not len(boxes):
            return boxes
        answer = self.refine.forward(data=blob(crops(photo, boxes, 24)))
        score = answer["prob1"][:, 1]
        keep = score > self.thresholds[1]
        boxes = moved(scored(boxes[keep], score[keep]), answer["conv5-2"][keep])
        return squared(boxes[suppress(boxes, 0.7)])

    def decided(self, photo: Image.Image, boxes: Floats) -> Faces:
        """The faces that remain after det3, with their landmarks."""
        if not len(boxes):
            return Faces(boxes, np.empty((0, 10)))
        answer = self.decide.forward(data=blob(crops(photo, boxes, 48)))
        score = answer["prob1"][:, 1]
        keep = score > self.thresholds[2]
        boxes, points = scored(boxes[keep], score[keep]), answer["conv6-3"][keep].astype(np.float64)
        size = boxes[:, 2:4] - boxes[:, :2]
        landmarks = np.repeat(boxes[:, :2], 5, axis=1) + np.repeat(size, 5, axis=1) * points
        boxes = moved(boxes, answer["conv6-2"][keep])
        best = suppress(boxes, 0.7)
        return Faces(boxes[best], landmarks[best])


def blob(images: list[Image.Image]) -> NDArray[np.float32]:
    """Images of one size as the networks were trained to see them: lying on their side (N, C, W, H), from -1 to 1."""
    pixels = np.stack([np.asarray(image, np.float32) for image in images])
    return (pixels.transpose(0, 3, 2, 1) - np.float32(127.5)) / np.float32(128)


def crops(photo: Image.Image, boxes: Floats, size: int) -> list[Image.Image]:
    """Each box of the photo at the size a network wants. What lies outside of the photo is black."""
    return [
        photo.crop((x1, y1, x2, y2)).resize((size, size), Image.Resampling.BILINEAR)
        for x1, y1, x2, y2 in np.rint(boxes[:, :4]).astype(int).tolist()
    ]


def scored(boxes: Floats, score: NDArray[np.float32]) -> Floats:
    """The boxes with another network's opinion."""
    return np.column_stack([boxes[:, :4], score])


def moved(boxes: Floats, by: NDArray[np.floating]) -> Floats:
    """The boxes with each side moved by a fraction of their width or height."""
    size = boxes[:, 2:4] - boxes[:, :2]
    return np.column_stack([boxes[:, :4] + np.tile(size, 2) * by, boxes[:, 4]])


def squared(boxes: Floats) -> Floats:
    """The boxes made square about their centres, as long as their longer side."""
    centre = (boxes[:, :2] + boxes[:, 2:4]) / 2
    half = (boxes[:, 2:4] - boxes[:, :2]).max(axis=1, keepdims=True) / 2
    return np.column_stack([centre - half, centre + half, boxes[:, 4]])


def suppress(boxes: Floats, threshold: float) -> list[int]:
    """Which boxes to keep: the best first, and none that overlaps a better one by more than the threshold."""
    x1, y1, x2, y2, score = boxes[:, :5].T
    area = (x2 - x1 + 1) * (y2 - y1 + 1)
    left, kept = np.argsort(-score, kind="stable"), []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(int(best))
        width = np.minimum(x2[best], x2[left]) - np.maximum(x1[best], x1[left]) + 1
        height = np.minimum(y2[best], y2[left]) - np.maximum(y1[best], y1[left]) + 1
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        left = left[shared / (area[best] + area[left] - shared) <= threshold]
    return kept


def draw(photo: Image.Image, faces: Faces) -> Image.Image:
    """The photo with a box, its score and five points on every face."""
    fine = 3  # drawn larger and made smaller again, lines become smooth
    picture = photo.convert("RGB").resize((photo.width * fine, photo.height * fine), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(picture)
    for box, points in zip(faces.boxes, faces.landmarks, strict=True):
        line = max(2, round((box[2] - box[0]) / 50)) * fine
        x1, y1, x2, y2 = (box[:4] * fine).tolist()
        pen.rounded_rectangle((x1, y1, x2, y2), radius=3 * line, outline=GREEN, width=line)
        above = y1 > 8 * line
        draw_label(pen, f"{box[4]:.3f}", x1, y1 - line if above else y2 + 8 * line, line)
        for x, y in points.reshape(2, 5).T * fine:
            pen.circle((x, y), 1.4 * line, fill="white", outline=PINK, width=max(1, line // 2))
    return picture.resize(photo.size, Image.Resampling.LANCZOS)


def draw_label(pen: ImageDraw.ImageDraw, text: str, x: float, bottom: float, line: int) -> None:
    """Dark letters on a green tag that stands on `bottom`."""
    font = ImageFont.load_default(5 * line)
    width = pen.textlength(text, font)
    pen.rounded_rectangle((x, bottom - 7 * line, x + width + 4 * line, bottom), radius=2 * line, fill=GREEN)
    pen.text((x + 2 * line, bottom - 3.5 * line), text, fill=DARK, font=font, anchor="lm")


class Sheet:
    """Three panels side by side, each the frame of one photo and no pixel of it. A unit is drawn as `fine` pixels."""

    side, gap, above, below, fine = 272, 30, 64, 54, 4

    def __init__(self, size: tuple[int, int]) -> None:
        self.size, self.scale = size, self.side / max(size)
        self.frame = (size[0] * self.scale, size[1] * self.scale)
        extent = (3 * self.side + 4 * self.gap, self.above + self.frame[1] + self.below)
        self.picture = Image.new("RGB", (round(extent[0] * self.fine), round(extent[1] * self.fine)), GROUND)
        self.pen = ImageDraw.Draw(self.picture, "RGBA")  # a colour that is not opaque lets show what is below it
        self.left = 0.0

    def panel(self, index: int, title: str, more: str, caption: str) -> None:
        """Open a panel: from now on `box` and `points` draw into it."""
        self.left = self.gap + index * (self.side + self.gap)
        bottom = self.above + self.frame[1]
        self.text(self.left, 33, title, 19)
        self.text(self.left, 53, more, 12.5, GREY)
        self.text(self.left, bottom + 37, caption, 12.5)
        self.left += (self.side - self.frame[0]) / 2
        corners = np.array([self.left, self.above, self.left + self.frame[0], bottom]) * self.fine
        self.pen.rectangle(corners.tolist(), fill=PAPER, outline=EDGE, width=self.fine)
        self.text(self.left, bottom + 14, "0", 10, GREY)
        self.text(self.left + self.frame[0], bottom + 14, f"{self.size[0]} x {self.size[1]}", 10, GREY, "rs")

    def text(self, x: float, y: float, text: str, size: float, color: str = INK, anchor: str = "ls") -> None:
        """Letters on the sheet, in units."""
        font = ImageFont.load_default(size * self.fine)
        self.pen.text((x * self.fine, y * self.fine), text, fill=color, font=font, anchor=anchor)

    def line(self, path: list[tuple[float, float]], color: str, width: float) -> None:
        """A line on the sheet, in units."""
        self.pen.line([(x * self.fine, y * self.fine) for x, y in path], fill=color, width=round(width * self.fine))

    def place(self, x: Floats, y: Floats) -> Floats:
        """Places of the photo, cut at its frame, as units of the sheet."""
        inside = np.clip(x, 0, self.size[0]), np.clip(y, 0, self.size[1])
        return np.stack([self.left + inside[0] * self.scale, self.above + inside[1] * self.scale])

    def box(self, box: Floats, color: str, opaque: float, line: float) -> None:
        """A box of the photo, faintly filled."""
        (x1, x2), (y1, y2) = self.place(box[[0, 2]], box[[1, 3]]) * self.fine
        outline, fill = (f"{color}{round(255 * alpha):02x}" for alpha in (opaque, opaque * 0.06))
        self.pen.rectangle((x1, y1, x2, y2), outline=outline, fill=fill, width=round(line * self.fine))

    def points(self, face: Floats, points: Floats, *, named: bool) -> None:
        """The five points of a face, and lines that lead to their names on the side where there is room."""
        x, y = points.reshape(2, 5)
        px, py = self.place(x, y)
        way = 1 if face[0] + face[2] < self.size[0] else -1
        column = self.place(face[[2 if way > 0 else 0]], face[[1]])[0, 0] + 22 * way
        row = np.clip(py.mean(), self.above + 46, self.above + self.frame[1] - 46) - 2 * 19
        for i in np.lexsort((x * way, y)) if named else ():
            self.line([(px[i], py[i]), (column - 14 * way, row), (column - 3 * way, row)], f"{PINK}80", 0.75)
            self.text(column, row + 4, f"{POINTS[i]}  {x[i]:.0f}, {y[i]:.0f}", 12, anchor="ls" if way > 0 else "rs")
            row += 19
        for centre in np.stack([px, py], axis=1) * self.fine:
            self.pen.circle(centre.tolist(), 2.6 * self.fine, fill=PINK, outline=PAPER, width=round(0.7 * self.fine))


def draw_stages(stages: Stages) -> Image.Image:
    """The cascade as a picture: where each network sees faces, the surer the darker, and in grey what the one before it saw."""
    sheet, (boxes, landmarks) = Sheet(stages.size), (stages.faces.boxes, stages.faces.landmarks)
    many = len(stages.proposed)
    scores = np.sort(stages.proposed[:, 4])
    span = f"scores from {scores[0]:.4f} to {scores[-1]:.4f}" if many else "none"
    sheet.panel(0, "det1 proposes", counted(many, "square"), span)
    for box in stages.proposed[np.argsort(stages.proposed[:, 4])]:
        sheet.box(box, LEAF, float(np.clip(2.5 * box[4] - 1.5, 0.25, 1)), 1.25)
    sheet.panel(1, "det2 throws away", f"{counted(len(stages.refined), 'square')} left of {many}", best(stages.refined))
    for box in stages.proposed:
        sheet.box(box, GREY, 0.2, 0.75)
    for box in stages.refined:
        sheet.box(box, LEAF, 1, 2)
    sheet.panel(2, "det3 decides", f"{counted(len(boxes), 'face')}{', five points' * (len(boxes) == 1)}", best(boxes))
    for box in stages.refined:
        sheet.box(box, GREY, 0.5, 0.75)
    for box, points in zip(boxes, landmarks, strict=True):
        sheet.box(box, LEAF, 1, 2)
        sheet.points(box, points, named=len(boxes) == 1)
    half = (sheet.picture.width // 2, sheet.picture.height // 2)
    return sheet.picture.resize(half, Image.Resampling.LANCZOS).quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)


def counted(count: int, thing: str) -> str:
    """So many of a thing."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def best(boxes: Floats) -> str:
    """Where the surest box is, and how sure."""
    if not len(boxes):
        return "none"
    x1, y1, x2, y2, score = boxes[boxes[:, 4].argmax()]
    return f"({x1:.0f}, {y1:.0f}) - ({x2:.0f}, {y2:.0f})   score {score:.4f}"


def main() -> None:
    """Find the faces of one photo, print them and draw them."""
    parser = argparse.ArgumentParser(description="Find faces in a photo with MTCNN's three Caffe networks.")
    parser.add_argument("photo", type=Path, help="the photo to look at")
    parser.add_argument("--models", type=Path, required=True, help="folder with det1, det2, det3 .prototxt and .caffemodel")
    parser.add_argument("--out", type=Path, default=Path("faces.png"), help="where to draw the faces (default: %(default)s)")
    parser.add_argument("--stages", type=Path, help="also draw what each network left, without the photo, to this file")
    parser.add_argument(
        "--smallest", type=int, default=40, help="the smallest face to look for, in pixels (default: %(default)s)"
    )
    arguments = parser.parse_args()
    try:
        photo = ImageOps.exif_transpose(Image.open(arguments.photo))
        find = Mtcnn(arguments.models, smallest=arguments.smallest)
    except (OSError, astride.AstrideError) as error:
        parser.exit(1, f"{error}\n")
    start = time.perf_counter()
    stages = find.stages(photo)
    faces = stages.faces
    print(f"{counted(len(faces.boxes), 'face')} in {time.perf_counter() - start:.2f} s")
    for x1, y1, x2, y2, score in faces.boxes:
        print(f"  ({x1:.0f}, {y1:.0f}) - ({x2:.0f}, {y2:.0f})   {score:.3f}")
    draw(photo, faces).save(arguments.out)
    print(f"drawn to {arguments.out}")
    if arguments.stages:
        draw_stages(stages).save(arguments.stages, optimize=True)
        print(f"stages drawn to {arguments.stages}")


if __name__ == "__main__":
    main()
