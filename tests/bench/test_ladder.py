"""The ladder's benchmark: what it measures is right before it is fast, and a wrong rung does not pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from astride import dispatch
from astride.backends import backend
from astride.backends.reference import conv, max_pool
from astride.bench import DIRECTIONS, RUNGS, WINDOWS, Problem, Timed, measure, on_one_thread, problems
from astride.bench.child import ONE_THREAD
from astride.bench.ladder import LAYOUTS, in_turns
from astride.errors import ArgumentError, AstrideError

SMALL = dict(images=2, channels=2, size=5)


@pytest.mark.parametrize("problem", list(problems(**SMALL)), ids=lambda p: f"{p.op} {p.layout}")
def test_every_rung_is_checked_and_timed(problem: Problem) -> None:
    timed = measure(problem, rounds=1, seconds=0.0)
    assert [(row.direction, row.rung) for row in timed] == [(d, rung) for d in DIRECTIONS for rung in RUNGS]
    assert all(row.agrees and row.seconds > 0 and row.calls >= 1 for row in timed)
    assert {(row.op, row.layout) for row in timed} == {(problem.op, problem.layout)}


def test_the_windows_are_those_with_a_ladder() -> None:
    for op in WINDOWS:
        assert {kernel.name for kernel in backend("reference").kernels(op)} >= set(RUNGS) - {"cpu"}
        assert backend("cpu").kernels(op)
    assert {problem.op for problem in problems()} == set(WINDOWS)
    assert {problem.layout for problem in problems()} == set(LAYOUTS) == {"NHWC", "NCHW"}


def test_shapes_follow_the_layout() -> None:
    problem = Problem(op="conv", layout="NHWC", images=3, channels=2, size=5)
    assert problem.shape == (3, 5, 5, 2) and replace(problem, layout="NCHW").shape == (3, 2, 5, 5)


@pytest.mark.parametrize(("module", "op"), [(conv, "conv"), (max_pool, "max_pool")])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_wrong_rung_is_found(monkeypatch: pytest.MonkeyPatch, module: Any, op: str, direction: str) -> None:
    def changed(kernel: Any) -> Any:
        if kernel.name != "loops2":
            return kernel

        def forward(*arguments: Any, **keywords: Any) -> Any:
            y, saved = kernel.forward(*arguments, **keywords)
            y.flat[-1] += direction == "forward"
            return y, saved

        def backward(*arguments: Any, **keywords: Any) -> Any:
            dx, *others = kernel.backward(*arguments, **keywords)
            dx.flat[-1] += direction == "backward"
            return (dx, *others)

        return replace(kernel, forward=forward, backward=backward)

    wrong = tuple(changed(kernel) for kernel in module.KERNELS)
    monkeypatch.setattr(type(backend("reference")), "kernels", lambda self, name: wrong)
    dispatch.forget()
    timed = measure(Problem(op=op, layout="NCHW", images=1, channels=1, size=4), rounds=1, seconds=0.0)
    dispatch.forget()
    found = {(row.direction, row.rung) for row in timed if not row.agrees}
    assert found == {(direction, "loops2"), (direction, "im2col")}, "the rung itself, and the one above that it judges"


def test_calls_take_turns() -> None:
    order: list[str] = []

    def call(name: str) -> Any:
        def wait() -> None:
            order.append(name)
            until = np.zeros(1 << 17)  # long enough that one call is a turn
            for _ in range(40):
                until += 1

        return wait

    times = in_turns({"a": call("a"), "b": call("b")}, rounds=3, seconds=60)
    first = list(dict.fromkeys(order))
    assert first == ["a", "b"]
    runs = [name for i, name in enumerate(order) if i == 0 or order[i - 1] != name]
    assert runs == ["a", "b"] * 4, "one round that is not counted, then three"
    assert min(len(t) for t in times.values()) >= 3


def test_short_calls_are_made_several_times_and_long_ones_stop_early() -> None:
    calls: list[int] = []
    times = in_turns({"short": lambda: calls.append(1)}, rounds=2, seconds=60)
    assert len(times["short"]) > 20 and len(calls) == len(times["short"]) + 1
    assert len(in_turns({"a": lambda: sum(range(200_000))}, rounds=1000, seconds=0.05)["a"]) < 500


def test_the_child_has_one_thread() -> None:
    pytest.importorskip("threadpoolctl")
    script = "import numpy, threadpoolctl; print([pool['num_threads'] for pool in threadpoolctl.threadpool_info()])"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=True
    )
    pools = json.loads(done.stdout)
    assert pools and set(pools) == {1}


def test_the_child_answers_problem_by_problem() -> None:
    asked = list(problems(["max_pool"], images=1, channels=1, size=4))
    found = list(on_one_thread(asked, 1, 0.0))
    assert [(rows[0].op, rows[0].layout) for rows in found] == [("max_pool", "NHWC"), ("max_pool", "NCHW")]
    assert all(isinstance(row, Timed) and row.agrees for rows in found for row in rows)


def test_a_child_that_fails_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AstrideError, match="ended early"):
        list(on_one_thread([Problem(op="conv", layout="NCHW", size=2, kernel=3)], 1, 0.0))
    assert "the kernel is larger" in capfd.readouterr().err


def test_what_has_no_ladder_is_refused() -> None:
    with pytest.raises(ArgumentError, match="one of conv, conv_transpose, max_pool"):
        problems(["softmax"])
