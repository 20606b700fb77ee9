"""scikit-learn's handwritten digits, enlarged to 28x28: 1797 real digits inside an installed package, no download."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data import resize
from ..errors import BackendUnavailable

Images = npt.NDArray[np.float32]
HELD_OUT = 450
SIZE = 28


@dataclass(frozen=True, eq=False)
class Digits:
    """Images (N, 1, 28, 28) from 0 (paper) to 1 (ink), labels (N,); `test_*` are held out and never trained on."""

    train_images: Images
    train_labels: npt.NDArray[np.int64]
    test_images: Images
    test_labels: npt.NDArray[np.int64]


def load_digits(seed: int) -> Digits:
    """The digits, split by `seed` into those to learn from and HELD_OUT ones to be tested on."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError as error:
        raise BackendUnavailable(
            "the digits of the demonstration are part of scikit-learn, which is not installed",
            given={"package": "scikit-learn"},
            hint="pip install 'astride[demo]'",
        ) from error
    small: Any = load()
    images = np.stack([enlarged(image) for image in small.images.astype(np.float32) / np.float32(16)])
    labels = small.target.astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(images))
    test, train = order[:HELD_OUT], order[HELD_OUT:]
    return Digits(images[train], labels[train], images[test], labels[test])


def enlarged(image: Images) -> Images:
    """An 8x8 digit as (1, 28, 28), smoothly. The paper around it comes first, so that ink at the edge fades out as well."""
    return np.clip(resize(np.pad(image, 1)[None], (SIZE, SIZE), method="bicubic"), 0, 1)


def shifted(images: Images, rng: np.random.Generator, reach: int = 1) -> Images:
    """Each image moved by up to `reach` pixels along both axes, paper coming in at the edge: more digits from few."""
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    offsets = rng.integers(0, 2 * reach + 1, size=(len(images), 2))
    moved = [image[:, top : top + SIZE, left : left + SIZE] for image, (top, left) in zip(padded, offsets)]
    return np.stack(moved)
