"""Which boxes of the truth an SSD's priors are taught, and which priors besides are taught that there is nothing.

Source: the SSD fork of Caffe, src/caffe/util/bbox_util.cpp
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ..backends.protocol import Array
from ..errors import ArrayError
from ._boxes import SOURCE, Code, areas, best_first, decoded, overlaps, suppressed

TOUCHING = 1e-6
"""Overlaps no greater count as none."""

NOTHING, OUTSIDE = -1, -2
"""A prior without a box of the truth; one that is passed over because it leaves the image."""


class Match(StrEnum):
    """How many priors a box of the truth may have."""

    BIPARTITE = "BIPARTITE"  # one, the pair of greatest overlap before all others
    PER_PREDICTION = "PER_PREDICTION"  # that one, and all that overlap it enough


class Mining(StrEnum):
    """Which priors without a box are taught."""

    NONE = "NONE"  # all of them
    MAX_NEGATIVE = "MAX_NEGATIVE"  # those that are wrong most, so many for each prior with a box
    HARD_EXAMPLE = "HARD_EXAMPLE"  # the hardest of all priors, with a box or without


@dataclass(frozen=True, slots=True)
class Truth:
    """The boxes of one image, (n, 4), and their labels, (n,)."""

    boxes: Array
    labels: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How priors find their boxes. `from_priors`: by where priors are, not where the predictions have moved them."""

    kind: Match = Match.PER_PREDICTION
    overlap: float = 0.5
    from_priors: bool = True
    inside_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How hard examples are chosen.

    ratio, overlap     negatives for each positive, and what they overlap less than
    sample             how many hard examples an image gives
    threshold, top_k   of a suppression among them before, by the loss; none where the threshold is 0
    from_priors        suppress by where priors are, not where the predictions have moved them
    """

    kind: Mining = Mining.MAX_NEGATIVE
    ratio: float = 3.0
    overlap: float = 0.5
    sample: int = 64
    threshold: float = 0.0
    top_k: int = -1
    from_priors: bool = False


def truths(rows: Array, images: int, *, background: int, classes: int, difficult: bool) -> list[Truth | None]:
    """The truth of each image from rows of image, label, instance, xmin, ymin, xmax, ymax, difficult; None where it has none.

    Rows of image -1 fill the table up. Raises ArrayError: a label that is the background's, or no class's.
    """
    if not np.isfinite(rows).all():
        raise ArrayError("a row of the truth is not finite", given={"labels": rows}, required="finite numbers", because=SOURCE)
    image, label = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    real = image != -1
    bad = real & ((label == background) | (label < 0) | (label >= classes))
    if bad.any():
        raise ArrayError(
            "a box of the truth has a label that is no class, or the background's",
            given={"label": int(label[bad][0]), "image": int(image[bad][0])},
            required=f"0 <= label < {classes}, not {background}",
            because=SOURCE,
        )
    if not difficult:
        real &= rows[:, 7] == 0
    found: list[Truth | None] = []
    for i in range(images):
        own = real & (image == i)
        found.append(Truth(rows[own, 3:7], label[own]) if own.any() else None)
    return found


def matched(boxes: Array, truth: Array, how: Matching) -> tuple[Array, Array]:
    """For each box the row of the truth it is taught, or NOTHING, or OUTSIDE; and its greatest overlap with any."""
    found = np.full(len(boxes), NOTHING)
    greatest = np.zeros(len(boxes), boxes.dtype)
    if not len(truth):
        return found, greatest
    if how.inside_only:
        found[((boxes < 0) | (boxes > 1)).any(axis=1)] = OUTSIDE
    shared = overlaps(boxes[:, None], truth[None])
    shared = np.where((shared > TOUCHING) & (found != OUTSIDE)[:, None], shared, boxes.dtype.type(0))
    greatest = shared.max(axis=1)
    free = shared.copy()
    for _ in range(len(truth)):
        box, row = divmod(int(free.argmax()), len(truth))
        if not free[box, row] > 0:
            break
        found[box], greatest[box] = row, free[box, row]
        free[box], free[:, row] = 0, 0
    if how.kind is Match.PER_PREDICTION:
        row = shared.argmax(axis=1)
        more = (found == NOTHING) & (greatest > 0) & (greatest >= how.overlap)
        found[more] = row[more]
    return found, greatest


def mined(
    match: Array, greatest: Array, loss: Array, boxes: Array, how: Choice, possible: Array | None = None
) -> tuple[Array, Array]:
    """The matches that stay, and the priors without a box that are taught so, of one image.

    loss        what each prior is wrong by
    boxes       where each is, for the suppression
    possible    which may be chosen at all, where not all may
    """
    negative = how.kind is Mining.MAX_NEGATIVE
    able = (match == NOTHING) & (greatest < how.overlap) if negative else np.ones(match.size, bool)
    eligible = np.flatnonzero(able if possible is None else able & possible)
    count = int((match > NOTHING).sum() * how.ratio) if negative else how.sample
    if how.threshold > 0:
        order = best_first(loss[eligible], top_k=how.top_k)
        order = order[areas(boxes[eligible[order]]) >= 1e-5]  # SSD drops boxes of hardly any size
        order = order[suppressed(boxes[eligible[order]], how.threshold, most=how.top_k)]
    else:
        order = best_first(loss[eligible])
    chosen = np.zeros(match.size, bool)
    chosen[eligible[order[: max(count, 0)]]] = True
    stay = match if negative else np.where((match > NOTHING) & ~chosen, NOTHING, match)
    return stay, np.flatnonzero((match == NOTHING) & chosen)


def places_of(offsets: Array, priors: Array, variances: Array, code: Code, *, in_target: bool, from_priors: bool) -> Array:
    """Where the priors are, or where the predictions have moved them."""
    return priors if from_priors else decoded(offsets, priors, variances, code, in_target=in_target)


__all__ = ["NOTHING", "Choice", "Match", "Matching", "Mining", "Truth", "matched", "mined", "places_of", "truths"]
