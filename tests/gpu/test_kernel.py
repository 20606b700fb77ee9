"""Kernels of one's own: checked when made, errors in the user's own lines, encoded between the built-in ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride import gpu
from astride.errors import ArgumentError, ArrayError, AstrideError

LEAKY = ("leaky", {"x": "f32"}, {"y": "f32"}, {"slope": "f32"}, "y[i] = select(x[i] * params.slope, x[i], x[i] > 0.0);")


def test_it_runs_between_built_in_kernels(device: Any, rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (2, 8, 8, 4)).astype(np.float32)
    leaky, pool = gpu.Kernel(device, *LEAKY), gpu.PoolingMax(device, 2, 2, 2, 2, padding_policy=0)
    commands = gpu.CommandBuffer(device)
    y = leaky.encode(commands, pool.encode(commands, leaky.encode(commands, device.tensor(x), slope=0.5)), slope=2.0)
    commands.commit()
    commands.wait()
    first = np.where(x > 0, x, 0.5 * x).reshape(2, 4, 2, 4, 2, 4).max((2, 4))
    np.testing.assert_array_equal(y.numpy(), np.where(first > 0, first, 2 * first))


def test_several_tensors_types_and_vectors(device: Any) -> None:
    a, n = np.arange(8, dtype=np.float32), np.arange(8, dtype=np.int32)
    kernel = gpu.Kernel(
        device,
        "mix",
        [("a", "f32"), ("n", "i32")],
        [("total", "f32"), ("odd", "u32")],
        [("shift", "i32"), ("by", "u32")],
        "let k = n[i] + params.shift;\ntotal[i] = a[i] + f32(k);\nodd[i] = u32(k) % params.by;",
    )
    commands = gpu.CommandBuffer(device)
    total, odd = kernel.encode(commands, device.tensor(a), device.tensor(n), shift=3, by=2)
    twice = gpu.Kernel(device, "twice", {"a": "vec4<f32>"}, {"y": "vec4<f32>"}, {}, "y[i] = a[i] * 2.0;")
    doubled = twice.encode(commands, device.tensor(a))
    summed = gpu.Kernel(device, "summed", {"a": "f32"}, {"y": "f32"}, {}, "for (var k = 0u; k < 8u; k++) { y[0] += a[k]; }")
    own = device.tensor(np.zeros(1, np.float32))
    assert summed.encode(commands, device.tensor(a), outputs=[own]) is own
    made = gpu.Kernel(device, "made", {}, {"y": "f32"}, {}, "y[i] = f32(i);").encode(commands, shape=(2, 3))
    commands.commit()
    np.testing.assert_array_equal(total.numpy(), a + n + 3)
    np.testing.assert_array_equal(odd.numpy(), (n + 3) % 2)
    np.testing.assert_array_equal(doubled.numpy(), 2 * a)
    np.testing.assert_array_equal(own.numpy(), [28])
    np.testing.assert_array_equal(made.numpy(), np.arange(6).reshape(2, 3))


def test_nan_is_found_by_its_bits(device: Any) -> None:
    x = np.array([np.nan, np.inf, 0, -1], np.float32)
    kernel = gpu.Kernel(device, "clean", {"x": "f32"}, {"y": "f32"}, {}, "y[i] = select(x[i], 7.0, is_nan(x[i]));")
    commands = gpu.CommandBuffer(device)
    y = kernel.encode(commands, device.tensor(x))
    commands.commit()
    np.testing.assert_array_equal(y.numpy(), [7, np.inf, 0, -1])


@pytest.mark.parametrize(
    ("body", "says", "line"),
    [
        ("let a = 1.0;\nlet b = x[i] +;\ny[i] = a;", "expected expression", "line 2, column 15 = 'let b = x[i] +;'"),
        ("let a = foo(x[i]);", "foo", "line 1, column 9"),
        ("let a = 1.0;\n\n  y[i] = x[i] + vec4(a);", "type", "line 3"),
        ("y[i] = x[i];\nlet a = (", "does not compile", "after line = 2"),
    ],
)
def test_errors_point_at_the_users_lines(device: Any, body: str, says: str, line: str) -> None:
    with pytest.raises(ArgumentError, match="does not compile") as caught:
        gpu.Kernel(device, "wrong", {"x": "f32"}, {"y": "f32"}, {}, body)
    assert says in str(caught.value) and line in str(caught.value), caught.value
    y = gpu.Kernel(device, *LEAKY)  # the device goes on
    assert y.name == "leaky"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("x y", {"x": "f32"}, {"y": "f32"}), "no name for WGSL"),
        (("k", {"i": "f32"}, {"y": "f32"}), "no name for WGSL"),
        (("k", {"x": "f32", "x;": "f32"}, {"y": "f32"}), "no name for WGSL"),
        (("k", {"x": "f32"}, {"x": "f32"}), "declared twice"),
        (("k", {"x": "f64"}, {"y": "f32"}), "no such elements"),
        (("k", {"x": "f32"}, {}), "needs an output"),
        (("k", {"x": "f32"}, {"y": "f32"}, {"a": "f16"}), "params have no such type"),
        (("k", {"x": "f32"}, {"y": "f32"}, {"count": "u32"}), "no name for WGSL"),
        (("k", {"x": 32}, {"y": "f32"}), "names with types"),
        (("k", "x", {"y": "f32"}), "names with types"),
        (("k", {f"x{n}": "f32" for n in range(8)}, {"y": "f32"}), "<= 8"),
        (("k", {}, {"y": "f32"}, {f"p{n}": "f32" for n in range(16_384)}), "more params"),
        (("k", {}, {"y": "f32"}, {}, "y[i] = 0.0; // \ud800"), "WGSL text"),
    ],
)
def test_declarations_are_checked(device: Any, arguments: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        gpu.Kernel(device, *arguments)


DEEP = 50_000


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("y[i] = " + "(" * 150 + "x[i]" + ")" * 150 + ";", "brackets in brackets"),
        ("y[i] = " + "x[u32(" * 60 + "i" + ")]" * 60 + ";", "brackets in brackets"),
        ("var a: " + "array<" * 150 + "f32" + ", 2>" * 150 + ";", "brackets in brackets"),
        ("y[i] = x[i]" + "+x[i]" * DEEP + ";", "a statement of more"),
        ("y[i] = " + "-" * DEEP + "x[i];", "a statement of more"),
        ("if (x[i] > 0.0) {}" + "else if (x[i] > 1.0) {}" * (DEEP // 10), "times else"),
        ("{" * DEEP + "}" * DEEP, "does not compile"),
    ],
    ids=["parentheses", "indices", "types", "sum", "signs", "else", "braces"],
)
def test_what_would_overflow_a_compilers_stack_is_refused(device: Any, body: str, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        gpu.Kernel(device, "deep", {"x": "f32"}, {"y": "f32"}, {}, body)


def test_a_body_as_deep_as_allowed_compiles(device: Any) -> None:
    body = "y[i] = " + "sin(" * 99 + "x[i]" + ")" * 99 + "+x[i]" * 3000 + ";"
    gpu.Kernel(device, "deep", {"x": "f32"}, {"y": "f32"}, {}, body)


def test_calls_are_checked(device: Any) -> None:
    kernel, x = gpu.Kernel(device, *LEAKY), device.tensor(np.ones(4, np.float32))
    commands = gpu.CommandBuffer(device)
    steps: list[tuple[type[AstrideError], str, Any]] = [
        (ArgumentError, "parameters", lambda: kernel.encode(commands, x)),
        (ArgumentError, "parameters", lambda: kernel.encode(commands, x, slope=1.0, offset=2.0)),
        (ArgumentError, "other numbers", lambda: kernel.encode(commands, x, x, slope=1.0)),
        (ArrayError, "another dtype", lambda: kernel.encode(commands, device.empty((4,), "int32"), slope=1.0)),
        (ArrayError, "read and write", lambda: kernel.encode(commands, x, outputs=[x], slope=1.0)),
        (ArrayError, "no tensor", lambda: kernel.encode(commands, np.ones(4, np.float32), slope=1.0)),
        (ArrayError, "no tensor", lambda: kernel.encode(commands, x, outputs=[[1.0]], slope=1.0)),
        (ArrayError, "no list of tensors", lambda: kernel.encode(commands, x, outputs=x, slope=1.0)),
        (ArrayError, "no output", lambda: kernel.encode(commands, x, outputs=[], slope=1.0)),
        (ArgumentError, "shape", lambda: kernel.encode(commands, slope=1.0)),
        (ArgumentError, "count", lambda: kernel.encode(commands, x, count=-1, slope=1.0)),
    ]
    for error, says, step in steps:
        with pytest.raises(error, match=says):
            step()


def test_it_becomes_plain_data_and_back(device: Any) -> None:
    import json

    kernel = gpu.Kernel(device, *LEAKY)
    again = gpu.Kernel.from_dict(json.loads(json.dumps(kernel.to_dict())), device)
    assert again.to_dict() == kernel.to_dict() and repr(again) == "<Kernel leaky(x: f32, slope: f32) -> y>"
    for change in ({"version": 2}, {"format": "x"}, {"body": None}, {"inputs": 3}, {"name": "a b"}, {"more": 1}):
        with pytest.raises(ArgumentError):
            gpu.Kernel.from_dict(kernel.to_dict() | change, device)
    with pytest.raises(ArgumentError, match="no saved kernel"):
        gpu.from_dict(kernel.to_dict(), device)
