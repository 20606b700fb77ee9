"""Images to blobs, by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride import ArgumentError, ArrayError, cv2dnn
from astride.data.opencv_resize import bilinear

PIXELS = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


def test_channels_come_first() -> None:
    blob = cv2dnn.blobFromImage(PIXELS)
    assert blob.shape == (1, 3, 2, 2) and blob.dtype == np.float32 and blob.flags.c_contiguous
    assert blob[0, 0].tolist() == [[0, 3], [6, 9]] and blob[0, 2].tolist() == [[2, 5], [8, 11]]


def test_the_mean_is_in_the_order_of_the_blob() -> None:
    blob = cv2dnn.blobFromImage(PIXELS, 2.0, mean=(1, 10, 100), swapRB=True)
    assert blob[0, 0].tolist() == [[(v - 1) * 2 for v in row] for row in ([2, 5], [8, 11])]
    assert blob[0, 2].tolist() == [[(v - 100) * 2 for v in row] for row in ([0, 3], [6, 9])]


def test_one_number_is_the_first_channels() -> None:
    """As a scalar of OpenCV: a common surprise, kept."""
    assert cv2dnn.blobFromImage(PIXELS, mean=5)[0, :, 0, 0].tolist() == [-5, 1, 2]


def test_grey_images_and_four_channels() -> None:
    assert cv2dnn.blobFromImage(PIXELS[..., 0]).shape == (1, 1, 2, 2)
    four = np.dstack([PIXELS, PIXELS[..., :1]])
    assert cv2dnn.blobFromImage(four, swapRB=True)[0, :, 0, 1].tolist() == [5, 4, 3, 3]


def test_growing_twofold() -> None:
    """The four weights of a pixel's quarters are 9, 3, 3 and 1 sixteenths."""
    grown = bilinear(np.array([[0, 16], [32, 48]], np.uint8)[:, :, None], 4, 4)[:, :, 0]
    assert grown.tolist() == [[0, 4, 12, 16], [8, 12, 20, 24], [24, 28, 36, 40], [32, 36, 44, 48]]


def test_shrinking_samples_and_does_not_average() -> None:
    row = np.array([[[0], [100], [200], [40], [0], [0]]], np.uint8)
    assert bilinear(row, 2, 1)[0, :, 0].tolist() == [100, 0]
    assert bilinear(row.repeat(2, axis=0), 3, 1)[0, :, 0].tolist() == [50, 120, 0], "but halving both sides does"


def test_a_crop_keeps_proportions() -> None:
    wide = np.zeros((4, 8), np.uint8)
    wide[:, 2:6] = 255
    assert (cv2dnn.blobFromImage(wide, size=(4, 4), crop=True) == 255).all()
    assert cv2dnn.blobFromImage(wide, size=(4, 4))[0, 0, 0].tolist() == [0, 255, 255, 0]


def test_a_letterbox_keeps_all_of_it() -> None:
    params = cv2dnn.Image2BlobParams(size=(4, 4), paddingmode=cv2dnn.DNN_PMODE_LETTERBOX, borderValue=(9, 9, 9))
    blob = cv2dnn.blobFromImageWithParams(np.full((2, 4, 3), 5, np.uint8), params)
    assert blob[0, 1, :, 0].tolist() == [9, 5, 5, 9]
    assert params.blobRectToImageRect((1, 1, 2, 2), (8, 4)) == (2, 0, 4, 4)


def test_images_come_back() -> None:
    images = cv2dnn.imagesFromBlob(cv2dnn.blobFromImages([PIXELS, PIXELS + 1]))
    assert [image.tolist() for image in images] == [PIXELS.tolist(), (PIXELS + 1).tolist()]
    assert cv2dnn.imagesFromBlob(cv2dnn.blobFromImage(PIXELS[..., 0]))[0].shape == (2, 2)


def test_inputs_are_left_alone() -> None:
    image = PIXELS.astype(np.float32)
    image.flags.writeable = False
    blob = cv2dnn.blobFromImage(image, 0.5, mean=(1, 2, 3))
    assert not np.shares_memory(blob, image) and image.tolist() == PIXELS.tolist()
    np.testing.assert_array_equal(cv2dnn.blobFromImage(PIXELS[::-1, ::-1])[..., ::-1, ::-1], cv2dnn.blobFromImage(PIXELS))


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (None, "cv2.imread"),
        ([[1, 2], [3]], "not an image"),
        ("photo.jpg", "not an image"),
        (np.zeros((2, 2, 2)), "C 1, 3 or 4"),
        (np.zeros((0, 2, 3)), "no side 0"),
        (np.zeros((2, 2), bool), "not an image"),
        (np.zeros((2, 2), complex), "not an image"),
    ],
)
def test_what_is_no_image(image: Any, said: str) -> None:
    with pytest.raises(ArrayError, match=said):
        cv2dnn.blobFromImage(image)


@pytest.mark.parametrize(
    "arguments",
    [
        {"size": (0, 3)},
        {"size": (-1, 3)},
        {"size": (2.5, 3)},
        {"size": 300},
        {"size": (10**9, 10**9)},
        {"mean": (1, 2, 3, 4, 5)},
        {"mean": "grey"},
        {"mean": (float("nan"), 0, 0)},
        {"scalefactor": None},
        {"ddepth": 6},
        {"ddepth": "float64"},
        {"ddepth": 0, "scalefactor": 2.0},
        {"ddepth": 0, "mean": (1, 0, 0)},
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="required"):
        cv2dnn.blobFromImage(PIXELS, **arguments)


def test_more_that_cannot_be() -> None:
    with pytest.raises(ArgumentError, match="0 <= value <= 255"):
        cv2dnn.blobFromImage(np.full((2, 2), 300.0), ddepth=0)
    with pytest.raises(ArrayError, match="of one C"):
        cv2dnn.blobFromImages([PIXELS, PIXELS[..., 0]])
    with pytest.raises(ArrayError, match="at least one image"):
        cv2dnn.blobFromImages([])
    with pytest.raises(ArgumentError, match="padding mode"):
        cv2dnn.blobFromImageWithParams(PIXELS, cv2dnn.Image2BlobParams(size=(9, 9), paddingmode=7))
    with pytest.raises(ArgumentError, match="layout"):
        cv2dnn.blobFromImageWithParams(PIXELS, cv2dnn.Image2BlobParams(datalayout=cv2dnn.DNN_LAYOUT_PLANAR))
    with pytest.raises(ArrayError, match="no blob of images"):
        cv2dnn.imagesFromBlob(np.zeros((2, 2)))


def test_blobs_larger_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astride.cv2dnn.blobs.free_memory", lambda: 20_000)
    assert cv2dnn.blobFromImage(PIXELS, size=(28, 28)).nbytes == 9408
    with pytest.raises(ArgumentError, match="more memory than is free"):
        cv2dnn.blobFromImages([PIXELS, PIXELS], size=(28, 28))
