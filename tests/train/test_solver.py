"""The loop: what happens when, who is told, and what stops it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from astride.errors import ArgumentError, NotFiniteError
from astride.train import Event, IterationDone, NetTested, Solver

from .nets import NET, SOLVER, samples, small_solver, values


def told(solver: Solver) -> list[Event]:
    events: list[Event] = []
    solver.add_listener(events.append)
    return events


def iterations(events: list[Event]) -> list[IterationDone]:
    return [event for event in events if isinstance(event, IterationDone)]


def test_training_learns() -> None:
    solver = small_solver("test_iter: 11 test_interval: 30 average_loss: 10")
    events = told(solver)
    solver.step(61)
    tests = [event for event in events if isinstance(event, NetTested)]
    assert [test.iteration for test in tests] == [0, 30, 60]
    assert tests[-1].outputs["accuracy"] > 0.9 and tests[-1].outputs["loss"] < tests[0].outputs["loss"]
    assert iterations(events)[-1].smoothed_loss < 0.5 * iterations(events)[0].smoothed_loss


def test_tests_come_before_the_iteration_and_once_more_at_the_end() -> None:
    solver = small_solver("test_iter: 1 test_interval: 5 snapshot_after_train: false")
    events = told(solver)
    solver.solve()
    order = ["T" if isinstance(event, NetTested) else "i" for event in events]
    assert "".join(order) == "TiiiiiTiiiiiT"


def test_test_initialization_false_skips_the_first() -> None:
    solver = small_solver("test_iter: 1 test_interval: 5 test_initialization: false")
    events = told(solver)
    solver.step(6)
    assert [event.iteration for event in events if isinstance(event, NetTested)] == [5]


def test_a_test_is_the_mean_over_its_batches() -> None:
    solver = small_solver("test_iter: 3 test_interval: 5 test_compute_loss: true")
    events = told(solver)
    (means,) = solver.test()
    solver.test_nets[0].sources["digits"].reset()  # type: ignore[union-attr]
    batches = [solver.test_nets[0].forward() for _ in range(3)]
    assert means["loss"] == pytest.approx(np.mean([batch["loss"] for batch in batches]))
    (event,) = events
    assert isinstance(event, NetTested) and event.loss == pytest.approx(float(means["loss"]))


def test_the_test_net_sees_the_parameters_that_are_trained() -> None:
    solver = small_solver("test_iter: 1 test_interval: 100")
    solver.step(2)
    for name, parameters in solver.test_nets[0].params.items():
        for seen, trained in zip(parameters, solver.net.params[name]):
            assert np.shares_memory(seen.data, trained.data)


def test_the_smoothed_loss_is_the_mean_of_the_last_ones() -> None:
    solver = small_solver("average_loss: 3 display: 2")
    events = iterations(told(solver))
    heard = told(solver)
    solver.step(5)
    events = iterations(heard)
    losses = [event.loss for event in events]
    assert [event.smoothed_loss for event in events] == pytest.approx([np.mean(losses[max(0, i - 2) : i + 1]) for i in range(5)])
    assert [event.show for event in events] == [True, False, True, False, True]
    assert all(event.seconds > 0 and "loss" in event.outputs for event in events)


def test_debug_info_logs_the_blobs_of_shown_iterations(caplog: pytest.LogCaptureFixture) -> None:
    solver = small_solver("debug_info: true display: 2")
    counts = []
    with caplog.at_level("INFO", logger="astride"):
        for _ in range(3):
            solver.step(1)
            counts.append(len(caplog.messages))
            caplog.clear()
    assert counts[0] == counts[2] > 8 and counts[1] == 0


def test_rates_are_those_of_the_policy() -> None:
    solver = small_solver('lr_policy: "multistep" gamma: 0.5 stepvalue: 2 stepvalue: 3')
    events = told(solver)
    solver.step(4)
    assert [event.rate for event in iterations(events)] == pytest.approx([0.05, 0.05, 0.025, 0.0125])
    assert solver.rate == pytest.approx(0.0125)


def test_a_listener_can_stop_it(tmp_path: object) -> None:
    solver = small_solver("snapshot_after_train: false")
    solver.add_listener(lambda event: solver.request_stop() if solver.iter == 4 else None)
    solver.solve()
    assert solver.iter == 4
    solver.listeners.clear()
    solver.solve()
    assert solver.iter == 10, "it goes on when asked again"


def test_iter_size_is_one_larger_batch() -> None:
    """Two passes of four equal one pass of eight samples, for a net without chance."""
    calm = NET.replace("dropout_ratio: 0.3", "dropout_ratio: 0.0")
    two = small_solver("iter_size: 2", net=calm)
    one = small_solver(net=calm.replace("batch_size: 4", "batch_size: 8"))
    two.step(3)
    one.step(3)
    for mine, other in zip(two.net.learnable, one.net.learnable):
        np.testing.assert_allclose(mine.data, other.data, rtol=1e-4, atol=1e-6)


def test_lr_mult_zero_freezes_a_layer_and_nothing_below_it() -> None:
    frozen = NET.replace('top: "ip"\n  inner', 'top: "ip" param { lr_mult: 0 } param { lr_mult: 0 }\n  inner')
    solver = small_solver(net=frozen)
    before = {name: parameters[0].data.copy() for name, parameters in solver.net.params.items()}
    solver.step(2)
    assert (solver.net.params["ip"][0].data == before["ip"]).all()
    assert not (solver.net.params["conv"][0].data == before["conv"]).all()


def test_l1_decay_alone_shrinks_weights_by_its_rate() -> None:
    """Without data's gradient (lr of the loss is 0) a weight moves by rate * decay towards 0, whatever its size."""
    text = 'regularization_type: "L1" ' + SOLVER.replace("momentum: 0.9 ", "").replace("0.01", "0.5") + 'lr_policy: "fixed"'
    solver = small_solver("", net=NET)
    solver.settings = _settings_of(text)
    weights = solver.net.params["ip"][0]
    before = weights.data.copy()
    assert solver.apply_update() == pytest.approx(0.05)
    np.testing.assert_allclose(weights.data, before - 0.025 * np.sign(before), rtol=1e-5, atol=1e-7)


def _settings_of(text: str) -> object:
    from astride.caffe import load_solver

    return load_solver(text, net=NET).settings


def test_the_same_seed_gives_the_same_net() -> None:
    one, two = small_solver(), small_solver()
    one.step(3)
    two.step(3)
    assert values(one) == values(two)


class Pair:
    """A stand-in for two processes that hold the same gradients: the sum is twice what is there."""

    size, rank = 2, 0

    def __init__(self) -> None:
        self.sent: list[int] = []

    def all_reduce(self, arrays: Sequence[npt.NDArray[np.float32]]) -> None:
        self.sent.append(len(arrays))
        for array in arrays:
            array *= 2

    def broadcast(self, arrays: Sequence[npt.NDArray[np.float32]]) -> None:
        self.sent.append(-len(arrays))


@pytest.mark.parametrize("more", ["", "clip_gradients: 0.1 iter_size: 2"])
def test_gradients_of_processes_are_averaged_before_anything_else(more: str) -> None:
    alone, pair = small_solver(more), small_solver(more)
    pair.communicator = communicator = Pair()
    alone.step(3)
    pair.step(3)
    assert values(alone) == values(pair)
    assert communicator.sent == [4, 4, 4]


def test_rank_0_sends_its_parameters_first() -> None:
    communicator = Pair()
    solver = small_solver()
    Solver(solver.net, solver.settings, solver.update, communicator=communicator)
    assert communicator.sent == [-4]


def test_nan_in_the_data_is_named() -> None:
    solver = small_solver()
    images, _ = samples()
    images[...] = np.nan
    solver.net.set_input_arrays(images, np.zeros(len(images)))
    with pytest.raises(NotFiniteError, match="iteration 0") as caught:
        solver.step(1)
    assert "blob data, made by layer digits (MemoryData)" in str(caught.value)


def test_nan_in_a_parameter_is_named() -> None:
    solver = small_solver()
    solver.step(1)
    solver.net.params["ip"][1].data[0] = math.inf
    with pytest.raises(NotFiniteError, match="iteration 1") as caught:
        solver.step(1)
    assert "parameter 1 of layer ip, before this pass" in str(caught.value)


def test_a_gradient_that_overflows_is_named_and_changes_nothing() -> None:
    """The loss is finite, the gradient of the first layer is not: features of 1e30 times weights of 1e30."""
    solver = small_solver()
    solver.net.params["ip"][0].data[...] = np.array([3e38, -3e38, 0], np.float32)[:, None]
    solver.net.params["conv"][0].data[...] = 0
    solver.net.params["conv"][1].data[...] = 1e-38
    before = values(solver)
    with (
        pytest.raises(NotFiniteError, match="gradient is no longer finite") as caught,
        np.errstate(over="ignore", invalid="ignore"),
    ):
        solver.step(1)
    assert "the gradient of" in str(caught.value)
    assert values(solver) == before and solver.iter == 0


def test_each_test_net_needs_its_number_of_batches() -> None:
    solver = small_solver()
    with pytest.raises(ArgumentError, match="as many test_iter as test nets: 0 against 1"):
        Solver(solver.net, solver.settings, solver.update, test_nets=[solver.net])


@pytest.mark.parametrize("iterations", [-1, 1.5, "3", None, True], ids=repr)
def test_iterations_are_counted(iterations: object) -> None:
    solver = small_solver()
    with pytest.raises(ArgumentError, match="iterations are counted"):
        solver.step(iterations)  # type: ignore[arg-type]
    assert solver.iter == 0
