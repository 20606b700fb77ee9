"""Stochastic pooling: what is drawn, how often, and what the draws are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same

import astride
from astride.backends.reference.philox import philox
from astride.like import caffe
from astride.ops.stochastic_pool import uniforms

SQUARE = np.array([[[[1, 2], [3, 4]]]], "float32")


def test_the_weighted_mean() -> None:
    """(1 + 4 + 9 + 16) / 10, and its derivative (2x - y) / sum."""
    y, pull = astride.vjp(astride.stochastic_pool, SQUARE, kernel=2)
    assert y.item() == 3
    assert_near(pull(np.ones_like(y))[0][0, 0], [[-0.1, 0.1], [0.3, 0.5]], 1e-6)


@pytest.mark.parametrize(
    ("draw", "value", "place"),
    [(0.05, 1, 0), (0.1, 1, 0), (0.11, 2, 1), (0.3, 2, 1), (0.31, 3, 2), (0.6, 3, 2), (0.61, 4, 3), (1.0, 4, 3)],
)
def test_a_draw_finds_its_tap(draw: float, value: float, place: int) -> None:
    """Running sums 0.1, 0.3, 0.6, 1: the first that reaches the draw."""
    x = SQUARE.astype("float64")
    uniform = np.full((1, 1, 1, 1), draw)
    y, pull = astride.vjp(astride.stochastic_pool, x, kernel=2, training=True, uniform=uniform)
    assert y.item() == value
    expected = np.zeros(4)
    expected[place] = 1
    assert_same(pull(np.ones_like(y))[0].reshape(-1), expected)


@pytest.mark.parametrize("rules", ["explicit", "caffe"])
def test_frequencies(rules: str) -> None:
    """1e5 windows of 1 2 3 4: each within one per cent of its share of all draws."""
    x = np.broadcast_to(SQUARE, (100_000, 1, 2, 2))
    y = astride.stochastic_pool(x, kernel=2, training=True, seed=11, rules=rules)
    shares = [(y == value).mean() for value in (1, 2, 3, 4)]
    assert np.abs(np.array(shares) - [0.1, 0.2, 0.3, 0.4]).max() < 0.01


def test_frequencies_tell_another_rule() -> None:
    """The check above fails for uniform choice: a quarter each."""
    y = np.random.default_rng(1).integers(1, 5, 100_000)
    shares = [(y == value).mean() for value in (1, 2, 3, 4)]
    assert np.abs(np.array(shares) - [0.1, 0.2, 0.3, 0.4]).max() > 0.1


@pytest.mark.parametrize("rules", ["explicit", "caffe"])
def test_a_window_of_zeros_draws_its_first_tap(rules: str) -> None:
    x = np.zeros((1, 1, 2, 2), "float32")
    y, pull = astride.vjp(astride.stochastic_pool, x, kernel=2, training=True, seed=0, rules=rules)
    assert y.item() == 0 and pull(np.ones_like(y))[0][0, 0].tolist() == [[1, 0], [0, 0]]
    y, pull = astride.vjp(astride.stochastic_pool, x, kernel=2, rules=rules)
    assert y.item() == 0 and not pull(np.ones_like(y))[0].any()


def test_zeros_are_drawn_only_where_all_are_zero() -> None:
    x = np.array([[[[0, 5], [0, 0]]]], "float32")
    for seed in range(20):
        assert astride.stochastic_pool(x, kernel=2, training=True, seed=seed).item() == 5


def test_negative_activations() -> None:
    """Sums 3 1 4 0: half of 0 is reached at once. And a window below zero: -1 >= -2 is the first crossing."""
    half = np.full((1, 1, 1, 1), 0.5, "float32")
    x = np.array([[[[3, -2], [3, -4]]]], "float32")
    assert astride.stochastic_pool(x, kernel=2, training=True, uniform=half).item() == 3
    below = np.array([[[[-1, -1], [-1, -1]]]], "float32")
    assert astride.stochastic_pool(below, kernel=2, training=True, uniform=half).item() == -1
    assert astride.stochastic_pool(below, kernel=2).item() == 0


def test_no_crossing_gives_nothing() -> None:
    """Running sums -4, -3.5 never reach a tenth of their sum, -0.35."""
    x = np.array([[[-4.0, 0.5]]])
    uniform = np.full((1, 1, 1), 0.1)
    y, pull = astride.vjp(astride.stochastic_pool, x, kernel=2, training=True, uniform=uniform)
    assert y.item() == 0 and pull(np.ones_like(y))[0].tolist() == [[[0, 0]]]


def test_caffe_compares_in_float32() -> None:
    """In double precision Caffe still rounds draw * sum to float32, so that a tap a hair below the threshold reaches it."""
    x = np.array([[[[1.0, 2.0**-30, 0, 0]]]])
    uniform = np.full((1, 1, 1, 1), 1.0)
    arguments: dict[str, Any] = dict(kernel=(1, 4), training=True, uniform=uniform)
    assert astride.stochastic_pool(x, rules="caffe", **arguments).item() == 1.0
    assert astride.stochastic_pool(x, **arguments).item() == 2.0**-30


# The draws


def test_philox_known_answers() -> None:
    """The known-answer file of Random123, philox4x32-10."""

    def words(counter: int, key: int) -> list[int]:
        counters = [np.array([(counter >> 32 * i) & 0xFFFFFFFF], np.uint64) for i in range(4)]
        return [int(word[0]) for word in philox(counters, (key & 0xFFFFFFFF, key >> 32))]

    assert words(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert words(2**128 - 1, 2**64 - 1) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    counters = [np.array([w], np.uint64) for w in (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)]
    assert [int(w[0]) for w in philox(counters, (0xA4093822, 0x299F31D0))] == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_a_draw_depends_on_its_place_alone() -> None:
    """The same numbers for any shape of the same order: no thread, tile or backend changes them."""
    long = uniforms((1000,), "float64", seed=5)
    assert_same(uniforms((10, 5, 20), "float64", seed=5).reshape(-1), long)
    assert_same(uniforms((7,), "float64", seed=5), long[:7])
    assert_same(uniforms((0, 3), "float64", seed=5), np.zeros((0, 3)))


def test_draws_differ_by_seed_and_stream() -> None:
    base = uniforms((64,), "float64", seed=5)
    for other in (uniforms((64,), "float64", seed=6), uniforms((64,), "float64", 5, 1), uniforms((64,), "float64", 5 + 2**40)):
        assert (base != other).mean() > 0.9


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_lie_above_zero_and_up_to_one(dtype: str) -> None:
    draws = uniforms((200_000,), dtype, seed=1)
    assert draws.min() > 0 and draws.max() <= 1 and draws.dtype == dtype
    counts = np.histogram(draws, bins=10, range=(0, 1))[0]
    assert np.abs(counts - 20_000).max() < 600


def test_half_float_draws_stay_in_range() -> None:
    draws = uniforms((20_000,), "float16", seed=1)
    assert draws.min() > 0 and draws.max() <= 1


def test_a_seed_repeats() -> None:
    x = np.random.default_rng(2).random((4, 3, 8, 8)).astype("float32")
    once, again = (caffe.pooling(x, pool="STOCHASTIC", kernel_size=3, stride=2, phase="TRAIN", seed=9) for _ in range(2))
    assert_same(once, again)
    assert (once != caffe.pooling(x, pool="STOCHASTIC", kernel_size=3, stride=2, phase="TRAIN", seed=10)).any()


@pytest.mark.parametrize("given", [{}, {"seed": 1, "uniform": np.ones((1, 1, 1, 1), "float32")}])
def test_draws_come_from_one_place(given: dict[str, Any]) -> None:
    with pytest.raises(astride.ArgumentError, match="training needs draws from one place"):
        astride.stochastic_pool(SQUARE, kernel=2, training=True, **given)


def test_draws_that_do_not_fit() -> None:
    with pytest.raises(astride.ArrayError, match="uniform needs one draw per output"):
        astride.stochastic_pool(SQUARE, kernel=2, training=True, uniform=np.ones((1, 1, 2, 2), "float32"))
    with pytest.raises(astride.ArrayError, match="uniform has another dtype"):
        astride.stochastic_pool(SQUARE, kernel=2, training=True, uniform=np.ones((1, 1, 1, 1)))
    with pytest.raises(astride.ArgumentError, match="a seed is a whole number of 64 bits"):
        astride.stochastic_pool(SQUARE, kernel=2, training=True, seed=2**64)


@pytest.mark.parametrize("draw", [float("nan"), -0.5, 1.5])
def test_a_draw_is_a_part_of_the_whole(draw: float) -> None:
    x = np.ones((1, 1, 2, 2), "float32")
    for call in (
        lambda u: astride.stochastic_pool(x, kernel=2, training=True, uniform=u),
        lambda u: astride.like.caffe.pooling(x, pool="STOCHASTIC", kernel_size=2, phase="TRAIN", uniform=u),
    ):
        with pytest.raises(astride.ArrayError, match="a uniform draw lies outside 0 to 1"):
            call(np.full((1, 1, 1, 1), draw, "float32"))


def test_a_seed_that_is_no_number() -> None:
    with pytest.raises(astride.ArgumentError, match="a seed is a whole number"):
        astride.stochastic_pool(np.ones((1, 1, 2)), kernel=2, training=True, seed="a")  # type: ignore[arg-type]


def test_kernels_draw_the_same() -> None:
    """To the bit, for counts that fill no vector and seeds and streams of 64 bits, whatever the number of threads."""
    from astride.backends.cpu import philox as compiled
    from astride.backends.reference import philox as plain

    for count, seed, stream in ((0, 0, 0), (1, 5, 0), (1003, 2**64 - 1, 2**63 + 7), (100_000, 123456789012345, 9)):
        expected = plain.draws(count, seed, stream)
        for threads in (1, 2, 3):
            with astride.use(threads=threads):
                assert_same(compiled.draws(count, seed, stream), expected)


def test_seeds_do_not_ask_which_backend() -> None:
    """More draws than it takes for kernels to be asked, on every backend: one result."""
    x = np.random.default_rng(3).random((2, 8, 96, 96)).astype("float32")
    results = []
    for backend in ("reference", "auto", "cpu"):
        with astride.use(backend=backend):
            results.append(astride.stochastic_pool(x, kernel=2, training=True, seed=7))
    assert_same(results[1], results[0])
    assert_same(results[2], results[0])
