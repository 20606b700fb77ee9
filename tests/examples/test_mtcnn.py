"""The MTCNN example: its arithmetic by hand, and the whole cascade on a photo against what Caffe's networks gave."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
MODELS, PHOTO = SHARED / "models" / "mtcnn", SHARED / "models" / "photos" / "astronaut.png"
real = pytest.mark.skipif(not MODELS.is_dir(), reason="MTCNN's networks are not here")


@pytest.fixture(scope="module")
def mtcnn() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mtcnn_example", ROOT / "examples" / "mtcnn.py")
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_suppression_keeps_the_best_of_those_that_overlap(mtcnn: ModuleType) -> None:
    boxes = np.array(
        [
            [0, 0, 9, 9, 0.5],
            [0, 0, 9, 9, 0.9],  # the same place, better
            [5, 0, 14, 9, 0.8],  # 10 x 5 of 10 x 15 pixels shared with it: a third
            [100, 100, 109, 109, 0.1],
        ]
    )
    assert mtcnn.suppress(boxes, 0.5) == [1, 2, 3]
    assert mtcnn.suppress(boxes, 1 / 3 - 1e-9) == [1, 3]
    assert mtcnn.suppress(boxes, 1 / 3) == [1, 2, 3], "as much as the threshold may be shared"
    assert mtcnn.suppress(boxes[:0], 0.5) == []


def test_boxes_move_by_fractions_of_their_size(mtcnn: ModuleType) -> None:
    box = np.array([[10.0, 20, 30, 60, 0.7]])
    np.testing.assert_allclose(mtcnn.moved(box, np.array([[0.1, -0.1, 0.5, 0.25]])), [[12, 16, 40, 70, 0.7]])
    np.testing.assert_allclose(mtcnn.squared(box), [[0, 20, 40, 60, 0.7]])


def test_images_lie_on_their_side(mtcnn: ModuleType) -> None:
    image = Image.new("RGB", (3, 2))
    image.putpixel((2, 1), (255, 0, 127))
    blob = mtcnn.blob([image])
    assert blob.shape == (1, 3, 3, 2) and blob.dtype == np.float32
    np.testing.assert_allclose(blob[0, :, 2, 1], [127.5 / 128, -127.5 / 128, -0.5 / 128])


def test_outside_of_the_photo_is_black(mtcnn: ModuleType) -> None:
    (crop,) = mtcnn.crops(Image.new("RGB", (4, 4), "white"), np.array([[-4.2, 0, 3.9, 8, 1]]), 8)
    pixels = np.asarray(crop)[..., 0]
    assert pixels.shape == (8, 8) and (pixels[:3, 5:] == 255).all() and (pixels[:, :3] == 0).all() and (pixels[5:] == 0).all()


def test_a_photo_without_faces_is_drawn_as_it_is(mtcnn: ModuleType) -> None:
    photo = Image.new("RGB", (40, 30), "teal")
    faces = mtcnn.Faces(np.empty((0, 5)), np.empty((0, 10)))
    np.testing.assert_array_equal(np.asarray(mtcnn.draw(photo, faces)), np.asarray(photo))


@pytest.mark.parametrize("y", [1, 30])
def test_every_face_is_drawn(mtcnn: ModuleType, y: int) -> None:
    photo = Image.new("RGB", (100, 100), "black")
    boxes = np.array([[20.0, y, 60, y + 40, 0.9]])
    points = np.array([[30.0, 50, 40, 32, 48, *(np.array([12, 12, 20, 30, 30]) + y)]])
    pixels = np.asarray(mtcnn.draw(photo, mtcnn.Faces(boxes, points))).astype(int)
    assert pixels[y + 20, 20, 1] > 150, "the box is green"
    assert (pixels[y + 12, 30] > 200).all(), "a landmark is white"
    beside = pixels[: y - 1] if y > 20 else pixels[y + 43 :]
    assert (beside[..., 1] > 200).any(), "the score stands above the box, below it where there is no room"


@pytest.mark.parametrize(("size", "frame"), [((100, 100), (272, 272)), ((50, 100), (136, 272)), ((200, 100), (272, 136))])
def test_stages_are_three_frames_of_the_photo(mtcnn: ModuleType, size: tuple[int, int], frame: tuple[int, int]) -> None:
    none = mtcnn.Faces(np.empty((0, 5)), np.empty((0, 10)))
    picture = mtcnn.draw_stages(mtcnn.Stages(size, np.array([[-10.0, 20, 25, 55, 0.8]]), np.empty((0, 5)), none)).convert("RGB")
    assert picture.size == (2 * (3 * 272 + 4 * 30), 2 * (64 + frame[1] + 54))
    pixels = np.asarray(picture).astype(int)
    # A unit is two pixels. In the middle of each frame is paper, beside it the ground.
    for index in range(3):
        x = 2 * (30 + index * 302 + (272 - frame[0]) // 2)
        assert (pixels[2 * 64 + 6, x + 6] > 248).all() and (pixels[2 * 64 + 6, x - 4] < 246).all()
    left, scale = 2 * (30 + (272 - frame[0]) // 2), 2 * 272 / max(size)
    red, green, _ = pixels[2 * 64 + round(40 * scale), left + round(25 * scale) - 1]
    assert green - red > 60, "the right side of the proposal is green"
    red, green, _ = pixels[2 * 64 + round(40 * scale), left - 4]
    assert abs(green - red) < 10, "what lies outside of the photo is cut"


@pytest.mark.parametrize("x", [5, 55])
def test_the_points_of_the_one_face_are_named(mtcnn: ModuleType, x: int) -> None:
    box = np.array([[x, 30.0, x + 40, 70, 0.9]])
    points = (
        np.array([[10, 30, 20, 12, 28, *(np.array([12, 12, 20, 30, 30]) + 30)]], np.float64)
        + np.repeat([[x, 0]], 5, axis=1).ravel()
    )
    alone = mtcnn.draw_stages(mtcnn.Stages((100, 100), box, box, mtcnn.Faces(box, points)))
    pixels = np.asarray(alone.convert("RGB")).astype(int)
    scale, left = 2 * 272 / 100, 2 * (30 + 2 * 302)
    for px, py in points.reshape(2, 5).T:
        red, green, _ = pixels[round(128 + py * scale), round(left + px * scale)]
        assert red > 180 and green < 80, "a point is pink"
    dark = (pixels[128:672, left + 4 : left + 540] < 80).all(axis=2).nonzero()[1] / scale
    assert dark.size and ((dark > x + 40) if x < 50 else (dark < x)).all(), "the names stand where there is room"
    crowd = mtcnn.Faces(np.repeat(box, 2, axis=0), np.repeat(points, 2, axis=0))
    many = np.asarray(mtcnn.draw_stages(mtcnn.Stages((100, 100), box, box, crowd)).convert("RGB"))
    assert not (many[128:672, left + 4 : left + 540] < 80).all(axis=2).any(), (
        "names of several faces would be in each other's way"
    )


@real
def test_the_astronaut(mtcnn: ModuleType) -> None:
    faces = mtcnn.Mtcnn(MODELS)(Image.open(PHOTO))
    np.testing.assert_array_equal(faces.boxes[:, :4].round(), [[181, 61, 267, 173]])
    with np.load(SHARED / "goldens" / "models" / "mtcnn_final.npz") as recorded:
        np.testing.assert_allclose(faces.boxes, recorded["boxes"], rtol=0, atol=1e-2)
        np.testing.assert_allclose(faces.landmarks, recorded["landmarks"], rtol=0, atol=1e-2)


@real
@pytest.mark.parametrize("size", [(10, 10), (13, 200), (60, 40)])
def test_small_and_empty_photos(mtcnn: ModuleType, size: tuple[int, int]) -> None:
    faces = mtcnn.Mtcnn(MODELS, smallest=20)(Image.new("L", size))
    assert faces.boxes.shape == (0, 5) and faces.landmarks.shape == (0, 10)


@real
def test_the_command(
    mtcnn: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, stages = tmp_path / "faces.png", tmp_path / "stages.png"
    given = [str(PHOTO), "--models", str(MODELS), "--out", str(out), "--stages", str(stages)]
    monkeypatch.setattr(sys, "argv", ["mtcnn.py", *given])
    mtcnn.main()
    printed = capsys.readouterr().out
    assert printed.startswith("1 face in ") and "(181, 61) - (267, 173)   0.999" in printed
    with Image.open(out) as drawn, Image.open(PHOTO) as photo:
        differs = np.abs(np.asarray(drawn).astype(int) - np.asarray(photo)).max(axis=2) > 60
    ys, xs = np.nonzero(differs)
    assert xs.min() >= 175 and xs.max() <= 272 and ys.min() >= 45 and ys.max() <= 178, "nothing else is painted over"
    with Image.open(stages) as drawn, Image.open(ROOT / "docs" / "pictures" / "mtcnn_stages.png") as shown:
        ours, readme = (np.asarray(image.convert("RGB")).astype(int) for image in (drawn, shown))
    assert np.abs(ours - readme).mean() < 1, "the README shows what the command draws"


def test_wrong_files_are_told(
    mtcnn: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "photo.png")
    monkeypatch.setattr(sys, "argv", ["mtcnn.py", str(tmp_path / "photo.png"), "--models", str(tmp_path)])
    with pytest.raises(SystemExit) as caught:
        mtcnn.main()
    assert caught.value.code == 1 and "there is no file" in capsys.readouterr().err
