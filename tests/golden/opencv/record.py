"""Records blobs and boxes of OpenCV 4: `python -m tests.golden.opencv.record`, with opencv-python-headless<5 installed."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np
from tests.cv2dnn.files import random_input, written
from tests.cv2dnn.ssd import ssd

from .calls import BLOBS, BOXES, IMAGES, SCORES, SOFT, SUPPRESSIONS


def main() -> None:
    arrays = {"version": np.array(cv2.__version__)}
    for i, (image, call) in enumerate(BLOBS):
        arrays[f"blob{i}"] = cv2.dnn.blobFromImage(IMAGES[image], **call)
    for i, call in enumerate(SUPPRESSIONS):
        arrays[f"kept{i}"] = np.array(cv2.dnn.NMSBoxes(BOXES, SCORES, **call))
    for i, call in enumerate(SOFT):
        updated, kept = cv2.dnn.softNMSBoxes(BOXES, SCORES, **call)
        arrays[f"soft{i}"], arrays[f"updated{i}"] = np.array(kept), np.array(updated)
    with TemporaryDirectory() as folder:
        net = cv2.dnn.readNetFromCaffe(*written(ssd(), Path(folder)))
    net.setInput(random_input(ssd()))
    arrays["detections"] = net.forward()
    np.savez_compressed(Path(__file__).parent / "recorded.npz", **arrays)


if __name__ == "__main__":
    main()
