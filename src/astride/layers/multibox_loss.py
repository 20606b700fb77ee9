"""MultiBoxLoss: what an SSD is taught, places and classes of boxes in one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError, UnsupportedError
from ..plan import SoftmaxLossPlan
from ..plan.dense import SMALLEST_NORMAL, Function, Normalization
from ..plan.reduce import Total
from ._boxes import Code, check_predictions, decoded, encoded, label_shape, priors_of
from ._loss import Loss, sum_plan
from ._matching import NOTHING, Choice, Matching, Mining, Truth, matched, mined, places_of, truths
from ._steps import Steps
from .layer import Blobs
from .smooth_l1_loss import smooth

SOURCE = "the SSD fork of Caffe, src/caffe/layers/multibox_loss_layer.cpp"


class PlaceLoss(StrEnum):
    """How wrong a place is, from the distance d of each of its four numbers."""

    L2 = "L2"  # d^2 / 2
    SMOOTH_L1 = "SMOOTH_L1"  # that where |d| < 1, |d| - 1/2 beyond


class ClassLoss(StrEnum):
    """How wrong the scores are."""

    SOFTMAX = "SOFTMAX"  # -log softmax(x)[label]
    LOGISTIC = "LOGISTIC"  # sigmoid cross entropy against one-hot labels


@dataclass(frozen=True, slots=True)
class _Taught:
    """One image's lesson: for each kind of place the priors that have a box, which one, and the priors that have none."""

    truth: Truth
    rows: dict[int, tuple[Array, Array]]
    negatives: Array


@dataclass(frozen=True, slots=True)
class _Priors:
    """The priors and their variances, (P, 4); where each image's predictions begin, (N, P, 4); which may be mined, (N, P)."""

    boxes: Array
    variances: Array
    begun: Array
    possible: Array


class MultiBoxLoss(Loss):
    """(weight * loss of the matched places + loss of the scores) / normalization.

    Bottoms    places (N, priors * 4), or (N, priors * classes * 4) where locations are not shared; scores (N, priors *
               classes); priors (1, 2, priors * 4) of PriorBox; the truth (1, 1, boxes, 8): image, label, instance, xmin,
               ymin, xmax, ymax, difficult, with image -1 in rows that are none. RefineDet has two more: scores (N, priors * 2)
               of there being something at all, and places (N, priors * 4) that move the priors first
    Tops       the loss, one number
    Options    classes: and shared, background, code and in_target, as DetectionOutput has them
               matching: which priors get which box
               choice: which priors without a box are taught that; without mining all of them are
               difficult: whether boxes marked so are taught
               place_loss: of the four numbers of a box
               class_loss: of the scores
               place_weight: of the first
               agnostic: every box is of the one class after the background
               inside: coordinates of boxes outside the image are not taught
               parts: whether places and scores count
               objectness: priors whose score in the fifth bottom is below it are not mined
               fold: of two classes labels above are the second, as RefineDet reads them
               normalization: what the sum is divided by, at least by 1: valid (matched priors), full (all priors of all
               images), batch_size (images), none
    Edges      an image without boxes teaches nothing where negatives are mined, and background everywhere where not
    Gradient   of places and scores; which priors are matched and mined counts as given. Priors and the truth have none, so
               a network says `propagate_down: true propagate_down: true propagate_down: false propagate_down: false`
    Quirks     logistic targets begin as the number of the background's class, 0 or not, as SSD fills them. Where images
               are not mined SSD writes those of all but the first image into wrong places; here they are in their own.
               Of equal losses the earlier prior is mined; SSD leaves it to std::sort
    Source     the SSD fork of Caffe, src/caffe/layers/multibox_loss_layer.cpp and src/caffe/util/bbox_util.cpp;
               RefineDet's, of the same names
    """

    type = "MultiBoxLoss"
    bottoms: ClassVar[tuple[int, int | None]] = (4, 6)
    labels: ClassVar[frozenset[int]] = frozenset({2, 3, 4, 5})
    source = "src/caffe/layers/multibox_loss_layer.cpp"

    def __init__(
        self,
        classes: int,
        *,
        shared: bool = True,
        background: int = 0,
        code: Code = Code.CORNER,
        in_target: bool = False,
        matching: Matching | None = None,
        choice: Choice | None = None,
        difficult: bool = True,
        place_loss: PlaceLoss = PlaceLoss.SMOOTH_L1,
        class_loss: ClassLoss = ClassLoss.SOFTMAX,
        place_weight: float = 1.0,
        agnostic: bool = False,
        inside: bool = False,
        parts: tuple[bool, bool] = (True, True),
        objectness: float = 0.01,
        fold: bool = False,
        normalization: Normalization = Normalization.VALID,
    ) -> None:
        super().__init__()
        self.classes, self.shared, self.background = classes, shared, background
        self.code, self.in_target = code, in_target
        self.matching, self.choice = matching or Matching(), choice or Choice()
        self.difficult, self.agnostic, self.inside = difficult, agnostic, inside
        self.place_loss, self.class_loss, self.place_weight = place_loss, class_loss, place_weight
        self.parts, self.normalization = parts, normalization
        self.objectness, self.fold = objectness, fold
        self._check_options()

    def _check_options(self) -> None:
        checks = (
            (self.classes >= 1, "num_classes", self.classes, "num_classes >= 1"),
            (
                self.class_loss is ClassLoss.LOGISTIC or 0 <= self.background < self.classes,
                "background_label_id",
                self.background,
                f"0 <= background_label_id < {self.classes} for SOFTMAX",
            ),
            (self.shared or self.choice.kind is Mining.NONE, "mining_type", str(self.choice.kind), "NONE, or share_location"),
            (not self.agnostic or self.classes == 2, "num_classes", self.classes, "2 where objects are mapped to one class"),
            (self.choice.sample > 0, "sample_size", self.choice.sample, "sample_size > 0"),
        )
        for holds, name, value, required in checks:
            if not holds:
                raise ArgumentError("this loss cannot be", given={name: value}, required=required, because=SOURCE)

    def check(self, bottom: Blobs) -> None:
        check_predictions(bottom, self.classes, 1 if self.shared else self.classes)
        label_shape("truth", bottom[3].shape, 8)
        for i, each in zip(range(4, len(bottom)), (2, 4), strict=False):
            if bottom[i].count != bottom[0].shape[0] * bottom[2].count // 8 * each:
                raise ArgumentError(
                    "what moves the priors first is not of all of them",
                    given={f"bottom {i}": bottom[i].shape, "priors": bottom[2].shape},
                    required=f"{each} numbers for each prior and image",
                    because="RefineDet's Caffe, src/caffe/layers/multibox_loss_layer.cpp",
                )

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        self.check(bottom)
        top[0].reshape()

    def loss(self, steps: Steps, arrays: Sequence[Array], bottom: Blobs) -> Array:
        images, dtype = bottom[0].shape[0], bottom[0].dtype
        priors = self._priors(images, arrays)
        count = len(priors.boxes)
        places = steps.shaped(arrays[0], (images * count * (1 if self.shared else self.classes), 4))
        scores = steps.shaped(arrays[1], (images * count, self.classes))
        rows = arrays[3].reshape(-1, 8)
        if self.fold and self.classes == 2:
            rows = np.column_stack([rows[:, :1], np.minimum(rows[:, 1], 1), rows[:, 2:]])
        every = truths(rows, images, background=self.background, classes=self.classes, difficult=self.difficult)
        lessons = [None if truth is None else self._lesson(i, truth, places, scores, priors) for i, truth in enumerate(every)]
        matches = sum(len(rows) for lesson in lessons if lesson for rows, _ in lesson.rows.values())
        whole = self._divided_by(matches, images, count)
        parts = []
        if self.parts[0] and matches:
            parts.append(self._of_places(steps, places, lessons, priors, self.place_weight / whole))
        if self.parts[1]:
            parts.append(self._of_scores(steps, scores, lessons, count, 1 / whole))
        total = np.zeros((), dtype)
        for part in parts:
            total = steps.apply(Function.ADD, part, total)
        return total

    # Which priors are taught what

    def _priors(self, images: int, arrays: Sequence[Array]) -> _Priors:
        boxes, variances = priors_of(arrays[2])
        if not (variances > 0).all():
            raise ArrayError("a variance is not positive", given={"priors": arrays[2]}, required="variances > 0", because=SOURCE)
        begun = np.broadcast_to(boxes, (images, *boxes.shape))
        possible = np.ones((images, len(boxes)), bool)
        if len(arrays) > 4:
            possible = arrays[4].reshape(images, len(boxes), 2)[..., 1] >= self.objectness
        if len(arrays) > 5:
            begun = decoded(arrays[5].reshape(begun.shape), boxes, variances, self.code, in_target=self.in_target)
        return _Priors(boxes, variances, begun, possible)

    def _lesson(self, image: int, truth: Truth, places: Array, scores: Array, all_priors: _Priors) -> _Taught:
        priors, variances = all_priors.boxes, all_priors.variances
        begun = all_priors.begun[image]
        offsets = places.reshape(-1, len(priors), 1 if self.shared else self.classes, 4)[image]
        found: dict[int, tuple[Array, Array]] = {}
        if self.shared:
            found[0] = matched(self._moved(offsets[:, 0], all_priors, begun), truth.boxes, self.matching)
        else:
            for label in range(self.classes):
                if label != self.background:
                    found[label] = self._of_class(label, truth, offsets[:, label], all_priors, begun)
        negatives = np.empty(0, np.int64)
        if self.choice.kind is not Mining.NONE:
            match, greatest = found[0]
            wrong = self._wrong(truth, match, scores.reshape(-1, len(priors), self.classes)[image])
            if self.choice.kind is Mining.HARD_EXAMPLE:
                wrong = wrong + self._misplaced(truth, match, offsets[:, 0], priors, variances)
            boxes = places_of(
                offsets[:, 0], priors, variances, self.code, in_target=self.in_target, from_priors=self.choice.from_priors
            )
            match, negatives = mined(match, greatest, wrong, boxes, self.choice, all_priors.possible[image])
            found[0] = match, greatest
        taught = {kind: (np.flatnonzero(match > NOTHING), match[match > NOTHING]) for kind, (match, _) in found.items()}
        return _Taught(truth, taught, negatives)

    def _of_class(self, label: int, truth: Truth, offsets: Array, priors: _Priors, begun: Array) -> tuple[Array, Array]:
        """The matches of one class's places: with its own boxes, or those of the priors with all boxes that are its own."""
        own = np.flatnonzero(truth.labels == label)
        if self.matching.from_priors:
            match, greatest = matched(begun, truth.boxes, self.matching)
            return np.where(np.isin(match, own), match, NOTHING), greatest
        match, greatest = matched(self._moved(offsets, priors, begun), truth.boxes[own], self.matching)
        match[match > NOTHING] = own[match[match > NOTHING]]
        return match, greatest

    def _moved(self, offsets: Array, priors: _Priors, begun: Array) -> Array:
        """What is matched: the boxes that predictions begin from, or those they make of the priors."""
        if self.matching.from_priors:
            return begun
        return decoded(offsets, priors.boxes, priors.variances, self.code, in_target=self.in_target)

    def _wrong(self, truth: Truth, match: Array, scores: Array) -> Array:
        """The class loss of each prior, for the choice of the hardest."""
        labels = np.full(len(scores), self.background)
        labels[match > NOTHING] = truth.labels[match[match > NOTHING]]
        if self.class_loss is ClassLoss.SOFTMAX:
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            p = np.take_along_axis(odds, labels[:, None], axis=1)[:, 0] / odds.sum(axis=1)
            return np.asarray(-np.log(np.maximum(p, scores.dtype.type(SMALLEST_NORMAL))))
        right = labels[:, None] == np.arange(self.classes)
        return np.asarray((np.logaddexp(scores.dtype.type(0), scores) - scores * right).sum(axis=1))

    def _misplaced(self, truth: Truth, match: Array, offsets: Array, priors: Array, variances: Array) -> Array:
        """The place loss of each prior that has a box, 0 of the others."""
        rows = np.flatnonzero(match > NOTHING)
        wrong = np.zeros(len(priors), offsets.dtype)
        steps = Steps(False)
        wrong[rows] = self._distance_loss(
            steps, self._distances(steps, offsets[rows], truth.boxes[match[rows]], priors[rows], variances[rows])
        ).sum(axis=1)
        return wrong

    # The two losses

    def _of_places(self, steps: Steps, places: Array, lessons: Sequence[_Taught | None], priors: _Priors, coeff: float) -> Array:
        kinds, count = 1 if self.shared else self.classes, len(priors.boxes)
        which, begun, variances, boxes = [], [], [], []
        for image, lesson in enumerate(lessons):
            for kind, (rows, match) in lesson.rows.items() if lesson else ():
                which.append((image * count + rows) * kinds + kind)
                begun.append(priors.begun[image, rows])
                variances.append(priors.variances[rows])
                boxes.append(lesson.truth.boxes[match] if lesson else match)
        offsets = steps.take(places, np.concatenate(which))
        target, start, spread = (np.concatenate(parts) for parts in (boxes, begun, variances))
        distances = self._distances(steps, offsets, target, start, spread)
        return steps.run(sum_plan(places.dtype.name, coeff), self._distance_loss(steps, distances))

    def _distances(self, steps: Steps, offsets: Array, boxes: Array, priors: Array, variances: Array) -> Array:
        """Of the predictions from what they should be, each number."""
        target = encoded(boxes, priors, variances, self.code, in_target=self.in_target)
        if self.inside:
            moved = places_of(
                offsets, priors, variances, self.code, in_target=self.in_target, from_priors=self.matching.from_priors
            )
            outside = (moved < 0) | (moved > 1)
        if self.in_target:
            offsets, target = steps.apply(Function.DIVIDE, offsets, variances), target / variances
        distances = steps.apply(Function.ADD, offsets, target, z_scale=-1.0)
        if self.inside:
            distances = steps.apply(Function.MULTIPLY, distances, (~outside).astype(distances.dtype))
        return distances

    def _distance_loss(self, steps: Steps, distances: Array) -> Array:
        if self.place_loss is PlaceLoss.SMOOTH_L1:
            return smooth(steps, distances)
        return steps.apply(Function.MULTIPLY, distances, distances, scale=0.5)

    def _of_scores(self, steps: Steps, scores: Array, lessons: Sequence[_Taught | None], priors: int, coeff: float) -> Array:
        rows, labels, targets = self._class_targets(lessons, priors, scores.dtype)
        if rows is not None:
            scores = steps.take(scores, rows)
        if self.class_loss is ClassLoss.SOFTMAX:
            plan = SoftmaxLossPlan(dtype=scores.dtype.name, axis=1, normalization=Normalization.NONE)
            return steps.apply(Function.POWER, steps.run(plan, scores, labels), scale=coeff)
        right = steps.apply(Function.MULTIPLY, scores, targets)
        terms = steps.apply(Function.ADD, steps.apply(Function.BNLL, scores), right, z_scale=-1.0)
        return steps.run(sum_plan(scores.dtype.name, coeff, total=Total.SUM), terms)

    def _class_targets(
        self, lessons: Sequence[_Taught | None], priors: int, dtype: np.dtype[np.floating]
    ) -> tuple[Array | None, Array, Array]:
        """The rows of the scores that are taught (None: all), the label of each, and its targets where they are one-hot."""
        mining = self.choice.kind is not Mining.NONE
        rows, own = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        empty = [np.empty(0, np.int64)]
        for image, lesson in enumerate(lessons):
            if lesson is None:
                continue
            for at, match in lesson.rows.values():
                rows.append(image * priors + at)
                own.append(np.full(len(at), self.background + 1) if self.agnostic else lesson.truth.labels[match])
            empty.append(image * priors + lesson.negatives)
        with_box, label, without = np.concatenate(rows), np.concatenate(own), np.concatenate(empty)
        taught = np.concatenate([with_box, without]) if mining else None
        labels = np.full(len(lessons) * priors if taught is None else len(taught), self.background)
        targets = np.full((len(labels), self.classes), self.background, dtype)
        place = with_box if taught is None else np.arange(len(with_box))
        labels[place] = label
        targets[place, label] = 1
        if mining and 0 <= self.background < self.classes:
            targets[len(with_box) :, self.background] = 1
        return taught, labels, targets

    def _divided_by(self, matches: int, images: int, priors: int) -> int:
        counts = {
            Normalization.FULL: images * priors,
            Normalization.VALID: matches,
            Normalization.BATCH_SIZE: images,
            Normalization.NONE: 1,
        }
        return max(counts[self.normalization], 1)

    def refuse_labels(self, want: Sequence[bool]) -> None:
        if any(want[2:]):
            raise UnsupportedError(
                "priors and the truth have no gradient",
                because=SOURCE,
                hint="propagate_down: true propagate_down: true, and propagate_down: false for each of the others",
            )
