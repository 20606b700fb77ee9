"""PriorBox: the order of boxes, steps and offsets, clipping, whole sizes, and its text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError
from astride.layers.prior_box import PriorBox, ratios

from .gradients import Bench

MAP, IMAGE = np.zeros((1, 8, 2, 3)), np.zeros((1, 3, 20, 60))


def boxes(layer: PriorBox, image: Any = IMAGE) -> Any:
    """(cells down, across, boxes, 4) in pixels, and the variances."""
    top = Bench(layer, [MAP, image]).forward()[0]
    assert top.shape[:2] == (1, 2)
    sizes = np.array([60, 20, 60, 20]) if layer.image is None else np.array([*layer.image[::-1]] * 2)
    return (top[0, 0].reshape(2, 3, -1, 4) * sizes).round(4), top[0, 1].reshape(2, 3, -1, 4)


def test_order_of_boxes() -> None:
    """The square, the one of the mean size, then a ratio and its inverse; for one size after the other."""
    layer = PriorBox([4, 9], max_sizes=[16, 25], aspect_ratios=[4, 1, 4], variances=[0.1, 0.2, 0.3, 0.4])
    found, variances = boxes(layer)
    assert found.shape == (2, 3, 8, 4)
    sides = [(4, 4), (8, 8), (8, 2), (2, 8), (9, 9), (15, 15), (18, 4.5), (4.5, 18)]
    for down, across in np.ndindex(2, 3):
        x, y = 20 * (across + 0.5), 10 * (down + 0.5)
        assert found[down, across].tolist() == [[x - w / 2, y - h / 2, x + w / 2, y + h / 2] for w, h in sides]
    assert (variances == [0.1, 0.2, 0.3, 0.4]).all()


def test_options() -> None:
    found, variances = boxes(PriorBox([4], aspect_ratios=[4], flip=False, step=(5, 7), offset=0.0, variances=[0.5]))
    assert found.shape == (2, 3, 2, 4) and (variances == 0.5).all()
    assert found[1, 2].tolist() == [[12, 3, 16, 7], [10, 4, 18, 6]]
    found, _ = boxes(PriorBox([4], image=(10, 30)))
    assert found[0, 0].tolist() == [[3, 0.5, 7, 4.5]]
    found, _ = boxes(PriorBox([40], clip=True))
    assert found[0, 0].tolist() == [[0, 0, 30, 20]]


def test_sizes_are_cut_to_whole_pixels() -> None:
    whole, _ = boxes(PriorBox([35], max_sizes=[76], aspect_ratios=[2]))
    cut, _ = boxes(PriorBox([35.84], max_sizes=[76.8], aspect_ratios=[2]))
    np.testing.assert_array_equal(whole, cut)


def test_ratios() -> None:
    assert ratios([2, 3], True) == (2, 0.5, 3, float(np.float32(1 / 3)))
    assert ratios([2, 2.0000001, 0.5, 1], False) == (2, 0.5)
    assert ratios([2, 0.5], True) == (2, 0.5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"min_sizes": []}, "a prior box has a size"),
        ({"min_sizes": [4, 5], "max_sizes": [8]}, "0 or 2 of max_size: 1"),
        ({"min_sizes": [4], "max_sizes": [4]}, "max_size > min_size: 4 > 4"),
        ({"min_sizes": [0]}, "min_size is not positive"),
        ({"min_sizes": [4], "variances": [1, 2]}, "1 or 4 of variance: 2"),
        ({"min_sizes": [4], "aspect_ratios": [-1]}, "aspect_ratio is not positive"),
        ({"min_sizes": [4], "step": (0, 1)}, "step_h, step_w is not positive"),
        ({"min_sizes": [float("nan")]}, "min_size is not positive"),
    ],
)
def test_refusals(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        PriorBox(**options)


def test_no_cell() -> None:
    with pytest.raises(ArgumentError, match="no cell to put a box in"):
        Bench(PriorBox([4]), [np.zeros((1, 8, 0, 3)), IMAGE])


NET = """
force_backward: true
input: "map" input: "image"
input_shape {{ dim: 1 dim: 8 dim: 2 dim: 3 }} input_shape {{ dim: 1 dim: 3 dim: 20 dim: 60 }}
layer {{ name: "p" type: "PriorBox" bottom: "map" bottom: "image" top: "p" prior_box_param {{ min_size: 4 {} }} }}
"""


def test_text() -> None:
    text = NET.format(
        "max_size: 16 aspect_ratio: 4 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 step: 10 offset: 0.25"
    )
    net = load_caffe(text, dialect="ssd")
    found = net.forward()["p"]
    assert found.shape == (1, 2, 2 * 3 * 4 * 4)
    np.testing.assert_allclose(found[0, 0, :4] * [60, 20, 60, 20], [0.5, 0.5, 4.5, 4.5], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found, load_caffe(net.to_prototxt()).forward()["p"])
    assert not any(gradient.any() for gradient in net.backward(p=np.ones_like(found)).values())


def test_text_refusals() -> None:
    for fields, says in (
        ("img_size: 3 img_h: 4", "img_size is given, and img_h or img_w too"),
        ("step: 2 step_w: 2", "step is given"),
    ):
        with pytest.raises(ArgumentError, match=says):
            load_caffe(NET.format(fields))
    with pytest.raises(ArgumentError, match="img_h, img_w is not positive"):
        load_caffe(NET.format("img_h: 4"))
