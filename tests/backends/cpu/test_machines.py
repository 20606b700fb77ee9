"""Code for other CPUs: narrower vectors of this one run, others' assembly is read."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys

import pytest

import astride
from astride.backends.cpu import pool_first, pool_last
from astride.backends.cpu.compiler import assembly
from astride.backends.cpu.extremes import Extreme
from astride.backends.cpu.gradients import Gradient
from astride.backends.cpu.line import Across
from astride.backends.cpu.machine import NAMED, machine
from astride.backends.cpu.sums import Sum
from astride.backends.cpu.window import Spec
from astride.errors import ArgumentError

USE = """
import ml_dtypes, numpy as np, astride, sys
from astride.backends.cpu.machine import machine
rng = np.random.default_rng(1)
for dtype in sys.argv[2:]:
    x = rng.integers(-9, 9, (2, 5, 13, 19)).astype(getattr(ml_dtypes, dtype, dtype))
    for op, rules, options in (("max_pool", "pytorch", {}), ("avg_pool", "pytorch", {}), ("lp_pool", "explicit", {"p": 2.0})):
        for layout in ("channels_first", "channels_last"):
            found = []
            for backend in ("cpu", "reference"):
                with astride.use(backend=backend, threads=2):
                    y, pull = astride.vjp(getattr(astride, op), x, kernel=3, stride=2, layout=layout, rules=rules, **options)
                    found.append((y, pull(np.ones_like(y))[0]))
            for ours, theirs in zip(*found):
                a, b = ours.astype("float64"), theirs.astype("float64")
                close = {"float64": 1e-12, "float32": 1e-5}.get(dtype, 2e-2)
                assert np.allclose(a, b, rtol=close, atol=close), (op, layout, dtype, abs(a - b).max())
assert machine().vector_bytes == int(sys.argv[1])
print("well")
"""


def pooled_as(name: str, *dtypes: str) -> str:
    """Pooling in a process that takes its CPU for another; what it prints on failure."""
    done = subprocess.run(
        [sys.executable, "-c", USE, str(NAMED[name][3]), *dtypes],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "ASTRIDE_CPU": name},
        check=False,
    )
    return done.stdout.strip() or done.stderr


def test_plain_vectors_compute_the_same() -> None:
    assert pooled_as("plain", "float32", "float64", "bfloat16") == "well"


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="AVX2 is x86's")
def test_avx2_computes_the_same() -> None:
    import llvmlite.binding as llvm

    if not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("this CPU lacks AVX2")
    assert pooled_as("avx2", "float32", "float64", "float16") == "well"


def test_a_cpu_that_cannot_read_float16_declines_it() -> None:
    text = pooled_as("plain", "float16")
    assert "no kernels for float16 on a CPU that cannot read it" in text


def test_an_unknown_cpu_is_refused() -> None:
    with pytest.raises(ArgumentError, match="one of avx512, avx2, neon, plain"):
        machine("z80")


def specification(op: str, dtype: str) -> Spec:
    plan = astride.plan(op, (1, 16, 24, 24), kernel=3, stride=2, dtype=dtype)
    return Sum.of(plan) if op == "avg_pool" else Extreme.of(plan, save=False)


def code(name: str, op: str, dtype: str, way: str) -> str:
    """The assembly of one kernel for one machine."""
    m, spec = machine(name), specification(op, dtype)
    if way == "first":
        return assembly(pool_first.forward(spec, Across(3, 2, 1, (1, 3)), m), m)
    if way == "last":
        return assembly(pool_last.forward(spec, m), m)
    plan = astride.plan(op, (1, 24, 24, 16), kernel=3, stride=2, dtype=dtype, layout="channels_last")
    return assembly(pool_last.backward(Gradient.of(plan), m), m)


VECTORS = {
    # What whole vectors of the machine look like in its assembly: float32 maxima (or the selection that makes them) and sums.
    "avx512": {"max_pool": r"v(max|blendm|cmplt)ps\b.*%zmm", "avg_pool": r"vaddps\b.*%zmm"},
    "avx2": {"max_pool": r"v(max|blendv|cmplt)ps\b.*%ymm", "avg_pool": r"vaddps\b.*%ymm"},
    "neon": {"max_pool": r"(fcmgt|fmaxnm|fmax)\s+v\d+\.4s", "avg_pool": r"fadd\s+v\d+\.4s"},
    "plain": {"max_pool": r"(max|cmplt)ps\b.*%xmm", "avg_pool": r"addps\b.*%xmm"},
}
if platform.machine().lower() not in ("x86_64", "amd64"):
    del VECTORS["plain"]  # whose vectors look like this CPU's


@pytest.mark.parametrize("way", ["first", "last"])
@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("name", VECTORS)
def test_whole_vectors_are_used(name: str, op: str, way: str) -> None:
    text = code(name, op, "float32", way)
    assert re.search(VECTORS[name][op], text), f"no vectors of {name}"
    assert re.search(r"%zmm", text) is None or name == "avx512"


CALL = re.compile(r"^\t(?:callq?|bl|blr)\t(.*)$", re.MULTILINE)
MEMORY = ("memset", "memcpy", "memmove")


@pytest.mark.parametrize("way", ["first", "last", "gradient"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
def test_kernels_call_nothing_but_memory(op: str, dtype: str, way: str) -> None:
    """No libm, no helper that computes what the CPU cannot: such a call would be named here, as it is in NEON's code."""
    called = CALL.findall(code("neon", op, dtype, way))
    assert set(called) <= set(MEMORY), called


@pytest.mark.parametrize("name", ["avx512", "avx2"])
@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
def test_float16_is_converted_by_instructions(op: str, name: str) -> None:
    for way in ("first", "last", "gradient"):
        text = code(name, op, "float16", way)
        assert "vcvtph2ps" in text and "vcvtps2ph" in text
        # x86's code calls through registers that a constant was put into: it shows what is called.
        named = set(re.findall(r"movabsq\t\$(\w+), ", text)) - {"memset", "memcpy", "memmove"}
        assert [symbol for symbol in named if symbol.startswith("__")] == []


def test_the_checker_sees_a_helper() -> None:
    """What the plain machine would call for float16, were it not declined."""
    m = machine("plain")
    text = assembly(pool_last.forward(specification("avg_pool", "float16"), m), m)
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("this CPU reads float16 whatever it is called")
    assert any(symbol.startswith("__") for symbol in re.findall(r"movabsq\t\$(\w+), ", text))


def test_the_driver_rests_as_the_cpu_does() -> None:
    assert machine("avx2").relax == "pause" and machine("neon").relax == "yield"


@pytest.mark.parametrize("name", NAMED)
def test_lanes(name: str) -> None:
    m = machine(name)
    assert m.lanes("float") == m.vector_bytes // 4 and m.lanes("i8") == m.vector_bytes
    assert m.lanes("double") == max(m.vector_bytes // 8, 1)
