"""caffe.SGDSolver and the others."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from astride import load_solver
from astride import pycaffe as caffe
from astride.errors import ArgumentError, UnsupportedError

from .texts import LEARNS, SOLVER, written

X = np.array([[1, 0, 0], [0, 1, 0], [2, 1, 0], [0, 1, 3]], np.float32)
Y = np.array([0, 1, 0, 1], np.float32)
TESTED = "test_iter: 1 test_interval: 5 "


def feed(net: caffe.Net) -> None:
    net.blobs["data"].data[...] = X
    net.blobs["label"].data[...] = Y


def solver(more: str = "momentum: 0.9", kind: type[caffe.Solver] = caffe.SGDSolver) -> caffe.Solver:
    written("net.prototxt", LEARNS)
    made = kind(written("solver.prototxt", SOLVER + more))
    for net in (made.net, *made.test_nets):
        feed(net)
    return made


def weights(one: caffe.Solver) -> bytes:
    return one.net.params["ip"][0].data.tobytes() + one.net.params["ip"][1].data.tobytes()


def test_steps_equal_astrides_solver(folder: Path) -> None:
    one = solver()
    plain = load_solver("solver.prototxt")
    plain.net.blobs["data"].data[...] = X
    plain.net.blobs["label"].data[...] = Y
    one.step(3)
    plain.step(3)
    assert one.iter == 3
    assert (one.net.params["ip"][0].data == plain.net.params["ip"][0].data).all()
    assert not one.net.blobs["loss"].data.shape and one.net.blobs["loss"].data < 0.7


@pytest.mark.parametrize(
    ("kind", "name", "more"),
    [
        (caffe.SGDSolver, "SGD", "momentum: 0.9"),
        (caffe.NesterovSolver, "Nesterov", "momentum: 0.9"),
        (caffe.AdaGradSolver, "AdaGrad", ""),
        (caffe.RMSPropSolver, "RMSProp", ""),
        (caffe.AdaDeltaSolver, "AdaDelta", "momentum: 0.95 delta: 1e-6"),
        (caffe.AdamSolver, "Adam", "momentum: 0.9"),
    ],
)
def test_the_class_decides_and_get_solver_follows_the_file(folder: Path, kind: type[caffe.Solver], name: str, more: str) -> None:
    one = solver(more, kind)
    assert one.param.type == name and one._solver.update.name == name
    before = one.net.forward()["loss"].copy()
    one.step(10)
    assert one.net.forward()["loss"] < before
    other = caffe.get_solver(written("typed.prototxt", f'{SOLVER} {more} type: "{name}"'))
    assert type(other) is kind
    assert type(caffe.get_solver(written("old.prototxt", f"{SOLVER} {more} solver_type: {name.upper()}"))) is kind


def test_unknown_types_and_missing_files(folder: Path) -> None:
    written("net.prototxt", LEARNS)
    with pytest.raises(UnsupportedError, match="no such solver type"):
        caffe.get_solver(written("solver.prototxt", SOLVER + 'type: "Newton"'))
    with pytest.raises(RuntimeError, match="Could not open file"):
        caffe.SGDSolver("nothing.prototxt")
    with pytest.raises(ArgumentError, match="AdaGrad has no momentum"):
        caffe.AdaGradSolver(written("solver.prototxt", SOLVER + "momentum: 0.9"))


def test_test_nets_know_what_the_net_learns(folder: Path) -> None:
    one = solver(TESTED + "momentum: 0.9")
    one.step(20)
    test = one.test_nets[0]
    assert test.forward()["accuracy"] == 1 and "accuracy" not in one.net.blobs
    assert np.shares_memory(test.params["ip"][0].data, one.net.params["ip"][0].data)


def test_solve_snapshot_and_restore(folder: Path) -> None:
    one = solver()
    one.step(5)
    one.snapshot()
    assert {path.name for path in folder.glob("run_*")} == {"run_iter_5.caffemodel", "run_iter_5.solverstate"}
    one.solve()
    assert one.iter == 20 and (folder / "run_iter_20.solverstate").is_file()
    other = solver()
    other.restore("run_iter_5.solverstate")
    assert other.iter == 5
    other.step(15)
    assert weights(other) == weights(one)
    third = solver()
    third.solve("run_iter_5.solverstate")
    assert weights(third) == weights(one)
    with pytest.raises(RuntimeError, match="Could not open file"):
        third.restore("run_iter_7.solverstate")


def test_callbacks_stand_around_the_passes(folder: Path) -> None:
    one = solver()
    seen: list[tuple[str, int, bool]] = []

    def look(name: str) -> None:
        seen.append((name, one.iter, bool(one.net.params["ip"][0].diff.any())))

    one.add_callback(lambda: look("start"), lambda: look("gradients"))
    one.step(2)
    assert seen == [("start", 0, False), ("gradients", 0, True), ("start", 1, False), ("gradients", 1, True)]


def test_gradients_changed_in_a_callback_are_what_is_applied(folder: Path) -> None:
    one = solver()
    before = weights(one)
    one.add_callback(lambda: None, one.net.clear_param_diffs)
    one.step(3)
    assert weights(one) == before


def test_apply_update_after_passes_of_ones_own(folder: Path) -> None:
    one, other = solver(), solver()
    one.step(1)
    other.net.clear_param_diffs()
    other.net.forward()
    other.net.backward()
    other.apply_update()
    assert weights(one) == weights(other) and (one.iter, other.iter) == (1, 0)


def test_param_is_live(folder: Path) -> None:
    one = solver("")
    assert (one.lr, one.param.base_lr, one.param.max_iter) == (0.5, 0.5, 20)
    one.param.base_lr = 0
    before = weights(one)
    one.step(2)
    assert weights(one) == before and one.lr == 0
    one.lr = 0.25
    assert one.param.base_lr == one.lr == 0.25
    one.step(1)
    assert weights(one) != before
    one.param.lr_policy = "nonsense"
    with pytest.raises(UnsupportedError, match="unknown learning-rate policy"):
        one.step(1)


def test_share_weights(folder: Path) -> None:
    one = solver()
    net = caffe.Net("net.prototxt", caffe.TEST)
    one.share_weights(net)
    one.step(1)
    assert (net.params["ip"][0].data == one.net.params["ip"][0].data).all()


def test_the_process_s_seed_begins_the_weights(folder: Path) -> None:
    def begun() -> bytes:
        written("net.prototxt", LEARNS)
        return weights(caffe.SGDSolver(written("solver.prototxt", SOLVER.replace("random_seed: 1", ""))))

    caffe.set_random_seed(3)
    first, second = begun(), begun()
    caffe.set_random_seed(3)
    assert begun() == first != second


def test_the_log_says_what_caffes_says(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = solver(TESTED + "momentum: 0.9 display: 2")
    with caplog.at_level(logging.INFO, logger="astride.pycaffe"):
        one.step(3)
        one.snapshot()
    text = [record.message for record in caplog.records]
    assert text[0].startswith("Iteration 0, test net 0: accuracy = ")
    assert [line.split(",")[0] for line in text if "loss = " in line and "lr" in line] == ["Iteration 0", "Iteration 2"]
    assert text[-1] == "Snapshotting to run_iter_3.caffemodel"
