"""astride run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.console import astride, stripes

from astride.caffe import load_caffe

RUN = ("run", "deploy.prototxt", "stripes_iter_30.caffemodel")
SCALE = ("--scale", 1 / 255)


@pytest.fixture
def pictures(shop: Path) -> list[str]:
    """One image of vertical and one of horizontal stripes."""
    images, labels = stripes(20, 5)
    names = []
    for label in (0, 1):
        image = images[list(labels).index(label), 0]
        names.append(f"stripes{label}.png")
        Image.fromarray((np.clip(image, 0, 1) * 255).astype(np.uint8)).save(shop / names[-1])
    return names


def test_the_top_classes(shop: Path, pictures: list[str]) -> None:
    (shop / "names.txt").write_text("vertical\nhorizontal\n")
    done = astride(*RUN, *pictures, *SCALE, "--labels", "names.txt")
    assert done.lines[0] == "stripes0.png  prob"
    assert done.lines[2].strip().endswith("0  vertical") and "█" in done.lines[2] and "%" in done.lines[2]
    assert done.lines[4] == "stripes1.png  prob"
    assert done.lines[6].strip().endswith("1  horizontal")
    assert "channels gray" in done.err
    assert [line for line in done.lines if len(line) > 80] == []


def test_json(shop: Path, pictures: list[str]) -> None:
    data = astride(*RUN, *pictures, *SCALE, "--top", 1, "--json").data()
    assert [result["top"][0]["class"] for result in data["results"]] == [0, 1]
    assert all(result["top"][0]["score"] > 0.5 and len(result["top"]) == 1 for result in data["results"])
    assert data["preparation"]["channel_order"] == "gray" and data["preparation"]["raw_scale"] == 255


def test_arrays_are_taken_as_they_are(shop: Path) -> None:
    images, labels = stripes(70, 7)  # more than one batch
    np.save(shop / "batch.npy", images)
    data = astride(*RUN, "batch.npy", "--json").data()
    assert [result["top"][0]["class"] for result in data["results"]] == labels.tolist()
    np.save(shop / "one.npy", images[0, 0])
    alone = astride(*RUN, "one.npy", "--json").data()["results"][0]["top"]
    assert [t["class"] for t in alone] == [t["class"] for t in data["results"][0]["top"]]


def test_blobs_are_saved(shop: Path) -> None:
    images, _ = stripes(3, 7)
    np.save(shop / "batch.npy", images)
    done = astride(*RUN, "batch.npy", "--output", "pool", "--output", "prob", "--save", "out.npz")
    assert "4x2x2, from" in done.out and "wrote out.npz" in done.out
    with np.load(shop / "out.npz") as found:
        assert found["pool"].shape == (3, 4, 2, 2) and found["prob"].shape == (3, 2)
        assert found["images"].tolist() == ["batch.npy"] * 3
        np.testing.assert_allclose(found["prob"].sum(axis=1), 1, rtol=1e-5)


def test_blobs_are_those_of_the_network(shop: Path) -> None:
    """What runs is a compiled program; its blobs, those changed in place included, are the network's."""
    images, _ = stripes(2, 9)
    np.save(shop / "batch.npy", images)
    names = ("conv", "pool", "ip", "prob")
    astride(*RUN, "batch.npy", *[word for name in names for word in ("--output", name)], "--save", "out.npz")
    net = load_caffe("deploy.prototxt", "stripes_iter_30.caffemodel")
    net.forward(data=images)
    with np.load("out.npz") as found:
        for name in names:
            np.testing.assert_allclose(found[name], net.blobs[name].data, rtol=1e-5, atol=1e-6)


def test_mean_size_and_crop(shop: Path, pictures: list[str]) -> None:
    """An image twice as large, cropped to its middle: the same as that middle by itself."""
    big = np.zeros((12, 12), np.uint8)
    big[3:9, 3:9] = np.asarray(Image.open(pictures[1]))
    Image.fromarray(big).save("big.png")
    asked = (*SCALE, "--mean", "25", "--json")
    whole = astride(*RUN, pictures[1], *asked).data()["results"][0]["top"]
    cropped = astride(*RUN, "big.png", "--size", 12, *asked).data()
    assert cropped["preparation"]["crop"] == [6, 6]
    assert cropped["results"][0]["top"] == whole
    np.save("mean.npy", np.full((1, 6, 6), 25, np.float32))
    assert astride(*RUN, pictures[1], *SCALE, "--mean", "mean.npy", "--json").data()["results"][0]["top"] == whole
    assert astride(*RUN, pictures[1], *SCALE, "--recipe", "none", "--json").data()["results"][0]["top"] != whole


def test_channel_order(shop: Path) -> None:
    """A net of one weight a channel tells which channel came first."""
    (shop / "color.prototxt").write_text(
        'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 1 dim: 1 } } }\n'
        'layer { name: "flat" type: "Flatten" bottom: "data" top: "flat" }\n'
    )
    load_caffe(shop / "color.prototxt").save(shop / "color.caffemodel")
    Image.fromarray(np.array([[[10, 20, 30]]], np.uint8)).save(shop / "pixel.png")
    for order, expected in ((None, [30, 20, 10]), ("bgr", [30, 20, 10]), ("rgb", [10, 20, 30])):
        words = () if order is None else ("--channel-order", order)
        astride("run", "color.prototxt", "color.caffemodel", "pixel.png", *words, "--save", "out.npz")
        with np.load("out.npz") as found:
            np.testing.assert_allclose(found["flat"][0], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch.png"], "no such image file"),
        (["nosuch.npy"], "no such array file"),
        (["labels.npy"], "does not fit the network's input"),
        (["deploy.prototxt"], "not an image"),
        (["images.npy", "--output", "pol"], "pool"),
        (["images.npy", "--save", "out.txt"], ".npz"),
        (["images.npy", "--labels", "none.txt"], "no such labels file"),
        (["images.npy", "--backend", "gpu9"], "no such backend"),
        (["images.npy", "--channel-order", "cmyk"], "one of bgr, rgb, gray"),
    ],
)
def test_errors(shop: Path, words: list[str], said: str) -> None:
    done = astride(*RUN, *words, status=1)
    assert said in done.err and done.out == ""


def test_color_images_do_not_fit_a_grey_network(shop: Path, pictures: list[str]) -> None:
    assert "--channel-order gray" in astride(*RUN, pictures[0], "--channel-order", "rgb", status=1).err


def test_weights_that_do_not_fit(shop: Path, pictures: list[str]) -> None:
    text = (shop / "deploy.prototxt").read_text().replace("num_output: 4", "num_output: 5")
    (shop / "deploy.prototxt").write_text(text)
    done = astride(*RUN, pictures[0], status=1)
    assert 'layer "conv"' in done.err and "(5, 1, 3, 3)" in done.err and "(4, 1, 3, 3)" in done.err


def test_a_training_network_has_no_input(shop: Path, pictures: list[str]) -> None:
    assert "Input layer" in astride("run", "net.prototxt", "stripes_iter_30.caffemodel", pictures[0], status=1).err
