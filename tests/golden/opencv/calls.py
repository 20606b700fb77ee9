"""What is asked of OpenCV and of astride: images, boxes, and the arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

_RNG = np.random.default_rng(414)
IMAGES = {
    "colour": _RNG.integers(0, 256, (23, 31, 3)).astype(np.uint8),
    "grey": _RNG.integers(0, 256, (17, 12)).astype(np.uint8),
    "four": _RNG.integers(0, 256, (10, 14, 4)).astype(np.uint8),
}
SSD = dict(scalefactor=1.0, size=(20, 20), mean=(104.0, 177.0, 123.0))
MOBILE = dict(scalefactor=0.007843, size=(30, 30), mean=127.5)
BLOBS: list[tuple[str, dict[str, Any]]] = [
    ("colour", {}),
    ("colour", SSD),
    ("colour", SSD | {"swapRB": True}),
    ("colour", MOBILE | {"mean": (127.5, 127.5, 127.5)}),
    ("colour", MOBILE),
    ("colour", {"size": (12, 20), "crop": True}),
    ("colour", {"size": (40, 33), "crop": True, "swapRB": True}),
    ("colour", {"size": (9, 9), "ddepth": 0}),
    ("grey", {"scalefactor": 1 / 255, "size": (28, 28)}),
    ("grey", {"size": (6, 7)}),
    ("grey", {"size": (1, 1)}),
    ("four", {"size": (7, 5), "swapRB": True, "mean": (1.0, 2.0, 3.0, 4.0)}),
]
BOXES = _RNG.integers(0, 40, (30, 4)).tolist()
SCORES = _RNG.choice(np.linspace(0, 1, 21), 30).tolist()
SUPPRESSIONS: list[dict[str, Any]] = [
    {"score_threshold": 0.5, "nms_threshold": 0.4},
    {"score_threshold": 0.0, "nms_threshold": 0.1},
    {"score_threshold": 0.2, "nms_threshold": 0.9, "eta": 0.8},
    {"score_threshold": 0.2, "nms_threshold": 0.3, "top_k": 7},
]
SOFT: list[dict[str, Any]] = [
    {"score_threshold": 0.3, "nms_threshold": 0.3},
    {"score_threshold": 0.3, "nms_threshold": 0.3, "method": 1, "top_k": 9},
    {"score_threshold": 0.1, "nms_threshold": 0.3, "sigma": 0.2},
]
