"""`import astride` is quick and brings nothing heavy with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Neither the extras nor those required packages that take long to import.
HEAVY = (
    "PIL", "cv2", "dask", "google.protobuf", "h5py", "hypothesis", "jax", "llvmlite", "lmdb", "matplotlib", "mpi4py", "numba",
    "onnx", "onnxruntime", "plyvel", "pytest", "rich", "scipy", "sklearn", "torch", "typer", "wgpu",
)  # fmt: skip
LIMIT_S = 0.15

# perf_counter around the statement measures what a user waits for, NumPy's own import included;
# `-X importtime` would slow it down.
CODE = """
import json, sys, time
begin = time.perf_counter()
import {module}
took = time.perf_counter() - begin
print(json.dumps([took, sorted(sys.modules)]))
"""


def import_in_fresh_process(module: str, path: Path | None = None) -> tuple[float, list[str]]:
    env = dict(os.environ, PYTHONPATH=str(path)) if path else dict(os.environ)
    done = subprocess.run([sys.executable, "-c", CODE.format(module=module)], capture_output=True, text=True, check=True, env=env)
    took, modules = json.loads(done.stdout)
    return took, modules


def heavy_among(modules: list[str]) -> list[str]:
    return [name for name in HEAVY if name in modules]


def test_import_is_quick() -> None:
    times = []
    for _ in range(20):  # the machine may be busy with the rest of the suite; the fastest run counts
        times.append(import_in_fresh_process("astride")[0])
        if times[-1] < LIMIT_S:
            break
    assert min(times) < LIMIT_S, f"import astride took {min(times):.3f} s at best"


def test_import_loads_nothing_heavy() -> None:
    _, modules = import_in_fresh_process("astride")
    assert "astride" in modules
    assert heavy_among(modules) == []


@pytest.mark.parametrize("name", ["PIL", "google.protobuf", "rich"])
def test_the_check_can_fail(name: str, tmp_path: Path) -> None:
    (tmp_path / "careless.py").write_text(f"import {name}\nimport time\ntime.sleep({LIMIT_S})\n")
    took, modules = import_in_fresh_process("careless", tmp_path)
    assert took >= LIMIT_S
    assert name in heavy_among(modules)
