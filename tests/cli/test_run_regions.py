"""astride run: networks with several inputs, and Faster R-CNN's regions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.console import astride
from tests.cv2dnn.generated import conv, ip, layer

from astride.caffe import load_caffe
from astride.cli._findings import Reader
from astride.cli._preparing import Preparation, info_of
from astride.cli._recipe import Recipe, recipe

CLASSES = 3


def inputs(**shapes: tuple[int, ...]) -> str:
    return "".join(
        layer(name, "Input", "", name, f"input_param {{ shape {{ dim: [{', '.join(map(str, shape))}] }} }}")
        for name, shape in shapes.items()
    )


def faster_rcnn(after: int = 6) -> str:
    """Faster R-CNN in small: a convolution, nine anchors a cell, regions pooled to 2x2, im_info first."""
    return (
        'name: "small"\n'
        + inputs(im_info=(1, 3), data=(1, 3, 64, 96))
        + conv("c", "data", 8, 16, stride=16)
        + conv("rpn_cls_score", "c", 18, 1)
        + conv("rpn_bbox_pred", "c", 36, 1)
        + layer("r", "Reshape", "rpn_cls_score", "two", "reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 0 } }")
        + layer("s", "Softmax", "two", "soft")
        + layer("b", "Reshape", "soft", "scores", "reshape_param { shape { dim: 0 dim: 18 dim: -1 dim: 0 } }")
        + layer(
            "p", "Python", "scores rpn_bbox_pred im_info", "rois",
            """python_param { module: "rpn.proposal_layer" layer: "ProposalLayer" param_str: "'feat_stride': 16" }""",
        )
        + layer("pool", "ROIPooling", "c rois", "pool", "roi_pooling_param { pooled_w: 2 pooled_h: 2 spatial_scale: 0.0625 }")
        + ip("cls_score", "pool", CLASSES)
        + ip("bbox_pred", "pool", 4 * CLASSES)
        + layer("prob", "Softmax", "cls_score", "cls_prob")
    )  # fmt: skip


@pytest.fixture
def detector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A network that detects something, and a photo of twice its size."""
    monkeypatch.chdir(tmp_path)
    Path("net.prototxt").write_text(faster_rcnn())
    net = load_caffe("net.prototxt", seed=3)
    for name in ("rpn_bbox_pred", "bbox_pred", "cls_score"):  # so that boxes move a little, and classes are near
        for parameter in net.params[name]:
            parameter.data[...] *= 0.1
    net.save("net.caffemodel")
    rng = np.random.default_rng(1)
    Image.fromarray(rng.integers(0, 256, (128, 192, 3)).astype(np.uint8)).save("photo.png")
    return ("run", "net.prototxt", "net.caffemodel", "photo.png", "--size", "64x96", "--scale", 0.01)


def py_faster_rcnn(rois: np.ndarray, scores: np.ndarray, moves: np.ndarray, scale: float, least: float) -> list[list[float]]:
    """class, score, x1, y1, x2, y2 of a picture 192 wide and 128 high, box by box as the published loops have it."""
    found = []
    for label in range(1, scores.shape[1]):
        some = []
        for roi, score, move in zip(rois[:, 1:] / scale, scores[:, label], moves[:, 4 * label : 4 * label + 4], strict=True):
            w, h = roi[2] - roi[0] + 1, roi[3] - roi[1] + 1
            x, y = roi[0] + 0.5 * w + move[0] * w, roi[1] + 0.5 * h + move[1] * h
            w, h = w * np.exp(move[2]), h * np.exp(move[3])
            box = [
                np.clip(v, 0, last) for v, last in zip((x - w / 2, y - h / 2, x + w / 2, y + h / 2), (191, 127) * 2, strict=True)
            ]
            if score > least:
                some.append([label, score, *box])
        kept: list[list[float]] = []
        for box in sorted(some, key=lambda b: -b[1]):
            if all(share(box[2:], other[2:]) <= 0.3 for other in kept):
                kept.append(box)
        found += kept
    return sorted(found, key=lambda b: -b[1])


def share(a: list[float], b: list[float]) -> float:
    w, h = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + 1 for i in (0, 1))
    both = max(w, 0) * max(h, 0)
    return float(both / (sum((c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)) - both))


def test_boxes_are_those_of_the_published_loops(detector: tuple[str, ...]) -> None:
    data = astride(*detector, "--threshold", 0.2, "--json").data()
    (result,) = data["results"]
    assert result["output"] == "cls_prob" and data["failed"] == []
    assert data["preparation"]["mean"] == "102.98,115.947,122.772"
    net = load_caffe("net.prototxt", "net.caffemodel")
    known = recipe(net, "data", [], {"size": (64, 96), "scale": 0.01})
    image, size = Preparation.of((1, 3, 64, 96), known).load(Path("photo.png"))
    assert size == (128, 192)
    net.forward(data=image, im_info=[[64, 96, 0.5]])
    blobs = (net.blobs[name].data for name in ("rois", "cls_prob", "bbox_pred"))
    expected = py_faster_rcnn(*blobs, scale=0.5, least=0.2)
    assert len(expected) > 4 and {box[0] for box in expected} == {1, 2}
    found = [[one["class"], one["score"], *one["box"]] for one in result["detections"]]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-2)


def test_boxes_are_drawn_and_named(detector: tuple[str, ...]) -> None:
    Path("names.txt").write_text("nothing\ncat\ndog\n")
    done = astride(*detector, "--threshold", 0.2, "--save", "found.png", "--labels", "names.txt")
    assert done.lines[0] == "photo.png  cls_prob" and "wrote found.png" in done.err
    assert done.lines[2].split()[2] in ("cat", "dog")
    assert "Faster R-CNN (rbgirshick)" in done.err
    assert (np.asarray(Image.open("photo.png")) != np.asarray(Image.open("found.png"))).any()


def test_regions_of_several_images_are_rows(detector: tuple[str, ...]) -> None:
    run = (*detector[:4], "photo.png", *detector[4:])
    astride(*run, "--save", "out.npz")
    with np.load("out.npz") as found:
        rows = len(found["rois"])
        assert found["rois"].shape == (rows, 5) and found["cls_prob"].shape == (rows, 3)
        assert found["bbox_pred"].shape == (rows, 12)
        assert np.unique(found["rois"][:, 0]).tolist() == [0, 1] and rows % 2 == 0
        assert found["images"].tolist() == ["photo.png", "photo.png"]
    done = astride(*detector, "--output", "rois", "--output", "c", "--json").data()
    assert [r["output"] for r in done["results"]] == ["rois", "c"] and done["results"][1]["shape"] == [8, 4, 6]
    assert done["results"][0]["shape"] == [rows // 2, 5]


def test_arrays_have_the_scale_one(detector: tuple[str, ...]) -> None:
    x = np.random.default_rng(0).normal(size=(1, 3, 64, 96)).astype(np.float32)
    np.save("x.npy", x)
    np.save("info.npy", np.array([64, 96, 1], np.float32))
    run = (*detector[:3], "x.npy", "--threshold", 0.2, "--json")
    by_itself = astride(*run).data()["results"]
    assert len(by_itself[0]["detections"]) > 1
    assert max(max(one["box"]) for one in by_itself[0]["detections"]) <= 95
    assert astride(*run, "--input", "im_info=info.npy").data()["results"] == by_itself
    np.save("info.npy", np.array([[64, 96, 40]], np.float32))  # the least side is 16 of the image before: 640 here
    assert astride(*run, "--input", "im_info=info.npy").data()["results"][0]["detections"] == []


@pytest.mark.parametrize(
    ("size", "fed", "scale"),
    [((300, 400), (600, 800), 2.0), ((300, 900), (333, 1000), 1000 / 900), ((1200, 600), (1000, 500), 1000 / 1200)],
)
def test_the_shorter_side_is_600_and_the_longer_at_most_1000(size: tuple[int, int], fed: tuple[int, int], scale: float) -> None:
    net = load_caffe(faster_rcnn())
    prepared = Preparation.of((1, 3, 64, 96), recipe(net, "data", [], {}))
    assert prepared._images(size).size == fed and "shorter side 600" in str(prepared)
    info = prepared.info((1, 3, *fed), size)
    np.testing.assert_allclose(info, [[*fed, scale]], rtol=1e-6)
    np.testing.assert_allclose(prepared.place(np.array([[0, 0, 1, 1.0]]), size), [[0, 0, size[1], size[0]]])
    assert Preparation.of((1, 3, 64, 96), recipe(net, "data", [], {"size": (64, 96)})).sides is None


def test_moves_for_all_classes_alike() -> None:
    """R-FCN has two sets of moves, of nothing and of anything."""
    net = load_caffe(faster_rcnn())
    sample = {
        "rois": np.array([[0, 0, 0, 9, 9], [0, 20, 20, 29, 29]], np.float32),
        "cls_prob": np.array([[0.1, 0.9, 0.0], [0.3, 0.1, 0.6]], np.float32),
        "bbox_pred": np.array([[9] * 4 + [0.1, 0, 0, 0], [9] * 4 + [0] * 4], np.float32),
    }
    (found,) = Reader(net, "data", [], 5, 0.5).all(sample, None, (64, 96), None).values()
    np.testing.assert_allclose(found.to_dict()["detections"][0]["box"], [1, 0, 11, 10], rtol=1e-6)
    assert [one["class"] for one in found.to_dict()["detections"]] == [1, 2]


@pytest.mark.parametrize("count", [1, 3])
def test_regions_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Fast R-CNN, whose regions somebody else has found; its text has room for one."""
    monkeypatch.chdir(tmp_path)
    text = (
        inputs(data=(1, 3, 32, 32), rois=(1, 5))
        + layer("pool", "ROIPooling", "data rois", "pool", "roi_pooling_param { pooled_w: 2 pooled_h: 2 spatial_scale: 1 }")
        + ip("cls_score", "pool", CLASSES)
        + layer("b", "InnerProduct", "pool", "bbox_pred", f"inner_product_param {{ num_output: {4 * CLASSES} }}")  # no moves
        + layer("prob", "Softmax", "cls_score", "cls_prob")
    )
    Path("net.prototxt").write_text(text)
    load_caffe(text, seed=1).save("net.caffemodel")
    Image.fromarray(np.full((64, 64, 3), 99, np.uint8)).save("photo.png")
    np.save("rois.npy", np.array([[0, 8 * i, 0, 8 * i + 7, 7] for i in range(count)], np.float32))
    run = (
        "run",
        "net.prototxt",
        "net.caffemodel",
        "photo.png",
        "photo.png",
        "--input",
        "rois=rois.npy",
        "--threshold",
        0,
        "--scale",
        1e-3,
    )
    found = astride(*run, "--json").data()["results"]
    assert len(found) == 2 and {len(result["detections"]) for result in found} == {2 * count}
    assert sorted({one["box"][0] for one in found[0]["detections"]}) == [16 * i for i in range(count)]
    astride(*run, "--save", "out.npz")
    with np.load("out.npz") as arrays:
        assert arrays["rois"].shape == (2 * count, 5) and arrays["cls_prob"].shape == (2 * count, CLASSES)


TWO = inputs(data=(1, 1, 2, 2), more=(1, 1, 2, 2)) + layer("sum", "Eltwise", "data more", "sum")


def test_another_input_is_the_same_for_all_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.prototxt").write_text(TWO)
    load_caffe(TWO).save("net.caffemodel")
    np.save("x.npy", np.arange(8, dtype=np.float32).reshape(2, 1, 2, 2))
    np.save("more.npy", np.full((1, 2, 2), 10.5))
    run = ("run", "net.prototxt", "net.caffemodel", "x.npy")
    results = astride(*run, "--input", "more=more.npy", "--json").data()["results"]
    assert [result["range"] for result in results] == [[10.5, 13.5], [14.5, 17.5]]
    swapped = astride(*run, "--input", "data=more.npy", "--json").data()["results"]
    assert [result["range"] for result in swapped] == [[10.5, 13.5], [14.5, 17.5]]
    assert "--input NAME=FILE.npy" in astride(*run, status=1).err
    assert "try       more" in astride(*run, "--input", "mor=more.npy", status=1).err
    assert "is not NAME=FILE.npy" in astride(*run, "--input", "more", status=2).err.replace("\n", " ")
    np.save("more.npy", np.zeros(3))
    assert "as many axes as more (1, 1, 2, 2)" in astride(*run, "--input", "more=more.npy", status=1).err
    Path("more.npy").write_bytes(b"no array")
    assert "not a NumPy array file" in astride(*run, "--input", "more=more.npy", status=1).err


def test_what_is_no_im_info() -> None:
    assert info_of(load_caffe(faster_rcnn()), []) == "im_info" and info_of(load_caffe(faster_rcnn()), ["im_info"]) is None
    assert info_of(load_caffe(inputs(data=(1, 3, 4, 4), im_info=(1, 6))), []) is None
    assert Recipe().sides is None
