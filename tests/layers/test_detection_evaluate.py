"""DetectionEvaluate: right, wrong and neither, by hand; in pixels; and its text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, ArrayError, ModelFileError, UnsupportedError
from astride.layers.detection_evaluate import DetectionEvaluate

from .gradients import Bench

UPPER, LOWER = (0.0, 0.0, 1.0, 0.5), (0.0, 0.5, 1.0, 1.0)

FOUND = [
    (0, 1, 0.4, *UPPER),  # found a second time
    (0, 1, 0.9, *UPPER),
    (0, 1, 0.8, 0.0, 0.9, 0.1, 1.0),  # overlaps nothing enough
    (0, 2, 0.7, *LOWER),  # the difficult one
    (0, 3, 0.6, *LOWER),  # a label without truth
    (1, 1, 0.5, *UPPER),  # an image without truth
    (-1, 0, 0, 0, 0, 0, 0),
]
TRUTH = [
    (0, 1, 0, *UPPER, 0),
    (0, 1, 1, *LOWER, 0),
    (0, 2, 0, *LOWER, 1),
    (-1, 0, 0, 0, 0, 0, 0, 0),
]


def table(rows: list[Any]) -> Any:
    return np.array(rows, float)[None, None]


@pytest.mark.parametrize("difficult", [True, False])
def test_by_hand(difficult: bool) -> None:
    top = Bench(DetectionEvaluate(4, difficult=difficult), [table(FOUND), table(TRUTH)]).forward()[0]
    assert top.shape == (1, 1, 3 + 7, 5)
    hard = [1, 0] if difficult else [0, 0]
    np.testing.assert_array_equal(
        top[0, 0],
        [
            [-1, 1, 2, -1, -1],
            [-1, 2, 1 if difficult else 0, -1, -1],
            [-1, 3, 0, -1, -1],
            [0, 1, 0.9, 1, 0],
            [0, 1, 0.8, 0, 1],
            [0, 1, 0.4, 0, 1],
            [0, 2, 0.7, *hard],
            [0, 3, 0.6, 0, 1],
            [1, 1, 0.5, 0, 1],
            [0, 0, 0, 0, 0],
        ],
    )


def test_without_background_there_is_a_row_more() -> None:
    top = Bench(DetectionEvaluate(2, background=-1), [table(FOUND[:2]), table(TRUTH[:1])]).forward()[0][0, 0]
    np.testing.assert_array_equal(top[:2], [[-1, 0, 0, -1, -1], [-1, 1, 1, -1, -1]])


def test_overlap_enough_is_no_less() -> None:
    found, truth = table([(0, 1, 0.5, 0, 0, 1, 0.5)]), table([(0, 1, 0, 0, 0, 1, 1, 0)])
    for overlap, right in ((0.5, 1), (0.51, 0)):
        assert Bench(DetectionEvaluate(2, overlap=overlap), [found, truth]).forward()[0][0, 0, 1, 3] == right


def test_in_pixels_sides_have_one_added() -> None:
    """A third of the height in parts of the image, but (1 + 1) of (3 + 1) rows in pixels; images take turns."""
    found, truth = table([(0, 1, 0.5, 0, 0, 1, 1 / 3)]), table([(0, 1, 0, 0, 0, 1, 1, 0)])
    assert Bench(DetectionEvaluate(2), [found, truth]).forward()[0][0, 0, 1, 3] == 0
    bench = Bench(DetectionEvaluate(2, sizes=[(3, 2), (300, 2)]), [found, truth])
    assert [bench.forward()[0][0, 0, 1, 3] for _ in range(4)] == [1, 0, 1, 0]
    bench.forward()
    bench.layer.forget()
    assert bench.forward()[0][0, 0, 1, 3] == 1


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="overlap_threshold > 0: 0"):
        DetectionEvaluate(3, overlap=0)
    with pytest.raises(ArgumentError, match="no blob has such a shape"):
        Bench(DetectionEvaluate(2**32 - 1), [table(FOUND), table(TRUTH)])
    with pytest.raises(ArgumentError, match=r"\(1, 1, rows, 8\)"):
        Bench(DetectionEvaluate(3), [table(FOUND), table(FOUND)])
    bench = Bench(DetectionEvaluate(3), [table([(0, 0, 1, *UPPER)]), table(TRUTH)])
    with pytest.raises(ArrayError, match="label of the background"):
        bench.forward()
    with pytest.raises(UnsupportedError, match="no gradient"):
        bench.backward([np.zeros((1, 1, 3, 5))], [True, False])


NET = """
input: "found" input: "truth"
input_shape { dim: 1 dim: 1 dim: 7 dim: 7 } input_shape { dim: 1 dim: 1 dim: 4 dim: 8 }
layer { name: "e" type: "DetectionEvaluate" bottom: "found" bottom: "truth" top: "e" detection_evaluate_param { FIELDS } }
"""


def test_text(tmp_path: Path) -> None:
    inputs = {"found": table(FOUND), "truth": table(TRUTH)}
    net = load_caffe(NET.replace("FIELDS", "num_classes: 4 evaluate_difficult_gt: false overlap_threshold: 0.6"))
    expected = Bench(DetectionEvaluate(4, overlap=0.6, difficult=False), [table(FOUND), table(TRUTH)]).forward()[0]
    np.testing.assert_allclose(net.forward(**inputs)["e"], expected, rtol=0, atol=1e-7)
    assert net.to_prototxt() == load_caffe(net.to_prototxt()).to_prototxt()
    sizes = tmp_path / "sizes.txt"
    sizes.write_text("one 30 20\ntwo 40 50\n")
    text = NET.replace("FIELDS", f'num_classes: 4 name_size_file: "{sizes}"')
    assert load_caffe(text).layer("e").sizes == ((30, 20), (40, 50))  # type: ignore[attr-defined]
    sizes.write_text("one 30\n")
    with pytest.raises(ModelFileError, match="this is no list of image sizes"):
        load_caffe(text)
    sizes.unlink()
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_caffe(text)
