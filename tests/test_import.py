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
# NumPy's own import takes 0.08 s on a quick machine and 0.2 s on a slow or busy one. There our part counts alone,
# in seconds of this thread on the processor, which do not grow while others have it.
OWN_LIMIT_S = 0.075

# A clock around the statements measures what a user waits for; `-X importtime` would slow it down.
CODE = """
import json, sys, time
begin = time.perf_counter()
import numpy
middle = time.thread_time()
import {module}
own = time.thread_time() - middle
total = time.perf_counter() - begin
print(json.dumps([total, own, sorted(sys.modules)]))
"""


def import_in_fresh_process(module: str, path: Path | None = None) -> tuple[float, float, list[str]]:
    """Seconds in all, processor seconds on top of NumPy, and the modules then loaded."""
    env = dict(os.environ, PYTHONPATH=str(path)) if path else dict(os.environ)
    done = subprocess.run([sys.executable, "-c", CODE.format(module=module)], capture_output=True, text=True, check=True, env=env)
    total, own, modules = json.loads(done.stdout)
    return total, own, modules


def is_quick(module: str, path: Path | None = None, tries: int = 20) -> bool:
    """True once one try stays within a limit: others may be using the machine, so the quickest counts."""
    for _ in range(tries):
        total, own, _ = import_in_fresh_process(module, path)
        if total < LIMIT_S or own < OWN_LIMIT_S:
            return True
    return False


def heavy_among(modules: list[str]) -> list[str]:
    return [name for name in HEAVY if name in modules]


def test_import_is_quick() -> None:
    assert is_quick("astride")


def test_import_loads_nothing_heavy() -> None:
    _, _, modules = import_in_fresh_process("astride")
    assert "astride" in modules
    assert heavy_among(modules) == []


@pytest.mark.parametrize("name", ["PIL", "google.protobuf", "rich"])
def test_the_checks_can_fail(name: str, tmp_path: Path) -> None:
    busy = f"end = time.thread_time() + {LIMIT_S}\nwhile time.thread_time() < end:\n    pass\n"
    (tmp_path / "careless.py").write_text(f"import {name}\nimport time\n{busy}")
    assert not is_quick("careless", tmp_path, tries=2)
    assert name in heavy_among(import_in_fresh_process("careless", tmp_path)[2])
