"""Compiled kernels on disk, so that only the first process on a machine compiles them.

An entry is one file: a mark, the SHA-256 of the rest, and an object file. Its name is the digest of all that the code
depends on: the CPU and its features, LLVM's version, astride's own sources, the kernel's name and its specification. So
an entry is never wrong, only absent or damaged; a damaged one is deleted and made again. Files appear whole (written
aside, then renamed), which lets any number of processes write at once. The oldest go when the folder outgrows its limit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from .compiler import compile_object, load_object
from .machine import machine

MARK = b"astride-kernel-1"
LIMIT = 256 * 2**20
"""Bytes the folder may hold."""

REFRESH = 86_400
"""Seconds after which an entry that is read counts as new again."""

_addresses: dict[tuple[str, str], tuple[int, ...]] = {}


def folder() -> Path:
    """Where entries are: `kernels` in `ASTRIDE_CACHE_DIR`, or in the platform's cache folder of this user."""
    chosen = os.environ.get("ASTRIDE_CACHE_DIR")
    if chosen:
        return Path(chosen) / "kernels"
    from platformdirs import user_cache_path

    return user_cache_path("astride") / "kernels"


def functions(name: str, specification: object, write: Callable[[], str], names: tuple[str, ...]) -> tuple[int, ...]:
    """Addresses of a kernel's functions: from this process, from disk, or compiled now from the module `write` gives.

    `specification` must print all that `write` depends on besides astride's sources and the machine.
    """
    key = (name, repr(specification))
    found = _addresses.get(key)
    if found is None:
        path = folder() / f"{name}-{_digest(key)}.o"
        code = _read(path)
        if code is None:
            code = compile_object(write())
            _write(path, code)
        found = _addresses[key] = load_object(code, names)
    return found


def entries() -> list[tuple[str, int, float]]:
    """(kernel's name, bytes, time of last use) of every entry, the latest first."""
    found = []
    with contextlib.suppress(OSError):
        for path in folder().glob("*.o"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((path.name.rpartition("-")[0], status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: -entry[2])


def clear() -> tuple[int, int]:
    """Delete every entry: (how many, their bytes). Code already loaded stays."""
    count = freed = 0
    with contextlib.suppress(OSError):
        for path in folder().glob("*.o"):
            with contextlib.suppress(OSError):
                freed += path.stat().st_size
                path.unlink()
                count += 1
    return count, freed


def _read(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(MARK) + 32
    code = data[head:]
    if data[: len(MARK)] == MARK and hashlib.sha256(code).digest() == data[len(MARK) : head]:
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > REFRESH:
                os.utime(path)
        return code
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def _write(path: Path, code: bytes) -> None:
    """Keep an entry if the folder lets us; where it does not, the process has the code in memory."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(number, "wb") as file:
            file.write(MARK + hashlib.sha256(code).digest() + code)
        os.replace(temporary, path)
        temporary = None
        _trim(path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _trim(newest: Path) -> None:
    """Delete the entries unused for longest until the rest fits the limit."""
    found = []
    for path in newest.parent.glob("*.o"):
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    held = sum(size for _, size, _ in found)
    for _, size, path in sorted(found, key=lambda entry: entry[0]):
        if held <= LIMIT:
            return
        if path != newest:
            with contextlib.suppress(OSError):
                path.unlink()
                held -= size


def _digest(key: tuple[str, str]) -> str:
    return hashlib.sha256(repr((key, _surroundings())).encode()).hexdigest()[:32]


@lru_cache(None)
def _surroundings() -> str:
    """All that code depends on besides its kernel: this machine, LLVM, and the sources of this backend."""
    import llvmlite.binding as llvm

    sources = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".ll"):
            sources.update(path.read_bytes())
    return repr((machine(), llvm.llvm_version_info, sources.hexdigest()))
