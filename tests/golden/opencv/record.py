"""Records blobs and boxes of OpenCV 4: `python -m tests.golden.opencv.record`, with opencv-python-headless<5 installed."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

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
    np.savez_compressed(Path(__file__).parent / "recorded.npz", **arrays)


if __name__ == "__main__":
    main()
