"""Sources of arrays: the order of samples, and finding one's place again."""

from __future__ import annotations

import numpy as np
import pytest

from astride.data import ArraySource, ShuffledSource
from astride.errors import ArgumentError, ArrayError

IMAGES = np.arange(7, dtype=np.float32).reshape(7, 1, 1, 1)
LABELS = np.arange(7) * 10


def drawn(source: ArraySource, sizes: list[int]) -> list[int]:
    return [int(value) for size in sizes for value in source.batch(size)[0].ravel()]


def test_in_order_and_round_again() -> None:
    assert drawn(ArraySource(IMAGES, LABELS), [3, 3, 3]) == [0, 1, 2, 3, 4, 5, 6, 0, 1]


def test_each_epoch_is_a_permutation_of_its_own() -> None:
    order = drawn(ShuffledSource(IMAGES, LABELS, seed=1), [7, 7, 7])
    epochs = [order[i : i + 7] for i in (0, 7, 14)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_labels_go_with_their_images() -> None:
    images, labels = ShuffledSource(IMAGES, LABELS, seed=3).batch(20)
    assert (labels == images.ravel() * 10).all()


def test_the_order_depends_on_the_seed_and_on_nothing_else() -> None:
    one = drawn(ShuffledSource(IMAGES, LABELS, seed=1), [2] * 10)
    assert one == drawn(ShuffledSource(IMAGES, LABELS, seed=1), [20])
    assert one != drawn(ShuffledSource(IMAGES, LABELS, seed=2), [20])


@pytest.mark.parametrize("position", [0, 3, 7, 12, 35])
def test_reset_finds_the_place_of_the_unbroken_run(position: int) -> None:
    unbroken = drawn(ShuffledSource(IMAGES, LABELS, seed=5), [50])
    source = ShuffledSource(IMAGES, LABELS, seed=5)
    source.batch(9)
    source.reset(position)
    assert drawn(source, [4, 4]) == unbroken[position : position + 8]


def test_augmentation_is_the_same_at_the_same_place() -> None:
    def noisy(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return images + rng.random(images.shape, dtype=np.float32)

    source = ShuffledSource(IMAGES, LABELS, seed=5, augment=noisy)
    first, second = source.batch(3)[0], source.batch(3)[0]
    source.reset(3)
    assert (source.batch(3)[0] == second).all()
    assert not (first - np.floor(first) == second - np.floor(second)).all()
    assert (IMAGES.ravel() == range(7)).all(), "the arrays themselves stay as they are"


def test_shapes_are_those_of_one_sample() -> None:
    assert ShuffledSource(IMAGES, LABELS, seed=0).shapes() == ((1, 1, 1), ())


def test_arrays_of_different_lengths() -> None:
    with pytest.raises(ArrayError):
        ShuffledSource(IMAGES, LABELS[:3], seed=0)


def test_a_negative_seed() -> None:
    with pytest.raises(ArgumentError, match="seed >= 0: -1"):
        ShuffledSource(IMAGES, LABELS, seed=-1)
