"""caffe.io: messages and arrays, images, and the way from an image to an input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from astride.errors import ArgumentError, ArrayError, ModelFileError, UnsupportedError
from astride.proto import read_blob
from astride.pycaffe import io
from astride.pycaffe.proto import caffe_pb2

# Messages


@pytest.mark.parametrize("shape", [(3, 5, 4), (1, 3, 5, 4), (7,), ()])
def test_blobs_go_there_and_back(shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    blob = io.array_to_blobproto(array, diff=-array)
    assert tuple(blob.shape.dim) == shape and not blob.HasField("num")
    read = caffe_pb2.BlobProto.FromString(blob.SerializeToString())
    assert io.blobproto_to_array(read).dtype == np.float64
    assert io.blobproto_to_array(read).tolist() == array.tolist()
    assert io.blobproto_to_array(read, return_diff=True).tolist() == (-array).tolist()


def test_blobs_of_the_old_shape_and_of_doubles() -> None:
    """A mean file of 2013 gives num, channels, height and width, and comes out with four axes."""
    old = caffe_pb2.BlobProto(num=1, channels=3, height=5, width=4, data=range(60))
    assert io.blobproto_to_array(old).shape == (1, 3, 5, 4)
    double = caffe_pb2.BlobProto(double_data=[0.1, 0.2], shape={"dim": [2]})
    assert io.blobproto_to_array(double).tolist() == [0.1, 0.2]
    with pytest.raises(ArrayError, match="shape of its data"):
        io.array_to_blobproto(np.zeros(3), diff=np.zeros(4))


def test_a_mean_file_is_one_for_astride_too(tmp_path: Path) -> None:
    """CAF-35: the file of a mean is read as (1, C, H, W), whoever wrote it."""
    mean = np.arange(60.0).reshape(1, 3, 5, 4)
    (tmp_path / "mean.binaryproto").write_bytes(io.array_to_blobproto(mean).SerializeToString())
    assert read_blob(tmp_path / "mean.binaryproto").data.tolist() == mean.tolist()
    blob = caffe_pb2.BlobProto.FromString((tmp_path / "mean.binaryproto").read_bytes())
    per_channel = io.blobproto_to_array(blob)[0].mean((1, 2))
    assert per_channel.tolist() == [9.5, 29.5, 49.5]


def test_vectors_of_blobs() -> None:
    arrays = [np.arange(6.0).reshape(1, 2, 3, 1), np.ones(2)]
    string = io.arraylist_to_blobprotovector_str(arrays)
    assert isinstance(string, bytes) and io.arraylist_to_blobprotovecor_str is io.arraylist_to_blobprotovector_str
    assert [a.tolist() for a in io.blobprotovector_str_to_arraylist(string)] == [a.tolist() for a in arrays]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_data_go_there_and_back(dtype: type) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    datum = io.array_to_datum(array, 7)
    assert (datum.label, datum.channels, datum.height, datum.width) == (7, 2, 3, 4)
    assert bool(datum.data) == (dtype is np.uint8)
    back = io.datum_to_array(caffe_pb2.Datum.FromString(datum.SerializeToString()))
    assert back.tolist() == array.tolist() and back.dtype == (np.uint8 if dtype is np.uint8 else np.float64)
    back[...] = 0
    assert not io.array_to_datum(array).HasField("label")


def test_data_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="Incorrect array shape"):
        io.array_to_datum(np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match="holds an image file"):
        io.datum_to_array(caffe_pb2.Datum(encoded=True, data=b"png"))
    with pytest.raises(ValueError, match="as many values: 3 == 4"):
        io.datum_to_array(caffe_pb2.Datum(channels=1, height=2, width=2, data=b"abc"))
    with pytest.raises(ValueError, match="another number of values than its shape"):
        io.blobproto_to_array(caffe_pb2.BlobProto(shape={"dim": [2**40, -1]}, data=[1]))
    with pytest.raises(ValueError, match="another number of values than its shape"):
        io.blobproto_to_array(caffe_pb2.BlobProto(num=1, channels=2**30, height=2**30, width=4, data=[1]))


# The transformer


def ready() -> io.Transformer:
    made = io.Transformer({"data": [1, 3, 2, 4]})
    made.set_transpose("data", (2, 0, 1))
    made.set_channel_swap("data", (2, 1, 0))
    made.set_raw_scale("data", 255)
    made.set_mean("data", np.array([1.0, 2.0, 3.0]))
    made.set_input_scale("data", 0.5)
    return made


def test_the_order_of_the_steps() -> None:
    image = np.zeros((2, 4, 3), np.float32)
    image[0, 1] = [1, 0, 0.2]
    before = image.copy()
    made = ready().preprocess("data", image)
    assert made.shape == (3, 2, 4) and made.dtype == np.float32 and (image == before).all()
    np.testing.assert_allclose(made[:, 0, 1], [0.5 * (51 - 1), 0.5 * (0 - 2), 0.5 * (255 - 3)], rtol=1e-6)
    np.testing.assert_allclose(made[:, 1, 3], [-0.5, -1, -1.5])


@pytest.mark.parametrize("transpose", [(2, 0, 1), (2, 1, 0)])
def test_deprocess_undoes_it(transpose: tuple[int, ...], rng: np.random.Generator) -> None:
    made = ready()
    made.inputs["data"] = (1, 3, 4, 4)
    made.set_transpose("data", transpose)
    image = rng.random((4, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(made.deprocess("data", made.preprocess("data", image)[None]), image, atol=1e-6)


def test_an_image_of_another_size_is_resized() -> None:
    made = io.Transformer({"data": (1, 3, 2, 4)})
    made.set_transpose("data", (2, 0, 1))
    assert made.preprocess("data", np.ones((7, 5, 3))).shape == (3, 2, 4)


def test_means_that_fit() -> None:
    made = io.Transformer({"data": (1, 3, 2, 4), "grey": (1, 1, 2, 4)})
    made.set_mean("data", np.zeros((3, 2, 4)))
    made.set_mean("grey", np.ones((2, 4)))
    made.set_transpose("grey", (2, 0, 1))
    assert (made.preprocess("grey", np.zeros((2, 4, 1))) == -1).all()


@pytest.mark.parametrize(
    ("mean", "message", "hint"),
    [
        (np.zeros(4), "Mean channels incompatible with input", None),
        (np.zeros((3, 5, 5)), "Mean shape incompatible with input shape", "mean.mean((1, 2))"),
        (np.zeros((1, 3, 2, 4)), "Mean shape invalid", "mean[0]"),
        (np.zeros((2, 4, 3)), "Mean shape incompatible with input shape", "transpose(2, 0, 1)"),
        (np.zeros((1, 2, 4)), "Mean shape incompatible with input shape", "channels"),
    ],
)
def test_means_that_do_not_fit(mean: np.ndarray, message: str, hint: str | None) -> None:
    """CAF-35, CAF-37: both shapes and what to do about it."""
    with pytest.raises(ValueError, match=message) as caught:
        io.Transformer({"data": (1, 3, 2, 4)}).set_mean("data", mean)
    assert str(mean.shape) in str(caught.value) and (hint is None or hint in str(caught.value))


def test_names_and_orders_that_cannot_be() -> None:
    made = io.Transformer({"data": (1, 3, 2, 4)})
    with pytest.raises(Exception, match="image is not one of the net inputs: \\['data'\\]"):
        made.set_raw_scale("image", 2)
    with pytest.raises(Exception, match="same number of dimensions as the input"):
        made.set_transpose("data", (0, 1))
    with pytest.raises(Exception, match="dimensions as the input channels"):
        made.set_channel_swap("data", (1, 0))


# Images


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    colours = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [51, 102, 204]]], np.uint8)
    Image.fromarray(colours).save(tmp_path / "rgb.png")
    Image.fromarray(np.dstack([colours, np.full((2, 2), 9, np.uint8)])).save(tmp_path / "rgba.png")
    Image.fromarray(colours[:, :, 2]).save(tmp_path / "grey.png")
    Image.fromarray(colours).convert("P").save(tmp_path / "palette.png")
    Image.fromarray(np.array([[0, 65535]], np.uint16)).save(tmp_path / "deep.png")
    (tmp_path / "text.png").write_text("no picture")
    return tmp_path


def test_load_image(pictures: Path) -> None:
    image = io.load_image(pictures / "rgb.png")
    assert image.shape == (2, 2, 3) and image.dtype == np.float32
    np.testing.assert_allclose(image[1, 1], [0.2, 0.4, 0.8], rtol=1e-6)
    assert image[0].tolist() == [[1, 0, 0], [0, 1, 0]]
    assert (io.load_image(str(pictures / "rgba.png")) == image).all(), "transparency is dropped"
    assert (io.load_image(pictures / "palette.png") == image).all()
    grey = io.load_image(pictures / "grey.png", color=False)
    assert grey.shape == (2, 2, 1) and grey[1, 0, 0] == 1
    assert (io.load_image(pictures / "grey.png") == np.repeat(grey, 3, 2)).all()
    assert io.load_image(pictures / "deep.png", color=False).reshape(-1).tolist() == [0, 1]
    np.testing.assert_allclose(io.load_image(pictures / "rgb.png", color=False)[0, :, 0], [0.2125, 0.7154], rtol=1e-6)


@pytest.mark.parametrize("name", ["text.png", "nothing.png"])
def test_what_is_no_image(pictures: Path, name: str) -> None:
    with pytest.raises(ModelFileError, match="image"):
        io.load_image(pictures / name)


def test_resize_by_hand() -> None:
    """Twice as wide, pixel centres at halves: quarters between, and beyond the border the least value, 0."""
    row = np.array([0.0, 4.0, 8.0]).reshape(1, 3, 1)
    assert io.resize_image(row, (1, 6)).reshape(-1).tolist() == [0, 1, 3, 5, 7, 6]
    assert io.resize_image(row, (1, 6), 0).reshape(-1).tolist() == [0, 0, 4, 4, 8, 8]
    two = np.repeat(row, 2, axis=2)
    np.testing.assert_allclose(io.resize_image(two, (1, 5))[0, :, 0], [0, 2, 4, 6, 8], rtol=1e-6)
    assert (io.resize_image(np.full((3, 4, 3), 7), (5, 5)) == 7).all()


RECORDED = Path(__file__).resolve().parent.parent / "golden" / "scikit_image" / "resize.npz"


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("order", [0, 1])
def test_resize_is_scikit_images_and_scipys(number: int, order: int) -> None:
    with np.load(RECORDED) as recorded:
        image, expected = recorded[f"{number}_image"], recorded[f"{number}_order{order}"]
    made = io.resize_image(image, expected.shape[:2], order)
    assert made.shape == expected.shape and made.dtype == expected.dtype
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-6 * 256)


def test_resize_keeps_what_needs_no_resizing(rng: np.random.Generator) -> None:
    for channels in (1, 3, 5):
        image = rng.random((4, 5, channels)).astype(np.float32)
        for order in (0, 1, 3):
            np.testing.assert_allclose(io.resize_image(image, (4, 5), order), image, atol=1e-6)


def test_cubic_follows_a_line(rng: np.random.Generator) -> None:
    """Keys' cubic reproduces straight lines away from the border."""
    ramp = np.arange(10.0).reshape(1, 10, 1)
    resized = io.resize_image(ramp, (1, 20), 3)[0, :, 0]
    np.testing.assert_allclose(resized[4:-4], (np.arange(20) + 0.5)[4:-4] / 2 - 0.5, atol=1e-6)


@pytest.mark.parametrize("size", [(0, 4), (3,)])
def test_sizes_that_cannot_be(size: Any) -> None:
    with pytest.raises(ArgumentError, match="an image has height, width and channels"):
        io.resize_image(np.zeros((2, 2, 3)), size)
    with pytest.raises(UnsupportedError, match="no such interpolation"):
        io.resize_image(np.zeros((2, 2, 3)), (4, 4), 2)


def test_oversample_takes_corners_centre_and_mirrors() -> None:
    image = np.arange(20.0).reshape(4, 5, 1)
    crops = io.oversample([image, -image], (2, 2))
    assert crops.shape == (20, 2, 2, 1) and crops.dtype == np.float32
    assert crops[:5, 0, 0, 0].tolist() == [0, 3, 10, 13, 6]
    assert (crops[5:10] == crops[:5, :, ::-1]).all() and (crops[10:] == -crops[:10]).all()
    with pytest.raises(ArgumentError, match="larger than the image"):
        io.oversample([image], (5, 5))
