"""Compiled kernels on disk, so that only the first process on a machine compiles them.

An entry is one file: a mark, the SHA-256 of the rest, and an object file. Its name is the digest of all that the code
depends on: the CPU and its features, LLVM's version, astride's own sources, the kernel's name and its specification. So
an entry is never wrong, only absent or damaged; a damaged one is deleted and made again. Files appear whole (written
aside, then renamed), which lets any number of processes write at once. The oldest go when the folder outgrows its limit,
which a process looks at with its first entry and then whenever it has written a sixty-fourth of it.

LLVM trusts an object file, and the digest shows damage, not intent: an entry that belongs to another user is not read.
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

LARGEST = 16 * 2**20
"""Bytes of the largest file that is read."""

ABANDONED = 3_600
"""Seconds after which a file that was being written belongs to a process that died."""

REFRESH = 86_400
"""Seconds after which an entry that is read counts as new again."""

_addresses: dict[tuple[str, str], tuple[int, ...]] = {}

_unseen = LIMIT
"""Bytes this process has written since it last looked through the folder: with thousands of entries that takes longer than
writing one."""


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
    """(kernel's name, bytes, time of last use to about a day) of every entry, the latest first."""
    return [(path.name.rpartition("-")[0], bytes_, used) for used, bytes_, path in reversed(_files(folder()))]


def clear() -> tuple[int, int]:
    """Delete every entry: (how many, their bytes). Code already loaded stays."""
    count = freed = 0
    for _, bytes_, path in _files(folder()):
        with contextlib.suppress(OSError):
            path.unlink()
            count, freed = count + 1, freed + bytes_
    _sweep(folder(), 0)
    return count, freed


def _files(place: Path) -> list[tuple[float, int, Path]]:
    """(time of last use, bytes, file) of every entry, the oldest first."""
    found = []
    with contextlib.suppress(OSError):
        for path in place.glob("*.o"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
    return sorted(found)


def _read(path: Path) -> bytes | None:
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not _trusted(status) or status.st_size > LARGEST:
                return None
            data = file.read(LARGEST)
    except OSError:
        return None
    head = len(MARK) + 32
    code = data[head:]
    if data[: len(MARK)] == MARK and hashlib.sha256(code).digest() == data[len(MARK) : head]:
        with contextlib.suppress(OSError):
            if time.time() - status.st_mtime > REFRESH:
                os.utime(path)
        return code
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def _trusted(status: os.stat_result) -> bool:
    """Whether a file belongs to this user or to the system."""
    return not hasattr(os, "getuid") or status.st_uid in (os.getuid(), 0)


def _write(path: Path, code: bytes) -> None:
    """Keep an entry if the folder lets us; where it does not, the process has the code in memory.

    What a crash of the machine leaves half written its digest shows, so nothing waits for the disk.
    """
    global _unseen
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(number, "wb") as file:
            file.write(MARK + hashlib.sha256(code).digest() + code)
        os.replace(temporary, path)
        temporary = None
        _unseen += len(code)
        if _unseen >= LIMIT // 64:
            _unseen = 0
            _trim(path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _trim(newest: Path) -> None:
    """Delete the entries unused for longest until the rest fits the limit, and what dead processes left."""
    found = _files(newest.parent)
    held = sum(bytes_ for _, bytes_, _ in found)
    for _, bytes_, path in found:
        if held <= LIMIT:
            break
        if path != newest:
            with contextlib.suppress(OSError):
                path.unlink()
                held -= bytes_
    _sweep(newest.parent, ABANDONED)


def _sweep(place: Path, age: float) -> None:
    """Delete files that were begun and not finished for so many seconds."""
    with contextlib.suppress(OSError):
        for path in place.glob(".new-*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime >= age:
                    path.unlink()


def _digest(key: tuple[str, str]) -> str:
    return hashlib.sha256(repr((key, _surroundings())).encode()).hexdigest()[:32]


@lru_cache(None)
def _surroundings() -> str:
    """All that code depends on besides its kernel: this machine, LLVM, and the sources of this backend and of what it reads."""
    import llvmlite
    import llvmlite.binding as llvm

    here = Path(__file__).parent
    sources = hashlib.sha256()
    for path in [*sorted(here.glob("*.py")), *sorted(here.glob("*.ll")), here.parent.parent / "plan" / "kinds.py"]:
        sources.update(path.read_bytes())
    return repr((machine(), llvmlite.__version__, llvm.llvm_version_info, sources.hexdigest()))
