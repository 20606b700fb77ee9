"""MultiBoxLoss against a plain form of it, one prior at a time; its gradients, edges and text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers._boxes import Code, decoded, encoded
from astride.layers._matching import NOTHING, OUTSIDE, Choice, Match, Matching, Mining, matched, mined
from astride.layers.multibox_loss import ClassLoss, MultiBoxLoss, PlaceLoss
from astride.plan.dense import Normalization

from . import boxes as plain
from .gradients import Bench, check_gradient

PRIORS, CLASSES, IMAGES = 10, 3, 3
VARIANCES = (0.1, 0.1, 0.2, 0.2)


def bottoms(shared: bool, seed: int = 0) -> list[Any]:
    """The last of three images has no truth; one box is difficult; the last row fills up."""
    random = np.random.RandomState(seed)
    kinds = 1 if shared else CLASSES
    corners = random.uniform(0, 0.6, (PRIORS, 2))
    priors = np.concatenate([corners, corners + random.uniform(0.15, 0.4, (PRIORS, 2))], axis=1)
    truth = np.zeros((6, 8))
    truth[:, 0] = [0, 1, 0, 1, 1, -1]
    truth[:, 1] = [1, 2, 2, 1, 1, 0]
    truth[:5, 3:7] = priors[[2, 5, 7, 3, 9]] + random.uniform(-0.02, 0.02, (5, 4))
    truth[4, 7] = 1
    places = random.normal(size=(IMAGES, PRIORS * kinds * 4)) * 0.5
    scores = random.normal(size=(IMAGES, PRIORS * CLASSES))
    return [places, scores, plain.prior_blob(priors, VARIANCES), truth[None, None]]


def match_plainly(boxes: Any, truth: Any, how: Matching) -> list[int]:
    """Pairs of greatest overlap first, then for each box its own best."""
    found = [NOTHING] * len(boxes)
    if how.inside_only:
        found = [OUTSIDE if min(box) < 0 or max(box) > 1 else NOTHING for box in boxes]
    pairs = [(plain.jaccard(b, t), i, j) for i, b in enumerate(boxes) for j, t in enumerate(truth) if found[i] == NOTHING]
    pairs = sorted((p for p in pairs if p[0] > 1e-6), key=lambda p: (-p[0], p[1], p[2]))
    taken: set[int] = set()
    for _, i, j in pairs:
        if found[i] == NOTHING and j not in taken:
            found[i] = j
            taken.add(j)
    if how.kind is Match.PER_PREDICTION:
        for share, i, j in pairs:
            if found[i] == NOTHING and share >= how.overlap:
                found[i] = j
    return found


def distance_loss(d: float, kind: PlaceLoss) -> float:
    return d * d / 2 if kind is PlaceLoss.L2 or abs(d) < 1 else abs(d) - 0.5


def class_loss(scores: Any, label: int, kind: ClassLoss) -> float:
    if kind is ClassLoss.SOFTMAX:
        return float(np.log(np.exp(scores).sum()) - scores[label])
    return float(sum(math.log(1 + math.exp(s)) - s * (c == label) for c, s in enumerate(scores)))


def expected(given: list[Any], **options: Any) -> float:
    """The loss of shared locations whose negatives are mined, or not."""
    code, in_target = options.get("code", Code.CENTER_SIZE), options.get("in_target", False)
    matching, choice = options["matching"], options["choice"]
    place, kind = options.get("place_loss", PlaceLoss.SMOOTH_L1), options.get("class_loss", ClassLoss.SOFTMAX)
    places, scores = given[0].reshape(IMAGES, PRIORS, 4), given[1].reshape(IMAGES, PRIORS, CLASSES)
    priors, variances = given[2].reshape(2, PRIORS, 4)
    of_places = of_scores = 0.0
    count = 0
    for image in range(IMAGES):
        rows = [r for r in given[3][0, 0] if r[0] == image and (options.get("difficult", True) or not r[7])]
        if not rows:
            if choice.kind is Mining.NONE:
                of_scores += sum(class_loss(s, 0, kind) for s in scores[image])
            continue
        truth = np.array([r[3:7] for r in rows])
        moved = decoded(places[image], priors, variances, code, in_target=in_target)
        match = match_plainly(priors if matching.from_priors else moved, truth, matching)
        labels = [int(rows[m][1]) if m >= 0 else 0 for m in match]
        wrong = [class_loss(s, label, kind) for s, label in zip(scores[image], labels, strict=True)]
        far = [0.0] * PRIORS
        for p, m in enumerate(match):
            if m >= 0:
                target = encoded(truth[m : m + 1], priors[p : p + 1], variances[p : p + 1], code, in_target=in_target)[0]
                d = (places[image, p] - target) / (variances[p] if in_target else 1)
                far[p] = sum(distance_loss(float(n), place) for n in d)
        positive = [p for p in range(PRIORS) if match[p] >= 0]
        seen = priors if matching.from_priors else moved
        if choice.kind is Mining.NONE:
            negative = [p for p in range(PRIORS) if match[p] < 0]
        elif choice.kind is Mining.MAX_NEGATIVE:
            eligible = [
                p for p in range(PRIORS) if match[p] == NOTHING and max(plain.jaccard(seen[p], t) for t in truth) < choice.overlap
            ]
            negative = sorted(eligible, key=lambda p: -wrong[p])[: int(len(positive) * choice.ratio)]
        else:
            hardest = sorted(range(PRIORS), key=lambda p: -(wrong[p] + far[p]))
            if choice.threshold > 0:
                area = moved if not choice.from_priors else priors
                hardest = [p for p in hardest if plain.jaccard(area[p], area[p]) and np.prod(area[p][2:] - area[p][:2]) >= 1e-5]
                hardest = [hardest[k] for k in plain.greedy([area[p] for p in hardest], choice.threshold)]
            chosen = hardest[: choice.sample]
            positive = [p for p in positive if p in chosen]
            negative = [p for p in chosen if match[p] == NOTHING]
        of_places += sum(far[p] for p in positive)
        of_scores += sum(wrong[p] for p in positive) + sum(class_loss(scores[image, p], 0, kind) for p in negative)
        count += len(positive)
    return (options.get("place_weight", 1.0) * of_places + of_scores) / max(count, 1)


def check(seed: int = 0, *, gradient: bool = True, **options: Any) -> None:
    options = {"code": Code.CENTER_SIZE, "matching": Matching(), "choice": Choice(), **options}
    given = bottoms(True, seed)
    bench = Bench(MultiBoxLoss(CLASSES, **options), given)
    np.testing.assert_allclose(bench.forward()[0], expected(given, **options), rtol=1e-12)
    if gradient:
        check_gradient(bench, [True, True, False, False])
        assert all(blob.diff.any() for blob in bench.bottom[:2])


@pytest.mark.parametrize("code", list(Code))
@pytest.mark.parametrize("in_target", [True, False])
def test_codes(code: Code, in_target: bool) -> None:
    check(code=code, in_target=in_target, place_weight=2.0, gradient=code is Code.CENTER_SIZE)


@pytest.mark.parametrize(
    ("place_loss", "class_loss"), [(PlaceLoss.L2, ClassLoss.SOFTMAX), (PlaceLoss.SMOOTH_L1, ClassLoss.LOGISTIC)]
)
def test_losses(place_loss: PlaceLoss, class_loss: ClassLoss) -> None:
    check(place_loss=place_loss, class_loss=class_loss)


@pytest.mark.parametrize(
    "choice",
    [
        Choice(ratio=1.0),
        Choice(ratio=0.5, overlap=0.2),
        Choice(kind=Mining.NONE),
        Choice(kind=Mining.HARD_EXAMPLE, sample=4),
        Choice(kind=Mining.HARD_EXAMPLE, sample=5, threshold=0.4),
        Choice(kind=Mining.HARD_EXAMPLE, sample=5, threshold=0.4, from_priors=True),
    ],
)
@pytest.mark.parametrize("difficult", [True, False])
def test_mining(choice: Choice, difficult: bool) -> None:
    check(choice=choice, difficult=difficult, gradient=difficult and choice.from_priors)


@pytest.mark.parametrize(
    "matching",
    [
        Matching(kind=Match.BIPARTITE),
        Matching(overlap=0.1),
        Matching(from_priors=False, overlap=0.2),
        Matching(from_priors=False, inside_only=True, overlap=0.1),
    ],
)
def test_matching(matching: Matching) -> None:
    check(seed=1, matching=matching, gradient=not matching.from_priors)


def test_pairs_of_greatest_overlap_come_first() -> None:
    """The second box has the greater overlap with the one truth that the first wants too."""
    truth = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1.0]])
    boxes = np.array([[0, 0, 0.9, 1], [0, 0, 1, 1], [0.6, 0, 1, 1], [2, 2, 3, 3], [0.4, 0, 0.5, 1]])
    match, greatest = matched(boxes, truth, Matching(kind=Match.BIPARTITE))
    assert match.tolist() == [1, 0, NOTHING, NOTHING, NOTHING]
    np.testing.assert_allclose(greatest, [0.5 / 0.9, 1, 0.4, 0, 0.2], rtol=1e-12)
    match, _ = matched(boxes, truth, Matching(overlap=0.3))
    assert match.tolist() == [1, 0, 0, NOTHING, NOTHING]
    match, _ = matched(boxes, truth, Matching(inside_only=True))
    assert match.tolist() == [1, 0, NOTHING, OUTSIDE, NOTHING]
    assert matched(boxes, truth[:0], Matching())[0].tolist() == [NOTHING] * 5


def test_negatives_are_the_most_wrong() -> None:
    match, greatest = np.array([0, -1, -1, -1, -2]), np.array([0.9, 0.6, 0.1, 0.0, 0.0])
    loss = np.array([9.0, 8, 1, 2, 7])
    boxes = np.zeros((5, 4))
    stay, negatives = mined(match, greatest, loss, boxes, Choice(ratio=1.0))
    assert stay.tolist() == match.tolist() and negatives.tolist() == [3]
    assert mined(match, greatest, loss, boxes, Choice(ratio=9.0))[1].tolist() == [2, 3]
    stay, negatives = mined(match, greatest, loss, boxes, Choice(kind=Mining.HARD_EXAMPLE, sample=2))
    assert stay.tolist() == match.tolist() and negatives.tolist() == [1]
    stay, negatives = mined(
        np.array([-1, 0]), np.zeros(2), np.array([5.0, 1]), boxes[:2], Choice(kind=Mining.HARD_EXAMPLE, sample=1)
    )
    assert stay.tolist() == [-1, -1] and negatives.tolist() == [0]


@pytest.mark.parametrize("from_priors", [True, False])
def test_places_of_each_class(from_priors: bool) -> None:
    """Without mining, a box's own class is moved towards it and no other; the loss of scores is of all priors."""
    given = bottoms(False)
    layer = MultiBoxLoss(
        CLASSES,
        shared=False,
        code=Code.CENTER_SIZE,
        matching=Matching(from_priors=from_priors, overlap=0.3),
        choice=Choice(kind=Mining.NONE),
    )
    bench = Bench(layer, given)
    bench.forward()
    check_gradient(bench, [True, True, False, False])
    moved = bench.bottom[0].diff.reshape(IMAGES, PRIORS, CLASSES, 4).any(axis=(1, 3))
    assert moved.tolist() == [[False, True, True], [False, True, True], [False, False, False]]
    assert bench.bottom[1].diff.reshape(IMAGES, PRIORS, CLASSES).any(axis=2).all()


def test_coordinates_outside_are_not_taught() -> None:
    given = bottoms(True)
    priors = given[2].reshape(2, PRIORS, 4)
    priors[0, :, 0] = -0.1
    bench = Bench(MultiBoxLoss(CLASSES, code=Code.CORNER, inside=True), given)
    bench.forward()
    check_gradient(bench, [True, True, False, False])
    taught = bench.bottom[0].diff.reshape(IMAGES, PRIORS, 4).any(axis=(0, 1))
    assert taught.tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("normalization", "divided_by"),
    [(Normalization.FULL, IMAGES * PRIORS), (Normalization.BATCH_SIZE, IMAGES), (Normalization.NONE, 1)],
)
def test_divided_by(normalization: Normalization, divided_by: int) -> None:
    given, options = bottoms(True), {"code": Code.CENTER_SIZE, "matching": Matching(), "choice": Choice()}
    whole = Bench(MultiBoxLoss(CLASSES, normalization=normalization, **options), given).forward()[0] * divided_by  # type: ignore[arg-type]
    by_matches = Bench(MultiBoxLoss(CLASSES, **options), given).forward()[0]  # type: ignore[arg-type]
    assert (whole / by_matches).round(9) in range(1, IMAGES * PRIORS)


def test_parts_and_agnostic_labels() -> None:
    given = bottoms(True)
    options = {"code": Code.CENTER_SIZE}
    both, places, scores = (
        float(Bench(MultiBoxLoss(CLASSES, parts=parts, **options), given).forward()[0])  # type: ignore[arg-type]
        for parts in ((True, True), (True, False), (False, True))
    )
    assert both == pytest.approx(places + scores) and places > 0 and scores > 0
    two = [given[0], given[1].reshape(IMAGES, PRIORS, CLASSES)[..., :2].reshape(IMAGES, -1), given[2], given[3].copy()]
    two[3][..., 1] = np.minimum(two[3][..., 1], 1)
    labelled = Bench(MultiBoxLoss(2, **options), two).forward()[0]  # type: ignore[arg-type]
    np.testing.assert_array_equal(Bench(MultiBoxLoss(2, agnostic=True, **options), two).forward()[0], labelled)  # type: ignore[arg-type]


def test_refined_priors() -> None:
    """RefineDet: predictions begin where other places have moved the priors to, and what is surely nothing is not mined."""
    options: dict[str, Any] = {"code": Code.CENTER_SIZE, "choice": Choice(ratio=1.0), "objectness": 0.5}
    places, scores, priors, truth = (b[:1] for b in bottoms(True))
    sure = np.tile([0.0, 1.0], (1, PRIORS))
    moves = np.random.RandomState(1).normal(size=places.shape)
    moved = decoded(moves.reshape(PRIORS, 4), *priors.reshape(2, PRIORS, 4), Code.CENTER_SIZE, in_target=False)
    for first, begun in ((np.zeros_like(moves), priors), (moves, plain.prior_blob(moved, VARIANCES))):
        bench = Bench(MultiBoxLoss(CLASSES, **options), [places, scores, priors, truth, sure, first])
        alone = Bench(MultiBoxLoss(CLASSES, **options), [places, scores, begun, truth])
        np.testing.assert_allclose(bench.forward()[0], alone.forward()[0], rtol=1e-12)
    check_gradient(bench, [True, True, False, False, False, False])
    no_negatives = Bench(MultiBoxLoss(CLASSES, **{**options, "choice": Choice(ratio=0.0)}), [places, scores, priors, truth])
    unsure = Bench(MultiBoxLoss(CLASSES, **options), [places, scores, priors, truth, 1 - sure])
    np.testing.assert_allclose(unsure.forward()[0], no_negatives.forward()[0], rtol=1e-12)
    with pytest.raises(ArgumentError, match="4 numbers for each prior and image"):
        Bench(MultiBoxLoss(CLASSES), [places, scores, priors, truth, sure, moves[:, 1:]])


def test_two_classes_may_fold_all_labels() -> None:
    given = bottoms(True)
    given[1] = given[1].reshape(IMAGES, PRIORS, CLASSES)[..., :2].reshape(IMAGES, -1)
    folded = Bench(MultiBoxLoss(2, code=Code.CENTER_SIZE, fold=True), given).forward()[0]
    given[3] = given[3].copy()
    given[3][..., 1] = np.minimum(given[3][..., 1], 1)
    np.testing.assert_array_equal(Bench(MultiBoxLoss(2, code=Code.CENTER_SIZE), given).forward()[0], folded)


def test_no_truth_at_all() -> None:
    given = bottoms(True)
    given[3][..., 0] = -1
    bench = Bench(MultiBoxLoss(CLASSES), given)
    assert bench.forward()[0] == 0
    bench.backward([np.ones(())], [True, True, False, False])
    assert not bench.bottom[0].diff.any() and not bench.bottom[1].diff.any()


def test_refusals() -> None:
    for options, says in (
        ({"background": 3}, "0 <= background_label_id < 3 for SOFTMAX"),
        ({"shared": False}, "NONE, or share_location"),
        ({"agnostic": True}, "2 where objects"),
        ({"choice": Choice(sample=0)}, "sample_size > 0"),
    ):
        with pytest.raises(ArgumentError, match=says):
            MultiBoxLoss(CLASSES, **options)  # type: ignore[arg-type]
    given = bottoms(True)
    with pytest.raises(ArgumentError, match=r"\(1, 1, rows, 8\)"):
        Bench(MultiBoxLoss(CLASSES), [*given[:3], given[3][..., :7]])
    for label in (0, 3):
        wrong = given[3].copy()
        wrong[0, 0, 0, 1] = label
        bench = Bench(MultiBoxLoss(CLASSES), [*given[:3], wrong])
        with pytest.raises(ArrayError, match="a label that is no class"):
            bench.forward()
    bench = Bench(MultiBoxLoss(CLASSES), [*given[:2], given[2] * [[[1], [0]]], given[3]])
    with pytest.raises(ArrayError, match="a variance is not positive"):
        bench.forward()
    bench = Bench(MultiBoxLoss(CLASSES), given)
    with pytest.raises(UnsupportedError, match="priors and the truth have no gradient"):
        bench.backward(bench.forward(), [True, True, True, False])


NET = """
input: "loc" input: "conf" input: "priors" input: "label"
input_shape {{ dim: 3 dim: 40 }} input_shape {{ dim: 3 dim: 30 }} input_shape {{ dim: 1 dim: 2 dim: 40 }}
input_shape {{ dim: 1 dim: 1 dim: 6 dim: 8 }}
force_backward: true
layer {{
  name: "loss" type: "MultiBoxLoss" bottom: "loc" bottom: "conf" bottom: "priors" bottom: "label" top: "loss"
  propagate_down: true propagate_down: true propagate_down: false propagate_down: false
  multibox_loss_param {{ num_classes: 3 code_type: CENTER_SIZE neg_pos_ratio: 1 loc_weight: 2 {} }}
  loss_param {{ normalization: VALID }}
}}
"""


def test_text() -> None:
    given = [a.astype(np.float32) for a in bottoms(True)]
    for fields in ("", "do_neg_mining: true use_difficult_gt: true"):
        net = load_caffe(NET.format(fields), phase="TRAIN", dialect="ssd")
        named = dict(zip(net.inputs, given, strict=True))
        loss = float(net.forward(**named)["loss"])
        layer = MultiBoxLoss(3, code=Code.CENTER_SIZE, choice=Choice(ratio=1.0), place_weight=2.0)
        bench = Bench(layer, given)
        assert loss == pytest.approx(float(bench.forward()[0]), rel=1e-5)
        gradients = net.backward()
        bench.backward([np.ones(())], [True, True, False, False])
        np.testing.assert_allclose(gradients["loc"], bench.bottom[0].diff, rtol=0, atol=1e-6)
        np.testing.assert_allclose(gradients["conf"], bench.bottom[1].diff, rtol=0, atol=1e-6)
        assert load_caffe(net.to_prototxt(), phase="TRAIN").forward(**named)["loss"] == loss


def test_older_field() -> None:
    every = load_caffe(NET.format("do_neg_mining: false")).layer("loss")
    assert every.choice.kind is Mining.NONE  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError, match="do_neg_mining says otherwise than mining_type"):
        load_caffe(NET.format("do_neg_mining: false mining_type: MAX_NEGATIVE"))


def test_text_of_refinedet() -> None:
    shapes = ((3, 40), (3, 30), (1, 2, 40), (1, 1, 6, 8), (3, 20), (3, 40))
    text = "".join(f'input: "i{i}" input_shape {{ {" ".join(f"dim: {n}" for n in s)} }}\n' for i, s in enumerate(shapes))
    bottom = " ".join(f'bottom: "i{i}"' for i in range(6))
    text += f'layer {{ name: "loss" type: "MultiBoxLoss" {bottom} top: "loss" multibox_loss_param {{ num_classes: 3 FIELDS }} }}'
    layer = load_caffe(text.replace("FIELDS", "objectness_score: 0.25"), phase="TRAIN").layer("loss")
    assert isinstance(layer, MultiBoxLoss) and (layer.objectness, layer.fold) == (0.25, True)
    layer = load_caffe(text.replace("FIELDS", ""), phase="TRAIN", dialect="ssd").layer("loss")
    assert isinstance(layer, MultiBoxLoss) and not layer.fold
