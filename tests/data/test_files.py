"""Image lists, HDF5 files and window files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from astride.data.hdf5 import HDF5Source, write_hdf5
from astride.data.image_list import ImageListSource
from astride.data.pixels import read_pixels, resize_pixels
from astride.data.transformer import Transformer
from astride.data.windows import Cut, WindowSource, cut, read_windows
from astride.errors import ArgumentError, ArrayError, ModelFileError

RANDOM = np.random.RandomState(4)


def picture(path: Path, pixels: np.ndarray) -> Path:
    """Bytes (C, H, W), blue first, as a PNG."""
    Image.fromarray(np.ascontiguousarray(pixels[::-1].transpose(1, 2, 0))).save(path)
    return path


@pytest.fixture
def images(tmp_path: Path) -> np.ndarray:
    pixels = RANDOM.randint(0, 256, (3, 3, 6, 8)).astype(np.uint8)
    for i, each in enumerate(pixels):
        picture(tmp_path / f"a picture {i}.png", each)
    (tmp_path / "list.txt").write_text("".join(f"a picture {i}.png {10 + i}\n" for i in range(3)) + "\n")
    return pixels


# Lists


def test_images_of_a_list(images: np.ndarray, tmp_path: Path) -> None:
    source = ImageListSource(tmp_path / "list.txt", root=f"{tmp_path}/")
    assert source.shapes() == ((3, 6, 8), ()) and len(source) == 3
    found, labels = source.batch(4)
    np.testing.assert_array_equal(found, images[[0, 1, 2, 0]])
    assert labels.tolist() == [10, 11, 12, 10]


def test_images_are_resized_and_prepared(images: np.ndarray, tmp_path: Path) -> None:
    halved = images[0].reshape(3, 3, 2, 4, 2).astype(int).sum((2, 4))
    source = ImageListSource(tmp_path / "list.txt", root=f"{tmp_path}/", size=(3, 4), transform=Transformer(scale=2))
    np.testing.assert_array_equal(source.batch(1)[0][0], 2 * ((halved + 2) // 4))
    grey = ImageListSource(tmp_path / "list.txt", root=f"{tmp_path}/", color=False)
    assert grey.shapes()[0] == (1, 6, 8)


def test_lists_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no such image list"):
        ImageListSource(tmp_path / "list.txt")
    (tmp_path / "list.txt").write_text("cat.png dog\n")
    with pytest.raises(ArgumentError, match="a file and its label") as caught:
        ImageListSource(tmp_path / "list.txt")
    assert caught.value.given["line"] == 1
    (tmp_path / "list.txt").write_text("cat.png 1\n")
    with pytest.raises(ModelFileError, match="no such image file"):
        ImageListSource(tmp_path / "list.txt").shapes()
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFileError, match="cannot be read"):
        ImageListSource(tmp_path / "list.txt")


# HDF5

DATA, LABEL = np.arange(30.0).reshape(10, 3), np.arange(10)


@pytest.fixture
def hdf5(tmp_path: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    for name, rows in (("a", slice(0, 4)), ("b", slice(4, 10))):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["data"], file["label"] = DATA[rows], LABEL[rows]
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'a.h5'} {tmp_path / 'b.h5'}\n")
    return tmp_path


def test_rows_go_through_the_files(hdf5: Path) -> None:
    source = HDF5Source.listed(hdf5 / "list.txt", ["data", "label"])
    assert source.shapes() == ((3,), ()) and len(source) == 10
    data, label = source.batch(7)
    np.testing.assert_array_equal(data, DATA[:7])
    assert data.dtype == np.float32 and label.tolist() == list(range(7))
    assert source.batch(25)[1].tolist() == [i % 10 for i in range(7, 32)]
    source.reset(13)
    assert source.batch(2)[1].tolist() == [3, 4]


def test_rows_are_shuffled_within_files(hdf5: Path) -> None:
    source = HDF5Source.listed(hdf5 / "list.txt", ["label", "data"], shuffle=True)
    source.reseed(5)
    epochs = [source.batch(10) for _ in range(6)]
    for label, data in epochs:
        assert sorted(label) == list(range(10))
        np.testing.assert_array_equal(data, DATA[label.astype(int)])
        assert {tuple(sorted(part)) for part in (label[:4], label[:6])} & {(0, 1, 2, 3), (4, 5, 6, 7, 8, 9)}
    assert len({tuple(label) for label, _ in epochs}) > 1
    source.reset(23)
    np.testing.assert_array_equal(source.batch(7)[0], epochs[2][0][3:])


def test_files_that_do_not_fit(hdf5: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with pytest.raises(ModelFileError, match="lacks a dataset of numbers"):
        HDF5Source([hdf5 / "a.h5"], ["data", "labels"])
    with h5py.File(hdf5 / "c.h5", "w") as file:
        file["data"], file["label"] = DATA[:, :2], LABEL
        file["elsewhere"] = h5py.ExternalLink(str(hdf5 / "a.h5"), "/data")
        file["short"] = LABEL[:3]
        file["text"] = ["a", "b"]
    with pytest.raises(ArrayError, match="different shapes"):
        HDF5Source([hdf5 / "a.h5", hdf5 / "c.h5"], ["data"])
    with pytest.raises(ArrayError, match="different numbers of rows"):
        HDF5Source([hdf5 / "c.h5"], ["data", "short"])
    for name in ("elsewhere", "text"):
        with pytest.raises(ModelFileError, match="lacks a dataset of numbers"):
            HDF5Source([hdf5 / "c.h5"], [name])
    (hdf5 / "d.h5").write_bytes(b"no HDF5")
    with pytest.raises(ModelFileError, match="not an HDF5 file"):
        HDF5Source([hdf5 / "d.h5"], ["data"])
    with pytest.raises(ModelFileError, match="no such HDF5 file"):
        HDF5Source([hdf5 / "e.h5"], ["data"])
    with pytest.raises(ModelFileError, match="is empty"):
        HDF5Source([], ["data"])


def test_written_files_replace_their_own_kind_only(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    for value in (1, 2):
        write_hdf5(tmp_path / "out.h5", {"data": np.full(3, value)})
        with h5py.File(tmp_path / "out.h5") as file:
            assert file["data"][:].tolist() == [value] * 3
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelFileError, match="would be overwritten"):
        write_hdf5(tmp_path / "thesis.txt", {"data": np.zeros(1)})
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


# Windows

WINDOWS = """# 0
{0}
3 6 8
3
2 0.9 0 0 3 3
5 0.1 4 2 7 5
1 0.5 2 1 5 4
# 1
{1}
3 6 8
1
0 0.0 1 1 2 2
"""


@pytest.fixture
def windows(images: np.ndarray, tmp_path: Path) -> Path:
    path = tmp_path / "windows.txt"
    text = WINDOWS.format("first.png", "second.png")
    for name, pixels in zip(("first.png", "second.png"), images, strict=False):
        picture(tmp_path / name, pixels)
    path.write_text(text)
    return path


def test_window_files(windows: Path) -> None:
    images, channels, found = read_windows(windows)
    assert images == ["first.png", "second.png"] and channels == 3
    assert [(w.image, w.label, w.box, overlap) for w, overlap in found] == [
        (0, 2, (0, 0, 3, 3), 0.9),
        (0, 5, (4, 2, 7, 5), 0.1),
        (0, 1, (2, 1, 5, 4), 0.5),
        (1, 0, (1, 1, 2, 2), 0.0),
    ]
    for text in ("", "# 1\na.png", WINDOWS[:-4], "# 0\na.png\n3 6 8\n-1\nx", "# 0\na.png\n7 6 8\n0\n"):
        windows.write_text(text)
        with pytest.raises(ModelFileError, match="window file"):
            read_windows(windows)


def test_a_window_as_it_is(images: np.ndarray, windows: Path) -> None:
    source = WindowSource(
        windows, crop=4, root=f"{windows.parent}/", foreground=1, mean=np.full((3, 1, 1), 9, np.float32), scale=0.5
    )
    assert source.shapes() == ((3, 4, 4), ())
    data, labels = source.batch(16)
    assert set(labels.tolist()) == {1, 2}
    boxes = {2: images[0][:, 0:4, 0:4], 1: images[0][:, 1:5, 2:6]}
    for each, label in zip(data, labels, strict=True):
        np.testing.assert_array_equal(each, (boxes[int(label)] - 9.0) / 2)


def test_background_comes_first_and_has_label_0(windows: Path) -> None:
    source = WindowSource(windows, crop=4, root=f"{windows.parent}/", foreground=0.25)
    assert source.batch(8)[1].tolist()[:6] == [0] * 6 and len(source.background) == 2
    assert (source.batch(8)[1][6:] > 0).all()
    source.reset(0)
    again = source.batch(8)
    source.reset(0)
    np.testing.assert_array_equal(source.batch(8)[0], again[0])


def test_surroundings_are_cut_at_the_images_edge() -> None:
    # A box of 4 x 4 in the corner, two pixels around it of the 8 it becomes: it grows to 9 places from -2 to 6 around its middle.
    assert cut((0, 0, 3, 3), (20, 20), 8, 2, False, False) == Cut((0, 0, 6, 6), (6, 6), (2, 2))
    assert cut((0, 0, 3, 3), (20, 20), 8, 2, False, True).place == (2, 0)
    assert cut((4, 4, 5, 11), (20, 20), 8, 0, True, False) == Cut((1, 4, 9, 12), (8, 8), (0, 0))


def test_outside_the_image_is_zero(images: np.ndarray, windows: Path) -> None:
    source = WindowSource(windows, crop=8, root=f"{windows.parent}/", foreground=1, context=2)
    window = source.objects[0]
    laid = cut(window.box, (6, 8), 8, 2, False, False)
    pixels = source.window(window, False)
    (down, right), (height, width) = laid.place, laid.size
    x1, y1, x2, y2 = laid.box
    assert not pixels[:, :down].any() and not pixels[:, :, :right].any()
    expected = resize_pixels(images[0][:, y1 : y2 + 1, x1 : x2 + 1], (height, width))
    np.testing.assert_array_equal(pixels[:, down : down + height, right : right + width], expected)
    mirrored = source.window(window, True)
    np.testing.assert_array_equal(mirrored[:, down : down + height, :width], expected[:, :, ::-1])


def test_window_refusals(windows: Path) -> None:
    with pytest.raises(ArgumentError, match="no such size"):
        WindowSource(windows, crop=8, context=4)
    with pytest.raises(ArgumentError, match="no windows of a kind"):
        WindowSource(windows, crop=4, above=1.5, foreground=0.5).batch(4)
    windows.write_text(windows.read_text().replace("0 0 3 3", "0 0 3 9"))
    with pytest.raises(ModelFileError, match="outside its image"):
        WindowSource(windows, crop=4, root=f"{windows.parent}/", foreground=1, above=0.8).batch(1)


def test_pixels_are_blue_first(tmp_path: Path) -> None:
    Image.new("RGB", (1, 1), (1, 2, 3)).save(tmp_path / "dot.png")
    assert read_pixels(tmp_path / "dot.png").reshape(-1).tolist() == [3, 2, 1]
