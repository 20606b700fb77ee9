"""What outputs of `astride run` mean: classes, detections, labels of pixels or just numbers; in words, as data, as pictures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..net import Net
from ._output import shape_text, table

Array = npt.NDArray[Any]
BAR = 30
REGIONS = ("rois", "cls_prob", "bbox_pred")
"""Faster R-CNN's outputs: regions (R, 5), the scores of each class (R, classes), and its moves (R, 4 * classes)."""
OVERLAP = 0.3
"""What boxes of one class may share, as py-faster-rcnn has it: lib/fast_rcnn/config.py, TEST.NMS."""
MOST_LABELS = 1024
"""Channels of a map of labels at most; more are features."""


class Finding(ABC):
    """One output of one image. `kind` is its word in the JSON."""

    kind: ClassVar[str]

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data."""

    @abstractmethod
    def shown(self) -> Any:
        """What is printed below the image's name."""

    def drawn(self, image: Any) -> Any:
        """A picture of it on a Pillow image, None where there is nothing to draw."""
        return None


@dataclass(slots=True)
class Detections(Finding):
    """Boxes whose score is high enough, the best first; `boxes` in pixels, parts of 1 without an image."""

    kind: ClassVar[str] = "detections"
    labels: list[int]
    scores: list[float]
    boxes: Array
    names: Sequence[str]
    threshold: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "detections": [
                {"class": label, "label": _name(self.names, label) or None, "score": score, "box": box}
                for label, score, box in zip(self.labels, self.scores, self.boxes.tolist(), strict=True)
            ]
        }

    def shown(self) -> Any:
        if not self.labels:
            return f"  nothing with a score above {self.threshold:g} (--threshold)"
        whole = float(np.abs(self.boxes).max(initial=0)) > 4
        ends = ("left", "top", "right", "bottom")
        made = table("score", "class", "", *ends, right=("score", "class", *ends))
        for label, score, box in zip(self.labels, self.scores, self.boxes.tolist(), strict=True):
            places = [f"{value:.0f}" if whole else f"{value:.3f}" for value in box]
            made.add_row(f"{score:.1%}", str(label), _plain(_name(self.names, label)), *places)
        return made

    def drawn(self, image: Any) -> Any:
        from ..draw.findings import draw_boxes

        words = [
            f"{_name(self.names, label) or label} {score:.0%}" for label, score in zip(self.labels, self.scores, strict=True)
        ]
        return draw_boxes(image, [tuple(box) for box in self.boxes.tolist()], self.labels, words)


@dataclass(slots=True)
class Labels(Finding):
    """The most likely label of every pixel (H, W)."""

    kind: ClassVar[str] = "labels"
    labels: Array
    names: Sequence[str]

    @property
    def shares(self) -> list[tuple[int, float]]:
        """(label, its part of the image), the greatest first."""
        found, counts = np.unique(self.labels, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return [(int(found[i]), float(counts[i] / self.labels.size)) for i in order]

    def to_dict(self) -> dict[str, Any]:
        return {
            "labels": [
                {"class": label, "label": _name(self.names, label) or None, "share": share} for label, share in self.shares
            ]
        }

    def shown(self) -> Any:
        made = table("of the image", "", "class", "", right=("of the image", "class"))
        for label, share in self.shares[:20]:
            made.add_row(f"{share:.1%}", _bar(share), str(label), _plain(_name(self.names, label)))
        return made

    def drawn(self, image: Any) -> Any:
        from ..draw.findings import draw_labels

        return draw_labels(image, self.labels, self.names)


@dataclass(slots=True)
class Scores(Finding):
    """One number a class."""

    kind: ClassVar[str] = "scores"
    scores: Array
    names: Sequence[str]
    top: int

    @property
    def best(self) -> list[int]:
        """The classes with the highest scores, the best first; of equals the lower number."""
        return [int(i) for i in np.argsort(-self.scores, kind="stable")[: self.top]]

    @property
    def likely(self) -> bool:
        """Whether they are probabilities."""
        return bool(self.scores.min() >= 0 and abs(self.scores.sum() - 1) < 1e-3)

    def to_dict(self) -> dict[str, Any]:
        return {
            "top": [
                {"class": place, "label": _name(self.names, place) or None, "score": float(self.scores[place])}
                for place in self.best
            ]
        }

    def shown(self) -> Any:
        scores, likely = self.scores, self.likely
        low, high = (0.0, 1.0) if likely else (min(float(scores.min()), 0.0), float(scores.max()))
        made = table("probability" if likely else "score", "", "class", "", right=("probability", "score", "class"))
        for place in self.best:
            bar = _bar((scores[place] - low) / (high - low) if high > low else 0.0)
            made.add_row(self._text(place), bar, str(place), _plain(_name(self.names, place)))
        return made

    def _text(self, place: int) -> str:
        return f"{self.scores[place]:.2%}" if self.likely else f"{self.scores[place]:.5g}"

    def drawn(self, image: Any) -> Any:
        from ..draw.findings import draw_classes

        return draw_classes(image, [f"{self._text(place)}  {_name(self.names, place) or place}" for place in self.best])


@dataclass(slots=True)
class Numbers(Finding):
    """Anything else: its range. One channel of an output of the network is drawn as a grey map."""

    kind: ClassVar[str] = "numbers"
    values: Array
    is_map: bool

    def to_dict(self) -> dict[str, Any]:
        if not self.values.size:
            return {"range": None}
        return {"range": [float(self.values.min()), float(self.values.max())], "mean": float(self.values.mean())}

    def shown(self) -> Any:
        sample = self.values
        if not sample.size:
            return f"  {shape_text(sample.shape)}, no numbers"
        return f"  {shape_text(sample.shape)}, from {sample.min():.6g} to {sample.max():.6g}, mean {sample.mean():.6g}"

    def drawn(self, image: Any) -> Any:
        from ..draw.findings import draw_map

        return draw_map(self.values[0], image.size) if self.is_map and self.values.size else None


TABLES = ("DetectionOutput", "YoloDetectionOutput", "Yolov3DetectionOutput")
"""Layers that make such tables: of SSD, and of both YOLOs."""


@dataclass(slots=True)
class Reader:
    """How the outputs of one network are read."""

    net: Net
    image: str
    names: Sequence[str]
    top: int
    threshold: float

    def all(self, sample: dict[str, Array], place: Any, fed: tuple[int, ...], size: tuple[int, int] | None) -> dict[str, Finding]:
        """One image's outputs, without their first axis where they have one for it.

        `place` takes boxes in parts of the input to where they are to be; `fed` is the input's height and width, `size` the
        image's, None for an array. Faster R-CNN's three outputs are one finding, under the name of the scores.
        """
        if set(REGIONS) <= set(sample):
            rest = {blob: values for blob, values in sample.items() if blob not in REGIONS}
            found: dict[str, Finding] = {REGIONS[1]: self._regions(sample, place, fed, size)}
        else:
            rest, found = sample, {}
        return found | {blob: self(blob, values, place) for blob, values in rest.items()}

    def detects(self, blob: str) -> bool:
        """Whether a blob is a table of what was found: labels, scores and corners."""
        makers = {top: node for node in self.net.nodes for top in node.tops}
        layer = makers[blob].layer
        return layer.type in TABLES and not getattr(layer, "early", False)  # the early one has sizes, not corners

    def __call__(self, blob: str, sample: Array, place: Any) -> Finding:
        """One image's output without its first axis. `place` takes boxes in parts of the input to where they are to be."""
        if self.detects(blob):
            return self._detections(sample, place)
        if sample.size > 1 and sample.size == max(sample.shape):
            return Scores(sample.reshape(-1), self.names, self.top)
        output = blob in self.net.outputs
        if output and self._is_as_fine(sample):
            if 2 <= len(sample) <= MOST_LABELS:
                return Labels(sample.argmax(axis=0), self.names)
            if len(sample) == 1 and self.net.blobs[blob].count and _are_labels(sample):
                return Labels(sample[0].astype(np.int64), self.names)
        return Numbers(sample, output and sample.ndim == 3 and len(sample) == 1)

    def _is_as_fine(self, sample: Array) -> bool:
        """Whether a map has an eighth of the input's resolution at least: coarser ones are features."""
        shape = self.net.blobs[self.image].shape
        if sample.ndim != 3 or len(shape) != 4 or min(sample.shape[1:]) < 2:
            return False
        return all(8 * mine >= its for mine, its in zip(sample.shape[1:], shape[2:], strict=True))

    def _detections(self, table: Array, place: Any) -> Detections:
        rows = table.reshape(-1, 7)
        rows = rows[(rows[:, 1] >= 0) & (rows[:, 2] > self.threshold)]
        rows = rows[np.argsort(-rows[:, 2], kind="stable")]
        labels = [int(label) for label in rows[:, 1]]
        return Detections(labels, [float(score) for score in rows[:, 2]], place(rows[:, 3:]), self.names, self.threshold)

    def _regions(self, sample: dict[str, Array], place: Any, fed: tuple[int, ...], size: tuple[int, int] | None) -> Detections:
        """The regions as each class moves them, inside the image, without those that overlap better ones of their class.

        Source: py-faster-rcnn, lib/fast_rcnn/test.py, im_detect and the loop over classes; R-FCN moves all classes alike.
        """
        from ..layers._anchors import inside, regressed
        from ..layers._boxes import suppressed

        outputs = [sample[blob] for blob in REGIONS]
        rois, scores, moves = (values.reshape(len(values), int(np.prod(values.shape[1:]))) for values in outputs)
        corners = rois[:, 1:5]
        if size is not None:
            height, width = fed
            corners = place(corners / np.array([width, height, width, height], corners.dtype)).astype(corners.dtype)
        last = moves.shape[1] // 4 - 1
        labels: list[int] = []
        found, boxes = [np.zeros(0, scores.dtype)], [np.zeros((0, 4), corners.dtype)]
        for label in range(1, scores.shape[1]):  # 0 is nothing
            some = np.flatnonzero(scores[:, label] > self.threshold)
            some = some[np.argsort(-scores[some, label], kind="stable")]
            start = 4 * min(label, last)
            moved = inside(regressed(corners[some], moves[some, start : start + 4]), *(size or fed))
            kept = suppressed(moved, OVERLAP, pixel=1.0)
            labels += [label] * len(kept)
            found.append(scores[some[kept], label])
            boxes.append(moved[kept])
        best, placed = np.concatenate(found), np.concatenate(boxes)
        order = np.argsort(-best, kind="stable")
        return Detections([labels[i] for i in order], [float(best[i]) for i in order], placed[order], self.names, self.threshold)


def _are_labels(sample: Array) -> bool:
    return bool((sample == np.rint(sample)).all() and sample.min() >= 0 and sample.max() < MOST_LABELS and sample.max() > 1)


def _bar(share: float) -> Any:
    from rich.text import Text

    return Text(("█" * round(BAR * share) or "▏").ljust(BAR), style="cyan")


def _name(names: Sequence[str], place: int) -> str:
    return names[place] if 0 <= place < len(names) else ""


def _plain(text: str) -> Any:
    """Text in which nothing is markup."""
    from rich.text import Text

    return Text(text)


__all__ = ["Finding", "Reader"]
