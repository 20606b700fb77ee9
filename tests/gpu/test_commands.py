"""Command buffers: committed once, and everything that would end the process refused before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride import gpu
from astride.backends.webgpu.program import Program, flat_program
from astride.errors import ArgumentError, ArrayError, AstrideError

ADD = flat_program("add", [("x", "f32")], [("y", "f32")], "y[i] = x[i] + params.step;", [("step", "f32")])
TWO = flat_program("two", [("x", "f32")], [("y", "f32"), ("z", "f32")], "y[i] = x[i]; z[i] = x[i];")


def ones(device: Any, count: int = 8) -> Any:
    return device.tensor(np.ones(count, np.float32))


def test_work_runs_in_the_order_it_was_encoded(device: Any) -> None:
    a, b = ones(device), ones(device)
    commands = gpu.CommandBuffer(device)
    for step in range(5):
        commands.run(ADD, [a], [b], 8, step=float(step))
        commands.run(ADD, [b], [a], 8, step=1.0)
    commands.clear(b)
    commands.run(ADD, [b], [b2 := device.empty((8,))], 8, step=7.0)
    commands.commit()
    commands.wait()
    commands.wait()
    np.testing.assert_array_equal(a.numpy(), 1 + 10 + 5)
    np.testing.assert_array_equal(b.numpy(), 0)
    np.testing.assert_array_equal(b2.numpy(), 7)


def test_a_second_commit_is_an_error(device: Any) -> None:
    commands = gpu.CommandBuffer(device)
    commands.run(ADD, [ones(device)], [device.empty((8,))], 8, step=0.0)
    with pytest.raises(AstrideError, match="before wait"):
        commands.wait()
    commands.commit()
    for step in (commands.commit, lambda: commands.clear(ones(device)), lambda: commands.run(ADD, [], [], 1)):
        with pytest.raises(AstrideError, match="committed once"):
            step()


def test_an_empty_one_commits(device: Any) -> None:
    commands = gpu.CommandBuffer(device)
    commands.run(ADD, [device.empty((0,))], [device.empty((0,))], 0, step=1.0)
    commands.commit()
    commands.wait()


@pytest.mark.parametrize("case", ["in place", "twice", "view", "number", "dtype", "array", "name", "value", "grid", "bytes"])
def test_what_is_refused_when_encoded(device: Any, case: str) -> None:
    x, y = ones(device), device.empty((8,))
    commands = gpu.CommandBuffer(device)
    steps: dict[str, tuple[type[Exception], str, Any]] = {
        "in place": (ArrayError, "read and write", lambda: commands.run(ADD, [x], [x], 8, step=0.0)),
        "twice": (ArrayError, "read and write", lambda: commands.run(TWO, [x], [y, y], 8)),
        "view": (ArrayError, "read and write", lambda: commands.run(ADD, [x], [x.reshape(2, 4)], 8, step=0.0)),
        "number": (ArgumentError, "other numbers", lambda: commands.run(ADD, [x, x], [y], 8, step=0.0)),
        "dtype": (ArrayError, "another dtype", lambda: commands.run(ADD, [device.empty((8,), "int32")], [y], 8, step=0.0)),
        "array": (ArrayError, "not a tensor", lambda: commands.run(ADD, [np.ones(8)], [y], 8, step=0.0)),  # type: ignore[list-item]
        "name": (ArgumentError, "parameters", lambda: commands.run(ADD, [x], [y], 8, stop=0.0)),
        "value": (ArgumentError, "does not fit", lambda: commands.run(ADD, [x], [y], 8, step="much")),
        "grid": (
            ArgumentError,
            "workgroups",
            lambda: commands.dispatch(ADD, [x], [y], (65536, 1, 1), {"count": 1, "step": 0.0}),
        ),
        "bytes": (ArgumentError, "16 bytes", lambda: commands.dispatch(ADD, [x], [y], (1, 1, 1), b"\0" * 4)),
    }
    error, says, step = steps[case]
    with pytest.raises(error, match=says):
        step()
    commands.commit()


def test_a_program_with_too_many_tensors_is_refused(device: Any) -> None:
    names = tuple((f"x{n}", "f32") for n in range(8))
    program = flat_program("many", names, [("y", "f32")], "y[i] = x0[i];")
    with pytest.raises(ArgumentError, match="<= 8"):
        gpu.CommandBuffer(device).run(program, [ones(device) for _ in names], [device.empty((8,))], 8)


def test_grids_beyond_65535_groups_fold(device: Any) -> None:
    count = 64 * 65_535 + 1000
    y = device.empty((count,))
    commands = gpu.CommandBuffer(device)
    commands.run(ADD, [device.tensor(np.zeros(count, np.float32))], [y], count, step=3.0)
    commands.commit()
    assert (y.numpy() == 3).all()


def test_dispatches_are_timed(device: Any) -> None:
    if "timestamp-query" not in device.features:
        with pytest.raises(ArgumentError, match="timestamps"):
            gpu.CommandBuffer(device, timed=True)
        return
    commands = gpu.CommandBuffer(device, timed=True)
    for _ in range(3):
        commands.run(ADD, [ones(device)], [device.empty((8,))], 8, step=1.0)
    commands.commit()
    commands.wait()
    assert [name for name, _ in commands.times] == ["add"] * 3
    assert all(0 <= seconds < 10 for _, seconds in commands.times)


def test_pipelines_are_kept_by_text_entry_and_constants(device: Any) -> None:
    source = """override step: f32 = 1.0;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn up(@builtin(global_invocation_id) at: vec3<u32>) { y[at.x] = step; }
@compute @workgroup_size(64) fn down(@builtin(global_invocation_id) at: vec3<u32>) { y[at.x] = -step; }"""
    results = []
    for entry, step in (("up", 2.0), ("down", 2.0), ("up", 5.0)):
        program = Program("p", source, (), (("y", "f32"),), entry=entry, constants=(("step", step),))
        y = device.empty((64,))
        commands = gpu.CommandBuffer(device)
        commands.dispatch(program, [], [y], (1, 1, 1))
        commands.commit()
        results.append(float(y.numpy()[0]))
        one = device.pipeline(program.source, entry, program.constants, program.layout)
        assert device.pipeline(program.source, entry, program.constants, program.layout) is one
    assert results == [2.0, -2.0, 5.0]


def test_pipelines_beyond_those_kept_are_made_again(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("astride.backends.webgpu.device.PIPELINES_KEPT", 2)
    commands, results = gpu.CommandBuffer(device), []
    for _ in range(2):
        for step in range(4):
            program = flat_program("p", [], [("y", "f32")], f"y[i] = {step}.0;")
            commands.run(program, [], [y := device.empty((8,))], 8)
            results.append((float(step), y))
    assert len(device._pipelines) <= 2
    commands.commit()
    for expected, y in results:
        np.testing.assert_array_equal(y.numpy(), expected)
