"""Field reports about OpenCV's lost Caffe reader and the command line: each with what its reporter should get."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from tests.cli.console import astride as console
from tests.cv2dnn.files import random_input, written
from tests.cv2dnn.generated import conv, data, layer, pool
from tests.cv2dnn.ssd import ssd

from astride import cv2dnn

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDED = ROOT / "tests" / "golden" / "opencv" / "recorded.npz"

SCRIPT = """
import sys
sys.modules["cv2"] = None  # importing it fails
import numpy as np
from astride import cv2dnn
net = cv2dnn.readNetFromCaffe(sys.argv[1], sys.argv[2])
net.setInput(np.load(sys.argv[3]))
np.save(sys.argv[4], net.forward())
"""


def test_caf_01_a_detector_without_opencv(tmp_path: Path) -> None:
    """Normalize, Permute, PriorBox and DetectionOutput to the table of OpenCV 4.14; its rows are sorted otherwise."""
    paths = written(ssd(), tmp_path)
    np.save(tmp_path / "in.npy", random_input(ssd()))
    subprocess.run([sys.executable, "-c", SCRIPT, *paths, tmp_path / "in.npy", tmp_path / "out.npy"], check=True)
    found = np.load(tmp_path / "out.npy")
    with np.load(RECORDED) as recorded:
        expected = recorded["detections"]
    assert found.shape == expected.shape == (1, 1, len(found[0, 0]), 7) and len(found[0, 0]) > 10
    ours, theirs = (table[0, 0][np.lexsort((table[0, 0, :, 2], table[0, 0, :, 1]))] for table in (found, expected))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert set(ours[:, 1]) <= {1, 2} and (ours[:, 2] > 0.3).all()


def test_caf_09_why_pooling_gives_another_size() -> None:
    """Convolutions round down, poolings up: 64 gives 32 and 33, GoogLeNet's 112 gives 56. Shown sizes are those that run."""
    net = cv2dnn.readNetFromCaffe(
        data(1, 3, 64, 64) + conv("c", "data", 2, 3, stride=2, pad=1) + pool("p", "data", "MAX", 3, stride=2, pad=1)
    )
    _, _, (_, (convolved,), (pooled,)) = net.getLayersShapes((1, 3, 64, 64))
    assert convolved.tolist() == [1, 2, 32, 32] and pooled.tolist() == [1, 3, 33, 33]
    zoo = ROOT / "examples" / "zoo" / "googlenet.prototxt"
    shown = console("show", zoo, "--json").data()
    sizes = {layer["name"]: layer["tops"] for layer in shown["layers"]}
    assert list(sizes["pool1/3x3_s2"].values()) == [[10, 64, 56, 56]]
    assert list(sizes["inception_3a/output"].values()) == [[10, 256, 28, 28]]
    words = console("explain", zoo, "--layer", "pool1/3x3_s2").out
    assert "112" in words and "56" in words


def test_caf_03_two_networks_in_a_row(tmp_path: Path) -> None:
    """A detector, then a super-resolution network on crops of any size, without reading it again."""
    text = (
        data(1, 1, 8, 8)
        + conv("c1", "data", 4, 3, pad=1)
        + layer("r1", "ReLU", "c1", "c1")
        + conv("c2", "c1", 4, 3, pad=1)
        + layer("sum", "Eltwise", "c1 c2", "sum")
        + conv("up", "sum", 1, 4, kind="Deconvolution", stride=2, pad=1)
    )
    (tmp_path / "sr").mkdir()
    larger = cv2dnn.readNetFromCaffe(*written(text, tmp_path / "sr"))
    detector = cv2dnn.readNetFromCaffe(*written(ssd(), tmp_path))
    image = np.random.default_rng(3).integers(0, 256, (48, 64, 3)).astype(np.uint8)
    detector.setInput(cv2dnn.blobFromImage(image, 1 / 255, (32, 32), (127.5, 127.5, 127.5)))
    sizes = set()
    for _, _, _, *box in detector.forward()[0, 0, :8]:
        x0, y0, x1, y1 = (np.clip(box, 0, 1) * [64, 48, 64, 48]).astype(int)
        crop = image[y0 : max(y1, y0 + 2), x0 : max(x1, x0 + 2), 0]
        if not crop.size:
            continue
        larger.setInput(cv2dnn.blobFromImage(crop, 1 / 255))
        assert larger.forward().shape == (1, 1, 2 * crop.shape[0], 2 * crop.shape[1])
        sizes.add(crop.shape)
    assert len(sizes) > 2
