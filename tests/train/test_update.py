"""The parts of an update, each against numbers a person can check."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import UnsupportedError
from astride.layers.layer import Parameter
from astride.train import UPDATES, find_update
from astride.train.update import Constants, check_regularization, clip, regularize, scale


def parameter(data: list[float], diff: list[float], decay_mult: float = 1.0) -> Parameter:
    made = Parameter((len(data),), decay_mult=decay_mult)
    made.data[...] = data
    made.diff[...] = diff
    return made


def test_clip_scales_all_gradients_by_one_factor() -> None:
    first, second = parameter([0], [3]), parameter([0, 0], [0, 4])
    assert clip([first, second], 1.0) == 5
    np.testing.assert_allclose(first.diff, [0.6], rtol=1e-6)
    np.testing.assert_allclose(second.diff, [0, 0.8], rtol=1e-6)


@pytest.mark.parametrize("limit", [-1.0, 5.0, 6.0])
def test_clip_leaves_small_gradients_alone(limit: float) -> None:
    only = parameter([0, 0], [3, 4])
    clip([only], limit)
    assert only.diff.tolist() == [3, 4]


def test_clip_measures_gradients_whose_squares_leave_float32() -> None:
    only = parameter([0, 0], [3e30, 4e30])
    assert clip([only], 5e20) == pytest.approx(5e30)
    np.testing.assert_allclose(only.diff, [3e20, 4e20], rtol=1e-6)


def test_weight_decay_by_hand() -> None:
    two = parameter([2, -3, 0], [1, 1, 1])
    regularize(two, 0.5, "L2")
    assert two.diff.tolist() == [2, -0.5, 1]
    one = parameter([2, -3, 0], [1, 1, 1])
    regularize(one, 0.5, "L1")
    assert one.diff.tolist() == [1.5, 0.5, 1]


def test_decay_mult_zero_means_no_decay() -> None:
    bias = parameter([2], [1], decay_mult=0)
    regularize(bias, 0.5, "L2")
    assert bias.diff.tolist() == [1]


def test_scale_keeps_the_dtype() -> None:
    only = parameter([0], [3])
    scale([only], 1 / 3)
    assert only.diff.dtype == np.float32 and only.diff.tolist() == [1]


def test_momentum_by_hand() -> None:
    """Two steps with gradient 1, rates 0.5 and 0.25, momentum 0.5: 0.5, then 0.25 + 0.25."""
    history = np.zeros(1, np.float32)
    for rate, expected in ((0.5, 0.5), (0.25, 0.5)):
        diff = np.ones(1, np.float32)
        UPDATES["SGD"].compute(diff, [history], rate, Constants(momentum=0.5))
        assert diff.tolist() == history.tolist() == [expected]


def test_other_solver_types_are_refused_with_the_list_of_those_that_exist() -> None:
    with pytest.raises(UnsupportedError, match="one of SGD") as caught:
        find_update("Adam")
    assert caught.value.given == {"type": "Adam"}


def test_unknown_regularization() -> None:
    with pytest.raises(UnsupportedError, match="L2 or L1"):
        check_regularization("L3")
