"""Fillers: values, fans, and uniform draws bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.fillers import FILLERS, Filler, VarianceNorm, uniform


def filled(shape: tuple[int, ...], dtype: str = "float32", seed: int = 3, **fields: object) -> np.ndarray:
    return Filler(**fields)(shape, dtype, np.random.RandomState(seed))  # type: ignore[arg-type]


def test_constant() -> None:
    assert (filled((2, 3), value=0.25) == 0.25).all()


def test_uniform_takes_one_word_a_number() -> None:
    """Caffe's numbers follow from the Mersenne Twister's 32-bit words in single precision."""
    words = np.random.RandomState(11).randint(0, 2**32, size=1000, dtype=np.uint32)
    low, high = np.float32(-0.3), np.nextafter(np.float32(0.7), np.float32(np.inf))
    expected = words.astype(np.float32) / np.float32(2**32) * (high - low) + low
    np.testing.assert_array_equal(filled((10, 100), seed=11, kind="uniform", min=-0.3, max=0.7).reshape(-1), expected)


def test_words_come_straight_from_the_twister() -> None:
    """init_genrand(5489) of the published generator begins with these words; a seed of Caffe is such a seed."""
    assert np.random.RandomState(5489).randint(0, 2**32, size=3, dtype=np.uint32).tolist() == [3499211612, 581869302, 3890346734]


def test_a_word_at_the_very_end_is_drawn_again() -> None:
    class Words:
        def __init__(self) -> None:
            self.left = [5, 2**32 - 1, 9, 7]

        def randint(self, low: int, high: int, size: int, dtype: type) -> np.ndarray:
            taken, self.left = self.left[:size], self.left[size:]
            return np.array(taken, dtype)

    values = uniform(Words(), 0.0, 1.0, 3, np.dtype(np.float32))  # type: ignore[arg-type]
    kept = np.array([5, 9, 7], np.float32) / np.float32(2**32)
    np.testing.assert_array_equal(values, kept * np.nextafter(np.float32(1), np.float32(2)))


def test_an_empty_range() -> None:
    with pytest.raises(ArgumentError, match="min <= max"):
        filled((3,), kind="uniform", min=1, max=0)


@pytest.mark.parametrize("norm", list(VarianceNorm))
def test_xavier_and_msra_scale_by_their_fan(norm: VarianceNorm) -> None:
    shape = (40, 10, 5, 5)
    fan = {"FAN_IN": 250, "FAN_OUT": 1000, "AVERAGE": 625}[norm]
    xavier = filled(shape, kind="xavier", variance_norm=norm)
    limit = np.sqrt(3 / fan)
    assert np.abs(xavier).max() <= limit * 1.000001 and np.abs(xavier).max() > 0.99 * limit
    msra = filled(shape, kind="msra", variance_norm=norm)
    assert abs(msra.std() / np.sqrt(2 / fan) - 1) < 0.03


def test_gaussian() -> None:
    values = filled((100, 100), kind="gaussian", mean=1, std=0.5)
    assert abs(values.mean() - 1) < 0.02 and abs(values.std() - 0.5) < 0.02
    assert filled((50, 1000), kind="gaussian", sparse=5).astype(bool).mean() == pytest.approx(0.1, abs=0.01)
    with pytest.raises(ArgumentError, match="only the gaussian"):
        Filler(kind="xavier", sparse=1)


def test_positive_unitball() -> None:
    values = filled((4, 3, 2), kind="positive_unitball")
    assert (values > 0).all()
    np.testing.assert_allclose(values.reshape(4, -1).sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize(("k", "profile"), [(3, [0.5, 1, 0.5]), (4, [0.25, 0.75, 0.75, 0.25])])
def test_bilinear(k: int, profile: list[float]) -> None:
    values = filled((2, 1, k, k), kind="bilinear")
    for kernel in values.reshape(2, k, k):
        np.testing.assert_allclose(kernel, np.outer(profile, profile))
    with pytest.raises(ArgumentError, match="square two-dimensional"):
        filled((2, 1, 3, 4), kind="bilinear")


def test_unknown_kinds_are_told_the_known() -> None:
    with pytest.raises(ArgumentError, match="one of constant, uniform, gaussian, xavier"):
        Filler(kind="xavir")


@pytest.mark.parametrize("kind", FILLERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kind_in_every_dtype(kind: str, dtype: str) -> None:
    values = filled((2, 2, 3, 3), dtype, kind=kind)
    assert values.dtype == dtype and values.shape == (2, 2, 3, 3)
    np.testing.assert_array_equal(values, filled((2, 2, 3, 3), dtype, kind=kind))


@pytest.mark.parametrize(("low", "high"), [(-3e38, 3e38), (-float("inf"), 0.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_a_range_without_an_end_is_refused(low: float, high: float) -> None:
    with pytest.raises(ArgumentError, match="the range has no end"):
        filled((2, 3), kind="uniform", min=low, max=high)


@pytest.mark.parametrize("fields", [dict(std=-1.0), dict(std=float("nan")), dict(std=float("inf")), dict(mean=float("inf"))])
def test_a_normal_distribution_needs_numbers(fields: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match="no normal distribution has these numbers"):
        Filler(kind="gaussian", **fields)  # type: ignore[arg-type]
