"""Resized images as scikit-image and SciPy make them for caffe.io.resize_image: `python record.py` with both installed.

scikit-image's `resize` with mode="constant" and without smoothing, on the image scaled to 0..1, for one and three channels;
SciPy's `zoom` for others: what Caffe's python/caffe/io.py calls.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy
import skimage
from scipy.ndimage import zoom
from skimage.transform import resize

CASES = [
    ((13, 17, 3), (8, 9)), ((5, 7, 3), (11, 20)), ((6, 6, 1), (6, 9)), ((4, 4, 3), (1, 1)), ((2, 3, 3), (9, 2)),
    ((9, 8, 5), (4, 13)), ((5, 5, 2), (10, 10)), ((20, 30, 4), (1, 7)),
]  # fmt: skip

rng = np.random.default_rng(0)
arrays = {"versions": np.array([f"scikit-image {skimage.__version__}", f"scipy {scipy.__version__}"])}
for number, (shape, size) in enumerate(CASES):
    image = rng.integers(0, 256, shape).astype(np.float32)
    arrays[f"{number}_image"] = image
    for order in (0, 1):
        if shape[-1] in (1, 3):
            low, high = image.min(), image.max()
            scaled = resize((image - low) / (high - low), size, order=order, mode="constant", anti_aliasing=False)
            made = scaled * (high - low) + low
        else:
            made = zoom(image, (size[0] / shape[0], size[1] / shape[1], 1), order=order)
        arrays[f"{number}_order{order}"] = made.astype(np.float32)
np.savez_compressed(Path(__file__).with_name("resize.npz"), **arrays)
