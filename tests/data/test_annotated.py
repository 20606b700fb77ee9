"""Boxes in images: views, patches, colours, and the table of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride import load_caffe
from astride.caffe.dialects import schema
from astride.data.annotated import AnnotatedSource, Changes, Interpolation, Warp
from astride.data.boxes import WHOLE, Annotation, Emit, Patches, area, covered, overlap, placed, viewed, within
from astride.data.colours import Distortion, bgr, expanded, hsv
from astride.errors import ArgumentError, UnsupportedError

from .databases import Memory, write_lmdb

RANDOM = np.random.RandomState(15)
Record = schema("ssd").message("AnnotatedDatum")
IMAGES = RANDOM.randint(0, 256, (3, 3, 8, 10)).astype(np.uint8)
BOXES = [
    [Annotation(2, 0, (0.0, 0.0, 0.5, 0.5)), Annotation(2, 1, (0.5, 0.25, 1.0, 0.75), difficult=True)],
    [],
    [Annotation(7, 0, (0.25, 0.25, 0.75, 1.0))],
]


def record(image: np.ndarray, annotations: list[Annotation]) -> bytes:
    c, h, w = image.shape
    message = Record(type=0)
    message.datum.channels, message.datum.height, message.datum.width, message.datum.data = c, h, w, image.tobytes()
    for each in annotations:
        group = message.annotation_group.add(group_label=each.label)
        added = group.annotation.add(instance_id=each.instance)
        added.bbox.xmin, added.bbox.ymin, added.bbox.xmax, added.bbox.ymax = each.box
        added.bbox.difficult = each.difficult
    return bytes(message.SerializeToString())


RECORDS = [record(image, boxes) for image, boxes in zip(IMAGES, BOXES, strict=True)]


def source(**changes: Any) -> AnnotatedSource:
    return AnnotatedSource(Memory(RECORDS), Record, changes=Changes(**changes))


def test_a_batchs_boxes_are_one_table() -> None:
    images, table = source(mean=np.full((3, 1, 1), 4, np.float32), scale=0.5).batch(3)
    np.testing.assert_array_equal(images, (IMAGES - 4.0) / 2)
    assert table.shape == (1, 1, 3, 8) and table.dtype == np.float32
    assert table[0, 0].tolist() == [
        [0, 2, 0, 0, 0, 0.5, 0.5, 0],
        [0, 2, 1, 0.5, 0.25, 1, 0.75, 1],
        [2, 7, 0, 0.25, 0.25, 0.75, 1, 0],
    ]
    empty = source()
    empty.reset(1)
    assert empty.batch(1)[1].tolist() == [[[[-1] * 8]]]


def test_mirrored_boxes() -> None:
    mirrored = source(mirror=True)
    seen = set()
    for seed in range(8):
        mirrored.reseed(seed)
        mirrored.reset()
        images, table = mirrored.batch(1)
        turned = bool((images[0] == IMAGES[0][:, :, ::-1]).all())
        assert turned or (images[0] == IMAGES[0]).all()
        assert table[0, 0, 0, 3:7].tolist() == ([0.5, 0, 1, 0.5] if turned else [0, 0, 0.5, 0.5])
        seen.add(turned)
    assert seen == {True, False}


def test_geometry() -> None:
    a, b = (0.0, 0.0, 0.5, 0.5), (0.25, 0.25, 0.75, 0.75)
    assert area(a) == 0.25 and overlap(a, b) == 0.0625 / 0.4375 and covered(a, b) == 0.25
    assert overlap(a, (0.5, 0.5, 1, 1)) == 0 and area((0.5, 0, 0.25, 1)) == 0
    assert within(b, a) == (0, 0, 0.5, 0.5) and within((0.6, 0.6, 1, 1), a) is None
    assert placed(b, (0.5, 0.5, 1, 1)) == (0.5, 0.5, 0.75, 0.75)
    assert not Emit()((0.3, 0, 1, 1), a) and Emit()((0.2, 0, 1, 1), a)
    assert Emit(0.2)((0.25, 0.25, 1, 1), a) and not Emit(0.3)((0.25, 0.25, 1, 1), a)
    assert viewed([Annotation(1, 0, a)], (0.3, 0, 1, 1), Emit()) == []
    shown = viewed([Annotation(1, 0, a)], (0.25, 0, 0.75, 1), None, mirror=True)
    assert shown == [Annotation(1, 0, (0.5, 0.0, 1.0, 0.5))]


def test_patches_stand_in_the_relation_asked_for() -> None:
    objects = [(0.1, 0.1, 0.4, 0.5), (0.6, 0.5, 0.9, 0.9)]
    random = np.random.default_rng(1)
    for patches in (
        Patches((0.3, 1), (0.5, 2), overlap=(0.4, None), most=3),
        Patches((0.3, 1), (0.5, 2), object_coverage=(0.9, None), most=2),
        Patches((0.3, 1), (0.5, 2), overlap=(None, 0.1), sample_coverage=(0.05, 0.9)),
    ):
        found = patches.draw(objects, random)
        assert found and (patches.most is None or len(found) <= patches.most)
        for x1, y1, x2, y2 in found:
            assert 0 <= x1 < x2 <= 1 + 1e-9 and 0 <= y1 < y2 <= 1 + 1e-9
            assert np.sqrt((x2 - x1) * (y2 - y1)) >= 0.3 - 1e-9 and 0.5 - 1e-9 <= (x2 - x1) / (y2 - y1) <= 2 + 1e-9
            assert patches.fits((x1, y1, x2, y2), objects)
    assert Patches(most=1).draw([], random) == [WHOLE]
    assert Patches(overlap=(0.5, None)).draw([], random) == []


def test_a_patch_is_cut_out_with_its_boxes() -> None:
    drawn = source(patches=(Patches((0.5, 0.5), object_coverage=(1.0, None), most=1),), emit=Emit(), warp=Warp((4, 5)))
    found = 0
    for seed in range(20):
        drawn.reseed(seed)
        drawn.reset()
        images, table = drawn.batch(1)
        assert images.shape == (1, 3, 4, 5)
        rows = table[0, 0]
        assert ((rows[:, 3:7] >= 0) & (rows[:, 3:7] <= 1)).all() or (rows == -1).all()
        found += int((rows[:, 1] == 2).any())
    assert found


@pytest.mark.parametrize("way", list(Interpolation))
def test_warp(way: Interpolation) -> None:
    flat = np.full((3, 8, 10), 77, np.uint8)
    out = Warp((4, 6), (way,))(flat, np.random.default_rng(0))
    assert out.shape == (3, 4, 6) and (out == 77).all()
    if way is Interpolation.NEAREST:
        assert Warp((4, 5), (way,))(IMAGES[0], np.random.default_rng(0)).tolist() == IMAGES[0][:, ::2, ::2].tolist()
    assert Warp((4, 6), (way,), 0.0)(flat, np.random.default_rng(0)) is flat


def test_crop_moves_boxes() -> None:
    images, table = source(crop=(4, 4)).batch(1)
    np.testing.assert_array_equal(images[0], IMAGES[0][:, 2:6, 3:7])
    assert table[0, 0, 0, 3:7].tolist() == [0, 0, 0.5, 0.5]
    with pytest.raises(ArgumentError, match="larger than the image"):
        source(crop=(9, 4)).batch(1)


def test_more_space_around() -> None:
    canvas, view = expanded(IMAGES[0], 2.0, np.array([1, 2, 3], np.float32).reshape(3, 1, 1), np.random.default_rng(3))
    assert canvas.shape == (3, 16, 20)
    right, down = round(-view[0] * 10), round(-view[1] * 8)
    np.testing.assert_array_equal(canvas[:, down : down + 8, right : right + 10], IMAGES[0])
    canvas[:, down : down + 8, right : right + 10] = np.array([1, 2, 3]).reshape(3, 1, 1)
    assert (canvas == np.array([1, 2, 3]).reshape(3, 1, 1)).all()
    box = within(view, (0, 0, 1, 1))
    assert box is not None
    np.testing.assert_allclose(box, (right / 20, down / 16, (right + 10) / 20, (down + 8) / 16), atol=1e-12)
    wide = source(expand=(1.0, 3.0))
    images, table = wide.batch(1)
    assert images.shape[2] > 8 and table[0, 0, 0, 5] < 0.5


def test_colours_come_back() -> None:
    pixels = RANDOM.randint(0, 256, (3, 20, 20)).astype(np.uint8)
    np.testing.assert_array_equal(bgr(*hsv(pixels)), pixels)
    grey = np.full((3, 2, 2), 90, np.uint8)
    random = np.random.default_rng(2)
    for distortion in (Distortion(saturation=(1, 0, 3)), Distortion(hue=(1, 90)), Distortion(order=1)):
        np.testing.assert_array_equal(distortion(grey, random), grey)
    assert len(set(Distortion(brightness=(1, 32))(grey, random).reshape(-1))) == 1
    assert (Distortion(contrast=(1, 0.5, 0.5))(grey, random) == 45).all()
    assert (Distortion(brightness=(0, 32), contrast=(0, 2, 2))(pixels, random) == pixels).all()
    one = np.zeros((1, 2, 2), np.uint8)
    assert Distortion(brightness=(1, 32))(one, random) is one


TEXT = """
layer {{ name: "d" type: "AnnotatedData" top: "data" top: "label" {phase}
  data_param {{ source: "{path}" backend: LMDB batch_size: 2 }}
  transform_param {{ mean_value: 4 {transform} }}
  annotated_data_param {{ {sampler} }} }}
"""


def test_by_its_text(tmp_path: Path) -> None:
    path = write_lmdb(tmp_path / "db", RECORDS)
    net = load_caffe(TEXT.format(path=path, phase="", transform="", sampler=""))
    assert net.blobs["label"].shape == (1, 1, 1, 8)
    out = net.forward()
    assert out["label"].shape == (1, 1, 2, 8) and out["label"][0, 0, 1, 2] == 1
    np.testing.assert_array_equal(out["data"], IMAGES[:2] - 4.0)
    assert net.forward()["label"].shape == (1, 1, 3, 8)
    sampler = """
    batch_sampler { max_sample: 1 max_trials: 1 }
    batch_sampler { sampler { min_scale: 0.3 max_scale: 1 min_aspect_ratio: 0.5 max_aspect_ratio: 2 }
      sample_constraint { min_jaccard_overlap: 0.3 } max_sample: 1 max_trials: 50 }
    """
    transform = """
    mirror: true resize_param { resize_mode: WARP height: 6 width: 7 interp_mode: LINEAR interp_mode: AREA interp_mode: CUBIC }
    distort_param { brightness_prob: 0.5 brightness_delta: 32 hue_prob: 0.5 hue_delta: 18 saturation_prob: 0.5
      saturation_lower: 0.5 saturation_upper: 1.5 contrast_prob: 0.5 contrast_lower: 0.5 contrast_upper: 1.5 }
    expand_param { prob: 0.5 max_expand_ratio: 4 } emit_constraint { emit_type: CENTER }
    """
    text = TEXT.format(path=path, phase="", transform=transform, sampler=sampler)
    first, again, other = (load_caffe(text, phase="TRAIN", seed=seed) for seed in (1, 1, 2))
    runs = [[net.forward() for _ in range(6)] for net in (first, again, other)]
    assert runs[0][0]["data"].shape == (2, 3, 6, 7)
    for one, two in zip(*runs[:2], strict=True):
        np.testing.assert_array_equal(one["data"], two["data"])
        np.testing.assert_array_equal(one["label"], two["label"])
    assert any((one["data"] != two["data"]).any() for one, two in zip(runs[0], runs[2], strict=True))
    only = load_caffe(text.replace('top: "label"', ""), phase="TRAIN", seed=1)
    assert only.forward()["data"].shape == (2, 3, 6, 7)


def test_what_is_refused(tmp_path: Path) -> None:
    path = write_lmdb(tmp_path / "db", RECORDS)
    for transform, words in (
        ("resize_param { resize_mode: FIT_SMALL_SIZE height: 4 width: 4 }", "WARP only"),
        ("noise_param { prob: 0.5 hist_eq: true }", "noise is not added"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            load_caffe(TEXT.format(path=path, phase="", transform=transform, sampler=""))
