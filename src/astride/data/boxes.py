"""Boxes of annotated images, (xmin, ymin, xmax, ymax) as parts of the image's width and height, and patches drawn among them.

Source: the SSD fork of Caffe, src/caffe/util/bbox_util.cpp and src/caffe/util/sampler.cpp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Box = tuple[float, float, float, float]
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Annotation:
    """An object in an image."""

    label: int
    instance: int
    box: Box
    difficult: bool = False


def area(box: Box) -> float:
    """Its size, 0 where an edge lies before the one it belongs to."""
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0) if box[2] >= box[0] and box[3] >= box[1] else 0.0


def common(a: Box, b: Box) -> Box:
    """What two boxes share; an empty box where that is nothing."""
    if b[0] > a[2] or b[2] < a[0] or b[1] > a[3] or b[3] < a[1]:
        return (0.0, 0.0, 0.0, 0.0)
    return (max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3]))


def overlap(a: Box, b: Box) -> float:
    """What is common to two boxes, of what they cover together."""
    shared = area(common(a, b))
    return shared / (area(a) + area(b) - shared) if shared > 0 else 0.0


def covered(a: Box, b: Box) -> float:
    """The part of a that b covers."""
    shared = area(common(a, b))
    return shared / area(a) if shared > 0 else 0.0


def clipped(box: Box) -> Box:
    """What lies in the image."""
    x1, y1, x2, y2 = (min(max(v, 0.0), 1.0) for v in box)
    return (x1, y1, x2, y2)


def within(view: Box, box: Box) -> Box | None:
    """A box as part of a view, cut off at its edges; None where nothing of it is seen."""
    if box[0] >= view[2] or box[2] <= view[0] or box[1] >= view[3] or box[3] <= view[1]:
        return None
    width, height = view[2] - view[0], view[3] - view[1]
    x1, x2 = (box[0] - view[0]) / width, (box[2] - view[0]) / width
    seen = clipped((x1, (box[1] - view[1]) / height, x2, (box[3] - view[1]) / height))
    return seen if area(seen) > 0 else None


def placed(view: Box, box: Box) -> Box:
    """A box given as part of a view, in the image."""
    width, height = view[2] - view[0], view[3] - view[1]
    return (view[0] + box[0] * width, view[1] + box[1] * height, view[0] + box[2] * width, view[1] + box[3] * height)


@dataclass(frozen=True)
class Emit:
    """Which boxes stay when a view is taken: those whose middle is in it, or of which so large a part is."""

    least: float | None = None

    def __call__(self, view: Box, box: Box) -> bool:
        if self.least is not None:
            return covered(box, view) > self.least
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        return view[0] <= x <= view[2] and view[1] <= y <= view[3]


def viewed(annotations: Sequence[Annotation], view: Box, emit: Emit | None, *, mirror: bool = False) -> list[Annotation]:
    """The annotations as a view of the image shows them, mirrored left to right if asked for."""
    found = []
    for each in annotations:
        box = within(view, each.box) if emit is None or emit(view, each.box) else None
        if box is not None:
            box = (1 - box[2], box[1], 1 - box[0], box[3]) if mirror else box
            found.append(Annotation(each.label, each.instance, box, each.difficult))
    return found


@dataclass(frozen=True)
class Patches:
    """Boxes drawn at random that stand in a relation to some object: at most `most` of them in `trials` trials.

    scale, aspect   (least, greatest): the square root of a patch's area, and its width by its height
    overlap         with an object; `sample_coverage`: of the patch by it; `object_coverage`: of it by the patch; (least,
                    greatest) each, None where there is no such limit
    """

    scale: tuple[float, float] = (1.0, 1.0)
    aspect: tuple[float, float] = (1.0, 1.0)
    overlap: tuple[float | None, float | None] = (None, None)
    sample_coverage: tuple[float | None, float | None] = (None, None)
    object_coverage: tuple[float | None, float | None] = (None, None)
    most: int | None = None
    trials: int = 100

    def draw(self, objects: Sequence[Box], random: np.random.Generator) -> list[Box]:
        """The patches that were found."""
        found: list[Box] = []
        for _ in range(self.trials):
            if self.most is not None and len(found) >= self.most:
                break
            patch = self._patch(random)
            if self.fits(patch, objects):
                found.append(patch)
        return found

    def _patch(self, random: np.random.Generator) -> Box:
        scale = random.uniform(*self.scale)
        least, most = max(self.aspect[0], scale**2), min(self.aspect[1], 1 / scale**2 if scale else np.inf)
        aspect = random.uniform(least, most) if least < most else least
        width, height = scale * aspect**0.5, scale / aspect**0.5
        x, y = random.uniform(0, max(1 - width, 0)), random.uniform(0, max(1 - height, 0))
        return (x, y, x + width, y + height)

    def fits(self, patch: Box, objects: Sequence[Box]) -> bool:
        """Whether some object stands in the relation to the patch; true where none is asked for."""
        limits = (self.overlap, self.sample_coverage, self.object_coverage)
        if all(limit == (None, None) for limit in limits):
            return True
        return any(
            all(
                (low is None or value >= low) and (high is None or value <= high)
                for (low, high), value in zip(limits, (overlap(patch, o), covered(patch, o), covered(o, patch)), strict=True)
            )
            for o in objects
        )
