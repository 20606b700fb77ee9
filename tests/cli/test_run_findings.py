"""astride run: detections and labels of pixels, in words, as data, as pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.console import astride
from tests.cv2dnn.files import written
from tests.cv2dnn.generated import data, layer
from tests.cv2dnn.ssd import ssd

from astride import cv2dnn
from astride.cli._preparing import Preparation
from astride.cli._recipe import Recipe
from astride.draw.findings import color, draw_boxes, draw_labels, draw_map


@pytest.fixture
def detector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A network that detects something, and a photo; the working directory is theirs."""
    monkeypatch.chdir(tmp_path)
    written(ssd(threshold=0.01), tmp_path)
    rng = np.random.default_rng(1)
    Image.fromarray(rng.integers(0, 256, (60, 90, 3)).astype(np.uint8)).save("photo.png")
    return ("run", "net.prototxt", "net.caffemodel", "photo.png", "--scale", "0.02", "--mean", "127,127,127")


def test_detections_are_in_pixels(detector: tuple[str, ...]) -> None:
    data = astride(*detector, "--threshold", 0.4, "--json").data()
    found = data["results"][0]["detections"]
    scores = [one["score"] for one in found]
    assert len(found) > 3 and scores == sorted(scores, reverse=True) and min(scores) > 0.4
    image = np.asarray(Image.open("photo.png").resize((32, 32), Image.Resampling.BILINEAR))[..., ::-1]
    net = cv2dnn.readNetFromCaffe("net.prototxt", "net.caffemodel")
    net.setInput(cv2dnn.blobFromImage(image, 0.02, mean=(127, 127, 127)))
    rows = net.forward()[0, 0]
    best = rows[np.argmax(rows[:, 2])]
    np.testing.assert_allclose(scores[0], best[2], atol=0.01)
    np.testing.assert_allclose(found[0]["box"], best[3:] * [90, 60, 90, 60], atol=2)


def test_detections_in_words(detector: tuple[str, ...]) -> None:
    Path("names.txt").write_text("nothing\ncat\n[dog]\n")
    done = astride(*detector, "--threshold", 0.4, "--labels", "names.txt")
    assert done.lines[0] == "photo.png  detection_out"
    assert done.lines[1].split() == ["score", "class", "left", "top", "right", "bottom"]
    assert done.lines[2].split()[2] in ("cat", "[dog]") and "%" in done.lines[2]
    assert [line for line in done.lines if len(line) > 80] == []
    assert "nothing with a score above 1" in astride(*detector, "--threshold", 1).out


def test_boxes_are_drawn(detector: tuple[str, ...]) -> None:
    before = np.asarray(Image.open("photo.png"))
    done = astride(*detector, "--threshold", 0.4, "--save", "found.png", "--json")
    assert done.data()["results"][0]["drawn"] == "found.png"
    after = np.asarray(Image.open("found.png"))
    assert after.shape == before.shape and (after != before).any()
    assert color(1) in {tuple(pixel) for pixel in after.reshape(-1, 3).tolist()}


def test_several_images_go_to_a_folder(detector: tuple[str, ...]) -> None:
    Image.open("photo.png").save("second.png")
    done = astride(*detector, "second.png", "--save", "drawn/")
    assert sorted(path.name for path in Path("drawn").iterdir()) == ["photo.png", "second.png"]
    assert "wrote drawn/photo.png" in done.err
    Path("other").mkdir()
    Image.open("photo.png").save("other/photo.png")
    astride(*detector, "other/photo.png", "--save", "both/")
    assert sorted(path.name for path in Path("both").iterdir()) == ["photo.png", "photo_2.png"]
    np.save("array.npy", np.zeros((3, 32, 32), np.float32))
    assert "array.npy: nothing to draw" in astride(*detector[:3], "array.npy", "--save", "none/").err
    assert "a folder" in astride(*detector, "second.png", "--save", "found.png", status=1).err


def test_tables_of_several_images_are_one(detector: tuple[str, ...]) -> None:
    Image.open("photo.png").rotate(180).save("second.png")
    astride(*detector, "second.png", "--save", "found.npz")
    with np.load("found.npz") as file:
        assert set(file["detection_out"][0, 0, :, 0]) == {0, 1} and file["images"].tolist() == ["photo.png", "second.png"]
    images = np.random.default_rng(2).normal(size=(3, 3, 32, 32)).astype(np.float32)
    np.save("batch.npy", images)
    results = astride(*detector[:3], "batch.npy", "--json").data()["results"]
    assert [result["index"] for result in results] == [0, 1, 2]
    assert all(max(map(abs, one["box"])) < 50 for result in results for one in result["detections"]), "parts of 1"


def test_places_in_a_cropped_image() -> None:
    """100 x 200 made 50 x 100, of which the middle 50 x 50 is seen: its edges are at 50 and 150."""
    prepared = Preparation.of((1, 3, 50, 50), Recipe(size=(50, 100)))
    assert prepared.images.crop == (50, 50)
    boxes = np.array([[0.0, 0.0, 1.0, 1.0], [0.5, 0.2, 0.5, 0.4]])
    assert prepared.place(boxes, (100, 200)).tolist() == [[50, 0, 150, 100], [100, 20, 100, 40]]
    assert prepared.place(boxes, None) is boxes


@pytest.fixture
def segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A network that labels pixels by their brightest channel, and an image: left red, right green, one blue pixel."""
    monkeypatch.chdir(tmp_path)
    Path("net.prototxt").write_text(data(1, 3, 8, 8) + layer("score", "Power", "data", "score", "power_param { scale: 2 }"))
    written(Path("net.prototxt").read_text(), tmp_path)
    image = np.zeros((8, 8, 3), np.uint8)
    image[:, :4, 0] = image[:, 4:, 1] = 200
    image[0, 0] = (0, 0, 255)
    Image.fromarray(image).save("photo.png")
    return ("run", "net.prototxt", "net.caffemodel", "photo.png", "--channel-order", "rgb")


def test_labels_of_pixels(segments: tuple[str, ...]) -> None:
    Path("names.txt").write_text("red\ngreen\nblue\n")
    found = astride(*segments, "--labels", "names.txt", "--json").data()["results"][0]["labels"]
    assert [(one["label"], one["share"]) for one in found] == [("green", 0.5), ("red", 31 / 64), ("blue", 1 / 64)]
    done = astride(*segments, "--labels", "names.txt", "--save", "map.png")
    assert done.lines[2].split()[0] == "50.0%" and done.lines[2].endswith("green")
    drawn = np.asarray(Image.open("map.png")).astype(int)
    assert drawn.shape == (8, 8, 3) and abs(drawn[7, 7] - (0.45 * np.array([0, 200, 0]) + 0.55 * np.array(color(1)))).max() <= 2


def test_a_map_of_one_channel_is_drawn_grey(segments: tuple[str, ...]) -> None:
    text = data(1, 3, 8, 8) + layer("parts", "Slice", "data", "first rest", "slice_param { slice_point: 1 }")
    text += layer("gone", "Silence", "rest", "") + layer("edge", "Sigmoid", "first", "edge")
    Path("net.prototxt").write_text(text)
    done = astride(*segments, "--save", "edges.png", "--scale", 0.01)
    assert "1x8x8, from 0.5 to" in done.out
    grey = np.asarray(Image.open("edges.png"))
    assert grey[4, 1].tolist() == [255] * 3 and grey[4, 6].tolist() == [0] * 3


def test_classes_are_written_on_the_image(shop: Path) -> None:
    Image.fromarray(np.full((60, 80), 128, np.uint8)).save("a.png")
    astride("run", "deploy.prototxt", "stripes_iter_30.caffemodel", "a.png", "--save", "named.jpg")
    drawn = np.asarray(Image.open("named.jpg").convert("L")).astype(int)
    assert drawn.shape == (60, 80) and drawn[:30].std() > 20 and drawn[55:].std() < 5


# Drawing


def test_frames_and_tags_stay_inside() -> None:
    image = Image.new("RGB", (60, 40), "white")
    drawn = draw_boxes(image, [(-20, -20, 500, 500), (10, 20, 30, 35), (70, 50, 90, 60)], [1, 2, 3], ["all", "some", "none"])
    assert drawn.size == (60, 40) and np.asarray(image).min() == 255
    pixels = np.asarray(drawn)
    assert tuple(pixels[39, 5]) == color(1) and tuple(pixels[34, 20]) == color(2)
    draw_boxes(Image.new("L", (1, 1)), [(0, 0, 1, 1)], [0], ["ä✓"])


def test_colours_are_told_apart() -> None:
    assert color(0) == (0, 0, 0)
    found = np.array([color(i) for i in range(1, 21)])
    distance = abs(found[:, None] - found[None]).sum(axis=2) + 999 * np.eye(20, dtype=int)
    assert distance.min() > 20


def test_maps_of_one_value() -> None:
    assert np.asarray(draw_map(np.full((2, 2), 3.0), (4, 4))).tolist() == [[0] * 4] * 4
    drawn = draw_labels(Image.new("RGB", (20, 20), "white"), np.zeros((2, 2), np.int64), [])
    assert set(np.asarray(drawn).reshape(-1).tolist()) == {114}


YOLO = """input: "data" input_shape { dim: [1, 14, 1, 1] }
layer { name: "found" type: "%s" bottom: "data" top: "found" %s { %s: 2 num_box: 2 confidence_threshold: 0
  biases: [0.5, 0.5, 0.25, 0.25] } }"""


def test_yolos_table_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros: both boxes in the middle, the smaller one under the overlap allowed; a score of 1/2 times 1/2."""
    monkeypatch.chdir(tmp_path)
    np.save("zeros.npy", np.zeros((14, 1, 1), np.float32))
    words = ("run", "net.prototxt", "net.caffemodel", "zeros.npy", "--threshold", 0.1, "--json")
    written(YOLO % ("YoloDetectionOutput", "yolo_detection_output_param", "num_classes"), tmp_path)
    found = astride(*words).data()["results"][0]["detections"]
    assert [one["score"] for one in found] == [0.25, 0.25] and {one["class"] for one in found} == {1}
    written(YOLO % ("DetectionOutput", "detection_output_param", "classes"), tmp_path)
    assert "detections" not in astride(*words).data()["results"][0]
