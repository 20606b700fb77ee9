"""DenseImageData: pairs of images, resizing of both, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from astride import load_caffe
from astride.errors import ArgumentError, ArrayError, AstrideError

RANDOM = np.random.RandomState(9)
IMAGES = RANDOM.randint(0, 256, (3, 3, 4, 6)).astype(np.uint8)
CLASSES = RANDOM.randint(0, 12, (3, 4, 6)).astype(np.uint8)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    for i, (image, classes) in enumerate(zip(IMAGES, CLASSES, strict=True)):
        Image.fromarray(np.ascontiguousarray(image[::-1].transpose(1, 2, 0))).save(tmp_path / f"{i}.png")
        Image.fromarray(classes).save(tmp_path / f"{i}_classes.png")
    path = tmp_path / "pairs.txt"
    path.write_text("".join(f"{tmp_path}/{i}.png {tmp_path}/{i}_classes.png\n" for i in range(3)))
    return path


def text(path: Path, more: str = "", transform: str = "", batch: int = 2) -> str:
    return f"""layer {{ name: "d" type: "DenseImageData" top: "data" top: "label" transform_param {{ {transform} }}
      dense_image_data_param {{ source: "{path}" batch_size: {batch} {more} }} }}"""


def test_pairs(pairs: Path) -> None:
    net = load_caffe(text(pairs, transform="scale: 0.5 mean_value: 3"))
    assert net.blobs["data"].shape == (2, 3, 4, 6) and net.blobs["label"].shape == (2, 1, 4, 6)
    for which in ([0, 1], [2, 0], [1, 2]):
        out = net.forward()
        np.testing.assert_array_equal(out["data"], (IMAGES[which] - 3.0) / 2)
        np.testing.assert_array_equal(out["label"][:, 0], CLASSES[which])


def test_grey(pairs: Path) -> None:
    assert load_caffe(text(pairs, "is_color: false")).forward()["data"].shape == (2, 1, 4, 6)


def test_resized_to_the_nearest(pairs: Path) -> None:
    """No class that is not in the file comes up, each from the row and column below its own times the ratio."""
    out = load_caffe(text(pairs, "new_height: 8 new_width: 3")).forward()
    assert out["data"].shape == (2, 3, 8, 3)
    np.testing.assert_array_equal(out["label"][:, 0], CLASSES[:2].repeat(2, 1)[:, :, ::2])


def test_shuffled_pairs_stay_pairs(pairs: Path) -> None:
    out = load_caffe(text(pairs, "shuffle: true", batch=3)).forward()
    order = [int(np.nonzero((image == IMAGES).all((1, 2, 3)))[0][0]) for image in out["data"]]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_array_equal(out["label"][:, 0], CLASSES[order])


@pytest.mark.parametrize(
    ("more", "transform"), [("", "mirror: true"), ("", "crop_size: 2"), ("new_height: 3", ""), ("new_width: 3", "")]
)
def test_refused(pairs: Path, more: str, transform: str) -> None:
    with pytest.raises(AstrideError, match="not mirrored or cropped"):
        load_caffe(text(pairs, more, transform))


def test_names_in_pairs(pairs: Path) -> None:
    pairs.write_text("a.png a_classes.png\nb.png\n")
    with pytest.raises(ArgumentError, match="an image of its labels"):
        load_caffe(text(pairs)).forward()


def test_sizes_of_a_pair(pairs: Path) -> None:
    Image.fromarray(CLASSES[1][:, :5].copy()).save(pairs.parent / "1_classes.png")
    with pytest.raises(ArrayError, match="different sizes"):
        load_caffe(text(pairs)).forward()
