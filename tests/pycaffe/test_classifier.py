"""caffe.Classifier and caffe.Detector on a network whose answers can be seen from the pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from astride import pycaffe as caffe
from astride.errors import ArgumentError, UnsupportedError

from .texts import written

# Two classes: how red and how blue the crop is, as a mean over the plane.
NET = """
input: "data" input_shape { dim: 4 dim: 3 dim: 4 dim: 4 }
layer { name: "mean" type: "Pooling" bottom: "data" top: "mean" pooling_param { pool: AVE global_pooling: true } }
layer { name: "score" type: "InnerProduct" bottom: "mean" top: "score" inner_product_param { num_output: 2 bias_term: false } }
"""


@pytest.fixture
def files(folder: Path) -> tuple[str, str]:
    net = caffe.Net(written("net.prototxt", NET), caffe.TEST)
    net.params["score"][0].data[...] = [[1, 0, 0], [0, 0, 1]]
    net.save("net.caffemodel")
    return "net.prototxt", "net.caffemodel"


def coloured(red: float, blue: float, size: tuple[int, int] = (6, 8)) -> np.ndarray:
    image = np.zeros((*size, 3), np.float32)
    image[..., 0], image[..., 2] = red, blue
    return image


def test_predictions_of_one_crop_and_of_ten(files: tuple[str, str]) -> None:
    classifier = caffe.Classifier(*files, image_dims=(6, 6), raw_scale=10)
    images = [coloured(0.5, 0.25), coloured(0, 1), coloured(1, 1)]
    for oversample in (False, True):
        predictions = classifier.predict(images, oversample=oversample)
        np.testing.assert_allclose(predictions.reshape(3, 2), [[5, 2.5], [0, 10], [10, 10]], rtol=1e-5, atol=1e-5)
    assert isinstance(classifier, caffe.Net) and classifier.crop_dims.tolist() == [4, 4]


def test_ten_crops_are_averaged(files: tuple[str, str]) -> None:
    """Red in the upper left corner pixel only: it is in one of five crops, and in its mirror."""
    image = np.zeros((6, 6, 3), np.float32)
    image[0, 0, 0] = 16
    classifier = caffe.Classifier(*files, image_dims=(6, 6))
    np.testing.assert_allclose(classifier.predict([image]), [[0.2, 0]], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(classifier.predict([image], oversample=False).reshape(2), [0, 0], atol=1e-6)


def test_preparation(files: tuple[str, str]) -> None:
    classifier = caffe.Classifier(*files, mean=np.array([1.0, 0, 0]), input_scale=2, raw_scale=255, channel_swap=(2, 1, 0))
    got = classifier.predict([coloured(0.2, 0.4, (4, 4))], oversample=False).reshape(2)
    np.testing.assert_allclose(got, [2 * (102 - 1), 2 * 51], rtol=1e-5)


@pytest.fixture
def picture(folder: Path) -> str:
    pixels = np.zeros((8, 12, 3), np.uint8)
    pixels[:, :6, 0], pixels[:, 6:, 2] = 255, 255
    Image.fromarray(pixels).save("halves.png")
    return "halves.png"


def test_windows_of_an_image(files: tuple[str, str], picture: str) -> None:
    detector = caffe.Detector(*files)
    found = detector.detect_windows([(picture, [(0, 0, 8, 6), (0, 6, 8, 12), (2, 2, 6, 10)])])
    scores = np.array([each["prediction"].reshape(2) for each in found])
    np.testing.assert_allclose(scores[:2], [[1, 0], [0, 1]], atol=1e-6)
    np.testing.assert_allclose(scores[2], [0.5, 0.5], atol=0.02)
    assert [each["window"] for each in found] == [(0, 0, 8, 6), (0, 6, 8, 12), (2, 2, 6, 10)]
    assert {each["filename"] for each in found} == {picture}
    assert detector.detect_windows([]) == []
    with pytest.raises(UnsupportedError, match="selective search"):
        detector.detect_selective_search([picture])


def test_surroundings_show_and_the_mean_stands_outside(files: tuple[str, str], picture: str) -> None:
    mean = np.array([0.0, 51.0, 0.0])
    detector = caffe.Detector(*files, mean=mean, raw_scale=255, context_pad=1)
    image = caffe.io.load_image(picture)
    corner = detector.crop(image, np.array([0, 0, 3, 3]))
    assert corner.shape == (4, 4, 3)
    np.testing.assert_allclose(corner[0, 0], [0, 0.2, 0], atol=1e-6)
    np.testing.assert_allclose(corner[2, 2], [1, 0, 0], atol=1e-6)
    inside = detector.crop(image, np.array([3, 4, 4, 5]))
    assert not (inside[..., 1] > 0).any()
    with pytest.raises(ArgumentError, match="no room for surroundings"):
        detector.configure_crop(2)
    with pytest.raises(ArgumentError, match="outside the image"):
        detector.crop(image, np.array([50, 50, 53, 53]))
