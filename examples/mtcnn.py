"""Find faces, and their eyes, noses and mouths, with MTCNN's three Caffe networks.

    python examples/mtcnn.py photo.jpg --models model/ --out faces.png

MTCNN (Zhang, Zhang, Li, Qiao: Joint Face Detection and Alignment using Multi-task Cascaded Convolutional Networks, 2016) looks
at a photo three times: det1 runs over the whole photo at many sizes and proposes squares, det2 throws most of them away and
moves the rest, det3 decides and marks five points. The networks are the authors' own, trained in Caffe:

    https://github.com/kpzhang93/MTCNN_face_detection_alignment   (MIT licence; the model folders are below code/codes)
    det1.prototxt det1.caffemodel det2.prototxt det2.caffemodel det3.prototxt det3.caffemodel

The cascade around them is the hundred lines below. It needs NumPy, Pillow and astride, nothing else.
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


@dataclass(frozen=True)
class Faces:
    """What was found: boxes as x1 y1 x2 y2 score, landmarks as x of five points and then their y."""

    boxes: Floats
    landmarks: Floats


class Mtcnn:
    """The three networks and the cascade that leads from one to the next."""

    def __init__(self, models: Path, *, smallest: int = 40, thresholds: tuple[float, float, float] = (0.6, 0.7, 0.7)) -> None:
        self.propose, self.refine, self.decide = (
            astride.load_caffe(models / f"{name}.prototxt", models / f"{name}.caffemodel") for name in ("det1", "det2", "det3")
        )
        self.smallest, self.thresholds = smallest, thresholds

    def __call__(self, photo: Image.Image) -> Faces:
        photo = photo.convert("RGB")
        boxes = self.proposals(photo)
        boxes = self.refined(photo, boxes)
        return self.decided(photo, boxes)

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


def main() -> None:
    """Find the faces of one photo, print them and draw them."""
    parser = argparse.ArgumentParser(description="Find faces in a photo with MTCNN's three Caffe networks.")
    parser.add_argument("photo", type=Path, help="the photo to look at")
    parser.add_argument("--models", type=Path, required=True, help="folder with det1, det2, det3 .prototxt and .caffemodel")
    parser.add_argument("--out", type=Path, default=Path("faces.png"), help="where to draw the faces (default: %(default)s)")
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
    faces = find(photo)
    count = len(faces.boxes)
    print(f"{count} {'face' if count == 1 else 'faces'} in {time.perf_counter() - start:.2f} s")
    for x1, y1, x2, y2, score in faces.boxes:
        print(f"  ({x1:.0f}, {y1:.0f}) - ({x2:.0f}, {y2:.0f})   {score:.3f}")
    draw(photo, faces).save(arguments.out)
    print(f"drawn to {arguments.out}")


if __name__ == "__main__":
    main()
