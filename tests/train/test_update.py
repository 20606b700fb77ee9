"""The parts of an update, each against numbers a person can check."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError, UnsupportedError
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


def run(kind: str, constants: Constants, gradients: list[float], rate: float = 0.5) -> list[float]:
    """The updates of one weight, gradient after gradient."""
    update = UPDATES[kind]
    history = [np.zeros(1) for _ in range(update.slots)]
    updates = []
    for iteration, gradient in enumerate(gradients):
        diff = np.array([float(gradient)])
        factor = 1.0 if update.correction is None else update.correction(iteration, constants)
        update.compute(diff, history, rate * factor, constants)
        updates.append(float(diff[0]))
    return updates


def test_nesterov_by_hand() -> None:
    """Momentum 0.5: the history is 1, then 1 + 0.5; the update 1.5 * 1 - 0, then 1.5 * 1.5 - 0.5 * 1."""
    assert run("Nesterov", Constants(momentum=0.5), [2, 2]) == [1.5, 1.75]


def test_adagrad_by_hand() -> None:
    """Gradients 3 and 4: squares 9 and 25, roots 3 and 5; delta 1 makes them 4 and 6."""
    assert run("AdaGrad", Constants(delta=1), [3, 4]) == [0.5 * 3 / 4, 0.5 * (4 / 6)]


def test_rmsprop_by_hand() -> None:
    """Decay 0.75, gradients 2 and 4: means 1 and 0.75 + 4."""
    expected = [0.5 * 2 / 2, 0.5 * 4 / (np.sqrt(4.75) + 1)]
    assert run("RMSProp", Constants(rms_decay=0.75, delta=1), [2, 4]) == pytest.approx(expected, rel=1e-15)


def test_adadelta_by_hand() -> None:
    """Momentum 0.75, delta 1: gradients' mean 1, step 2 * sqrt(1 / 2); steps' mean 0.5; then 4.75 and sqrt(1.5 / 5.75)."""
    expected = [0.5 * 2 * np.sqrt(1 / 2), 0.5 * 4 * np.sqrt(1.5 / 5.75)]
    assert run("AdaDelta", Constants(momentum=0.75, delta=1), [2, 4]) == pytest.approx(expected, rel=1e-15)


def test_adam_by_hand() -> None:
    """With the correction the first step of Adam is rate * sign(gradient), whatever the gradient's size, as delta vanishes."""
    constants = Constants(momentum=0.5, momentum2=0.75, delta=1e-30)
    updates = run("Adam", constants, [-8, 4])
    assert updates[0] == pytest.approx(-0.5, rel=1e-14)
    first, second = 0.5 * -4 + 0.5 * 4, 0.75 * 16 + 0.25 * 16
    assert updates[1] == pytest.approx(0.5 * np.sqrt(1 - 0.75**2) / (1 - 0.5**2) * first / np.sqrt(second))


@pytest.mark.parametrize("kind", UPDATES)
def test_updates_keep_the_dtype_and_write_into_the_gradient(kind: str) -> None:
    update = UPDATES[kind]
    diff, history = np.full(3, 2, np.float32), [np.zeros(3, np.float32) for _ in range(update.slots)]
    before = diff
    update.compute(diff, history, 0.5, Constants())
    assert diff is before and diff.dtype == np.float32 and np.isfinite(diff).all() and diff.any()
    assert all(array.dtype == np.float32 and array.any() for array in history)


@pytest.mark.parametrize(
    ("kind", "constants", "message"),
    [
        ("AdaGrad", Constants(momentum=0.9), "AdaGrad has no momentum"),
        ("RMSProp", Constants(momentum=0.9), "RMSProp has no momentum"),
        ("RMSProp", Constants(rms_decay=1), "0 <= rms_decay < 1: 1"),
        ("Adam", Constants(momentum2=1), "0 <= momentum2 < 1: 1"),
        *((kind, Constants(delta=0), "0 < delta < inf: 0") for kind in ("AdaGrad", "RMSProp", "AdaDelta", "Adam")),
    ],
)
def test_constants_that_do_not_suit_the_type(kind: str, constants: Constants, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        UPDATES[kind].check(constants)


def test_unknown_solver_types_are_refused_with_the_list_of_those_that_exist() -> None:
    with pytest.raises(UnsupportedError, match="one of SGD Nesterov AdaGrad RMSProp AdaDelta Adam") as caught:
        find_update("AdamW")
    assert caught.value.given == {"type": "AdamW"}


def test_unknown_regularization() -> None:
    with pytest.raises(UnsupportedError, match="L2 or L1"):
        check_regularization("L3")
