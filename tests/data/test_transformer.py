"""The preparation of images, step by step on arrays a person can follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from astride.data import Transformer, load_mean
from astride.errors import ArgumentError, ArrayError, ModelFileError
from astride.proto import write_blob

IMAGE = np.arange(3 * 4 * 4, dtype=np.float32).reshape(3, 4, 4)


def test_nothing_asked_nothing_done() -> None:
    assert (Transformer()(IMAGE) == IMAGE).all()


def test_the_order_of_caffes_own_tools() -> None:
    """Swap, raw scale, mean per channel, scale: the mean is that of the swapped, scaled image."""
    image = np.stack([np.full((2, 2), value, np.float32) for value in (0.1, 0.2, 0.3)])
    done = Transformer(channel_swap=(2, 1, 0), raw_scale=100, mean=load_mean([10, 20, 30]), scale=0.5)(image)
    np.testing.assert_allclose(done[:, 0, 0], [(30 - 10) / 2, (20 - 20) / 2, (10 - 30) / 2], atol=1e-5)


def test_crop_is_the_centre() -> None:
    assert Transformer(crop=(2, 2))(IMAGE)[0].tolist() == [[5, 6], [9, 10]]
    assert Transformer(crop=(3, 3))(IMAGE)[0, 0].tolist() == [0, 1, 2]


def test_mirror_turns_left_and_right() -> None:
    assert Transformer(mirror=True)(IMAGE)[0, 0].tolist() == [3, 2, 1, 0]


def test_a_mean_image_belongs_to_the_image_before_the_crop() -> None:
    assert (Transformer(mean=IMAGE, crop=(2, 2), mirror=True)(IMAGE) == 0).all()


def test_a_mean_image_of_the_crops_size_belongs_to_the_crop() -> None:
    assert (Transformer(mean=IMAGE[:, 1:3, 1:3], crop=(2, 2))(IMAGE) == 0).all()


def test_a_larger_mean_is_cropped_on_request_only() -> None:
    """The mean of the old image nets is 256x256, their input 227x227: rows 14 to 240."""
    mean = np.broadcast_to(np.arange(256, dtype=np.float32)[:, None], (3, 256, 256))
    image = np.zeros((3, 227, 227), np.float32)
    with pytest.raises(ArrayError, match=r"\(3, 256, 256\) against \(3, 227, 227\)") as caught:
        Transformer(mean=mean)(image)
    assert "crop_mean=True" in str(caught.value)
    done = Transformer(mean=mean, crop_mean=True)(image)
    assert (-done[0, 0, 0], -done[0, -1, 0]) == (14, 240)


def test_chance_needs_a_generator_and_repeats_with_its_seed() -> None:
    shaky = Transformer(crop=(2, 2), mirror=True, random=True)
    with pytest.raises(ArgumentError, match="generator"):
        shaky(IMAGE)
    seen = {shaky(IMAGE, np.random.default_rng(seed)).tobytes() for seed in range(60)}
    assert len(seen) == 18, "nine places, each mirrored or not"
    assert (shaky(IMAGE, np.random.default_rng(1)) == shaky(IMAGE, np.random.default_rng(1))).all()


def test_resize_to_a_size_or_by_the_shorter_side() -> None:
    wide = np.zeros((1, 10, 20), np.float32)
    assert Transformer(size=(5, 6))(wide).shape == (1, 5, 6)
    assert Transformer(shorter_side=5)(wide).shape == (1, 5, 10)
    assert Transformer(shorter_side=5, crop=(5, 5))(wide).shape == (1, 5, 5)


def test_a_batch_is_done_image_by_image() -> None:
    batch = Transformer(crop=(2, 2)).batch(np.stack([IMAGE, IMAGE + 1]))
    assert batch.shape == (2, 3, 2, 2) and (batch[1] == batch[0] + 1).all()


def test_the_given_image_stays_as_it_is() -> None:
    image = IMAGE.copy()
    Transformer(raw_scale=2, mean=load_mean(1.0), mirror=True, scale=3)(image)
    assert (image == IMAGE).all()


@pytest.mark.parametrize(
    ("transformer", "text"),
    [
        (Transformer(crop=(5, 4)), "on axis H: 5 <= 4"),
        (Transformer(channel_swap=(0, 1)), "permutation"),
        (Transformer(channel_swap=(0, 0, 1)), "permutation"),
    ],
)
def test_what_does_not_fit(transformer: Transformer, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        transformer(IMAGE)


def test_means_from_numbers_arrays_and_files(tmp_path: Path) -> None:
    assert load_mean(7.0).shape == (1, 1, 1)
    assert load_mean([1, 2, 3]).shape == (3, 1, 1)
    np.save(tmp_path / "m.npy", IMAGE)
    assert (load_mean(tmp_path / "m.npy") == IMAGE).all()
    np.save(tmp_path / "c.npy", np.array([1.0, 2.0]))
    assert load_mean(tmp_path / "c.npy").shape == (2, 1, 1)
    for legacy in (False, True):
        write_blob(tmp_path / "m.binaryproto", IMAGE[None], legacy=legacy)
        assert (load_mean(tmp_path / "m.binaryproto") == IMAGE).all()


def test_a_mean_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ArrayError, match="one number per channel or one image"):
        load_mean(np.zeros((2, 3, 4, 4)))
    with pytest.raises(ModelFileError, match="no such mean file"):
        load_mean(tmp_path / "m.npy")
    (tmp_path / "m.npy").write_bytes(b"nothing")
    with pytest.raises(ModelFileError, match="not a NumPy array file"):
        load_mean(tmp_path / "m.npy")
    with pytest.raises(ModelFileError):
        load_mean(tmp_path / "m.binaryproto")
