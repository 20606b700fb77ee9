"""Image files in, float arrays out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from astride.data import images as module
from astride.data import load_image, resize
from astride.errors import ArgumentError, ArrayError, ModelFileError

PIXELS = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [51, 102, 153]]], np.uint8)


def test_a_colour_file_is_red_green_blue_from_0_to_1(tmp_path: Path) -> None:
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    image = load_image(tmp_path / "a.png")
    assert image.shape == (3, 2, 2) and image.dtype == np.float32
    assert image[:, 0, 0].tolist() == [1, 0, 0]
    np.testing.assert_allclose(image[:, 1, 1], [0.2, 0.4, 0.6], rtol=1e-6)


def test_grey_on_request_and_colour_from_grey(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 255], [51, 102]], np.uint8)).save(tmp_path / "g.png")
    np.testing.assert_allclose(load_image(tmp_path / "g.png", color=False), [[[0, 1], [0.2, 0.4]]], rtol=1e-6)
    colour = load_image(tmp_path / "g.png")
    assert colour.shape == (3, 2, 2) and (colour[0] == colour[2]).all()


def test_sixteen_bits_are_kept(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 65535], [1, 32768]], np.uint16)).save(tmp_path / "g.png")
    np.testing.assert_allclose(load_image(tmp_path / "g.png", color=False)[0] * 65535, [[0, 65535], [1, 32768]], rtol=1e-6)


def test_transparency_shows_white(tmp_path: Path) -> None:
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(tmp_path / "a.png")
    assert (load_image(tmp_path / "a.png") == 1).all()


def test_the_cameras_rotation_is_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright
    Image.new("RGB", (4, 2)).save(tmp_path / "a.jpg", exif=exif)
    assert load_image(tmp_path / "a.jpg").shape == (3, 4, 2)


@pytest.mark.parametrize("content", [b"", b"<html>no image</html>", None])
def test_a_file_that_is_no_image(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "a.png"
    if content is None:
        Image.fromarray(np.zeros((50, 50), np.uint8)).save(file)
        content = file.read_bytes()[:60]
    file.write_bytes(content)
    with pytest.raises(ModelFileError, match="not an image that can be read"):
        load_image(file)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no such image file"):
        load_image(tmp_path / "none.png")


def test_an_image_larger_than_allowed_is_refused_before_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PIXELS", 99)
    Image.new("L", (10, 10)).save(tmp_path / "a.png")
    with pytest.raises(ModelFileError, match="width \\* height <= 99: 100"):
        load_image(tmp_path / "a.png")


def test_resize_keeps_values_beyond_bytes_and_averages_when_it_shrinks() -> None:
    image = np.array([[[-300, 300, 0, 0], [-300, 300, 0, 0]]], np.float32)
    assert resize(image, (2, 4)).tolist() == image.tolist()
    assert resize(np.full((2, 5, 5), -1000, np.float32), (3, 7)).tolist() == np.full((2, 3, 7), -1000).tolist()
    checker = np.indices((16, 16)).sum(0)[None] % 2
    small = resize(checker.astype(np.float32), (2, 2))
    np.testing.assert_allclose(small, 0.5, atol=0.05)


def test_resize_refuses_what_it_cannot() -> None:
    with pytest.raises(ArrayError, match="one image"):
        resize(np.zeros((1, 1, 4, 4), np.float32), (2, 2))
    with pytest.raises(ArgumentError, match="no such way"):
        resize(np.zeros((1, 4, 4), np.float32), (2, 2), method="area")
    with pytest.raises(ArgumentError, match="no such way"):
        resize(np.zeros((1, 4, 4), np.float32), (0, 2))
