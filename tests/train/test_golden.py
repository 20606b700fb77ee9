"""Solver types against what Caffe computed: every parameter after every iteration, losses, and Caffe's own snapshot files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_solver
from astride.proto import read_caffemodel, read_solverstate
from astride.train import IterationDone, Solver

from .nets import GOLDEN

FIXED = np.load(GOLDEN / "sgd_fixed.npz")
NAMES = ("conv", "ip")
CASES = sorted(file.stem for file in GOLDEN.glob("*.npz"))
TOLERANCE = 1e-4


def prepared(case: str) -> tuple[Solver, Any]:
    golden = np.load(GOLDEN / f"{case}.npz")
    solver = load_solver(str(golden["solver"]), net=str(FIXED["net"]))
    solver.net.copy_params({name: [golden[f"init_{name}_{index}"] for index in range(2)] for name in NAMES})
    return solver, golden


def step(solver: Solver) -> float:
    """One iteration on that iteration's recorded batch; both passes of iter_size see the same one."""
    solver.net.blobs["data"].data[...] = FIXED["data"][solver.iter]
    solver.net.blobs["label"].data[...] = FIXED["label"][solver.iter]
    losses: list[float] = []
    solver.listeners = [lambda event: losses.append(event.loss) if isinstance(event, IterationDone) else None]
    solver.step(1)
    return losses[0]


def assert_parameters(solver: Solver, golden: Any, iteration: int) -> None:
    for name in NAMES:
        for index, parameter in enumerate(solver.net.params[name]):
            expected = golden[f"it{iteration}_{name}_{index}"]
            bound = TOLERANCE * np.abs(expected).max()
            np.testing.assert_allclose(parameter.data, expected, rtol=0, atol=bound, err_msg=f"{name} {index} at {iteration}")


def test_there_is_a_case_for_every_policy_and_option() -> None:
    assert {case.removeprefix("sgd_") for case in CASES} == {
        "fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid", "clip", "itersize", "adadelta", "rmsprop",
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_parameters_and_losses_are_caffes(case: str) -> None:
    solver, golden = prepared(case)
    for iteration in range(6):
        assert step(solver) == pytest.approx(float(golden[f"loss_{iteration}"]), rel=TOLERANCE)
        assert_parameters(solver, golden, iteration)


def test_caffes_own_snapshot_is_where_we_arrive(tmp_path: Path) -> None:
    solver, _ = prepared("sgd_fixed")
    for _ in range(6):
        step(solver)
    stored = read_solverstate(GOLDEN / "sgd_fixed_iter_6.solverstate")
    assert (stored.message.iter, stored.message.current_step) == (solver.iter, solver.current_step)
    for own, theirs in zip(solver.history, stored.history, strict=True):
        np.testing.assert_allclose(own, theirs.data, rtol=0, atol=TOLERANCE * np.abs(theirs.data).max())
    written = solver.snapshot(tmp_path)
    ours, caffes = read_caffemodel(written.model), read_caffemodel(GOLDEN / "sgd_fixed_iter_6.caffemodel")
    shapes = {layer.name: [blob.shape for blob in blobs] for layer, blobs in zip(ours.layers, ours.blobs) if blobs}
    assert shapes == {layer.name: [blob.shape for blob in blobs] for layer, blobs in zip(caffes.layers, caffes.blobs) if blobs}


@pytest.mark.parametrize("before", [0, 3])
def test_training_goes_on_from_caffes_snapshot(before: int) -> None:
    """A solver restored from Caffe's files equals one that trained to there, for three iterations more."""
    one, golden = prepared("sgd_fixed")
    other, _ = prepared("sgd_fixed")
    for _ in range(6):
        step(one)
    for _ in range(before):
        step(other)
    other.restore(GOLDEN / "sgd_fixed_iter_6.solverstate")
    assert other.iter == 6
    assert_parameters(other, golden, 5)
    for repeat in range(3):
        for solver in (one, other):
            solver.net.blobs["data"].data[...] = FIXED["data"][repeat]
            solver.net.blobs["label"].data[...] = FIXED["label"][repeat]
            solver.step(1)
    for mine, theirs in zip(one.net.learnable, other.net.learnable):
        np.testing.assert_allclose(mine.data, theirs.data, rtol=0, atol=TOLERANCE * np.abs(theirs.data).max())
